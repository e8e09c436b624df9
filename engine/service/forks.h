// Forks: a run that goes on from a step of another under a config that differs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/config/run_config.h"
#include "engine/store/store.h"

namespace stacklab {

// "0123456789ab@400": what train.parent says of a fork.
std::string parent_text(const RunId& run, std::int64_t step);

// Whether a run of one config can go on under another after so many steps. Refuses by name what would change the
// tensors of a checkpoint or what a step means.
Status check_fork(const RunConfig& parent, const RunConfig& config, std::int64_t step);

// Makes the fork: its folder with the parent's checkpoint (hard links, where the disk has them) and its row in the
// store, paused. config: the parent's with the changes; its name, if it is still the parent's, gets the step. Returns
// the fork's id.
Result<RunId> make_fork(const std::filesystem::path& workspace, Store& store, const RunSummary& parent,
                        std::int64_t step, RunConfig config);

}  // namespace stacklab
