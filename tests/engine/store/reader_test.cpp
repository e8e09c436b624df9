#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>

#include "engine/store/database.h"
#include "tests/engine/store/store_testing.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;

class Reading : public testing::Test {
 protected:
  Reading() : store_(must(Store::open(folder_.path()))), reader_(must(open_store_reader(folder_.path()))) {}

  void add(const RunId& id, const std::string& name) {
    ClaimRequest request = test_request(1);
    request.id = id;
    request.name = name;
    must(store_->claim(request, {}));
  }

  TemporaryFolder folder_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<StoreReader> reader_;
};

TEST_F(Reading, ARunIsFoundByIdPrefixOrName) {
  add("abc000000001", "first");
  add("abd000000002", "second");
  add("c00000000003", "abc");
  EXPECT_EQ(must(reader_->run("abc000000001")).name, "first");
  EXPECT_EQ(must(reader_->run("abd")).name, "second");
  EXPECT_EQ(must(reader_->run("second")).id, "abd000000002");
  // A name is what somebody chose; it goes before the beginning of an id.
  EXPECT_EQ(must(reader_->run("abc")).id, "c00000000003");
}

TEST_F(Reading, AmbiguousAndUnknownRunsAreUsageErrorsThatHelp) {
  add("abc000000001", "twin");
  add("abd000000002", "twin");
  for (const char* wanted : {"ab", "twin"}) {
    const auto run = reader_->run(wanted);
    ASSERT_FALSE(run);
    EXPECT_EQ(run.error().kind, Error::Kind::usage);
    EXPECT_NE(run.error().what.find("abc000000001, abd000000002"), std::string::npos) << run.error().message();
  }
  const auto near = reader_->run("twim");
  ASSERT_FALSE(near);
  EXPECT_EQ(near.error().kind, Error::Kind::usage);
  EXPECT_NE(near.error().message().find("twin"), std::string::npos) << near.error().message();
  for (const char* odd : {"", "%", "ab%", "_bc000000001", "' OR 1=1 --"}) EXPECT_FALSE(reader_->run(odd)) << odd;
}

TEST_F(Reading, UnknownRunsAndMetricsAreToldApart) {
  add("abc000000001", "run");
  EXPECT_FALSE(reader_->series("nothing", "loss", 0, 10));
  EXPECT_FALSE(reader_->steps("nothing", 0, 10));
  EXPECT_FALSE(reader_->series_epoch("nothing"));
  EXPECT_FALSE(reader_->metrics("nothing"));
  EXPECT_FALSE(reader_->events("nothing", 0, 10));
  EXPECT_TRUE(must(reader_->series("abc000000001", "no such metric", 0, 10)).empty());
}

TEST_F(Reading, NoTransactionStaysOpen) {
  add("abc000000001", "run");
  must(reader_->runs());
  must(reader_->run("run"));
  must(reader_->series("abc000000001", "loss", 0, 10));
  must(reader_->steps("abc000000001", 0, 10));
  must(reader_->events("abc000000001", 0, 10));
  must(reader_->metrics("abc000000001"));
  EXPECT_FALSE(reader_->run("unknown"));
  must(store_->flush());
  // Only when no reader holds a snapshot can the whole WAL be taken over and cut to nothing.
  auto db = must(store::open_for_writing(folder_.path(), {}));
  db->exec("UPDATE runs SET detail = 'new'");
  EXPECT_GT(reader_->wal_bytes(), 0);
  EXPECT_EQ(db->execAndGet("PRAGMA wal_checkpoint(TRUNCATE)").getInt(), 0);
  EXPECT_EQ(reader_->wal_bytes(), 0);
}

TEST_F(Reading, RangesAreReadFromTheIndexAlone) {
  auto db = must(store::open_for_writing(folder_.path(), {}));
  const auto plan = [&](const char* sql) {
    SQLite::Statement query(*db, std::string("EXPLAIN QUERY PLAN ") + sql);
    std::string text;
    while (query.executeStep()) text += query.getColumn(3).getString() + "\n";
    return text;
  };
  const std::string series = plan(
      "SELECT step, value FROM metrics WHERE run = 1 AND metric = (SELECT id FROM metric_names WHERE name = 'loss') "
      "AND step > 5 ORDER BY step LIMIT 10");
  EXPECT_NE(series.find("SEARCH metrics USING PRIMARY KEY (run=? AND metric=? AND step>?)"), std::string::npos)
      << series;
  EXPECT_EQ(series.find("SCAN"), std::string::npos) << series;
  EXPECT_EQ(series.find("TEMP B-TREE"), std::string::npos) << series;
  const std::string supersede =
      plan("DELETE FROM metrics WHERE run = 1 AND metric IN (SELECT id FROM metric_names) AND step > 5");
  EXPECT_NE(supersede.find("SEARCH metrics USING PRIMARY KEY (run=? AND metric=? AND step>?)"), std::string::npos)
      << supersede;
  const std::string events =
      plan("SELECT id FROM events WHERE run = 1 AND id > 5 AND NOT superseded ORDER BY id LIMIT 10");
  EXPECT_NE(events.find("SEARCH events USING INDEX events_by_run (run=? AND rowid>?)"), std::string::npos) << events;
  EXPECT_EQ(events.find("TEMP B-TREE"), std::string::npos) << events;
  const std::string last = plan("SELECT step FROM steps WHERE run = 1 ORDER BY step DESC LIMIT 1");
  EXPECT_NE(last.find("SEARCH steps USING PRIMARY KEY (run=?)"), std::string::npos) << last;
}

TEST_F(Reading, NothingInTheStoreIsAnAbsolutePath) {
  const auto claim = must(store_->claim(test_request(1), {}));
  const auto sink = store_->sink(claim);
  sink->metrics(test_metrics(1, 2));
  sink->event({RunEvent::Kind::checkpoint, 1, "ckpt_step1"});
  must(store_->end(claim, {.state = RunState::finished, .cause = {}}));
  store_.reset();
  reader_.reset();
  EXPECT_EQ(file_text(folder_ / "stacklab.db").find(folder_.path().string()), std::string::npos);
}

TEST_F(Reading, AMovedWorkspaceOpens) {
  const auto claim = must(store_->claim(test_request(1), {}));
  store_->sink(claim)->metrics(test_metrics(1, 2));
  must(store_->end(claim, {.state = RunState::finished, .cause = {}}));
  store_.reset();
  reader_.reset();
  const TemporaryFolder elsewhere;
  fs::rename(folder_.path(), elsewhere / "moved");
  EXPECT_EQ(must(must(open_store_reader(elsewhere / "moved"))->run(test_id(1))).last_loss, 2.0);
  EXPECT_EQ(must(must(Store::open(elsewhere / "moved"))->look(test_request(1))), Claim::Kind::already_finished);
}

TEST_F(Reading, AReaderSeesWhatComesLater) {
  EXPECT_TRUE(must(reader_->runs()).empty());
  const auto claim = must(store_->claim(test_request(1), {}));
  const auto sink = store_->sink(claim);
  for (int step = 1; step <= 3; ++step) {
    sink->metrics(test_metrics(step, step));
    must(store_->flush());
    EXPECT_EQ(must(reader_->series(test_id(1), "loss", step - 1, 10)).size(), 1u);
  }
}

}  // namespace
}  // namespace stacklab
