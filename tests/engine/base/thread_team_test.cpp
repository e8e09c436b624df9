#include "engine/base/thread_team.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace stacklab {
namespace {

TEST(ThreadTeam, DoesEveryTaskOnce) {
  for (const int threads : {1, 2, 3, 7}) {
    ThreadTeam team(threads);
    EXPECT_EQ(team.threads(), threads);
    for (const std::int64_t tasks : {0, 1, 2, 3, 6, 7, 8, 100, 1001}) {
      std::vector<int> done(static_cast<std::size_t>(tasks));
      team.for_each(tasks, [&](std::int64_t i) { ++done[static_cast<std::size_t>(i)]; });
      for (const int count : done) ASSERT_EQ(count, 1) << threads << " threads, " << tasks << " tasks";
    }
  }
}

TEST(ThreadTeam, GivesThreadsTheSameTasksEveryTime) {
  ThreadTeam team(4);
  std::vector<std::thread::id> first(10), again(10);
  team.for_each(10, [&](std::int64_t i) { first[static_cast<std::size_t>(i)] = std::this_thread::get_id(); });
  for (int round = 0; round < 50; ++round) {
    team.for_each(10, [&](std::int64_t i) { again[static_cast<std::size_t>(i)] = std::this_thread::get_id(); });
    ASSERT_EQ(first, again);
  }
  EXPECT_EQ(first[0], std::this_thread::get_id());
  EXPECT_NE(first[9], first[0]);
}

TEST(ThreadTeam, ManyRunsInSuccessionSeeEachOthersWrites) {
  ThreadTeam team(3);
  std::vector<std::int64_t> values(64, 0);
  for (int round = 0; round < 2000; ++round) {
    // Reads what another thread wrote in the run before.
    team.for_each(32, [&](std::int64_t i) {
      values[static_cast<std::size_t>(32 + i)] = values[static_cast<std::size_t>(31 - i)];
    });
    team.for_each(32, [&](std::int64_t i) {
      values[static_cast<std::size_t>(i)] = values[static_cast<std::size_t>(63 - i)] + 1;
    });
  }
  for (std::size_t i = 0; i < 32; ++i) EXPECT_EQ(values[i], 2000);
}

TEST(ThreadTeam, NestedRunsAndRunsFromSeveralThreads) {
  ThreadTeam team(3);
  std::atomic<int> sum{0};
  const auto work = [&] {
    for (int round = 0; round < 100; ++round)
      team.for_each(5, [&](std::int64_t) {
        team.for_each(4, [&](std::int64_t) { sum.fetch_add(1, std::memory_order_relaxed); });
      });
  };
  std::thread other(work);
  work();
  other.join();
  EXPECT_EQ(sum.load(), 2 * 100 * 5 * 4);
}

TEST(ThreadTeam, EndsWithoutHavingWorkedAndClampsItsSize) {
  for (int i = 0; i < 50; ++i) ThreadTeam team(4);
  EXPECT_EQ(ThreadTeam(0).threads(), 1);
  EXPECT_EQ(ThreadTeam(-5).threads(), 1);
}

TEST(ThreadTeam, TakesPlainFunctions) {
  ThreadTeam team(2);
  std::atomic<std::int64_t> sum{0};
  team.run(
      10, [](void* self, std::int64_t i) { static_cast<std::atomic<std::int64_t>*>(self)->fetch_add(i); }, &sum);
  EXPECT_EQ(sum.load(), 45);
}

}  // namespace
}  // namespace stacklab
