// Proves of a ProgramSet and its plan that nothing is read before it is written, no value is overwritten before it was
// used, no operand overlaps another where the operation forbids it, and no two live buffers share space.
#pragma once

#include <string>
#include <vector>

#include "engine/program/memory_plan.h"
#include "engine/program/program.h"

namespace stacklab {

// One sentence for each fault, naming Program, operation and buffer. Empty: the proof holds.
std::vector<std::string> check_program(const ProgramSet& set, int program);
std::vector<std::string> check_plan(const ProgramSet& set, const MemoryPlan& plan);

}  // namespace stacklab
