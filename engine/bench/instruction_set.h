// Which instruction set a measurement uses.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"

namespace stacklab::bench {

// That can be asked for, best first; empty where the CPU backend does not run.
std::vector<std::string> instruction_sets();

// Errors: the CPU backend does not run here, or the set that is named (empty: the best) is not there.
Status check_instruction_set(std::string_view name);

// In use for as long as it lives; empty: the best.
class InstructionSet {
 public:
  explicit InstructionSet(std::string_view name);
  ~InstructionSet();
  InstructionSet(const InstructionSet&) = delete;
  InstructionSet& operator=(const InstructionSet&) = delete;

 private:
  const bool restricted_;
};

}  // namespace stacklab::bench
