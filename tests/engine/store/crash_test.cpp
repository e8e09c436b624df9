// What is left when processes are killed, and when many write at once.
#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>

#include <chrono>
#include <random>
#include <thread>

#include "engine/store/database.h"
#include "tests/engine/store/store_testing.h"

namespace stacklab {
namespace {

TEST(Crash, KilledAtAnyInstantTheStoreOpensAndNothingSeemsToRun) {
  const TemporaryFolder folder;
  std::mt19937 random(20);
  std::int64_t steps_before = 0, kills_with_steps = 0;
  for (int kill = 0; kill < 20; ++kill) {
    SCOPED_TRACE(kill);
    // Every other one is killed anywhere from its first instruction on; the others after they have written for a while.
    const auto delay =
        std::chrono::microseconds(std::uniform_int_distribution<int>(0, kill % 2 ? 30000 : 300000)(random));
    ChildProcess child({"forever", folder.path().string(), test_id(1)});
    if (kill % 2 == 0) {
      ASSERT_EQ(child.line(), "writing");
    }
    std::this_thread::sleep_for(delay);
    child.send(SIGKILL);
    ASSERT_EQ(child.wait(), 128 + SIGKILL);

    // A reader first, for it must see the truth before anybody has tidied up.
    if (auto reader = open_store_reader(folder.path())) {
      for (const auto& run : must((*reader)->runs())) {
        EXPECT_EQ(run.state, RunState::lost) << run.cause;
        EXPECT_TRUE(run.cause.starts_with("process ")) << run.cause;
      }
    }
    must(Store::open(folder.path()));
    auto db = must(store::open_for_writing(folder.path(), {}));
    EXPECT_EQ(db->execAndGet("PRAGMA integrity_check").getString(), "ok");
    EXPECT_EQ(db->execAndGet("SELECT count(*) FROM runs WHERE state NOT IN ('lost')").getInt(), 0);
    EXPECT_EQ(db->execAndGet("SELECT count(*) FROM pragma_foreign_key_check").getInt(), 0);
    auto reader = must(open_store_reader(folder.path()));
    const auto runs = must(reader->runs());
    if (runs.empty()) continue;
    // Whole steps without a gap, each with all that was measured.
    const auto steps = must(reader->steps(test_id(1), 0, 1 << 30));
    const auto loss = must(reader->series(test_id(1), "loss", 0, 1 << 30));
    const auto norm = must(reader->series(test_id(1), "grad_norm", 0, 1 << 30));
    ASSERT_EQ(loss.size(), steps.size());
    ASSERT_EQ(norm.size(), steps.size());
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const auto step = static_cast<std::int64_t>(i) + 1;
      ASSERT_EQ(steps[i].step, step);
      ASSERT_EQ(steps[i].tokens, step * 10);
      ASSERT_EQ(loss[i].value, 5.0 / static_cast<double>(step));
      ASSERT_EQ(norm[i].value, static_cast<double>(step));
    }
    EXPECT_GE(static_cast<std::int64_t>(steps.size()), steps_before);
    if (static_cast<std::int64_t>(steps.size()) > steps_before) ++kills_with_steps;
    steps_before = static_cast<std::int64_t>(steps.size());
  }
  EXPECT_GT(kills_with_steps, 3);
}

TEST(Crash, EightProcessesAndALockLoseNoRow) {
  const TemporaryFolder folder;
  must(Store::open(folder.path()));
  std::vector<std::unique_ptr<ChildProcess>> writers;
  for (int i = 0; i < 8; ++i) {
    writers.push_back(
        std::make_unique<ChildProcess>(std::vector<std::string>{"write", folder.path().string(), test_id(i), "1000"}));
  }
  for (auto& writer : writers) ASSERT_EQ(writer->line(), "writing");
  ChildProcess lock({"lock", folder.path().string()});
  ASSERT_EQ(lock.line(), "locked");
  for (auto& writer : writers) writer->close_input();
  std::this_thread::sleep_for(std::chrono::seconds(3));
  lock.close_input();
  EXPECT_EQ(lock.wait(), 0);
  for (auto& writer : writers) {
    EXPECT_EQ(writer->line(), "ended");
    EXPECT_EQ(writer->wait(), 0);
  }
  auto store = must(Store::open(folder.path()));  // takes in what had to be spilled
  auto db = must(store::open_for_writing(folder.path(), {}));
  EXPECT_EQ(db->execAndGet("SELECT count(*) FROM steps").getInt(), 8000);
  EXPECT_EQ(db->execAndGet("SELECT count(*) FROM metrics").getInt(), 16000);
  EXPECT_EQ(db->execAndGet("SELECT count(*) FROM runs WHERE state = 'finished'").getInt(), 8);
}

}  // namespace
}  // namespace stacklab
