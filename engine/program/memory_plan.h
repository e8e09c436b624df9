// Where every buffer of a ProgramSet lies, computed from the lists alone: nothing is allocated to know it, and the
// executor allocates exactly this.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "engine/program/program.h"

namespace stacklab {

struct ProgramMemory {
  std::int64_t arena_bytes = 0;                                     // of this Program's step buffers, after sharing
  std::int64_t live_bytes = 0;                                      // most bytes alive at once: no plan can need less
  int peak_op = -1;                                                 // the operation during which that is so
  std::array<std::int64_t, buffer_class_count> live_by_class = {};  // at that instant
};

struct MemoryPlan {
  static constexpr std::int64_t alignment = 64;  // bytes, of every buffer

  std::vector<std::int64_t> offset;  // of each buffer in its arena
  std::int64_t persistent_bytes = 0;
  std::int64_t step_bytes = 0;  // the largest arena_bytes
  std::array<std::int64_t, buffer_class_count> persistent_by_class = {};
  std::vector<ProgramMemory> programs;

  std::int64_t total() const { return persistent_bytes + step_bytes; }
};

// Persistent buffers lie one after another. Step buffers whose lives do not meet share space: largest first, each at
// the lowest offset that is free during its life.
MemoryPlan plan_memory(const ProgramSet& set);

}  // namespace stacklab
