// Long runs: a million points, and a WAL that stays small while somebody looks on.
#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/Transaction.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "engine/store/database.h"
#include "tests/engine/store/store_testing.h"

namespace stacklab {
namespace {

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST(Size, AMillionPointsAreReadInRanges) {
  constexpr int points = 1000000, chunk = 10000;
  const TemporaryFolder folder;
  auto store = must(Store::open(folder.path()));
  const auto claim = must(store->claim(test_request(1), {}));
  store->sink(claim)->metrics(test_metrics(1, 1));
  must(store->flush());
  {
    auto db = must(store::open_for_writing(folder.path(), {}));
    db->exec(
        "WITH RECURSIVE s (step) AS (SELECT 2 UNION ALL SELECT step + 1 FROM s WHERE step < 1000000) "
        "INSERT INTO metrics SELECT 0, m.id, s.step, s.step FROM s JOIN metric_names m ON m.name = 'loss'");
  }
  auto reader = must(open_store_reader(folder.path()));
  std::int64_t after = 0;
  const double all = seconds_of([&] {
    for (int n = 0; n < points; n += chunk) {
      const auto part = must(reader->series(test_id(1), "loss", after, chunk));
      ASSERT_EQ(part.size(), static_cast<std::size_t>(chunk));
      ASSERT_EQ(part.front().step, after + 1);
      after = part.back().step;
      ASSERT_EQ(part.back().value, static_cast<double>(after));
    }
  });
  EXPECT_EQ(after, points);
  EXPECT_TRUE(must(reader->series(test_id(1), "loss", after, chunk)).empty());
  std::optional<double> last;
  const double summary = seconds_of([&] { last = must(reader->run(test_id(1))).last_loss; });
  EXPECT_EQ(last, static_cast<double>(points));
  RecordProperty("seconds_all_points", std::to_string(all));
  RecordProperty("seconds_summary", std::to_string(summary));
  std::printf("a million points in %.3f s, the summary in %.6f s\n", all, summary);
  // The newest thousand cost about a thousandth of all, not a walk over what comes before them.
  const double newest = seconds_of([&] { must(reader->series(test_id(1), "loss", points - 1000, 1000)); });
  EXPECT_LT(newest, all / 10);
}

TEST(Size, TheWalStaysSmallWhileAReaderPolls) {
  const TemporaryFolder folder;
  StoreOptions options;
  options.commit_rows = 300;
  auto store = must(Store::open(folder.path(), options));
  const auto claim = must(store->claim(test_request(1), {}));
  const auto sink = store->sink(claim);
  std::atomic<bool> done = false;
  std::atomic<std::int64_t> polls = 0, largest = 0;
  std::thread window([&] {
    auto reader = must(open_store_reader(folder.path()));
    std::int64_t after = 0;
    while (!done) {
      must(reader->runs());
      const auto points = must(reader->series(test_id(1), "loss", after, 1000));
      if (!points.empty()) after = points.back().step;
      largest = std::max(largest.load(), reader->wal_bytes());
      ++polls;
    }
  });
  for (int step = 1; step <= 30000; ++step) {
    sink->metrics(test_metrics(step, step));
    if (step % 100 == 0) must(store->flush());
  }
  must(store->flush());
  done = true;
  window.join();
  EXPECT_GT(polls, 100);
  EXPECT_LT(largest, 64 << 20);
  std::printf("%lld polls, largest WAL %.1f MB\n", static_cast<long long>(polls), static_cast<double>(largest) / 1e6);
}

TEST(Size, AWalThatGrewUnderAnOpenReaderIsCutAfterwards) {
  const TemporaryFolder folder;
  StoreOptions options;
  options.wal_limit = 256 << 10;
  auto store = must(Store::open(folder.path(), options));
  const auto claim = must(store->claim(test_request(1), {}));
  const auto sink = store->sink(claim);
  sink->metrics(test_metrics(1, 1));
  must(store->flush());
  auto reader = must(open_store_reader(folder.path()));
  int step = 1;
  {
    // A foreign program that forgets to finish its statement.
    SQLite::Database db(store::database_file(folder.path()).string(), SQLite::OPEN_READONLY);
    SQLite::Statement open_query(db, "SELECT step FROM metrics");
    ASSERT_TRUE(open_query.executeStep());
    while (reader->wal_bytes() < 8 << 20) {
      ++step;
      sink->metrics(test_metrics(step, step));
      if (step % 500 == 0) must(store->flush());
    }
  }
  while (reader->wal_bytes() > options.wal_limit) {
    ++step;
    sink->metrics(test_metrics(step, step));
    must(store->flush());
  }
  EXPECT_EQ(must(reader->run(test_id(1))).step, step);
}

}  // namespace
}  // namespace stacklab
