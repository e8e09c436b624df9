// optim/: clipping, Newton-Schulz, single updates, QK-clip, the schedule, and twenty steps of a whole model.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/model/stack.h"
#include "engine/optim/optimiser.h"
#include "engine/optim/schedule.h"
#include "engine/program/executor.h"
#include "tests/golden_tests/golden.h"

namespace stacklab::golden {
namespace {

void clip(const Case& c, const Setup& s, Comparison& out) {
  for (const auto& one : c.json().at("cases")) {
    const std::string index = std::to_string(one.at("index").get<int>());
    std::vector<double> squares;
    for (int i = 0; c.has(index + ".in." + std::to_string(i)); ++i) {
      Tensor g = Tensor::real(s, c, index + ".in." + std::to_string(i)), sum = Tensor::scalar(0);
      run(s, op::SumSquares{.g = g.view(), .out = sum.view()});
      squares.push_back(sum.values()[0]);
    }
    Tensor partials(DType::f64, Shape{static_cast<std::int64_t>(squares.size())});
    partials.set(squares);
    Tensor norm = Tensor::scalar(0), scale = Tensor::scalar(0), updates = Tensor::scalar(0);
    run(s, op::ClipScale{.partials = partials.view(),
                         .norm = norm.view(),
                         .scale = scale.view(),
                         .updates = updates.view(),
                         .max_norm = one.at("max_norm")});
    // Sums of squares are taken in double from inputs that are single: 1e-9 holds for every program.
    const double oracle = one.at("norm");
    out.close("norm " + index, norm.values(), {oracle}, 1e-9 * oracle);
    out.close("coefficient " + index, scale.values(), {one.at("coefficient").get<double>()}, 1e-9);
  }
}

void newton_schulz(const Case& c, const Setup& s, Comparison& out) {
  for (const auto& one : c.json().at("cases")) {
    const std::string index = std::to_string(one.at("index").get<int>());
    Tensor x = Tensor::real(s, c, "in." + index), y = Tensor::zeros(s, c.shape("in." + index));
    run(s, op::NewtonSchulz{.x = x.view(), .y = y.view(), .workspace = {}});
    const std::vector<double> oracle = c.reals("out." + index);
    // A matrix of rank 2 has directions that are rounding alone: its measured error says how much they grow.
    const double measured = one.contains("fp32_vs_fp64") ? one["fp32_vs_fp64"][0].get<double>() : 4.5e-6;
    out.close("case " + index, y.values(), oracle, allowed(s, oracle, measured));
  }
}

void steps(const Case& c, const Setup& s, Comparison& out) {
  for (const auto& one : c.json().at("cases")) {
    const std::string name = one.at("name");
    const Shape shape = c.shape(name + ".in.w");
    const bool muon = name.starts_with("muon");
    Tensor w = Tensor::real(s, c, name + ".in.w"), m = Tensor::zeros(s, shape), v = Tensor::zeros(s, shape);
    Tensor lr = Tensor::scalar(one.at("lr")), scale = Tensor::scalar(1);
    const std::vector<double> all = c.reals(name + ".in.g");
    const auto size = static_cast<std::size_t>(shape.size());
    // A square beyond single precision: only double can hold its second moment.
    const auto comparable = [&](std::vector<double> values) {
      if (!s.in_double())
        for (std::size_t i = 0; i < all.size(); ++i)
          if (std::abs(all[i]) > 1e18) values[i % size] = 0;
      return values;
    };
    const int count = static_cast<int>(all.size() / size);
    for (int k = 1; k <= count; ++k) {
      Tensor g = Tensor::zeros(s, shape), updates = Tensor::scalar(k);
      g.set({all.begin() + static_cast<std::ptrdiff_t>((k - 1) * size),
             all.begin() + static_cast<std::ptrdiff_t>(k * size)});
      if (muon)
        run(s, op::Muon{.w = w.view(),
                        .g = g.view(),
                        .m = m.view(),
                        .lr = lr.view(),
                        .scale = scale.view(),
                        .change = {},
                        .workspace = {},
                        .momentum = one.at("momentum"),
                        .weight_decay = one.at("weight_decay"),
                        .factor = muon_factor(one.at("scale"), shape[0], shape[1])});
      else
        run(s, op::AdamW{.w = w.view(),
                         .g = g.view(),
                         .m = m.view(),
                         .v = v.view(),
                         .lr = lr.view(),
                         .scale = scale.view(),
                         .updates = updates.view(),
                         .change = {},
                         .beta1 = one.at("betas")[0],
                         .beta2 = one.at("betas")[1],
                         .eps = one.at("eps"),
                         .weight_decay = one.at("weight_decay")});
      for (const auto& [what, tensor] : {std::pair("w", &w), std::pair("m", &m), std::pair("v", &v)}) {
        const std::string key = name + ".out." + what + std::to_string(k);
        if (!c.has(key)) continue;
        const std::vector<double> oracle = comparable(c.reals(key));
        // No error was measured: a Newton-Schulz update is off by its own 1e-6 times the rate, the rest by a few eps a
        // step.
        out.close(key, comparable(tensor->values()), oracle,
                  allowed(s, oracle, (muon ? 1e-6 * one.at("lr").get<double>() : 0) + k * 1e-7 * largest(oracle)));
      }
    }
  }
}

void qkclip(const Case& c, const Setup& s, Comparison& out) {
  const double tau = c.json().at("tau");
  const std::int64_t heads = c.json().at("heads"), kv_heads = c.json().at("kv_heads");
  const auto clipped = [&](const std::string& wq_name, const std::string& wk_name, const std::string& logits,
                           std::int64_t kv, const std::string& wq_out, const std::string& wk_out) {
    Tensor wq = Tensor::real(s, c, wq_name), wk = Tensor::real(s, c, wk_name),
           max_logit = Tensor::zeros(s, Shape{heads});
    max_logit.set(c.reals(logits));
    run(s, op::QkClipHeads{.wq = wq.view(),
                           .wk = wk.view(),
                           .max_logit = max_logit.view(),
                           .n_heads = heads,
                           .n_kv_heads = kv,
                           .threshold = tau});
    out.close(wq_out, wq.values(), c.reals(wq_out), allowed(s, c.reals(wq_out), 0));
    out.close(wk_out, wk.values(), c.reals(wk_out), allowed(s, c.reals(wk_out), 0));
  };
  clipped("gqa.in.wq", "gqa.in.wk", "gqa.out.max_logit", kv_heads, "gqa.group.wq", "gqa.group.wk");
  clipped("gqa.in.wq", "mha.in.wk", "mha.out.max_logit", heads, "mha.clipped.wq", "mha.clipped.wk");
  Tensor gq = Tensor::real(s, c, "qknorm.in.gq"), gk = Tensor::real(s, c, "qknorm.in.gk");
  run(s, op::QkClipGains{.q_gain = gq.view(), .k_gain = gk.view(), .threshold = c.json().at("qknorm").at("tau")});
  // The oracle's bound is a single-precision number.
  for (const auto& [name, gain] : {std::pair("qknorm.scaled.gq", &gq), std::pair("qknorm.scaled.gk", &gk)})
    out.close(name, gain->values(), c.reals(name), eps32 * largest(c.reals(name)) * (s.in_double() ? 1 : 4));
}

void wsd(const Case& c, const Setup&, Comparison& out) {
  for (const auto& one : c.json().at("cases")) {
    if (!one.contains("lr")) continue;
    ScheduleConfig schedule;
    schedule.warmup_tokens = one.at("warmup"), schedule.decay_tokens = one.at("decay"),
    schedule.shape = one.at("shape");
    const double peak = one.at("lr_peak");
    schedule.min_factor = one.value("lr_min", 0.0) / peak;
    for (std::size_t i = 0; i < one.at("steps").size(); ++i) {
      const std::int64_t step = one["steps"][i];
      out.close("lr at " + std::to_string(step), {peak * schedule_factor(schedule, step, one.at("total"))},
                {one["lr"][i].get<double>()}, 1e-12 * peak);
    }
  }
}

// Twenty steps of a small model: forward, backward, clipping, Muon on the matrices and AdamW on the rest.
class Trajectory {
 public:
  Trajectory(const Case& c, const Setup& s)
      : case_(c), setup_(s), config_(model_config(c.json().at("config"))), model_(config_, s.real, 16, set_) {
    const auto& hyper = c.json().at("hyper");
    OptimConfig optim;
    optim.matrices = "muon", optim.muon_momentum = hyper.at("momentum"), optim.muon_scale = hyper.at("scale");
    optim.weight_decay = hyper.at("muon_wd"), optim.adam_beta1 = hyper.at("adam_betas")[0],
    optim.adam_beta2 = hyper.at("adam_betas")[1];
    optim.adam_eps = hyper.at("adam_eps"), optim.grad_clip = hyper.at("clip"), optim.qk_clip = 0;
    optimiser_.emplace(optim, model_.parameters(), set_);
    const Shape tokens = c.shape("in.tokens");
    rows_ = tokens[1], width_ = tokens[2] - 1;
    const std::int64_t total = rows_ * width_;
    Builder p(set_, *s.backend, "step", Gradients::step);
    in_ = {p.input("ids", DType::i32, {total}), p.input("positions", DType::i32, {total}),
           p.input("cu", DType::i32, {rows_ + 1})};
    loss_in_ = {p.input("targets", DType::i32, {total}), p.input("coefficients", s.real, {total})};
    sums_ = p.output("sums", DType::f64, {2});
    const Value max_logits = p.output("max_logits", s.real, {config_.n_layers, config_.n_heads});
    p.segment("forward");
    const StackModel::State state = model_.forward(p, in_, max_logits);
    const Value dx = model_.loss(p, state, loss_in_, sums_, total);
    p.segment("backward");
    model_.backward(p, in_, state, dx);
    p.segment("optimiser");
    std::vector<Value> gradients;
    for (const ParameterBuffer& b : model_.parameters().buffers) gradients.push_back(p.gradient(b.value));
    io_ = optimiser_->append(p, gradients);
    program_ = p.finish();
    executor_.emplace(std::move(*Executor::create(set_, *s.backend, nullptr)));
    for (const Parameter& parameter : model_.parameters().parameters) {
      const std::vector<double> w = c.reals("w." + parameter.name);
      executor_->visit(parameter.view, [&](auto to) {
        for (std::size_t i = 0; i < w.size(); ++i) to[i] = static_cast<std::remove_cvref_t<decltype(to[i])>>(w[i]);
      });
    }
  }

