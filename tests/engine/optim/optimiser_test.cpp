// Which optimiser trains what, and QK-clip through a whole model.
#include "engine/optim/optimiser.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "engine/model/stack.h"
#include "engine/program/executor.h"

namespace stacklab::test {
namespace {

ModelConfig small_model() {
  ModelConfig c;
  c.vocab_size = 19, c.d_model = 12, c.n_layers = 2, c.n_heads = 4, c.n_kv_heads = 2, c.head_dim = 6;
  c.intermediate = 10, c.max_seq_len = 16, c.nope_every = 2, c.tie_embeddings = true;
  return c;
}

// Every parameter has the state of exactly one optimiser.
TEST(Optimiser, MuonTrainsHiddenMatricesAndNothingElse) {
  for (const bool tied : {true, false})
    for (const DType storage : {DType::f32, DType::bf16}) {
      ModelConfig c = small_model();
      c.tie_embeddings = tied;
      ProgramSet set;
      const StackModel model(c, storage, 16, set);
      const Optimiser optimiser(OptimConfig{}, model.parameters(), set);
      std::set<std::string> muon, adam;
      for (const Optimiser::StateTensor& s : optimiser.state()) {
        EXPECT_NE(s.view.dtype, DType::bf16) << s.name;
        const std::string state = s.name.substr(0, 7),
                          parameter = s.name.substr(std::min<std::size_t>(7, s.name.size()));
        if (state != "muon_m." && state != "adam_m.") continue;
        EXPECT_TRUE((state == "muon_m." ? muon : adam).insert(parameter).second) << s.name;
      }
      std::set<std::string> matrices, rest = {"tok_emb.weight", "final_norm.weight"};
      if (!tied) rest.insert("lm_head.weight");
      for (const char* block : {"blocks.0.", "blocks.1."}) {
        for (const char* m : {"attn.wq", "attn.wk", "attn.wv", "attn.wo", "mlp.gate", "mlp.up", "mlp.down"})
          matrices.insert(std::string(block) + m + ".weight");
        for (const char* g : {"attn_norm", "mlp_norm", "attn.q_norm", "attn.k_norm"})
          rest.insert(std::string(block) + g + ".weight");
      }
      EXPECT_EQ(muon, matrices);
      EXPECT_EQ(adam, rest);
    }
}

// One update from given gradients: parameters of a model before and after.
class Update {
 public:
  Update(const ModelConfig& model, const OptimConfig& optim, const Backend& backend)
      : model_(model, DType::f32, 16, set_), optimiser_(optim, model_.parameters(), set_) {
    Builder p(set_, backend, "update", Gradients::none);
    for (const ParameterBuffer& b : model_.parameters().buffers)
      gradients_.push_back(p.input("gradient", DType::f32, b.value.shape));
    p.segment("optimiser");
    io_ = optimiser_.append(p, gradients_);
    program_ = p.finish();
    executor_.emplace(std::move(*Executor::create(set_, backend, nullptr)));
    initialise(model_.parameters(), 3, *executor_);
    optimiser_.clear_state(*executor_);
  }
  void set_gradient(const std::function<float(std::size_t buffer, std::size_t element)>& value) {
    for (std::size_t b = 0; b < gradients_.size(); ++b) {
      const auto g = executor_->host<float>(gradients_[b]);
      for (std::size_t i = 0; i < g.size(); ++i) g[i] = value(b, i);
    }
  }
  void run(double rate) {
    executor_->host<double>(io_.adam_lr)[0] = rate;
    executor_->host<double>(io_.muon_lr)[0] = rate;
    executor_->run(program_);
  }
  std::map<std::string, std::vector<float>> parameters() const {
    std::map<std::string, std::vector<float>> all;
    for (const Parameter& p : model_.parameters().parameters) {
      const auto values = executor_->host<float>(p.view);
      all[p.name] = {values.begin(), values.end()};
    }
    return all;
  }
  const StackModel& model() const { return model_; }
  const Executor& executor() const { return *executor_; }
  const std::vector<Value>& gradients() const { return gradients_; }

