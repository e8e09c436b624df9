#include "engine/store/left_spills.h"

#include "engine/base/log.h"
#include "engine/store/applier.h"
#include "engine/store/database.h"
#include "engine/store/spill.h"

namespace stacklab::store {
namespace {

constexpr int short_timeout_ms = 200;

}  // namespace

void take_in_left_spills(SQLite::Database& db, const std::filesystem::path& workspace) {
  const auto notes = take_in_spills(workspace / "runs", [&](const LeftSpill& left) {
    return guarded(workspace, [&]() -> Result<std::int64_t> {
      Applier applier(db);
      return applier.take_in([&](const auto& visit) { return left.read(visit); });
    });
  });
  for (const auto& note : notes) log_warning("{}", note);
}

void take_in_before_reading(const std::filesystem::path& workspace) {
  std::error_code ec;
  if (!spills_are_left(workspace / "runs") || !std::filesystem::exists(database_file(workspace), ec)) return;
  if (const auto db = open_for_writing(workspace, {.busy_timeout_ms = short_timeout_ms}))
    take_in_left_spills(**db, workspace);
}

}  // namespace stacklab::store
