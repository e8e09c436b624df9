// Which steps of a run have a checkpoint, and which of these stay.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/config/run_config.h"

namespace stacklab {

// Steps whose checkpoints stay, ascending: those of run.keep_milestones that the run reaches, the last before the rate
// decays, and the last of all.
std::vector<std::int64_t> milestone_steps(const RunConfig& config);

// Most checkpoints that a run has on the disk at once: a new one is written before an older one is removed.
std::int64_t checkpoints_at_once(const RunConfig& config);

}  // namespace stacklab
