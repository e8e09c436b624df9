// The data base file of a workspace: opening it, migrating it, and how its failures read.
#pragma once

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Exception.h>

#include <cstdint>
#include <filesystem>
#include <memory>

#include "engine/base/result.h"

namespace stacklab::store {

// Never open this file other than through SQLite: closing any descriptor of it drops SQLite's locks in the whole
// process.
std::filesystem::path database_file(const std::filesystem::path& workspace);

struct WriteOptions {
  int busy_timeout_ms = 5000;
  std::int64_t max_pages = 0;  // ceiling of the file's size; 0: none
};

// Opens, creates or migrates. The workspace folder exists.
Result<std::unique_ptr<SQLite::Database>> open_for_writing(const std::filesystem::path& workspace,
                                                           const WriteOptions& options);

struct ReadConnection {
  std::unique_ptr<SQLite::Database> db;
  bool immutable = false;  // opened without locks and WAL, whose files cannot be made in this folder
};
Result<ReadConnection> open_for_reading(const std::filesystem::path& workspace);

// What failed, where, and what to do about it.
Error database_error(const SQLite::Exception& e, const std::filesystem::path& workspace);

// Whether it may be otherwise in a moment: a lock, a full disk.
bool may_pass(const SQLite::Exception& e);

// Runs f, which returns a Result or Status, and turns what SQLite throws into an error.
template <class F>
auto guarded(const std::filesystem::path& workspace, F&& f) -> decltype(f()) {
  try {
    return f();
  } catch (const SQLite::Exception& e) {
    return tl::unexpected<Error>(database_error(e, workspace));
  }
}

}  // namespace stacklab::store
