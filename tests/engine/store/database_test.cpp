#include "engine/store/database.h"

#include <SQLiteCpp/Statement.h>
#include <array>
#include <iostream>
#include <thread>

#include "engine/store/schema.h"
#include "tests/engine/store/read_only.h"
#include "tests/engine/store/store_testing.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;

TEST(Database, IsCreatedWithItsSchemaAndWal) {
  const TemporaryFolder folder;
  auto db = must(store::open_for_writing(folder.path(), {}));
  EXPECT_EQ(db->execAndGet("PRAGMA user_version").getInt(), store::schema_version);
  EXPECT_EQ(db->execAndGet("PRAGMA journal_mode").getString(), "wal");
  EXPECT_EQ(db->execAndGet("PRAGMA synchronous").getInt(), 1);  // NORMAL
  EXPECT_EQ(db->execAndGet("PRAGMA foreign_keys").getInt(), 1);
  EXPECT_GT(db->execAndGet("PRAGMA journal_size_limit").getInt64(), 0);
  for (const char* table : {"runs", "sessions", "metric_names", "metrics", "steps", "events", "facts"})
    EXPECT_TRUE(db->tableExists(table)) << table;
}

TEST(Database, OpeningAgainChangesNothing) {
  const TemporaryFolder folder;
  must(store::open_for_writing(folder.path(), {}));
  auto db = must(store::open_for_writing(folder.path(), {}));
  const auto before = db->execAndGet("PRAGMA schema_version").getInt();
  db.reset();
  db = must(store::open_for_writing(folder.path(), {}));
  EXPECT_EQ(db->execAndGet("PRAGMA schema_version").getInt(), before);
}

