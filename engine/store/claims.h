// Who may train a run, decided inside the data base.
#pragma once

#include <SQLiteCpp/Database.h>

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/store/liveness.h"
#include "engine/store/store.h"

namespace stacklab::store {

struct ClaimedRow {
  Claim claim;  // without hold
  std::int64_t run_number = 0;
  std::int64_t session = 0;
};

// One transaction: of two processes that claim a run at once, one is refused. With look_only nothing is kept.
Result<ClaimedRow> claim_run(SQLite::Database& db, const ClaimRequest& request, const Owner& owner, double now,
                             bool look_only = false);

// Marks the active runs whose process is gone as lost, with an event each. Returns a line for each.
std::vector<std::string> mark_lost_runs(SQLite::Database& db, double now);

// Whether some process should be training the run.
bool set_stop_requested(SQLite::Database& db, const RunId& run, StopKind kind);
bool set_checkpoint_requested(SQLite::Database& db, const RunId& run);
bool set_trace_requested(SQLite::Database& db, const RunId& run);

}  // namespace stacklab::store
