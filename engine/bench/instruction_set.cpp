#include "engine/bench/instruction_set.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/base/text.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/targets.h"

namespace stacklab::bench {

std::vector<std::string> instruction_sets() {
  if (!cpu::available()) return {};
  const auto names = cpu::instruction_sets();
  return {names.begin(), names.end()};
}

Status check_instruction_set(std::string_view name) {
  const std::vector<std::string> known = instruction_sets();
  if (known.empty()) return failed("this processor has none of the instruction sets that the CPU backend needs");
  if (name.empty() || std::find(known.begin(), known.end(), name) != known.end()) return {};
  return usage_error(fmt::format("{} is not an instruction set of this processor and build", printable(name)),
                     fmt::format("use one of: {}", fmt::join(known, ", ")));
}

InstructionSet::InstructionSet(std::string_view name) : restricted_(!name.empty()) {
  if (restricted_) cpu::restrict_instruction_set(name);
}

InstructionSet::~InstructionSet() {
  if (restricted_) cpu::restrict_instruction_set({});
}

}  // namespace stacklab::bench
