#include "engine/train/milestones.h"

#include <algorithm>

#include "engine/config/config_io.h"

namespace stacklab {

std::vector<std::int64_t> milestone_steps(const RunConfig& config) {
  const std::int64_t total = config.steps(), batch = config.train.batch_tokens;
  std::vector<std::int64_t> steps = milestones_of(config.run).value_or(std::vector<std::int64_t>());
  const ScheduleConfig& schedule = config.optim.schedule;
  if (schedule.kind == "wsd" && schedule.decay_tokens > 0 && batch > 0)
    steps.push_back(total - (schedule.decay_tokens + batch - 1) / batch);
  steps.push_back(total);
  std::erase_if(steps, [total](std::int64_t step) { return step < 1 || step > total; });
  std::sort(steps.begin(), steps.end());
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  return steps;
}

std::int64_t checkpoints_at_once(const RunConfig& config) {
  const std::vector<std::int64_t> milestones = milestone_steps(config);
  const std::int64_t every = config.run.checkpoint_every;
  std::int64_t all = every > 0 ? config.steps() / every : 0;
  for (const std::int64_t step : milestones) all += every > 0 && step % every == 0 ? 0 : 1;
  // When the last one, itself a milestone, is written: the newest before it, and the other milestones.
  const std::int64_t most = std::max<std::int64_t>(1, config.run.keep_last) + std::ssize(milestones);
  return std::max<std::int64_t>(1, std::min(all, most));
}

}  // namespace stacklab
