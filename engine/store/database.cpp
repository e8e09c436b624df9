#include "engine/store/database.h"

#include <SQLiteCpp/Backup.h>
#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/Transaction.h>
#include <fmt/core.h>
#include <sqlite3.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <thread>

#include "engine/base/atomic_file.h"
#include "engine/store/pyramid.h"
#include "engine/store/schema.h"

namespace stacklab::store {
namespace {

namespace fs = std::filesystem;

constexpr int application_id = 0x53744c62;  // "StLb", so that another program's file is not taken for a store
constexpr std::int64_t journal_size_limit = 16 << 20;

std::int64_t query_int(SQLite::Database& db, const char* sql) { return db.execAndGet(sql).getInt64(); }

Error newer_version(std::int64_t version, const fs::path& file) {
  return {Error::Kind::failed,
          fmt::format("{} was written by a newer Stacklab (store version {}; this one reads up to {})", file.string(),
                      version, schema_version),
          "use the newer Stacklab, or another workspace"};
}

Error not_a_store(const fs::path& file) {
  return {Error::Kind::failed, fmt::format("{} is not a Stacklab store", file.string()),
          "move the file away, or choose another workspace"};
}

Error without_version(const fs::path& file) {
  return {Error::Kind::failed,
          fmt::format("{} is a store whose version number is gone (PRAGMA user_version is 0): another program has "
                      "changed it",
                      file.string()),
          fmt::format("bring back a copy, or, if nothing else was changed: sqlite3 '{}' 'PRAGMA user_version = {}'",
                      file.string(), schema_version)};
}

// Two processes may do this at once; the second waits, and finds nothing left to do.
Status migrate(SQLite::Database& db, const fs::path& file) {
  if (query_int(db, "PRAGMA user_version") == schema_version &&
      query_int(db, "PRAGMA application_id") == application_id)
    return {};
  SQLite::Transaction transaction(db, SQLite::TransactionBehavior::EXCLUSIVE);
  const std::int64_t version = query_int(db, "PRAGMA user_version");
  const std::int64_t owner = query_int(db, "PRAGMA application_id");
  const bool empty = query_int(db, "SELECT count(*) FROM sqlite_master") == 0;
  if (owner != application_id && !(owner == 0 && version == 0 && empty))
    return tl::unexpected<Error>(not_a_store(file));
  if (version > schema_version) return tl::unexpected<Error>(newer_version(version, file));
  if (version == 0 && !empty) return tl::unexpected<Error>(without_version(file));
  for (auto v = static_cast<std::size_t>(version); v < migrations.size(); ++v) db.exec(migrations[v]);
  // What version 2 keeps beside the rows of version 1.
  if (version == 1) {
    db.exec(update_figures);
    build_pyramids(db);
  }
  db.exec(fmt::format("PRAGMA application_id = {}", application_id));
  db.exec(fmt::format("PRAGMA user_version = {}", schema_version));
  transaction.commit();
  return {};
}

// The change to WAL does not wait for other connections by itself.
void use_wal(SQLite::Database& db, int timeout_ms) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  for (;;) {
    try {
      db.exec("PRAGMA journal_mode = WAL");
      return;
    } catch (const SQLite::Exception& e) {
      if (e.getErrorCode() != SQLITE_BUSY || std::chrono::steady_clock::now() > deadline) throw;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

// A path as the body of a file: URI.
std::string uri_path(const fs::path& path) {
  std::string uri;
  for (const char c : path.string()) {
    if (c == '%' || c == '?' || c == '#')
      uri += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    else
      uri += c;
  }
  return uri;
}

// The folder of a run that once was recorded here; empty: none.
fs::path run_left(const fs::path& workspace) {
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(workspace / "runs", ec))
    if (entry.is_directory(ec) && fs::exists(entry.path() / "config.json", ec)) return entry.path();
  return {};
}

Status check_readable(SQLite::Database& db, const fs::path& file) {
  const std::int64_t version = query_int(db, "PRAGMA user_version");
  const std::int64_t owner = query_int(db, "PRAGMA application_id");
  if (version > schema_version && owner == application_id) return tl::unexpected<Error>(newer_version(version, file));
  if (version == 0 && query_int(db, "SELECT count(*) FROM sqlite_master") == 0)
    return failed(fmt::format("{} is empty: nothing was run in this workspace yet", file.string()),
                  "train something first");
  if (owner != application_id) return tl::unexpected<Error>(not_a_store(file));
  if (version == 0) return tl::unexpected<Error>(without_version(file));
  return {};
}

}  // namespace

fs::path database_file(const fs::path& workspace) { return workspace / "stacklab.db"; }

Error database_error(const SQLite::Exception& e, const fs::path& workspace) {
  const std::string file = database_file(workspace).string();
  Error error{Error::Kind::failed, fmt::format("{}: {}", file, e.what()), {}};
  switch (e.getErrorCode()) {
    case SQLITE_FULL:
      error.what = fmt::format("the disk is full: cannot write {}", file);
      error.remedy = "free some space";
      break;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      error.what = fmt::format("{} is locked by another process", file);
      error.remedy = "close the program that holds it, then try again";
      break;
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
      error.what = fmt::format("cannot write the store in {} ({})", workspace.string(), e.what());
      error.remedy = "check that the folder is there and that you may write in it, or choose another workspace";
      break;
    case SQLITE_NOTADB:
      return not_a_store(file);
    case SQLITE_CORRUPT:
      error.what = fmt::format("{} is damaged ({})", file, e.what());
      error.remedy = fmt::format("save what is left with: sqlite3 '{}' .recover", file);
      break;
    case SQLITE_IOERR:
      error.remedy = "check the disk: free space, limits on file size, errors in the system's log";
      break;
    default:
      break;
  }
  return error;
}

bool may_pass(const SQLite::Exception& e) {
  switch (e.getErrorCode()) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
      return true;
    default:
      return false;
  }
}

Result<std::unique_ptr<SQLite::Database>> open_for_writing(const fs::path& workspace, const WriteOptions& options) {
  return guarded(workspace, [&]() -> Result<std::unique_ptr<SQLite::Database>> {
    const fs::path file = database_file(workspace);
    std::error_code ec;
    if (fs::exists(file, ec) && !fs::is_regular_file(file, ec)) return tl::unexpected<Error>(not_a_store(file));
    auto db = std::make_unique<SQLite::Database>(
        file.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE | SQLite::OPEN_NOMUTEX, options.busy_timeout_ms);
    // A store of a newer version is refused before anything of it changes.
    if (auto version = query_int(*db, "PRAGMA user_version"); version > schema_version) {
      if (query_int(*db, "PRAGMA application_id") != application_id) return tl::unexpected<Error>(not_a_store(file));
      return tl::unexpected<Error>(newer_version(version, file));
    }
    use_wal(*db, options.busy_timeout_ms);
    db->exec("PRAGMA synchronous = NORMAL");
    db->exec("PRAGMA foreign_keys = ON");
    db->exec("PRAGMA secure_delete = OFF");
    db->exec(fmt::format("PRAGMA journal_size_limit = {}", journal_size_limit));
    if (options.max_pages > 0) db->exec(fmt::format("PRAGMA max_page_count = {}", options.max_pages));
    if (auto done = migrate(*db, file); !done) return tl::unexpected(done.error());
    return db;
  });
}

Result<ReadConnection> open_for_reading(const fs::path& workspace) {
  const fs::path file = fs::absolute(database_file(workspace));
  std::error_code ec;
  if (!fs::exists(workspace, ec))
    return failed(fmt::format("there is no workspace {}", workspace.string()), "name another with --workspace");
  if (!fs::exists(file, ec)) {
    if (const fs::path run = run_left(workspace); !run.empty())
      return failed(
          fmt::format("{} has lost its store, stacklab.db, but not its runs' folders", workspace.string()),
          fmt::format("bring the file back; or go on from the checkpoints without the curves so far: stacklab "
                      "train {} --resume --workspace {}",
                      (run / "config.json").string(), workspace.string()));
    return failed(fmt::format("{} holds no store: nothing was run there yet", workspace.string()),
                  "train something first, or name another with --workspace");
  }
  if (!fs::is_regular_file(file, ec)) return tl::unexpected<Error>(not_a_store(file));
  return guarded(workspace, [&]() -> Result<ReadConnection> {
    ReadConnection connection;
    const auto connect = [&](bool immutable) -> Status {
      const std::string name = immutable ? "file:" + uri_path(file) + "?immutable=1" : file.string();
      connection.db = std::make_unique<SQLite::Database>(
          name, SQLite::OPEN_READONLY | SQLite::OPEN_NOMUTEX | (immutable ? SQLite::OPEN_URI : 0), 5000);
      connection.immutable = immutable;
      return check_readable(*connection.db, file);
    };
    Status opened;
    try {
      opened = connect(false);
    } catch (const SQLite::Exception& e) {
      // A folder where the WAL's index cannot be made. Without a WAL nothing is missed by doing without.
      const fs::path wal = file.string() + "-wal";
      const bool refused_index = e.getErrorCode() == SQLITE_CANTOPEN || e.getErrorCode() == SQLITE_READONLY;
      const auto wal_size = fs::file_size(wal, ec);
      if (!refused_index) throw;
      if (!ec && wal_size > 0)
        return failed(fmt::format("{} holds changes that cannot be read where nothing can be written", wal.string()),
                      "copy the workspace to a folder where you may write");
      opened = connect(true);
    }
    if (!opened) return tl::unexpected(opened.error());
    if (query_int(*connection.db, "PRAGMA user_version") < schema_version) {
      // An older store is brought up to date first; where nothing can be written, a copy of it in memory is.
      if (open_for_writing(workspace, {})) return open_for_reading(workspace);
      auto copy = std::make_unique<SQLite::Database>(":memory:", SQLite::OPEN_READWRITE | SQLite::OPEN_NOMUTEX);
      SQLite::Backup(*copy, *connection.db).executeStep();
      if (auto done = migrate(*copy, file); !done) return tl::unexpected(done.error());
      connection.db = std::move(copy);
      connection.immutable = true;
    }
    return connection;
  });
}

}  // namespace stacklab::store
