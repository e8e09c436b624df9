// The instruction sets that the CPU backend is compiled for.
#pragma once

#include <string_view>
#include <vector>

namespace stacklab::cpu {

// What this build and this processor have, best first: "AVX3" is AVX-512, "AVX3_BF16" the same with products of bf16.
std::vector<std::string_view> instruction_sets();
// The one in use: the best, unless restricted.
std::string_view instruction_set();
// Restricts the whole process to one of instruction_sets(), for tests and benchmarks; an empty name undoes it. Not
// while anything runs.
void restrict_instruction_set(std::string_view name);
// Whether products that say bf16 are made in bf16.
bool multiplies_bf16();

}  // namespace stacklab::cpu
