#include "engine/model/stack.h"

#include <algorithm>

#include "engine/base/philox.h"
#include "engine/program/executor.h"
#include "kernels/bf16.h"

namespace stacklab {

StackModel::StackModel(const ModelConfig& config, DType storage, std::int64_t max_len, ProgramSet& set,
                       Recompute recompute, Masters masters)
    : config_(config), real_(real_of(storage)), recompute_(recompute) {
  ParameterBuilder parameters(set, storage, table_, masters);
  embedding_ = parameters.embedding("tok_emb.weight", config_.vocab_size, config_.d_model, config_.tie_embeddings);
  lookup_ = parameters.master("tok_emb.weight");
  for (std::int64_t layer = 0; layer < config_.n_layers; ++layer) {
    const LayerContext context{config_, layer, max_len, recompute_.swiglu};
    sublayers_.push_back(mixer_of(config_, layer).make(context, parameters));
    sublayers_.push_back(ffn_of(config_, layer).make(context, parameters));
  }
  final_norm_ = parameters.gain("final_norm.weight", config_.d_model);
  if (!config_.tie_embeddings)
    lm_head_ = parameters.embedding("lm_head.weight", config_.vocab_size, config_.d_model, true);
}

StackModel::State StackModel::forward(Builder& p, const TokenInputs& in, const Value& max_logits) const {
  State state;
  p.scope("embedding");
  state.x = p.embedding(in.ids, lookup_);  // [T, d]
  if (recompute_.blocks <= 0) {
    apply(p, state, 0, config_.n_layers, in, max_logits, false);
    return state;
  }
  for (std::int64_t begin = 0; begin < config_.n_layers; begin += recompute_.blocks) {
    state.inputs.push_back(state.x);
    apply(p, state, begin, std::min(begin + recompute_.blocks, config_.n_layers), in, max_logits, false);
    state.sublayers.clear();
  }
  return state;
}

void StackModel::apply(Builder& p, State& state, std::int64_t begin, std::int64_t end, const TokenInputs& in,
                       const Value& max_logits, bool again) const {
  p.recomputing(again);
  for (std::int64_t i = 2 * begin; i < 2 * end; ++i) {
    const std::int64_t row = i / 2 - (again ? begin : 0);
    Value max_logit = max_logits.row_range(row, row + 1);
    max_logit.shape = {config_.n_heads};
    const bool want_out = !again || i + 1 < 2 * end;
    Sublayer::Applied applied = sublayers_[static_cast<std::size_t>(i)]->apply(p, state.x, in, max_logit, want_out);
    state.x = applied.out;
    state.sublayers.push_back(std::move(applied.backward));
  }
  p.recomputing(false);
}

Value StackModel::loss(Builder& p, const State& state, const LossInputs& in, const Value& sums,
                       std::int64_t chunk) const {
  p.scope("head");
  return p.loss_head(
      state.x, final_norm_, head(), in.targets, in.coefficients, sums,
      {.chunk = chunk, .eps = config_.norm_eps, .soft_cap = config_.logit_soft_cap, .z_coef = config_.z_loss_coef});
}

Value StackModel::logits(Builder& p, const State& state) const {
  p.scope("head");
  return p.logits(state.x, final_norm_, head(), config_.norm_eps, config_.logit_soft_cap);
}

void StackModel::backward(Builder& p, const TokenInputs& in, const State& state, const Value& dx) const {
  const auto walk_back = [&](const std::vector<Backward>& sublayers) {
    for (auto back = sublayers.rbegin(); back != sublayers.rend(); ++back) (*back)(p, dx);
  };
  walk_back(state.sublayers);
  for (std::size_t stretch = state.inputs.size(); stretch-- > 0;) {
    const std::int64_t begin = static_cast<std::int64_t>(stretch) * recompute_.blocks;
    const std::int64_t end = std::min(begin + recompute_.blocks, config_.n_layers);
    State again;
    again.x = state.inputs[stretch];
    const Value unread =
        p.scratch_value("max_logits again", BufferClass::workspace, real_, {end - begin, config_.n_heads});
    apply(p, again, begin, end, in, unread, true);
    walk_back(again.sublayers);
  }
  p.scope("embedding");
  p.embedding_backward(in.ids, dx, embedding_);
}

void initialise(const ParameterTable& table, std::uint64_t seed, const Executor& executor) {
  const auto fill = [&](auto elements, const Parameter& p, std::uint32_t tensor) {
    const Philox numbers(seed, tensor);
    for (std::size_t i = 0; i < elements.size(); ++i) {
      const double x = p.kind == ParameterKind::gain ? 1.0 : p.init_std * numbers.normal(i);
      if constexpr (std::is_same_v<decltype(elements), std::span<BFloat16>>)
        elements[i] = BFloat16(static_cast<float>(x));
      else
        elements[i] = static_cast<std::remove_cvref_t<decltype(elements[i])>>(x);
    }
  };
  for (std::size_t n = 0; n < table.parameters.size(); ++n) {
    const Parameter& p = table.parameters[n];
    const auto tensor = static_cast<std::uint32_t>(n);
    if (p.view.dtype == DType::bf16)
      fill(executor.host<BFloat16>(p.view), p, tensor);
    else
      executor.visit(p.view, [&](auto elements) { fill(elements, p, tensor); });
  }
}

}  // namespace stacklab
