#include "engine/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace stacklab {

double schedule_factor(const ScheduleConfig& schedule, std::int64_t s, std::int64_t total) {
  if (s < schedule.warmup_tokens)
    return std::max(0.0, static_cast<double>(s) / static_cast<double>(schedule.warmup_tokens));
  const std::int64_t decay_begin = total - schedule.decay_tokens;
  if (schedule.kind == "constant" || schedule.decay_tokens <= 0 || s <= decay_begin) return 1;
  const double r = std::min(1.0, static_cast<double>(s - decay_begin) / static_cast<double>(schedule.decay_tokens));
  if (schedule.shape == "linear") return 1 - r;
  if (schedule.shape == "cosine") return (1 + std::cos(std::numbers::pi * r)) / 2;
  return 1 - std::sqrt(r);
}

}  // namespace stacklab
