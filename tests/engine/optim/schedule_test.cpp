// Warm-up, stable phase and decay at the steps where mistakes are usual.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/optim/schedule.h"

namespace stacklab {
namespace {

ScheduleConfig wsd(std::int64_t warmup, std::int64_t decay, std::string shape) {
  ScheduleConfig s;
  s.warmup_tokens = warmup, s.decay_tokens = decay, s.shape = std::move(shape);
  return s;
}

TEST(Schedule, ValuesOfTheFormula) {
  struct Row {
    std::int64_t s;
    double linear, root, cosine;
  };
  // warm-up 100, total 1000, decay 200, peak 1e-3
  const Row rows[] = {{0, 0, 0, 0},
                      {50, 5e-4, 5e-4, 5e-4},
                      {100, 1e-3, 1e-3, 1e-3},
                      {800, 1e-3, 1e-3, 1e-3},
                      {850, 7.5e-4, 5e-4, 8.53553e-4},
                      {900, 5e-4, 2.92893e-4, 5e-4},
                      {1000, 0, 0, 0}};
  for (const Row& r : rows) {
    EXPECT_NEAR(1e-3 * schedule_factor(wsd(100, 200, "linear"), r.s, 1000), r.linear, 5e-10) << r.s;
    EXPECT_NEAR(1e-3 * schedule_factor(wsd(100, 200, "1-sqrt"), r.s, 1000), r.root, 5e-10) << r.s;
    EXPECT_NEAR(1e-3 * schedule_factor(wsd(100, 200, "cosine"), r.s, 1000), r.cosine, 5e-10) << r.s;
  }
  EXPECT_NEAR(1e-3 * schedule_factor(wsd(100, 200, "1-sqrt"), 950, 1000), 1.33975e-4, 5e-10);
  EXPECT_NEAR(1e-3 * schedule_factor(wsd(100, 200, "1-sqrt"), 999, 1000), 2.503e-6, 5e-10);
  EXPECT_NEAR(1e-3 * schedule_factor(wsd(100, 200, "linear"), 999, 1000), 5e-6, 5e-10);
}

TEST(Schedule, NeverAboveThePeakAndMonotoneAfterWarmUp) {
  for (const char* shape : {"linear", "1-sqrt", "cosine"})
    for (const std::int64_t warmup : {0, 1, 10, 50})
      for (const std::int64_t decay : {0, 1, 50}) {
        double before = 2;
        for (std::int64_t s = 0; s <= 150; ++s) {
          const double f = schedule_factor(wsd(warmup, decay, shape), s, 100);
          EXPECT_GE(f, 0);
          EXPECT_LE(f, 1);
          if (s >= warmup) {
            EXPECT_LE(f, before) << shape << " at " << s;
            before = f;
          }
        }
      }
}

TEST(Schedule, EdgesDoNotDivideByZero) {
  EXPECT_EQ(schedule_factor(wsd(0, 0, "linear"), 999, 1000), 1);
  EXPECT_EQ(schedule_factor(wsd(0, 0, "linear"), 1000, 1000), 0) << "a decay of no length ends where it begins";
  EXPECT_EQ(update_factor(wsd(0, 0, "linear"), 1000, 1000), 1) << "and the last update keeps its rate";
  EXPECT_EQ(update_factor(wsd(1000, 0, "linear"), 1000, 1000), 1) << "warm-up as long as the run";
  EXPECT_EQ(update_factor(wsd(0, 500, "linear"), 750, 1000), 0.5);
  ScheduleConfig constant = wsd(10, 50, "linear");
  constant.kind = "constant";
  EXPECT_EQ(schedule_factor(constant, 99, 100), 1);
  ScheduleConfig tenth = wsd(0, 50, "linear");
  tenth.min_factor = 0.1;
  EXPECT_DOUBLE_EQ(schedule_factor(tenth, 75, 100), 0.55);
  EXPECT_DOUBLE_EQ(schedule_factor(tenth, 200, 100), 0.1);
}

}  // namespace
}  // namespace stacklab
