// The Programs of a training run, built from its config, and one step of it: micro-batches, then the update.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/config/run_config.h"
#include "engine/data/loader.h"
#include "engine/model/stack.h"
#include "engine/optim/optimiser.h"
#include "engine/program/executor.h"

namespace stacklab {

// What the matrices of a run are stored in: bf16 means mixed precision, which computes in f32.
inline DType storage_type(const RunConfig& config) {
  return config.train.precision == "fp64" ? DType::f64 : config.train.precision == "bf16" ? DType::bf16 : DType::f32;
}
// What a run computes in.
inline DType real_type(const RunConfig& config) { return real_of(storage_type(config)); }

// In mixed precision AdamW's parameters are trained in bf16 where its moments are.
inline Masters masters_of(const RunConfig& config) {
  const bool masters = config.optim.adam_state != "bf16";
  return {.embeddings = masters, .matrices = masters || config.optim.matrices == "muon"};
}

// The backend that run.device names, for what the run computes in.
Result<const Backend*> training_backend(const RunConfig& config);

// How a step is cut into micro-batches: run.micro_batch, or as much as fits a modest activation memory. Refused: what
// does not divide.
Result<LoaderShape> loader_shape(const RunConfig& config);
// Tokens that the loss head of such a micro-batch computes at once.
std::int64_t head_chunk(const RunConfig& config, const LoaderShape& shape);

// Builds every Program of a run and allocates nothing, for any backend: what the planner shows and the trainer runs.
class TrainPrograms {
 public:
  TrainPrograms(const RunConfig& config, const LoaderShape& shape, const Backend& backend);

  // What the host writes and reads around one micro-batch.
  struct MicroIo {
    int program = -1;
    TokenInputs tokens;
    LossInputs loss;
    Value sums;        // [2] f64: objective and z-loss, each over this micro-batch
    Value max_logits;  // [n_layers, n_heads]
  };

  ProgramSet set;
  StackModel model;
  Optimiser optimiser;
  // Without accumulation `first` is the whole step; else `first` assigns gradients, `next` adds to them, and `update`
  // is a Program of its own.
  MicroIo first, next, evaluate;
  int update = -1;
  Optimiser::Io update_io;
  // Rounds the masters of mixed precision into the copies that operations read; -1: there are none.
  int refresh = -1;

  // What one step of so many micro-batches executes.
  double step_flops(std::int64_t accumulation) const;

 private:
  MicroIo append_forward(Builder& p, const LoaderShape& shape, std::int64_t chunk, StackModel::State& state,
                         Value& dx) const;
  MicroIo build_evaluation(const LoaderShape& shape, std::int64_t chunk, const Backend& backend);
  void build_whole_step(const LoaderShape& shape, std::int64_t chunk, const Backend& backend);
  void build_accumulated_step(const LoaderShape& shape, std::int64_t chunk, const Backend& backend);
};

struct StepResult {
  double ce = 0;      // nats per target
  double z_loss = 0;  // z_loss_coef * mean(lse^2)
  double loss() const { return ce + z_loss; }
  double grad_norm = 0;
  double update_norm = 0;  // L2 norm of what the update took from the parameters
  double max_logit = 0;    // of all layers and heads
  bool skipped = false;    // the gradient was not finite: nothing was changed
};

class TrainStep {
 public:
  // Memory is allocated here and nowhere else, if accept allows its plan. team may be null.
  static Result<std::unique_ptr<TrainStep>> create(const RunConfig& config, const LoaderShape& shape,
                                                   const Backend& backend, ParallelFor* team,
                                                   const Executor::Accept& accept = {});

  struct Rates {
    double adam = 0, muon = 0;
  };
  StepResult run(const StepBatch& batch, Rates rates);
  struct Evaluation {
    double loss = 0;  // mean cross-entropy over the targets, nats; NaN when there are none
    std::int64_t targets = 0;
    std::int64_t bytes = 0;  // of text that the targets stand for
    double bits_per_byte() const;
  };
  // Of the first `steps` batches of a loader with this shape. token_bytes: of text, by id; may be empty.
  Evaluation evaluate(const BatchLoader& loader, std::int64_t steps, std::span<const std::int32_t> token_bytes = {});

  // Draws the parameters and clears the optimiser's state: the start of a run.
  void initialise(std::uint64_t seed);
  // To be called when parameters were written from outside.
  void parameters_changed();

  // Largest attention logit of the last step, [n_layers, n_heads].
  std::span<const double> max_logits() const { return max_logits_; }

  TrainPrograms& programs() { return *programs_; }
  const Executor& executor() const { return *executor_; }
  Executor& executor() { return *executor_; }

 private:
  TrainStep() = default;
  void write_inputs(const TrainPrograms::MicroIo& io, const MicroBatch& micro, std::int64_t targets);

  std::unique_ptr<TrainPrograms> programs_;
  std::unique_ptr<Executor> executor_;
  StepBatch evaluated_;             // the last batch of an evaluation: its memory is used again
  std::vector<double> max_logits_;  // [n_layers, n_heads] of the last step, over its micro-batches
};

}  // namespace stacklab
