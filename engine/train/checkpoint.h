// Checkpoints: <run>/ckpt_step<N>/ with model.safetensors, optimiser.safetensors and trainer.json. A folder with that
// name is whole: it is written under another name, synced and renamed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/train/train_step.h"

namespace stacklab {

// What a run needs beside its tensors to go on. The data position is the step: batches are a function of (seed, step).
struct TrainerState {
  std::int64_t step = 0;  // updates done
  std::int64_t tokens = 0;
  double seconds = 0;  // spent training
  double first_loss = 0, loss = 0, val_loss = 0;
  std::int64_t skipped = 0;  // steps whose gradient was not finite
};

struct CheckpointFolder {
  std::int64_t step = 0;
  std::filesystem::path path;
};

// Folders named ckpt_step<digits>, in order of step. Anything else in run_dir is left alone by everything here.
std::vector<CheckpointFolder> list_checkpoints(const std::filesystem::path& run_dir);

// Replaces a checkpoint of the same step.
Status save_checkpoint(const std::filesystem::path& run_dir, const std::string& config_hash, TrainStep& step,
                       const TrainerState& state);

// Strict: the files must hold what was saved (SHA-256), every tensor must be there with its shape, nothing may be left
// over, and the config hash must be this run's.
Result<TrainerState> load_checkpoint(const CheckpointFolder& folder, const std::string& config_hash, TrainStep& step);

// Removes all but the newest `keep` (at least one); returns the steps of those it removed.
std::vector<std::int64_t> prune_checkpoints(const std::filesystem::path& run_dir, std::int64_t keep);

// Renames checkpoints of later steps than `step` out of the way ("set-aside-1-ckpt_step120"): they are of a course that
// this run has left, or cannot be read, and must neither be resumed from nor count as newest. Returns their steps.
std::vector<std::int64_t> set_aside_checkpoints_after(const std::filesystem::path& run_dir, std::int64_t step);

}  // namespace stacklab
