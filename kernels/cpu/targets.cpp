#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/targets.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#if HWY_ONCE
namespace stacklab::cpu {

std::vector<std::string_view> instruction_sets() {
  std::vector<std::string_view> names;
  // Better ones have lower bits.
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) names.push_back(hwy::TargetName(target));
  return names;
}

std::string_view instruction_set() { return instruction_sets().front(); }

void restrict_instruction_set(std::string_view name) {
  hwy::SetSupportedTargetsForTest(0);
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets())
    if (name == hwy::TargetName(target)) {
      hwy::SetSupportedTargetsForTest(target);
      break;
    }
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace stacklab::cpu
#endif
