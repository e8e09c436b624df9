#include "kernels/reference/backend.h"
#include "kernels/cpu/cpu.h"

namespace stacklab::cpu {

bool available() {
#if defined(__x86_64__)
  // What the files of this backend are compiled for at least.
  return __builtin_cpu_supports("sse4.2");
#else
  return true;
#endif
}

Needs needs_of(const Op& operation) {
  return std::visit(
      [&](const auto& o) {
        if constexpr (Own<std::remove_cvref_t<decltype(o)>>)
          return needs(o);
        else
          return reference::needs_of(operation);
      },
      operation);
}

void run_on(const Op& operation, const KernelContext& context) {
  std::visit(
      [&](const auto& o) {
        if constexpr (Own<std::remove_cvref_t<decltype(o)>>)
          run(o, context);
        else
          reference::run_on(operation, context);
      },
      operation);
}

}  // namespace stacklab::cpu
