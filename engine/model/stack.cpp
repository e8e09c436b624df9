#include "engine/model/stack.h"

#include <fmt/core.h>

#include <cmath>

#include "engine/base/philox.h"
#include "engine/program/executor.h"

namespace stacklab {
namespace {

constexpr double init_std = 0.02;

std::string block_name(std::int64_t layer) { return fmt::format("blocks.{}", layer); }

}  // namespace

std::int64_t ParameterTable::count() const {
  std::int64_t sum = 0;
  for (const ParameterBuffer& b : buffers) sum += b.value.size();
  return sum;
}

StackModel::StackModel(const ModelConfig& config, DType dtype, std::int64_t max_len, ProgramSet& set)
    : config_(config), max_len_(max_len) {
  const auto declare = [&](const std::string& name, ParameterKind kind, Shape shape) {
    const Value v = set.persistent(name, BufferClass::parameter, dtype, shape);
    table_.buffers.push_back({v, kind});
    return v;
  };
  const auto list = [&](const std::string& name, ParameterKind kind, const Value& view, double std) {
    table_.parameters.push_back({name, view, kind, std});
  };
  const auto gain = [&](const std::string& name, std::int64_t width) {
    const Value v = declare(name, ParameterKind::gain, {width});
    list(name, ParameterKind::gain, v, 0);
    return v;
  };
  const auto matrix = [&](const std::string& name, std::int64_t out, std::int64_t in, double std) {
    const Value v = declare(name, ParameterKind::matrix, {out, in});
    list(name, ParameterKind::matrix, v, std);
    return v;
  };
  const ModelConfig& c = config_;
  const std::int64_t q_rows = c.n_heads * c.head_dim, kv_rows = c.n_kv_heads * c.head_dim;
  // Both residual outputs of a block start smaller, so that 2 L of them keep the stream's variance (Radford et al.
  // 2019, section 2.3).
  const double residual_std = init_std / std::sqrt(2.0 * static_cast<double>(c.n_layers));

  embedding_ = declare("tok_emb.weight", ParameterKind::embedding, {c.vocab_size, c.d_model});
  list("tok_emb.weight", ParameterKind::embedding, embedding_, init_std);
  for (std::int64_t layer = 0; layer < c.n_layers; ++layer) {
    const std::string block = block_name(layer), attn = block + ".attn.", mlp = block + ".mlp.";
    BlockWeights w;
    w.attn_norm = gain(block + ".attn_norm.weight", c.d_model);
    w.qkv = declare(attn + "wqkv.weight", ParameterKind::matrix, {q_rows + 2 * kv_rows, c.d_model});
    list(attn + "wq.weight", ParameterKind::matrix, w.qkv.row_range(0, q_rows), init_std);
    list(attn + "wk.weight", ParameterKind::matrix, w.qkv.row_range(q_rows, q_rows + kv_rows), init_std);
    list(attn + "wv.weight", ParameterKind::matrix, w.qkv.row_range(q_rows + kv_rows, q_rows + 2 * kv_rows), init_std);
    w.o = matrix(attn + "wo.weight", c.d_model, q_rows, residual_std);
    if (c.qk_norm) {
      w.q_norm = gain(attn + "q_norm.weight", c.head_dim);
      w.k_norm = gain(attn + "k_norm.weight", c.head_dim);
    }
    w.mlp_norm = gain(block + ".mlp_norm.weight", c.d_model);
    w.gate_up = declare(mlp + "gate_up.weight", ParameterKind::matrix, {2 * c.intermediate, c.d_model});
    list(mlp + "gate.weight", ParameterKind::matrix, w.gate_up.row_range(0, c.intermediate), init_std);
    list(mlp + "up.weight", ParameterKind::matrix, w.gate_up.row_range(c.intermediate, 2 * c.intermediate), init_std);
    w.down = matrix(mlp + "down.weight", c.d_model, c.intermediate, residual_std);
    table_.attention.push_back({w.qkv.row_range(0, q_rows), w.qkv.row_range(q_rows, q_rows + kv_rows), w.q_norm,
                                w.k_norm, c.n_heads, c.n_kv_heads});
    blocks_.push_back(w);
  }
  final_norm_ = gain("final_norm.weight", c.d_model);
  if (!c.tie_embeddings) {
    lm_head_ = declare("lm_head.weight", ParameterKind::embedding, {c.vocab_size, c.d_model});
    list("lm_head.weight", ParameterKind::embedding, lm_head_, init_std);
  }
}

AttentionShape StackModel::attention_shape(std::int64_t layer) const {
  AttentionShape s;
  s.n_heads = config_.n_heads;
  s.n_kv_heads = config_.n_kv_heads;
  s.head_dim = config_.head_dim;
  s.max_len = max_len_;
  s.rope = config_.nope_every <= 0 || (layer + 1) % config_.nope_every != 0;
  s.rope_theta = config_.rope_theta;
  s.scale = 1.0 / std::sqrt(static_cast<double>(config_.head_dim));
  s.soft_cap = config_.attn_soft_cap;
  s.norm_eps = config_.norm_eps;
  return s;
}

StackModel::BlockState StackModel::block_forward(Builder& p, std::int64_t layer, const Value& x, const TokenInputs& in,
                                                 const Value& max_logit, Value& out) const {
  const BlockWeights& w = blocks_[static_cast<std::size_t>(layer)];
  BlockState s;
  s.x = x;  // [T, d]
  p.scope(block_name(layer) + ".attn");
  s.qkv = p.norm_matmul(x, w.attn_norm, w.qkv, config_.norm_eps);  // [T, (Hq + 2 Hk) Dh]
  s.attention =
      p.attention(s.qkv.y, w.q_norm, w.k_norm, in.positions, in.cu_seqlens, attention_shape(layer), max_logit);
  s.middle = p.project_add(s.attention.out, w.o, x);  // x + a Wo^T
  p.scope(block_name(layer) + ".mlp");
  s.hidden = p.norm_swiglu(s.middle, w.mlp_norm, w.gate_up, config_.norm_eps);  // [T, F]
  out = p.project_add(s.hidden.y, w.down, s.middle);                            // x + u Wdown^T
  return s;
}

void StackModel::block_backward(Builder& p, std::int64_t layer, const BlockState& s, const TokenInputs& in,
                                const Value& dx) const {
  const BlockWeights& w = blocks_[static_cast<std::size_t>(layer)];
  p.scope(block_name(layer) + ".mlp");
  const Value du = p.project_add_backward(dx, s.hidden.y, w.down);
  p.norm_swiglu_backward(du, s.middle, w.mlp_norm, w.gate_up, s.hidden, config_.norm_eps, dx);
  p.scope(block_name(layer) + ".attn");
  const Value da = p.project_add_backward(dx, s.attention.out, w.o);
  const Value dqkv = p.attention_backward(da, s.qkv.y, w.q_norm, w.k_norm, in.positions, in.cu_seqlens,
                                          attention_shape(layer), s.attention);
  p.norm_matmul_backward(dqkv, s.x, w.attn_norm, w.qkv, s.qkv, config_.norm_eps, dx);
}

StackModel::State StackModel::forward(Builder& p, const TokenInputs& in, const Value& max_logits) const {
  State state;
  p.scope("embedding");
  Value x = p.embedding(in.ids, embedding_);
  for (std::int64_t layer = 0; layer < config_.n_layers; ++layer) {
    Value max_logit = max_logits.row_range(layer, layer + 1);
    max_logit.shape = {config_.n_heads};
    Value out;
    state.blocks.push_back(block_forward(p, layer, x, in, max_logit, out));
    x = out;
  }
  state.x = x;
  return state;
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
  for (std::int64_t layer = config_.n_layers - 1; layer >= 0; --layer)
    block_backward(p, layer, state.blocks[static_cast<std::size_t>(layer)], in, dx);
  p.scope("embedding");
  p.embedding_backward(in.ids, dx, embedding_);
}

void initialise(const ParameterTable& table, std::uint64_t seed, const Executor& executor) {
  const auto fill = [&](auto elements, const Parameter& p, std::uint32_t tensor) {
    const Philox numbers(seed, tensor);
    for (std::size_t i = 0; i < elements.size(); ++i)
      elements[i] = static_cast<std::remove_cvref_t<decltype(elements[i])>>(
          p.kind == ParameterKind::gain ? 1.0 : p.init_std * numbers.normal(i));
  };
  for (std::size_t n = 0; n < table.parameters.size(); ++n) {
    const Parameter& p = table.parameters[n];
    executor.visit(p.view, [&](auto elements) { fill(elements, p, static_cast<std::uint32_t>(n)); });
  }
}

}  // namespace stacklab
