#include "engine/store/liveness.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>

namespace stacklab::store {
namespace {

constexpr double now = 1.7e9;

TEST(Liveness, ThisProcessLives) {
  const auto verdict = judge(this_owner(), {now - 1, now + 10}, now);
  EXPECT_TRUE(verdict.alive);
  EXPECT_FALSE(verdict.stalled);
  EXPECT_TRUE(verdict.cause.empty());
}

TEST(Liveness, ALateBeatIsAStallNotADeath) {
  const auto verdict = judge(this_owner(), {now - 1000, now - 900}, now);
  EXPECT_TRUE(verdict.alive);
  EXPECT_TRUE(verdict.stalled);
}

TEST(Liveness, AProcessThatEndedIsGoneAtOnce) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  ASSERT_GT(child, 0);
  Owner owner = this_owner();
  owner.process.pid = child;
  waitpid(child, nullptr, 0);
  const auto verdict = judge(owner, {now, now + 60}, now);
  EXPECT_FALSE(verdict.alive);
  EXPECT_FALSE(verdict.stalled);
  EXPECT_EQ(verdict.cause, "process " + std::to_string(child) +
                               " ended without a completion record; last beat 2023-11-14 22:13:20 UTC");
}

TEST(Liveness, ALaterProcessOfTheSameNumberIsAnother) {
  Owner owner = this_owner();
  owner.process.start_ticks += 1;
  EXPECT_FALSE(judge(owner, {now, now + 60}, now).alive);
}

TEST(Liveness, ARestartEndsEveryProcess) {
  Owner owner = this_owner();
  owner.process.boot_id = "another boot";
  const auto verdict = judge(owner, {now, now + 60}, now);
  EXPECT_FALSE(verdict.alive);
  EXPECT_NE(verdict.cause.find("restarted"), std::string::npos) << verdict.cause;
}

TEST(Liveness, AnotherComputerIsBelievedUntilItsBeatIsLongLate) {
  Owner owner = this_owner();
  owner.process.boot_id = "another boot";
  owner.host = "another host";
  EXPECT_TRUE(judge(owner, {now - 20, now - 10}, now).alive);
  EXPECT_TRUE(judge(owner, {now - 20, now - 10}, now).stalled);
  EXPECT_FALSE(judge(owner, {now - 400, now - 390}, now).alive);
  // A long promise (an evaluation) earns a long wait.
  EXPECT_TRUE(judge(owner, {now - 1000, now - 400}, now).alive);
  EXPECT_FALSE(judge(owner, {now - 10000, now - 9400}, now).alive);
}

TEST(Liveness, AContainersNumbersAreNotOurs) {
  // A number that is free here says nothing about the same number in another PID namespace of the same boot.
  Owner owner = this_owner();
  owner.process_namespace = "pid:[1]";
  owner.process.start_ticks += 1;
  EXPECT_TRUE(judge(owner, {now, now + 10}, now).alive);
}

TEST(Liveness, AnyNumberIsShownAsATime) {
  EXPECT_EQ(format_time(1e9), "2001-09-09 01:46:40 UTC");
  for (const double odd : {-1e300, -1.0, 0.0, std::nan("")}) EXPECT_EQ(format_time(odd), "1970-01-01 00:00:00 UTC");
  for (const double late : {1e12, 1e300, HUGE_VAL}) EXPECT_EQ(format_time(late), "9999-12-31 23:59:59 UTC");
}

}  // namespace
}  // namespace stacklab::store
