// A persistent team of threads for data-parallel work: no thread is started, nothing is allocated while it runs.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/context.h"

namespace stacklab {

class ThreadTeam : public ParallelFor {
 public:
  // threads counts the caller, who takes part in every run; values below 1 mean 1. When the system refuses a thread the
  // team is smaller, which threads() says.
  explicit ThreadTeam(int threads);
  ~ThreadTeam() override;
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int threads() const override { return threads_; }

  // Calls fn(self, task) for every task in [0, tasks) and returns when all are done. Thread t always gets the same
  // contiguous range, so what a thread touches does not depend on timing. fn must not throw. A run inside a task is
  // done by its own thread alone; runs from several threads take turns.
  void run(std::int64_t tasks, void (*fn)(void* self, std::int64_t task), void* self) override;

  template <class F>
  void for_each(std::int64_t tasks, F&& task) {
    run(
        tasks, [](void* self, std::int64_t i) { (*static_cast<std::remove_reference_t<F>*>(self))(i); },
        const_cast<void*>(static_cast<const void*>(std::addressof(task))));
  }

 private:
  struct State;
  int threads_ = 1;
  std::unique_ptr<State> state_;
};

}  // namespace stacklab
