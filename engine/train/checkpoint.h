// Checkpoints: <run>/ckpt_step<N>/ with model.safetensors, optimiser.safetensors, config.json, provenance.json and
// trainer.json, which holds the SHA-256 of the others. A folder with that name is whole: it is written under another
// name, synced and renamed; and removed under another name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/run/provenance.h"
#include "engine/run/trainer_state.h"
#include "engine/train/train_step.h"

namespace stacklab {

struct CheckpointFolder {
  std::int64_t step = 0;
  std::filesystem::path path;
};

// Folders named ckpt_step<digits>, in order of step. Anything else in run_dir is left alone by everything here.
std::vector<CheckpointFolder> list_checkpoints(const std::filesystem::path& run_dir);

// Replaces a checkpoint of the same step. What fails leaves nothing behind, and the checkpoints before it as they are.
Status save_checkpoint(const std::filesystem::path& run_dir, const RunConfig& config, const Provenance& provenance,
                       TrainStep& step, const TrainerState& state);

struct LoadedCheckpoint {
  TrainerState state;
  std::optional<Provenance> provenance;  // none in those of earlier builds
};

// Strict: the files must hold what was saved (SHA-256), and be of this run: the config hash is the config's or one of
// also_accepted (a fork's parent). Else the keys of the config that differ are named. Every tensor must be there with
// its shape, and nothing may be left over.
Result<LoadedCheckpoint> load_checkpoint(const CheckpointFolder& folder, const RunConfig& config, TrainStep& step,
                                         std::span<const std::string> also_accepted = {});

// Whether the checkpoint is whole: everything that load_checkpoint says without a model. Reads all of it.
Result<TrainerFile> verify_checkpoint(const CheckpointFolder& folder);

// What it says it was made by and from; none where it does not say, or not as it was saved.
std::optional<Provenance> checkpoint_provenance(const CheckpointFolder& folder);

// The newest whole one; none where there is none. There is no file that names it, and so none that could be wrong.
std::optional<CheckpointFolder> latest_checkpoint(const std::filesystem::path& run_dir);

// What prune_checkpoints would remove.
std::vector<CheckpointFolder> checkpoints_to_prune(const std::filesystem::path& run_dir, std::int64_t keep,
                                                   std::span<const std::int64_t> milestones = {});

// Removes all but the newest `keep` and those of the steps in milestones; the newest always stays, for a run must be
// able to go on. Returns the steps of those it removed. Links stay, and do not count.
std::vector<std::int64_t> prune_checkpoints(const std::filesystem::path& run_dir, std::int64_t keep,
                                            std::span<const std::int64_t> milestones = {});

// Renames checkpoints of later steps than `step` out of the way ("set-aside-1-ckpt_step120"): they are of a course that
// this run has left, or cannot be read, and must neither be resumed from nor count as newest. Returns their steps.
std::vector<std::int64_t> set_aside_checkpoints_after(const std::filesystem::path& run_dir, std::int64_t step);

// Exactly what the files of tensors of a run's last checkpoint will hold, and the text beside them at most.
struct CheckpointSize {
  std::int64_t model = 0, optimiser = 0, text = 0;
  std::int64_t total() const { return model + optimiser + text; }
};
CheckpointSize checkpoint_size(const RunConfig& config);

}  // namespace stacklab
