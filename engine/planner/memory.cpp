#include "engine/planner/memory.h"

#include <algorithm>

#include "engine/base/environment.h"
#include "engine/model/counts.h"
#include "engine/program/memory_plan.h"
#include "engine/train/checkpoint.h"
#include "engine/train/milestones.h"
#include "engine/train/train_step.h"

namespace stacklab {
namespace {

std::int64_t planned_bytes(const RunConfig& config, const LoaderShape& shape, const Backend& backend) {
  return plan_memory(TrainPrograms(config, shape, backend).set).total();
}

// A step in one micro-batch keeps gradients only from where they are made to where they are used, so its plan may be
// smaller than the next one's; below it plans grow with the micro-batch.
std::int64_t largest_micro_batch(const RunConfig& config, const LoaderShape& shape, const Backend& backend,
                                 std::int64_t budget) {
  const std::int64_t rows = shape.micro_batch * shape.accumulation;
  const auto fits = [&](std::int64_t micro) {
    const LoaderShape cut{.seq_len = shape.seq_len, .micro_batch = micro, .accumulation = rows / micro};
    return planned_bytes(config, cut, backend) <= budget;
  };
  if (fits(rows)) return rows;
  std::vector<std::int64_t> divisors;
  for (std::int64_t micro = 1; micro < rows; ++micro)
    if (rows % micro == 0) divisors.push_back(micro);
  const auto first_too_large = std::partition_point(divisors.begin(), divisors.end(), fits);
  return first_too_large == divisors.begin() ? 0 : *(first_too_large - 1);
}

void describe(TrainingMemory& memory, const ProgramSet& set, const MemoryPlan& plan) {
  for (std::size_t i = 0; i < set.buffers().size(); ++i) {
    const Buffer& b = set.buffers()[i];
    const bool step = b.storage == Storage::step;
    memory.buffers.push_back(
        {b, step ? set.program(b.program).name : std::string(), plan.offset[i], !step || b.first_use >= 0});
  }
  for (std::size_t p = 0; p < set.programs().size(); ++p) {
    const Program& program = set.programs()[p];
    const ProgramMemory& m = plan.programs[p];
    PlannedProgram& planned = memory.programs.emplace_back();
    planned.name = program.name;
    planned.arena_bytes = m.arena_bytes;
    planned.live_bytes = m.live_bytes;
    planned.live_by_class = m.live_by_class;
    planned.peak_index = m.peak_op;
    planned.operations = static_cast<int>(program.ops.size());
    if (m.peak_op >= 0) {
      const OpRecord& record = program.ops[static_cast<std::size_t>(m.peak_op)];
      planned.peak_op = name_of(record.op);
      planned.peak_label = record.label;
    }
    if (planned.arena_bytes > memory.programs[memory.largest_program].arena_bytes) memory.largest_program = p;
  }
}

}  // namespace

Result<TrainingMemory> plan_training_memory(const RunConfig& config, std::int64_t budget) {
  if (Status layers = check_layers(config.model); !layers) return tl::unexpected(layers.error());
  const auto backend = training_backend(config);
  if (!backend) return tl::unexpected(backend.error());
  const auto shape = loader_shape(config);
  if (!shape) return tl::unexpected(shape.error());
  TrainingMemory memory;
  memory.device = (*backend)->name();
  memory.shape = *shape;
  const TrainPrograms programs(config, *shape, **backend);
  const MemoryPlan plan = plan_memory(programs.set);
  describe(memory, programs.set, plan);
  memory.persistent_bytes = plan.persistent_bytes;
  memory.step_bytes = plan.step_bytes;
  memory.persistent_by_class = plan.persistent_by_class;
  memory.estimate = estimate_memory(config, shape->tokens(), head_chunk(config, *shape));
  memory.checkpoint_bytes = checkpoint_size(config).total();
  memory.checkpoints = checkpoints_at_once(config);
  memory.available_bytes = system_memory().available;
  memory.budget_bytes = budget > 0 ? budget : memory.available_bytes;
  memory.fits = memory.peak_bytes() <= memory.budget_bytes;
  memory.largest_micro_batch = largest_micro_batch(config, *shape, **backend, memory.budget_bytes);
  return memory;
}

}  // namespace stacklab
