// The queue of a workspace: what waits to be trained, whichever process will do it.
#pragma once

#include <SQLiteCpp/Database.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/base/result.h"
#include "engine/store/liveness.h"
#include "engine/store/store_reader.h"

namespace stacklab::store {

std::vector<QueueEntry> read_queue(SQLite::Database& db);

// At the end. owner: who will start it; none: it waits for a person. Returns its number.
std::int64_t add_to_queue(SQLite::Database& db, const QueueEntry& entry, const std::optional<Owner>& owner, double now);
// To the n-th place from 0; beyond the last: to the end.
Status move_in_queue(SQLite::Database& db, std::int64_t id, std::int64_t place);
Status remove_from_queue(SQLite::Database& db, std::int64_t id);
Status release_in_queue(SQLite::Database& db, std::int64_t id);
// The first entry that no living process will start becomes owner's. With an id: that one, or a refusal.
Result<std::optional<QueueEntry>> take_from_queue(SQLite::Database& db, const Owner& owner,
                                                  std::optional<std::int64_t> id);

}  // namespace stacklab::store
