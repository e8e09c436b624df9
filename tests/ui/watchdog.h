// Measures how long the thread of the window is away from its event loop.
#pragma once

#include <time.h>

#include <QTimer>
#include <algorithm>

#include "tests/sanitized.h"

namespace stacklab::ui {

// The rule is 100 ms; sanitizers make everything several times as slow.
inline constexpr double longest_block_ms = sanitized ? 1500 : 100;

// The thread of the window: how long it was away between two turns, in processor time of its own (which a busy machine
// does not stretch) and by the clock.
class Watchdog {
 public:
  Watchdog() {
    QObject::connect(&timer_, &QTimer::timeout, [this] { beat(); });
    timer_.start(1);
    beat();
    worst_cpu = worst_wall = 0;
  }
  double worst_cpu = 0, worst_wall = 0;  // milliseconds

 private:
  static double clock_ms(clockid_t clock) {
    timespec t{};
    clock_gettime(clock, &t);
    return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
  }
  void beat() {
    const double cpu = clock_ms(CLOCK_THREAD_CPUTIME_ID), wall = clock_ms(CLOCK_MONOTONIC);
    worst_cpu = std::max(worst_cpu, cpu - cpu_);
    worst_wall = std::max(worst_wall, wall - wall_);
    cpu_ = cpu;
    wall_ = wall;
  }
  QTimer timer_;
  double cpu_ = 0, wall_ = 0;
};

}  // namespace stacklab::ui
