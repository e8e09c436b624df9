// What everything that measures shares.
#pragma once

#include <time.h>

#include <algorithm>
#include <chrono>

#include "engine/base/thread_team.h"
#include "kernels/context.h"

namespace stacklab::bench {

// One thread is measured by its own time, which leaves out what others took from the processor meanwhile.
inline thread_local bool own_time = false;

class Team final : public ParallelFor {
 public:
  explicit Team(int threads) : team_(threads) { own_time = team_.threads() == 1; }
  void run(std::int64_t tasks, void (*fn)(void*, std::int64_t), void* self) override { team_.run(tasks, fn, self); }
  int threads() const override { return team_.threads(); }

 private:
  ThreadTeam team_;
};

inline double now() {
  if (own_time) {
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <class F>
void time_into(double& best, F&& f) {
  const double begin = now();
  f();
  best = std::min(best, now() - begin);
}

}  // namespace stacklab::bench
