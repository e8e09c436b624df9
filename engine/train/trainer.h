// Trains one run from its config: builds the step's Programs, runs them, reports to a sink, and checkpoints.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/config/run_config.h"
#include "engine/data/dataset.h"
#include "engine/run/run.h"
#include "engine/train/checkpoint.h"
#include "engine/train/step_tracer.h"

namespace stacklab {

struct TrainRequest {
  RunConfig config;               // validated
  std::filesystem::path run_dir;  // <workspace>/runs/<name>-<hash>; holds config.json and ckpt_step<N>/
  std::int64_t max_steps = 0;     // stop early after this many steps of the run in all; 0: the config's length
  bool resume = false;            // continue from the latest whole checkpoint, if there is one; else start at step 0
  std::int64_t known_steps = 0;   // recorded earlier: said when no checkpoint is left of them
  TraceRequest trace = {};
  double gemm_rate = 0;  // FLOPs per second of this computer's matrix products, to report utilisation; 0: unknown
  // Begin with this checkpoint, wherever it is, and leave run_dir's alone; what it cannot give is an error.
  std::optional<CheckpointFolder> from = {};
  std::vector<std::string> also_accepted = {};  // config hashes whose checkpoints are this run's too: a fork's parent
  // What would make a run fit that needs more memory than so many bytes.
  std::function<std::string(std::int64_t available)> memory_remedy = {};
  std::atomic<bool>* checkpoint_now = nullptr;  // set by others: a checkpoint after the step at hand; taken back then
  std::atomic<bool>* trace_now = nullptr;       // the same: the next steps are measured by operation
};

struct TrainResult {
  std::int64_t steps = 0;        // updates done in all, earlier processes' included
  std::int64_t tokens = 0;       // consumed in all
  double first_loss = 0;         // of update 1 (as recorded when resumed)
  double loss = 0;               // of the last update
  double val_loss = 0;           // of the last evaluation; NaN if there was none
  double val_bpb = 0;            // the same in bits per byte of text
  double unigram_entropy = 0;    // of the validation text, nats per token
  double seconds = 0;            // spent in this run
  double tokens_per_second = 0;  // of this process's steps
  Utilisation utilisation;       // at that rate
  std::int64_t parameters = 0;
  std::int64_t plan_bytes = 0;  // what the plan said and the engine allocated
  std::int64_t peak_bytes = 0;  // largest resident memory of the process
  std::optional<TraceSummary> trace;
  bool complete = false;  // all of the config's steps are done; false after a stop or max_steps
};

// What the checkpoints of such a run say they were made by and from. Errors: a device that is not in this build.
Result<Provenance> provenance_of(const TrainRequest& request, const Dataset& data);

// Runs on the calling thread until done, max_steps, stop, or an error. A stop finishes the step, writes a checkpoint
// and returns complete = false. Errors: unknown device, memory, disk, non-finite loss (with the step), an unreadable
// checkpoint.
Result<TrainResult> train(const TrainRequest& request, const Dataset& data, RunSink& sink, std::stop_token stop);

}  // namespace stacklab
