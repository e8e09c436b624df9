#include "engine/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace stacklab {

double schedule_factor(const ScheduleConfig& schedule, std::int64_t s, std::int64_t total) {
  if (s < schedule.warmup_tokens)
    return std::max(0.0, static_cast<double>(s) / static_cast<double>(schedule.warmup_tokens));
  const std::int64_t decay_begin = total - schedule.decay_tokens;
  if (schedule.kind == "constant" || (s < total && s <= decay_begin)) return 1;
  // A decay of no length ends where it begins.
  const double r =
      schedule.decay_tokens <= 0
          ? 1.0
          : std::min(1.0, static_cast<double>(s - decay_begin) / static_cast<double>(schedule.decay_tokens));
  const double shape = schedule.shape == "linear"   ? 1 - r
                       : schedule.shape == "cosine" ? (1 + std::cos(std::numbers::pi * r)) / 2
                                                    : 1 - std::sqrt(r);
  return schedule.min_factor + (1 - schedule.min_factor) * shape;
}

double update_factor(const ScheduleConfig& schedule, std::int64_t s, std::int64_t total) {
  return schedule.decay_tokens <= 0 && s >= schedule.warmup_tokens ? 1 : schedule_factor(schedule, s, total);
}

}  // namespace stacklab
