// What a kernel is given beside its operands.
#pragma once

#include <cstdint>
#include <utility>

namespace stacklab {

// Runs fn(self, task) for task = 0 .. tasks-1, on any threads in any order, and returns when all are done. Kernels cut
// their work so that every output element is computed by one task in a fixed order: results do not depend on the number
// of threads.
class ParallelFor {
 public:
  virtual ~ParallelFor() = default;
  virtual void run(std::int64_t tasks, void (*fn)(void* self, std::int64_t task), void* self) = 0;
  virtual int threads() const = 0;
};

struct KernelContext {
  ParallelFor* parallel = nullptr;  // null: on the calling thread

  template <class F>
  void for_each(std::int64_t tasks, F&& f) const {
    if (!parallel || tasks <= 1) {
      for (std::int64_t i = 0; i < tasks; ++i) f(i);
      return;
    }
    parallel->run(
        tasks, [](void* self, std::int64_t task) { (*static_cast<std::remove_reference_t<F>*>(self))(task); },
        const_cast<void*>(static_cast<const void*>(&f)));
  }
};

}  // namespace stacklab