 private:
  ProgramSet set_;
  StackModel model_;
  Optimiser optimiser_;
  std::vector<Value> gradients_;
  Optimiser::Io io_;
  int program_ = -1;
  std::optional<Executor> executor_;
};

TEST(Optimiser, AZeroGradientChangesNothingWithoutDecay) {
  for (const std::string_view device : backend_names()) {
    OptimConfig optim;
    optim.weight_decay = 0, optim.qk_clip = 0;
    Update u(small_model(), optim, *find_backend(device));
    const auto before = u.parameters();
    u.set_gradient([](std::size_t, std::size_t) { return 0.0f; });
    u.run(0.1);
    EXPECT_EQ(u.parameters(), before) << device;
  }
}

// Merged QKV is three matrices to Muon: each moves as if it had been alone.
TEST(Optimiser, MergedMatricesMoveAsTheirPartsAlone) {
  for (const std::string_view device : backend_names()) {
    const Backend& backend = *find_backend(device);
    OptimConfig optim;
    optim.grad_clip = 0, optim.qk_clip = 0;
    Update u(small_model(), optim, backend);
    const auto gradient = [](std::size_t buffer, std::size_t i) {
      return static_cast<float>(std::sin(static_cast<double>(7 * buffer + i)));
    };
    u.set_gradient(gradient);
    const auto before = u.parameters();
    const double rate = 0.05;
    u.run(rate);
    const auto after = u.parameters();
    for (const Parameter& p : u.model().parameters().parameters) {
      if (p.kind != ParameterKind::matrix) continue;
      // The part of the merged gradient, by its rows.
      const std::size_t first = static_cast<std::size_t>(p.view.place.offset) / sizeof(float),
                        n = static_cast<std::size_t>(p.view.size());
      std::vector<float> w = before.at(p.name), g(n), m(n, 0.0f);
      for (std::size_t i = 0; i < n; ++i) g[i] = gradient(p.buffer, first + i);
      double lr = rate, scale = 1;
      const auto view = [&](auto& data, DType type, Shape shape) {
        TensorView v;
        v.data = reinterpret_cast<std::byte*>(&data);
        v.dtype = type, v.shape = shape;
        return v;
      };
      op::Muon alone{.w = view(w[0], DType::f32, p.view.shape),
                     .g = view(g[0], DType::f32, p.view.shape),
                     .m = view(m[0], DType::f32, p.view.shape),
                     .lr = view(lr, DType::f64, {1}),
                     .scale = view(scale, DType::f64, {1}),
                     .change = {},
                     .workspace = {},
                     .momentum = optim.muon_momentum,
                     .weight_decay = optim.weight_decay,
                     .factor = muon_factor(optim.muon_scale, p.view.rows(), p.view.cols()),
                     .ns_steps = optim.ns_steps};
      std::vector<double> workspace(static_cast<std::size_t>(backend.needs(Op(alone)).workspace + 7) / 8 + 1);
      alone.workspace = view(workspace[0], DType::u8, {static_cast<std::int64_t>(8 * workspace.size())});
      backend.run(Op(alone), KernelContext{});
      EXPECT_EQ(after.at(p.name), w) << p.name << " on " << device;
    }
  }
}

// The model's largest logits before and after one update with rate 0 that clips.
struct Clipped {
  std::vector<float> before, after;
};
Clipped clip_at(double threshold, const Backend& backend) {
  ModelConfig c = small_model();
  c.qk_norm = false;
  OptimConfig optim;
  optim.qk_clip = threshold;
  constexpr std::int64_t tokens = 9;
  ProgramSet set;
  const StackModel model(c, DType::f32, tokens, set);
  const Optimiser optimiser(optim, model.parameters(), set);
  Builder p(set, backend, "step", Gradients::step);
  const TokenInputs in{p.input("ids", DType::i32, {tokens}), p.input("positions", DType::i32, {tokens}),
                       p.input("cu_seqlens", DType::i32, {2})};
  const LossInputs loss{p.input("targets", DType::i32, {tokens}), p.input("coefficients", DType::f32, {tokens})};
  const Value sums = p.output("sums", DType::f64, {2}),
              max_logits = p.output("max_logits", DType::f32, {c.n_layers, c.n_heads});
  p.segment("forward");
  const StackModel::State state = model.forward(p, in, max_logits);
  const Value dx = model.loss(p, state, loss, sums, tokens);
  p.segment("backward");
  model.backward(p, in, state, dx);
  p.segment("optimiser");
  std::vector<Value> gradients;
  for (const ParameterBuffer& b : model.parameters().buffers) gradients.push_back(p.gradient(b.value));
  const Optimiser::Io io = optimiser.append(p, gradients);
  const int program = p.finish();
  Executor executor = std::move(*Executor::create(set, backend, nullptr));
  initialise(model.parameters(), 5, executor);
  // Large queries and keys.
  for (const Parameter& q : model.parameters().parameters)
    if (q.name.ends_with("wq.weight") || q.name.ends_with("wk.weight"))
      for (float& w : executor.host<float>(q.view)) w *= 100;
  optimiser.clear_state(executor);
  const auto step = [&] {
    for (std::int64_t t = 0; t < tokens; ++t) {
      const auto i = static_cast<std::size_t>(t);
      executor.host<std::int32_t>(in.ids)[i] = static_cast<std::int32_t>(5 * t % c.vocab_size);
      executor.host<std::int32_t>(in.positions)[i] = static_cast<std::int32_t>(t);
      executor.host<std::int32_t>(loss.targets)[i] = static_cast<std::int32_t>(5 * (t + 1) % c.vocab_size);
      executor.host<float>(loss.coefficients)[i] = -1.0f / tokens;
    }
    executor.host<std::int32_t>(in.cu_seqlens)[0] = 0, executor.host<std::int32_t>(in.cu_seqlens)[1] = tokens;
    executor.run(program, "forward");
    executor.run(program, "backward");
    const auto logits = executor.host<float>(max_logits);
    std::vector<float> largest(logits.begin(), logits.end());
    executor.host<double>(io.adam_lr)[0] = executor.host<double>(io.muon_lr)[0] = 0;
    if (io.max_logits.present()) std::copy(largest.begin(), largest.end(), executor.host<float>(io.max_logits).begin());
    executor.run(program, "optimiser");
    return largest;
  };
  Clipped result;
  result.before = step();
  result.after = step();
  return result;
}

// The same batch again, with nothing else changed: the worst head of a clipped group is at the threshold, and a layer
// whose heads are all below it is what it was, bit for bit.
TEST(Optimiser, QkClipBringsTheWorstHeadOfAGroupToTheThreshold) {
  for (const std::string_view device : backend_names()) {
    const Backend& backend = *find_backend(device);
    const std::vector<float> free = clip_at(1e9, backend).after;
    // Between the groups of the first layer, so that one is clipped and the other is not.
    const double one = std::max(free[0], free[1]), other = std::max(free[2], free[3]);
    ASSERT_GT(std::abs(one - other), 0.01 * one);
    const double threshold = (one + other) / 2;
    const Clipped clipped = clip_at(threshold, backend);
    EXPECT_EQ(clipped.before, free) << "the step that clips is not altered itself";
    const std::size_t worst = one > other ? 0 : 2, spared = 2 - worst;
    // Every logit of the clipped group, and its worst one, scales with gamma: products of 12 and of 6 numbers, rounded.
    const double gamma = threshold / std::max(one, other), eps = 0x1p-24;
    EXPECT_NEAR(std::max(clipped.after[worst], clipped.after[worst + 1]), threshold, 4 * (12 + 6) * eps * threshold);
    EXPECT_NEAR(clipped.after[worst], gamma * free[worst], 4 * (12 + 6) * eps * threshold);
    for (const std::size_t h : {spared, spared + 1}) EXPECT_EQ(clipped.after[h], free[h]) << device;
    EXPECT_EQ(clip_at(2 * std::max(one, other) + 1e6, backend).after, free) << "below the threshold nothing moves";
  }
}

}  // namespace
}  // namespace stacklab::test
