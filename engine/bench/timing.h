// What everything that measures shares.
#pragma once

#include <time.h>

#include <algorithm>

#include "engine/base/clock.h"
#include "engine/base/thread_team.h"
#include "kernels/context.h"

namespace stacklab::bench {

// One thread is measured by its own time, which leaves out what others took from the processor meanwhile.
inline thread_local bool own_time = false;

// Threads for a measurement on the calling thread.
class Team : public ThreadTeam {
 public:
  explicit Team(int threads) : ThreadTeam(threads) { own_time = ThreadTeam::threads() == 1; }
};

inline double now() {
  if (own_time) {
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  }
  return steady_seconds();
}

template <class F>
void time_into(double& best, F&& f) {
  const double begin = now();
  f();
  best = std::min(best, now() - begin);
}

}  // namespace stacklab::bench
