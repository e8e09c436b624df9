// Long runs: a million points, and a WAL that stays small while somebody looks on.
#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/Transaction.h>

#include <algorithm>
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
    db->exec("UPDATE runs SET loss = 1000000");  // as the writer would have
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

// Through the writer, as a run would: what the pyramid costs there, and what it saves the reader.
TEST(Size, AMillionPointsAreDrawnWithoutBeingRead) {
  constexpr std::int64_t points = 1000000, spike = 765432;
  const TemporaryFolder folder;
  StoreOptions options;
  options.held_rows_limit = 4 * points;
  auto store = must(Store::open(folder.path(), options));
  const auto claim = must(store->claim(test_request(1), {}));
  const auto sink = store->sink(claim);
  const double written = seconds_of([&] {
    for (std::int64_t step = 1; step <= points; ++step)
      sink->metrics({step, step, 0, 0, {{metric::loss, step == spike ? 1e9 : static_cast<double>(step % 1000)}}});
    must(store->flush());
  });
  auto reader = must(open_store_reader(folder.path()));
  std::size_t raw = 0;
  const double all = seconds_of([&] { raw = must(reader->series(test_id(1), "loss", 0, points)).size(); });
  ASSERT_EQ(raw, static_cast<std::size_t>(points));
  std::vector<SeriesBucket> buckets;
  const double drawn = seconds_of([&] { buckets = must(reader->decimated(test_id(1), "loss", 0, points, 1000)); });
  ASSERT_LE(buckets.size(), 1000u);
  EXPECT_GE(buckets.size(), 500u) << "a picture's columns are filled";
  const auto highest = std::max_element(buckets.begin(), buckets.end(),
                                        [](const auto& a, const auto& b) { return a.max.value < b.max.value; });
  EXPECT_EQ(highest->max, (SeriesPoint{spike, 1e9}));
  std::printf("a million points: written in %.2f s, read in %.3f s, drawn from %zu buckets in %.4f s\n", written, all,
              buckets.size(), drawn);
  EXPECT_LT(drawn, all / 10);
}

TEST(Size, TenThousandRunsAreListedByPagesAndPolledByChanges) {
  const TemporaryFolder folder;
  auto store = must(Store::open(folder.path()));
  must(store->end(must(store->claim(test_request(0), {})), {.state = RunState::finished, .cause = {}}));
  {
    auto db = must(store::open_for_writing(folder.path(), {}));
    SQLite::Transaction transaction(*db);
    db->exec(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9999) "
        "INSERT INTO runs (number, id, name, folder, state, config_json, created, session, loss_step, loss) "
        "SELECT i, printf('b%011d', i), 'run ' || i, 'f' || i, 'finished', json_object('optim', json_object('adam_lr', "
        "i * 1e-6)), i, 1, 1, (i * 7919) % 10007 FROM n");
    db->exec(
        "INSERT INTO sessions (run, session, pid, process_start, boot_id, host, namespace, started, next_by) "
        "SELECT number, 1, 1, 1, '', '', '', 0, 0 FROM runs WHERE number > 0");
    transaction.commit();
  }
  auto reader = must(open_store_reader(folder.path()));
  std::int64_t counter = 0;
  const double everything = seconds_of([&] {
    const auto changes = must(reader->changes(0));
    EXPECT_EQ(changes.runs.size(), 10000u);
    counter = changes.counter;
  });
  const double nothing = seconds_of([&] { EXPECT_TRUE(must(reader->changes(counter)).runs.empty()); });
  RunEdit edit;
  edit.note = "new";
  must(store->edit(test_id(0), edit));
  const double one = seconds_of([&] { EXPECT_EQ(must(reader->changes(counter)).runs.size(), 1u); });
  RunQuery query;
  query.order = "loss";
  query.filter = RunFilter::compare("optim.adam_lr", RunFilter::Op::greater, 1e-3);
  query.limit = 100;
  const double page = seconds_of([&] { EXPECT_EQ(must(reader->runs(query)).size(), 100u); });
  std::printf("10,000 runs: all in %.3f s, a poll in %.5f s, with one change in %.5f s, a sorted page in %.4f s\n",
              everything, nothing, one, page);
  EXPECT_LT(one, everything / 10);
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