  // Returns loss and gradient norm, both from before the update.
  std::pair<double, double> step(std::int64_t index, double lr, double adam_ratio) {
    const std::vector<std::int32_t> tokens = case_.ints("in.tokens");
    const auto ids = executor_->host<std::int32_t>(in_.ids), targets = executor_->host<std::int32_t>(loss_in_.targets);
    const auto positions = executor_->host<std::int32_t>(in_.positions),
               cu = executor_->host<std::int32_t>(in_.cu_seqlens);
    for (std::int64_t r = 0; r < rows_; ++r)
      for (std::int64_t t = 0; t < width_; ++t) {
        const auto at = static_cast<std::size_t>(r * width_ + t),
                   from = static_cast<std::size_t>((index * rows_ + r) * (width_ + 1) + t);
        ids[at] = tokens[from], targets[at] = tokens[from + 1], positions[at] = static_cast<std::int32_t>(t);
      }
    for (std::int64_t r = 0; r <= rows_; ++r) cu[static_cast<std::size_t>(r)] = static_cast<std::int32_t>(r * width_);
    executor_->visit(loss_in_.coefficients, [&](auto to) {
      for (auto& x : to) x = static_cast<std::remove_cvref_t<decltype(x)>>(-1.0 / static_cast<double>(rows_ * width_));
    });
    executor_->host<double>(io_.muon_lr)[0] = lr;
    executor_->host<double>(io_.adam_lr)[0] = lr * adam_ratio;
    executor_->run(program_);
    const auto sums = executor_->host<double>(sums_);
    return {sums[0] + sums[1], executor_->host<double>(io_.norm)[0]};
  }