TEST(Database, AHalfMadeFileIsMadeAnew) {
  const TemporaryFolder folder;
  {
    // What a kill leaves after WAL was set and before the schema was committed.
    SQLite::Database db((folder / "stacklab.db").string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
    db.exec("PRAGMA journal_mode = WAL");
    db.exec("CREATE TABLE t (x); DROP TABLE t");
  }
  EXPECT_TRUE(must(store::open_for_writing(folder.path(), {}))->tableExists("runs"));
}

TEST(Database, ManyThreadsCreateItOnce) {
  const TemporaryFolder folder;
  std::vector<std::thread> threads;
  std::array<std::string, 8> problems;
  for (auto& problem : problems) {
    threads.emplace_back([&] {
      auto db = store::open_for_writing(folder.path(), {});
      if (!db) problem = db.error().message();
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& problem : problems) EXPECT_EQ(problem, "");
}

TEST(Database, ANewerVersionIsRefusedAndNotTouched) {
  const TemporaryFolder folder;
  must(store::open_for_writing(folder.path(), {}))->exec("PRAGMA user_version = 1000");
  const std::string before = file_text(folder / "stacklab.db");
  for (const auto& error : {Store::open(folder.path()).error(), open_store_reader(folder.path()).error()}) {
    EXPECT_NE(error.what.find("newer Stacklab (store version 1000"), std::string::npos) << error.message();
    EXPECT_NE(error.what.find("stacklab.db"), std::string::npos) << error.message();
    EXPECT_FALSE(error.remedy.empty());
  }
  EXPECT_EQ(file_text(folder / "stacklab.db"), before);
}

TEST(Database, AFileThatIsNoDatabaseIsNamed) {
  for (const std::string& text :
       {std::string("hello, I am a text file and no data base at all\n"), std::string(8192, 'x')}) {
    const TemporaryFolder folder;
    put_file(folder / "stacklab.db", text);
    for (const auto& error : {Store::open(folder.path()).error(), open_store_reader(folder.path()).error()})
      EXPECT_NE(error.what.find("stacklab.db is not a Stacklab store"), std::string::npos) << error.message();
    EXPECT_EQ(file_text(folder / "stacklab.db"), text);
  }
}

TEST(Database, AnotherProgramsDatabaseIsNotTaken) {
  const TemporaryFolder folder;
  {
    SQLite::Database db((folder / "stacklab.db").string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
    db.exec("CREATE TABLE photographs (name TEXT)");
  }
  const auto store = Store::open(folder.path());
  ASSERT_FALSE(store);
  EXPECT_NE(store.error().what.find("is not a Stacklab store"), std::string::npos) << store.error().message();
  const auto reader = open_store_reader(folder.path());
  ASSERT_FALSE(reader);
  EXPECT_NE(reader.error().what.find("is not a Stacklab store"), std::string::npos) << reader.error().message();
}

TEST(Database, AFolderInItsPlaceIsNamed) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "stacklab.db");
  ASSERT_FALSE(Store::open(folder.path()));
  ASSERT_FALSE(open_store_reader(folder.path()));
}

TEST(Database, MissingAndEmptyWorkspacesSaySo) {
  const TemporaryFolder folder;
  const auto missing = open_store_reader(folder / "nowhere");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().what.find("there is no workspace"), std::string::npos) << missing.error().message();
  const auto empty = open_store_reader(folder.path());
  ASSERT_FALSE(empty);
  EXPECT_NE(empty.error().what.find("holds no store"), std::string::npos) << empty.error().message();
  put_file(folder / "stacklab.db", "");
  const auto nothing = open_store_reader(folder.path());
  ASSERT_FALSE(nothing);
  EXPECT_NE(nothing.error().what.find("nothing was run"), std::string::npos) << nothing.error().message();
}

TEST(Database, AWorkspaceBelowAFileIsAnErrorThatNamesIt) {
  const TemporaryFolder folder;
  put_file(folder / "file", "x");
  const auto store = Store::open(folder / "file" / "workspace");
  ASSERT_FALSE(store);
  EXPECT_NE(store.error().what.find("file/workspace"), std::string::npos) << store.error().message();
}

TEST(Database, OddPathsWork) {
  const TemporaryFolder folder;
  for (const char* name :
       {"with space", "ünïcödé 日本", "a?b#c%20d", "file:looks like a uri", "quote'\"", "-dash", "new\nline"}) {
    const fs::path workspace = folder / name;
    {
      auto store = must(Store::open(workspace));
      const auto claim = must(store->claim(test_request(1), {}));
      store->sink(claim)->metrics(test_metrics(1, 2.5));
      must(store->end(claim, {.state = RunState::finished, .cause = {}}));
    }
    auto reader = must(open_store_reader(workspace));
    EXPECT_EQ(must(reader->run(test_id(1))).last_loss, 2.5) << name;
    // Nothing was made beside it.
    EXPECT_TRUE(fs::exists(workspace / "stacklab.db")) << name;
  }
}

TEST(Database, RelativeWorkspacesWork) {
  const TemporaryFolder folder;
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  {
    auto store = must(Store::open("file:w"));
    must(store->claim(test_request(1), {}));
    EXPECT_EQ(must(must(open_store_reader("file:w"))->runs()).size(), 1u);
  }
  fs::current_path(before);
  EXPECT_TRUE(fs::exists(folder / "file:w" / "stacklab.db"));
}

void write_one_run(const fs::path& workspace) {
  auto store = must(Store::open(workspace));
  const auto claim = must(store->claim(test_request(1), {}));
  store->sink(claim)->metrics(test_metrics(1, 2.5));
  must(store->end(claim, {.state = RunState::finished, .cause = {}}));
}

TEST(Database, AReadOnlyWorkspaceCanBeRead) {
  const TemporaryFolder folder;
  write_one_run(folder.path());
  ASSERT_FALSE(fs::exists(folder / "stacklab.db-wal"));
  make_read_only(folder.path());
  in_child_as_nobody([&] {
    auto reader = open_store_reader(folder.path());
    if (!reader) std::cerr << reader.error().message() << "\n";
    return reader && (*reader)->run(test_id(1))->last_loss == 2.5;
  });
  make_writable(folder.path());
}

TEST(Database, AReadOnlyWorkspaceWithItsWalCanBeRead) {
  const TemporaryFolder folder;
  write_one_run(folder.path());
  {
    // A killed process leaves rows in the WAL only.
    ChildProcess child({"hold", folder.path().string(), test_id(2)});
    ASSERT_EQ(child.line(), "holding");
  }
  ASSERT_GT(fs::file_size(folder / "stacklab.db-wal"), 0u);
  make_read_only(folder.path());
  in_child_as_nobody([&] {
    auto reader = open_store_reader(folder.path());
    if (!reader) std::cerr << reader.error().message() << "\n";
    return reader && (*reader)->runs()->size() == 2;
  });
  make_writable(folder.path());
  fs::remove(folder / "stacklab.db-shm");
  make_read_only(folder.path());
  // Without the index the WAL cannot be read there: said, instead of showing what was before it.
  in_child_as_nobody([&] {
    auto reader = open_store_reader(folder.path());
    return !reader && reader.error().what.find("stacklab.db-wal") != std::string::npos;
  });
  make_writable(folder.path());
}

TEST(Database, AFolderThatIsNotWritableIsNamed) {
  const TemporaryFolder folder;
  write_one_run(folder.path());
  make_read_only(folder.path());
  in_child_as_nobody([&] {
    const auto store = Store::open(folder.path());
    if (store) return false;
    std::cerr << store.error().message() << "\n";
    return store.error().what.find(folder.path().string()) != std::string::npos && !store.error().remedy.empty();
  });
  in_child_as_nobody([&] {
    const auto store = Store::open(folder / "new");
    return !store && store.error().what.find((folder / "new").string()) != std::string::npos;
  });
  make_writable(folder.path());
}

TEST(Database, AReaderWithoutLocksFollowsTheFile) {
  const TemporaryFolder folder;
  write_one_run(folder.path());
  make_read_only(folder.path());
  int ready[2], go[2];
  ASSERT_EQ(pipe2(ready, O_CLOEXEC), 0);
  ASSERT_EQ(pipe2(go, O_CLOEXEC), 0);
  // The folder's owner trains while somebody who may only read looks on.
  std::thread owner([&] {
    char c = 0;
    if (read(ready[0], &c, 1) == 1) {
      make_writable(folder.path());
      for (const auto& entry : fs::directory_iterator(folder.path()))
        if (entry.is_regular_file()) fs::permissions(entry.path(), fs::perms(0644));
      ChildProcess child({"write", folder.path().string(), test_id(2), "3"});
      child.close_input();
      EXPECT_EQ(child.wait(), 0);
    }
    EXPECT_EQ(write(go[1], "g", 1), 1);
  });
  in_child_as_nobody([&] {
    auto reader = open_store_reader(folder.path());
    if (!reader || (*reader)->runs()->size() != 1) return false;
    char c = 0;
    if (write(ready[1], "r", 1) != 1 || read(go[0], &c, 1) != 1) return false;
    const auto run = (*reader)->run(test_id(2));
    if (!run) std::cerr << run.error().message() << "\n";
    return run && run->step == 3;
  });
  close(ready[1]);
  owner.join();
  for (const int fd : {ready[0], go[0], go[1]}) close(fd);
}

}  // namespace
}  // namespace stacklab
