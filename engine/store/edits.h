// What people do to runs beside training them.
#pragma once

#include <SQLiteCpp/Database.h>

#include "engine/base/result.h"
#include "engine/store/liveness.h"
#include "engine/store/store.h"

namespace stacklab::store {

// Returns the edit that takes it back.
Result<RunEdit> edit_run(SQLite::Database& db, const RunId& run, const RunEdit& edit, double now);
Status add_fork(SQLite::Database& db, const ForkedRun& fork, const Owner& owner, double now);
// The rows of a run in the trash.
Status purge_run(SQLite::Database& db, const RunId& run);

}  // namespace stacklab::store