  std::vector<double> values(const Value& v) const {
    std::vector<double> out;
    executor_->visit(v, [&](auto from) { out.assign(from.begin(), from.end()); });
    return out;
  }
  const std::vector<Parameter>& parameters() const { return model_.parameters().parameters; }
  std::vector<Optimiser::StateTensor> state() const { return optimiser_->state(); }

 private:
  const Case& case_;
  const Setup& setup_;
  ModelConfig config_;
  ProgramSet set_;
  StackModel model_;
  std::optional<Optimiser> optimiser_;
  TokenInputs in_;
  LossInputs loss_in_;
  Value sums_;
  Optimiser::Io io_;
  int program_ = -1;
  std::int64_t rows_ = 0, width_ = 0;
  std::optional<Executor> executor_;
};

void hybrid(const Case& c, const Setup& s, Comparison& out) {
  const auto& hyper = c.json().at("hyper");
  ScheduleConfig schedule;
  schedule.warmup_tokens = hyper.at("warmup"), schedule.decay_tokens = hyper.at("decay"),
  schedule.shape = hyper.at("shape");
  const std::int64_t count = hyper.at("steps");
  const auto& measured = c.json().at("measured_fp32_vs_fp64");
  Trajectory t(c, s);
  for (std::int64_t i = 0; i < count; ++i) {
    const double lr = hyper.at("lr_peak").get<double>() * schedule_factor(schedule, i, count);
    const auto index = static_cast<std::size_t>(i);
    out.close("lr of step " + std::to_string(i), {lr}, {c.json().at("lr")[index].get<double>()}, 1e-12);
    const auto [loss, norm] = t.step(i, lr, hyper.at("adam_lr_ratio"));
    const double oracle = c.json().at("losses")[index], grad_norm = c.json().at("grad_norms_before_clip")[index];
    // The measured errors of single steps scatter: the largest of all steps is taken.
    double worst = 0;
    for (const auto& e : measured.at("losses")) worst = std::max(worst, e.get<double>());
    out.close("loss of step " + std::to_string(i), {loss}, {oracle},
              s.in_double() ? 1e-9 * oracle : std::max(8 * worst, 4 * eps32 * oracle));
    out.close("gradient norm of step " + std::to_string(i), {norm}, {grad_norm},
              grad_norm * (s.in_double() ? 1e-8 : 8 * 3.0e-6));
    const std::string after = std::to_string(i + 1);
    if (!measured.contains("params_after_" + after)) continue;
    for (const Parameter& p : t.parameters()) {
      const std::vector<double> expected = c.reals("step" + after + "." + p.name);
      // Stored rounded to single precision.
      out.close(p.name + " after " + after, t.values(p.view), expected,
                s.in_double() ? eps32 * largest(expected)
                              : std::max(8 * measured["params_after_" + after].get<double>(), 4 * eps32) *
                                    std::max(1.0, largest(expected)));
    }
  }
  if (!s.in_double()) return;
  for (const Optimiser::StateTensor& state : t.state()) {
    const auto dot = state.name.find('.');
    if (dot == std::string::npos) continue;
    const std::string key = (state.name.starts_with("adam_v") ? "v20." : "m20.") + state.name.substr(dot + 1);
    const std::vector<double> expected = c.reals(key);
    out.close(state.name, t.values(state.view), expected, eps32 * largest(expected));
  }
}

}  // namespace

std::vector<Kind> optim_kinds() {
  return {{"optim/clip", clip, {}},   {"optim/newton_schulz", newton_schulz, {}},
          {"optim/steps", steps, {}}, {"optim/qkclip", qkclip, {}},
          {"optim/wsd", wsd, {}},     {"optim/hybrid", hybrid, {}}};
}

}  // namespace stacklab::golden
