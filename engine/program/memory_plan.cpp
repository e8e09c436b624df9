#include "engine/program/memory_plan.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace stacklab {
namespace {

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + MemoryPlan::alignment - 1) / MemoryPlan::alignment * MemoryPlan::alignment;
}

bool lives_meet(const Buffer& a, const Buffer& b) { return a.first_use <= b.last_use && b.first_use <= a.last_use; }

// Places the step buffers of one Program (indices into the set); returns the arena's size.
std::int64_t place(const std::vector<Buffer>& buffers, std::vector<std::size_t> todo,
                   std::vector<std::int64_t>& offset) {
  // Ties by index keep the plan a function of the list alone.
  std::stable_sort(todo.begin(), todo.end(),
                   [&](std::size_t a, std::size_t b) { return buffers[a].bytes() > buffers[b].bytes(); });
  std::vector<std::size_t> placed;
  std::int64_t arena = 0;
  for (const std::size_t index : todo) {
    std::vector<std::pair<std::int64_t, std::int64_t>> taken;  // begin, end
    for (const std::size_t other : placed)
      if (lives_meet(buffers[index], buffers[other]))
        taken.emplace_back(offset[other], offset[other] + aligned(buffers[other].bytes()));
    std::sort(taken.begin(), taken.end());
    std::int64_t at = 0;
    const std::int64_t size = aligned(buffers[index].bytes());
    for (const auto& [begin, end] : taken) {
      if (at + size <= begin) break;
      at = std::max(at, end);
    }
    offset[index] = at;
    arena = std::max(arena, at + size);
    placed.push_back(index);
  }
  return arena;
}

ProgramMemory live_memory(const std::vector<Buffer>& buffers, const std::vector<std::size_t>& mine, int op_count) {
  // What begins to live at each operation, and what ended before it.
  std::vector<std::array<std::int64_t, buffer_class_count>> change(static_cast<std::size_t>(op_count) + 1);
  for (const std::size_t i : mine) {
    const auto cls = static_cast<std::size_t>(buffers[i].cls);
    change[static_cast<std::size_t>(buffers[i].first_use)][cls] += aligned(buffers[i].bytes());
    change[static_cast<std::size_t>(buffers[i].last_use) + 1][cls] -= aligned(buffers[i].bytes());
  }
  ProgramMemory memory;
  std::array<std::int64_t, buffer_class_count> by_class = {};
  for (int op = 0; op < op_count; ++op) {
    for (std::size_t c = 0; c < by_class.size(); ++c) by_class[c] += change[static_cast<std::size_t>(op)][c];
    const std::int64_t live = std::accumulate(by_class.begin(), by_class.end(), std::int64_t{0});
    if (live > memory.live_bytes) memory = {0, live, op, by_class};
  }
  return memory;
}

}  // namespace

MemoryPlan plan_memory(const ProgramSet& set) {
  const std::vector<Buffer>& buffers = set.buffers();
  MemoryPlan plan;
  plan.offset.assign(buffers.size(), 0);
  std::vector<std::vector<std::size_t>> of_program(set.programs().size());
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const Buffer& b = buffers[i];
    if (b.storage == Storage::persistent) {
      plan.offset[i] = plan.persistent_bytes;
      plan.persistent_bytes += aligned(b.bytes());
      plan.persistent_by_class[static_cast<std::size_t>(b.cls)] += aligned(b.bytes());
    } else if (b.first_use >= 0) {
      of_program[static_cast<std::size_t>(b.program)].push_back(i);
    }
  }
  for (std::size_t p = 0; p < of_program.size(); ++p) {
    ProgramMemory memory = live_memory(buffers, of_program[p], static_cast<int>(set.programs()[p].ops.size()));
    memory.arena_bytes = place(buffers, of_program[p], plan.offset);
    plan.step_bytes = std::max(plan.step_bytes, memory.arena_bytes);
    plan.programs.push_back(memory);
  }
  return plan;
}

}  // namespace stacklab
