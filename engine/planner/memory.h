// What a training run will allocate, from its config alone: its Programs are built and never run, and no memory of the
// model's size is touched. What is said here is what the engine then allocates.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/config/run_config.h"
#include "engine/data/loader.h"
#include "engine/planner/estimate.h"
#include "engine/program/program.h"

namespace stacklab {

// What a process that trains holds beside its plan, at most: the program and its libraries, the store, threads. 20 to
// 37 MB were measured with a corpus of 4 MB, on up to 8 threads, the most where it was fetched first; pages of a larger
// corpus come on top, and leave when memory is wanted.
inline constexpr std::int64_t process_overhead_bytes = 40 << 20;

struct PlannedBuffer {
  Buffer buffer;
  std::string program;      // of a step buffer; empty: persistent
  std::int64_t offset = 0;  // bytes from the start of its arena
  bool used = true;         // a step buffer that no operation touches has no place
};

struct PlannedProgram {
  std::string name;
  std::int64_t arena_bytes = 0;                                     // of its step buffers, after sharing
  std::int64_t live_bytes = 0;                                      // most bytes alive at once
  std::array<std::int64_t, buffer_class_count> live_by_class = {};  // at that instant
  int peak_index = -1;                                              // the operation during which that is so
  std::string peak_op, peak_label;                                  // "loss_head" in "head"
  int operations = 0;
};

struct TrainingMemory {
  std::string device;  // the backend planned for
  LoaderShape shape;
  std::vector<PlannedBuffer> buffers;
  std::vector<PlannedProgram> programs;
  std::size_t largest_program = 0;  // its step buffers make the step arena's size
  std::int64_t persistent_bytes = 0, step_bytes = 0;
  std::array<std::int64_t, buffer_class_count> persistent_by_class = {};
  std::int64_t peak_bytes() const { return persistent_bytes + step_bytes; }  // all that the engine allocates for a run

  MemoryEstimate estimate;  // what closed forms say of such a micro-batch

  std::int64_t checkpoint_bytes = 0;  // of one checkpoint, on the disk
  std::int64_t checkpoints = 0;       // kept there at once, at most
  std::int64_t available_bytes = 0;   // free memory of this computer now
  std::int64_t budget_bytes = 0;      // what the plan is held against: available_bytes unless given
  bool fits = false;
  // Sequences of the largest micro-batch, of all that divide a step, whose plan is within the budget; 0: none is.
  std::int64_t largest_micro_batch = 0;
};

// config: as check_step() allows it. budget in bytes; 0: what is free now. Errors: a device that is not in this build,
// a micro-batch that does not divide the step.
Result<TrainingMemory> plan_training_memory(const RunConfig& config, std::int64_t budget = 0);

}  // namespace stacklab
