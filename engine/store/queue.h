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

// Without those that are being trained.
std::vector<QueueEntry> read_queue(SQLite::Database& db);

// At the end. owner: who will start it; none: it waits for a person. Returns its number. Refused: the run is in the
// queue; but what waits for a person there becomes the owner's.
Result<std::int64_t> add_to_queue(SQLite::Database& db, const QueueEntry& entry, const std::optional<Owner>& owner,
                                  double now);
// The run's entries, or the one of a number, are trained by owner from here on.
void begin_in_queue(SQLite::Database& db, const QueueEntry& entry, const Owner& owner);
// The end of a run's process: what it trained leaves the queue, a finished run altogether. With options the run waits
// at the head.
void end_in_queue(SQLite::Database& db, std::int64_t run_number, std::int64_t session, bool finished,
                  const std::string& options_json);
// To the n-th place from 0; beyond the last: to the end.
Status move_in_queue(SQLite::Database& db, std::int64_t id, std::int64_t place);
Status remove_from_queue(SQLite::Database& db, std::int64_t id);
Status release_in_queue(SQLite::Database& db, std::int64_t id);
// The first entry that no living process will start becomes owner's. With an id: that one, or a refusal.
Result<std::optional<QueueEntry>> take_from_queue(SQLite::Database& db, const Owner& owner,
                                                  std::optional<std::int64_t> id);

}  // namespace stacklab::store
