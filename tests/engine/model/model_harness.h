// A model with its gradients on a backend: what the tests of the model share.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/model/stack.h"
#include "engine/program/executor.h"

namespace stacklab::test {

struct PackedTokens {
  std::vector<std::int32_t> ids, targets, positions, cu_seqlens;
};

// Forward, loss, logits and backward of one batch in one Program; gradients persist, so that they can be read.
class ModelOnBatch {
 public:
  ModelOnBatch(const ModelConfig& config, DType dtype, std::int64_t tokens, std::int64_t documents, std::int64_t chunk,
               const Backend& backend = *find_backend("reference"), Recompute recompute = {})
      : model_(config, dtype, tokens, set_, recompute) {
    Builder p(set_, backend, "model", Gradients::assign);
    in_.ids = p.input("ids", DType::i32, {tokens});
    in_.positions = p.input("positions", DType::i32, {tokens});
    in_.cu_seqlens = p.input("cu_seqlens", DType::i32, {documents + 1});
    loss_in_.targets = p.input("targets", DType::i32, {tokens});
    loss_in_.coefficients = p.input("coefficients", model_.real(), {tokens});
    sums_ = p.output("sums", DType::f64, {2});
    max_logits_ = p.output("max_logits", model_.real(), {config.n_layers, config.n_heads});
    p.segment("forward");
    const StackModel::State state = model_.forward(p, in_, max_logits_);
    logits_ = model_.logits(p, state);
    const Value dx = model_.loss(p, state, loss_in_, sums_, chunk);
    p.segment("backward");
    model_.backward(p, in_, state, dx);
    const ParameterTable& table = model_.parameters();
    for (const Parameter& parameter : table.parameters)
      gradients_.push_back(table.part_of(p.gradient(table.buffers[parameter.buffer].value), parameter));
    program_ = p.finish();
    if (dtype == DType::bf16) {
      Builder copies(set_, backend, "refresh", Gradients::none);
      append_working_copies(copies, table);
      refresh_ = copies.finish();
    }
    executor_.emplace(std::move(*Executor::create(set_, backend, nullptr)));
  }

  void set_batch(const PackedTokens& batch) { batch_ = batch; }
  // In mixed precision the parameters' masters are rounded first. Inputs share space with what comes after them: they
  // are written before every run.
  void run() {
    if (refresh_ >= 0) executor_->run(refresh_);
    std::int64_t n = 0;
    for (const std::int32_t t : batch_.targets) n += t >= 0;
    copy(batch_.ids, in_.ids), copy(batch_.positions, in_.positions), copy(batch_.cu_seqlens, in_.cu_seqlens);
    copy(batch_.targets, loss_in_.targets);
    std::vector<double> coefficients;
    for (const std::int32_t t : batch_.targets) coefficients.push_back(t < 0 ? 0 : -1.0 / static_cast<double>(n));
    write(loss_in_.coefficients, coefficients);
    executor_->run(program_);
  }

  double ce() const { return executor_->host<double>(sums_)[0]; }
  double z_loss() const { return executor_->host<double>(sums_)[1]; }
  double loss() const { return ce() + z_loss(); }
  const StackModel& model() const { return model_; }
  const Executor& executor() const { return *executor_; }
  const ProgramSet& set() const { return set_; }
  std::vector<double> logits() const { return read(logits_); }
  std::vector<double> max_logits() const { return read(max_logits_); }
  std::vector<double> parameter(std::size_t i) const { return read(model_.parameters().parameters[i].view); }
  std::vector<double> gradient(std::size_t i) const { return read(gradients_[i]); }
  void set_parameter(std::size_t i, const std::vector<double>& values) {
    write(model_.parameters().parameters[i].view, values);
  }

 private:
  std::vector<double> read(const Value& v) const {
    if (v.dtype == DType::f64) {
      const auto s = executor_->host<double>(v);
      return {s.begin(), s.end()};
    }
    const auto s = executor_->host<float>(v);
    return {s.begin(), s.end()};
  }
  void write(const Value& v, const std::vector<double>& values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (v.dtype == DType::f64)
        executor_->host<double>(v)[i] = values[i];
      else
        executor_->host<float>(v)[i] = static_cast<float>(values[i]);
    }
  }
  void copy(const std::vector<std::int32_t>& from, const Value& to) {
    const auto target = executor_->host<std::int32_t>(to);
    for (std::size_t i = 0; i < target.size(); ++i) target[i] = i < from.size() ? from[i] : from.back();
  }

  ProgramSet set_;
  StackModel model_;
  TokenInputs in_;
  LossInputs loss_in_;
  Value sums_, max_logits_, logits_;
  std::vector<Value> gradients_;
  int program_ = -1, refresh_ = -1;
  std::optional<Executor> executor_;
  PackedTokens batch_;
};

}  // namespace stacklab::test
