// Whole training steps on random tokens: tokens per second, memory, and what each operation cost.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/config/run_config.h"
#include "engine/run/run.h"

namespace stacklab {

struct TrainBenchOptions {
  std::string preset = "stack100m";  // stack100m, rungA, tiny
  std::string matrices = "muon";     // what trains the hidden matrices: muon or adamw
  std::string precision = "fp32";
  std::string device = "auto";
  std::int64_t seq_len = 0, batch = 0;  // tokens of a row, and rows of a step; 0: the preset's
  std::int64_t loss_chunk = 0;          // tokens; 0: as a run would choose
  int threads = 0;                      // 0: all
  std::int64_t steps = 5;               // measured, after two that are not
  double seconds = 150;                 // no step begins after so long, except the first three
  // Called with the seconds of each measured step.
  std::function<void(std::int64_t step, double seconds)> report;
};

struct TrainBench {
  RunConfig config;    // what was run
  std::string device;  // on which backend
  int threads = 0;
  std::int64_t steps = 0;
  double step_seconds = 0, fastest_seconds = 0, slowest_seconds = 0, mean_seconds = 0;  // step_seconds: the median
  double forward_seconds = 0, backward_seconds = 0, optimiser_seconds = 0;              // of the median step's share
  double tokens_per_second = 0;                                                         // by the median
  double useful_flops = 0;    // of a step: flops_per_token at seq_len
  double executed_flops = 0;  // of a step: what its Programs say, optimiser included
  double gemm_flops_per_second =
      0;  // of the model's own products in its precision, measured after the steps; 0: not on the CPU
  double memory_bytes_per_second = 0;           // likewise
  std::int64_t plan_bytes = 0, peak_bytes = 0;  // the plan, and the process's largest resident memory
  double first_loss = 0, loss = 0;
  std::vector<OperationTotal> operations;  // of one step on average, the most expensive first
};

// The model and the step of a preset, with the options applied. Errors: an unknown preset.
Result<RunConfig> train_bench_config(const TrainBenchOptions& options);

// Allocates what a run of this config would. Errors: as a run's before its first step.
Result<TrainBench> bench_train(const TrainBenchOptions& options);

}  // namespace stacklab
