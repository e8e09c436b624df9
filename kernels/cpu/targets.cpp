#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/targets.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/tile.h"

#if HWY_ONCE
namespace stacklab::cpu {
namespace {

constexpr std::string_view with_bf16 = "AVX3_BF16";
bool bf16_allowed = true;

bool has_avx512() {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets())
    if (target == HWY_AVX3) return true;
  return false;
}

}  // namespace

bool multiplies_bf16() {
  static const bool here = processor_multiplies_bf16();
  return here && bf16_allowed;
}

std::vector<std::string_view> instruction_sets() {
  std::vector<std::string_view> names;
  if (multiplies_bf16() && has_avx512()) names.push_back(with_bf16);
  // Better ones have lower bits.
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) names.push_back(hwy::TargetName(target));
  return names;
}

std::string_view instruction_set() { return instruction_sets().front(); }

void restrict_instruction_set(std::string_view name) {
  hwy::SetSupportedTargetsForTest(0);
  bf16_allowed = name.empty() || name == with_bf16;
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets())
    if (name == hwy::TargetName(target) || (name == with_bf16 && target == HWY_AVX3)) {
      hwy::SetSupportedTargetsForTest(target);
      break;
    }
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace stacklab::cpu
#endif
