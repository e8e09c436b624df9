// Learning rates over a run: warm-up, stable phase, decay (WSD; Hu et al. 2024, MiniCPM, section 4).
#pragma once

#include <cstdint>

#include "engine/config/run_config.h"

namespace stacklab {

// The factor on the peak rate after s of total tokens: s / warmup while warming up, 1 in the stable phase, then the
// decay's shape down to min_factor at total and beyond. Between 0 and 1 for every s. kind "constant" has no decay.
double schedule_factor(const ScheduleConfig& schedule, std::int64_t s, std::int64_t total);

// The factor for the update that ends after s tokens. As above, but a run without a decay keeps the peak to the end.
double update_factor(const ScheduleConfig& schedule, std::int64_t s, std::int64_t total);

}  // namespace stacklab
