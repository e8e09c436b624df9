// A store as version 1 left it, opened by this one.
#include <SQLiteCpp/Statement.h>

#include <cmath>
#include <iostream>

#include "engine/store/database.h"
#include "engine/store/schema.h"
#include "tests/engine/store/read_only.h"
#include "tests/engine/store/store_testing.h"

namespace stacklab {
namespace {

void make_version_1(const std::filesystem::path& workspace) {
  std::filesystem::create_directories(workspace / "runs");
  SQLite::Database db(store::database_file(workspace).string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
  db.exec(file_text(STACKLAB_SOURCE_DIR "/tests/engine/store/version1.sql"));
  db.exec("PRAGMA user_version = 1");
  db.exec("PRAGMA application_id = 1400130658");  // "StLb"
}

void check_runs(StoreReader& reader) {
  const auto runs = must(reader.runs());
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(runs[0].name, "old");
  EXPECT_EQ(runs[0].state, RunState::paused);
  EXPECT_EQ(runs[0].step, 25);
  EXPECT_EQ(runs[0].commit, "0123456789ab+dirty");
  EXPECT_TRUE(runs[0].dirty);
  EXPECT_FALSE(runs[1].dirty);
  EXPECT_EQ(runs[1].tokenizer, "bytes");
  for (const RunSummary& run : runs) {
    EXPECT_EQ(run.first_loss, must(reader.series(run.id, "loss", 0, 1)).at(0).value);
    EXPECT_EQ(run.last_loss, must(reader.last_point(run.id, "loss"))->value);
    EXPECT_EQ(run.val_loss, must(reader.last_point(run.id, "val_loss"))->value);
    EXPECT_EQ(run.open_alerts, 0);
    EXPECT_EQ(must(reader.decimated(run.id, "loss", 0, 1000, 1)).at(0).count, run.step);
  }
  const auto sum = must(reader.decimated(runs[1].id, "loss", 0, 1000, 1)).at(0);
  EXPECT_EQ(sum.non_finite, 2) << "one NaN, one infinite";
  EXPECT_EQ(sum.gap_step, 7);
  EXPECT_EQ(must(reader.events(runs[2].id, 0, 100)).size(), 7u);
  EXPECT_TRUE(must(reader.alerts(false, 100)).empty());
}

TEST(Migration, AStoreOfVersion1IsBroughtUpToDate) {
  const TemporaryFolder folder;
  make_version_1(folder.path());
  auto store = must(Store::open(folder.path()));
  auto db = must(store::open_for_writing(folder.path(), {}));
  EXPECT_EQ(db->execAndGet("PRAGMA user_version").getInt(), store::schema_version);
  EXPECT_EQ(db->execAndGet("PRAGMA integrity_check").getString(), "ok");
  const int rows = db->execAndGet("SELECT count(*) FROM pyramids").getInt();
  EXPECT_GT(rows, 0);
  check_runs(*must(open_store_reader(folder.path())));
  // What was migrated is as what is written now: the rows go on.
  ClaimRequest request = test_request(1, true);
  request.id = "c3ea192dd633";
  request.corpus_sha256.clear();
  const auto claim = must(store->claim(request, {}));
  EXPECT_EQ(claim.step, 25);
  EXPECT_GT(claim.process_seconds, 0);
  const auto sink = store->sink(claim);
  sink->resumed_after(20);
  sink->metrics(test_metrics(21, 2.5));
  must(store->end(claim, {.state = RunState::paused, .cause = "stopped"}));
  auto reader = must(open_store_reader(folder.path()));
  EXPECT_EQ(must(reader->run("old")).last_loss, 2.5);
  EXPECT_EQ(must(reader->decimated("c3ea192dd633", "loss", 0, 1000, 1)).at(0).count, 21);
}

TEST(Migration, AReaderNeedsNoWriterBeforeIt) {
  const TemporaryFolder folder;
  make_version_1(folder.path());
  check_runs(*must(open_store_reader(folder.path())));
}

TEST(Migration, AReadOnlyStoreOfVersion1IsRead) {
  const TemporaryFolder folder;
  make_version_1(folder.path());
  make_read_only(folder.path());
  in_child_as_nobody([&] {
    auto reader = open_store_reader(folder.path());
    if (!reader) std::cerr << reader.error().message() << "\n";
    if (!reader) return false;
    check_runs(**reader);
    return !testing::Test::HasFailure();
  });
  make_writable(folder.path());
  // Not a byte of it changed.
  SQLite::Database db(store::database_file(folder.path()).string(), SQLite::OPEN_READONLY);
  EXPECT_EQ(db.execAndGet("PRAGMA user_version").getInt(), 1);
}

TEST(Migration, AStoreWithoutItsVersionIsNeitherReadNorMigrated) {
  const TemporaryFolder folder;
  must(Store::open(folder.path()));
  SQLite::Database(store::database_file(folder.path()).string(), SQLite::OPEN_READWRITE)
      .exec("PRAGMA user_version = 0");
  const auto reader = open_store_reader(folder.path());
  const auto store = Store::open(folder.path());
  ASSERT_FALSE(reader || store);
  for (const Error& error : {reader.error(), store.error()}) {
    EXPECT_NE(error.what.find("version number is gone"), std::string::npos) << error.message();
    EXPECT_NE(error.remedy.find("PRAGMA user_version = "), std::string::npos) << error.message();
  }
}

}  // namespace
}  // namespace stacklab
