#include "engine/train/train_step.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/objective/cross_entropy.h"

namespace stacklab {
namespace {

// Tokens of a micro-batch and of a chunk of the loss head where the config leaves them to us.
constexpr std::int64_t auto_micro_tokens = 4096;
constexpr std::int64_t auto_loss_chunk = 512;  // as fast as larger ones on the CPU, in half the memory

Recompute recompute_of(const RunOptions& run) {
  return {.blocks = run.recompute == "block" ? run.recompute_every : 0, .swiglu = run.recompute != "none"};
}

}  // namespace

Result<const Backend*> training_backend(const RunConfig& config) {
  if (const Backend* backend = find_backend(config.run.device, real_type(config))) return backend;
  return usage_error(
      fmt::format("device {} is not in this build, or not for {}", config.run.device, config.train.precision),
      "use auto");
}

std::int64_t head_chunk(const RunConfig& config, const LoaderShape& shape) {
  return std::min(config.run.loss_chunk > 0 ? config.run.loss_chunk : auto_loss_chunk, shape.tokens());
}

Result<LoaderShape> loader_shape(const RunConfig& config) {
  const std::int64_t seq_len = config.train.seq_len, batch = config.train.batch_tokens;
  if (seq_len <= 0 || batch % seq_len != 0)
    return usage_error(fmt::format("train.batch_tokens {} is not a multiple of train.seq_len {}", batch, seq_len),
                       fmt::format("use {}", (batch / std::max<std::int64_t>(seq_len, 1) + 1) * seq_len));
  const std::int64_t rows = batch / seq_len;
  std::int64_t micro = config.run.micro_batch;
  if (micro == 0)
    for (micro = std::max<std::int64_t>(1, std::min(rows, auto_micro_tokens / seq_len)); rows % micro != 0;) --micro;
  if (rows % micro != 0)
    return usage_error(fmt::format("run.micro_batch {} does not divide the {} sequences of a step", micro, rows),
                       "use a divisor, or 0 to have it chosen");
  return LoaderShape{.seq_len = seq_len, .micro_batch = micro, .accumulation = rows / micro};
}

TrainPrograms::TrainPrograms(const RunConfig& config, const LoaderShape& shape, const Backend& backend)
    : model(config.model, storage_type(config), shape.seq_len, set, recompute_of(config.run), masters_of(config)),
      optimiser(config.optim, model.parameters(), set, config.train.seed) {
  const std::int64_t chunk = head_chunk(config, shape);
  if (shape.accumulation == 1)
    build_whole_step(shape, chunk, backend);
  else
    build_accumulated_step(shape, chunk, backend);
  evaluate = build_evaluation(shape, chunk, backend);
  const std::vector<ParameterBuffer>& buffers = model.parameters().buffers;
  if (std::any_of(buffers.begin(), buffers.end(), [](const ParameterBuffer& b) { return b.is_copy(); })) {
    Builder p(set, backend, "refresh", Gradients::none);
    append_working_copies(p, model.parameters());
    refresh = p.finish();
  }
}

double TrainPrograms::step_flops(std::int64_t accumulation) const {
  double flops = set.program(first.program).flops();
  if (accumulation > 1)
    flops += static_cast<double>(accumulation - 1) * set.program(next.program).flops() + set.program(update).flops();
  return flops;
}

TrainPrograms::MicroIo TrainPrograms::append_forward(Builder& p, const LoaderShape& shape, std::int64_t chunk,
                                                     StackModel::State& state, Value& dx) const {
  const DType real = model.real();
  const std::int64_t tokens = shape.tokens();
  MicroIo io;
  io.tokens.ids = p.input("ids", DType::i32, {tokens});
  io.tokens.positions = p.input("positions", DType::i32, {tokens});
  io.tokens.cu_seqlens = p.input("cu_seqlens", DType::i32, {shape.max_documents() + 1});
  io.loss.targets = p.input("targets", DType::i32, {tokens});
  io.loss.coefficients = p.input("coefficients", real, {tokens});
  io.sums = p.output("loss_sums", DType::f64, {2});
  io.max_logits = p.output("max_logits", real, {model.config().n_layers, model.config().n_heads});
  p.segment("forward");
  state = model.forward(p, io.tokens, io.max_logits);
  dx = model.loss(p, state, io.loss, io.sums, chunk);
  return io;
}

void TrainPrograms::build_whole_step(const LoaderShape& shape, std::int64_t chunk, const Backend& backend) {
  Builder p(set, backend, "step", Gradients::step);
  StackModel::State state;
  Value dx;
  first = append_forward(p, shape, chunk, state, dx);
  p.segment("backward");
  model.backward(p, first.tokens, state, dx);
  p.segment("optimiser");
  std::vector<Value> gradients;
  for (const ParameterBuffer& b : model.parameters().buffers) gradients.push_back(p.gradient(b.value));
  update_io = optimiser.append(p, gradients);
  first.program = update = p.finish();
}

void TrainPrograms::build_accumulated_step(const LoaderShape& shape, std::int64_t chunk, const Backend& backend) {
  std::vector<Value> gradients;
  const auto micro = [&](const char* name, Gradients mode) {
    Builder p(set, backend, name, mode);
    StackModel::State state;
    Value dx;
    MicroIo io = append_forward(p, shape, chunk, state, dx);
    p.segment("backward");
    model.backward(p, io.tokens, state, dx);
    gradients.clear();
    for (const ParameterBuffer& b : model.parameters().buffers) gradients.push_back(p.gradient(b.value));
    io.program = p.finish();
    return io;
  };
  first = micro("first micro-batch", Gradients::assign);
  next = micro("next micro-batch", Gradients::accumulate);
  Builder p(set, backend, "update", Gradients::none);
  p.segment("optimiser");
  update_io = optimiser.append(p, gradients);
  update = p.finish();
}

TrainPrograms::MicroIo TrainPrograms::build_evaluation(const LoaderShape& shape, std::int64_t chunk,
                                                       const Backend& backend) {
  Builder p(set, backend, "evaluation", Gradients::none);
  StackModel::State state;
  Value dx;
  MicroIo io = append_forward(p, shape, chunk, state, dx);
  io.program = p.finish();
  return io;
}

Result<std::unique_ptr<TrainStep>> TrainStep::create(const RunConfig& config, const LoaderShape& shape,
                                                     const Backend& backend, ParallelFor* team,
                                                     const Executor::Accept& accept) {
  std::unique_ptr<TrainStep> step(new TrainStep);
  step->programs_ = std::make_unique<TrainPrograms>(config, shape, backend);
  auto executor = Executor::create(step->programs_->set, backend, team, accept);
  if (!executor) return tl::unexpected(executor.error());
  step->executor_ = std::make_unique<Executor>(std::move(*executor));
  step->max_logits_.resize(static_cast<std::size_t>(config.model.n_layers * config.model.n_heads));
  return step;
}

void TrainStep::write_inputs(const TrainPrograms::MicroIo& io, const MicroBatch& micro, std::int64_t targets) {
  const auto copy = [&](const std::vector<std::int32_t>& from, const Value& to) {
    std::copy(from.begin(), from.end(), executor_->host<std::int32_t>(to).begin());
  };
  copy(micro.ids, io.tokens.ids);
  copy(micro.positions, io.tokens.positions);
  copy(micro.cu_seqlens, io.tokens.cu_seqlens);
  copy(micro.targets, io.loss.targets);
  executor_->visit(io.loss.coefficients, [&]<class T>(std::span<T> coefficients) {
    cross_entropy_coefficients<T>(micro.targets, targets, coefficients);
  });
}

StepResult TrainStep::run(const StepBatch& batch, Rates rates) {
  StepResult result;
  max_logits_.assign(max_logits_.size(), -std::numeric_limits<double>::infinity());
  for (std::size_t i = 0; i < batch.micro.size(); ++i) {
    const TrainPrograms::MicroIo& io = i == 0 ? programs_->first : programs_->next;
    write_inputs(io, batch.micro[i], batch.targets);
    executor_->run(io.program, "forward");
    executor_->run(io.program, "backward");
    const auto sums = executor_->host<double>(io.sums);
    result.ce += sums[0];
    result.z_loss += sums[1];
    executor_->visit(io.max_logits, [&](auto logits) {
      for (std::size_t k = 0; k < logits.size(); ++k) {
        const double logit = static_cast<double>(logits[k]);
        // A NaN stays.
        if (logit > max_logits_[k] || std::isnan(logit)) max_logits_[k] = logit;
      }
    });
  }
  result.max_logit = -std::numeric_limits<double>::infinity();
  for (const double logit : max_logits_)
    if (logit > result.max_logit || std::isnan(logit)) result.max_logit = logit;

  const Optimiser::Io& io = programs_->update_io;
  executor_->host<double>(io.adam_lr)[0] = rates.adam;
  if (io.muon_lr.present()) executor_->host<double>(io.muon_lr)[0] = rates.muon;
  if (io.max_logits.present())
    executor_->visit(io.max_logits, [&](auto logits) {
      for (std::size_t k = 0; k < logits.size(); ++k)
        logits[k] = static_cast<std::remove_cvref_t<decltype(logits[k])>>(max_logits_[k]);
    });
  executor_->run(programs_->update, "optimiser");
  result.grad_norm = executor_->host<double>(io.norm)[0];
  result.skipped = executor_->host<double>(io.scale)[0] == 0;
  double squares = 0;
  for (const double change : executor_->host<double>(io.changes)) squares += change;
  result.update_norm = std::sqrt(squares);
  return result;
}

void TrainStep::initialise(std::uint64_t seed) {
  stacklab::initialise(programs_->model.parameters(), seed, *executor_);
  parameters_changed();
  programs_->optimiser.clear_state(*executor_);
}

void TrainStep::parameters_changed() {
  if (programs_->refresh >= 0) executor_->run(programs_->refresh);
}

double TrainStep::Evaluation::bits_per_byte() const {
  if (bytes == 0) return std::numeric_limits<double>::quiet_NaN();
  return loss * static_cast<double>(targets) / (std::log(2.0) * static_cast<double>(bytes));
}

TrainStep::Evaluation TrainStep::evaluate(const BatchLoader& loader, std::int64_t steps,
                                          std::span<const std::int32_t> token_bytes) {
  double sum = 0;
  Evaluation all;
  for (std::int64_t s = 0; s < steps; ++s) {
    loader.fill(s, evaluated_);
    all.targets += evaluated_.targets;
    for (const MicroBatch& micro : evaluated_.micro) {
      // Coefficients of -1: the sum, divided once at the end.
      write_inputs(programs_->evaluate, micro, 1);
      executor_->run(programs_->evaluate.program);
      sum += executor_->host<double>(programs_->evaluate.sums)[0];
      for (const std::int32_t target : micro.targets)
        if (target != ignored_target && !token_bytes.empty())
          all.bytes += token_bytes[static_cast<std::size_t>(target)];
    }
  }
  all.loss = all.targets > 0 ? sum / static_cast<double>(all.targets) : std::numeric_limits<double>::quiet_NaN();
  return all;
}

}  // namespace stacklab
