#include "engine/store/claims.h"

#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/Transaction.h>
#include <fmt/core.h>

#include <optional>

#include "engine/base/environment.h"
#include "engine/base/log.h"
#include "engine/store/queue.h"

namespace stacklab::store {
namespace {

constexpr double first_beat_within = 60.0;  // of a run that was just claimed

struct StoredRun {
  std::int64_t number = 0, session = 0, step = 0;
  double process_seconds = 0;  // of all its processes; one that died counts to its last beat
  bool deleted = false;
  RunState state = RunState::queued;
  std::string cause, name, folder, corpus_sha256;
  Owner owner;
  Pulse pulse;
};

std::optional<StoredRun> find_run(SQLite::Database& db, const RunId& id) {
  SQLite::Statement query(db,
                          "SELECT r.number, r.session, r.state, r.cause, r.name, r.folder, r.corpus_sha256, s.pid, "
                          "s.process_start, s.boot_id, s.host, s.namespace, s.last_beat, s.next_by, "
                          "max(r.ended_step, coalesce((SELECT max(step) FROM steps WHERE run = r.number), 0)), "
                          "r.deleted, (SELECT total(max(max(ended, last_beat) - started, 0)) FROM sessions "
                          "WHERE run = r.number) "
                          "FROM runs r JOIN sessions s ON s.run = r.number AND s.session = r.session WHERE r.id = ?");
  query.bind(1, id);
  if (!query.executeStep()) return std::nullopt;
  StoredRun run;
  run.number = query.getColumn(0).getInt64();
  run.session = query.getColumn(1).getInt64();
  run.state = run_state_from_string(query.getColumn(2).getString()).value_or(RunState::failed);
  run.cause = query.getColumn(3).getString();
  run.name = query.getColumn(4).getString();
  run.folder = query.getColumn(5).getString();
  run.corpus_sha256 = query.getColumn(6).getString();
  run.owner.process.pid = query.getColumn(7).getInt();
  run.owner.process.start_ticks = static_cast<std::uint64_t>(query.getColumn(8).getInt64());
  run.owner.process.boot_id = query.getColumn(9).getString();
  run.owner.host = query.getColumn(10).getString();
  run.owner.process_namespace = query.getColumn(11).getString();
  run.pulse = {query.getColumn(12).getDouble(), query.getColumn(13).getDouble()};
  run.step = query.getColumn(14).getInt64();
  run.deleted = query.getColumn(15).getDouble() > 0;
  run.process_seconds = query.getColumn(16).getDouble();
  return run;
}

void insert_session(SQLite::Database& db, const ClaimedRow& row, const ClaimRequest& request, const Owner& owner,
                    double now, bool begun) {
  SQLite::Statement insert(db,
                           "INSERT INTO sessions (run, session, pid, process_start, boot_id, host, namespace, "
                           "commit_id, started, next_by, after_step) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  insert.bind(1, row.run_number);
  insert.bind(2, row.session);
  insert.bind(3, owner.process.pid);
  insert.bind(4, static_cast<std::int64_t>(owner.process.start_ticks));
  insert.bind(5, owner.process.boot_id);
  insert.bind(6, owner.host);
  insert.bind(7, owner.process_namespace);
  insert.bind(8, request.commit);
  insert.bind(9, now);
  insert.bind(10, now + first_beat_within);
  if (begun) insert.bind(11, 0);
  insert.exec();
}

// What is known of the run through the process that takes it over.
void note_process(SQLite::Database& db, const ClaimedRow& row, const ClaimRequest& request, const Owner& owner) {
  const auto [commit, dirty] = split_commit(request.commit);
  SQLite::Statement update(db,
                           "UPDATE runs SET commit_id = ?, dirty = ?, tokenizer = ?, detached = ?, budget_tokens = ?, "
                           "budget_hours = ?, budget_usd = ?, usd_per_hour = ?, checkpoint_requested = 0, "
                           "trace_requested = 0 "
                           "WHERE number = ?");
  update.bind(1, commit);
  update.bind(2, dirty ? 1 : 0);
  update.bind(3, request.tokenizer);
  update.bind(4, request.detached ? 1 : 0);
  update.bind(5, request.budget.tokens);
  update.bind(6, request.budget.hours);
  update.bind(7, request.budget.usd);
  update.bind(8, request.budget.usd_per_hour);
  update.bind(9, row.run_number);
  update.exec();
  QueueEntry entry;
  entry.id = request.queue_entry;
  entry.run = request.id;
  entry.config_json = request.config_json;
  begin_in_queue(db, entry, owner);
}

ClaimedRow create_run(SQLite::Database& db, const ClaimRequest& request, const Owner& owner, double now) {
  ClaimedRow row;
  row.claim = {Claim::Kind::created, request.id, request.name, request.folder, 0, 0, nullptr};
  row.run_number = db.execAndGet("SELECT coalesce(max(number) + 1, 0) FROM runs").getInt64();
  row.session = 1;
  SQLite::Statement insert(db,
                           "INSERT INTO runs (number, id, name, folder, state, config_json, corpus_sha256, "
                           "total_steps, created, session) VALUES (?, ?, ?, ?, 'running', ?, ?, ?, ?, 1)");
  insert.bind(1, row.run_number);
  insert.bind(2, request.id);
  insert.bind(3, request.name);
  insert.bind(4, request.folder);
  insert.bind(5, request.config_json);
  insert.bind(6, request.corpus_sha256);
  insert.bind(7, request.total_steps);
  insert.bind(8, now);
  insert.exec();
  insert_session(db, row, request, owner, now, true);
  note_process(db, row, request, owner);
  return row;
}

ClaimedRow continue_run(SQLite::Database& db, const StoredRun& run, const ClaimRequest& request, const Owner& owner,
                        double now) {
  ClaimedRow row;
  row.claim = {Claim::Kind::continued, request.id, run.name, run.folder, run.step, run.process_seconds, nullptr};
  row.run_number = run.number;
  row.session = run.session + 1;
  SQLite::Statement update(db,
                           "UPDATE runs SET state = 'running', cause = '', finished = 0, stop_requested = 0, "
                           "archived = 0, session = ?, corpus_sha256 = ?, total_steps = ?, config_json = ? "
                           "WHERE number = ?");
  update.bind(1, row.session);
  update.bind(2, request.corpus_sha256);
  update.bind(3, request.total_steps);
  // Of the same identity; what else was changed (threads, cadences, a budget) stays for the next time.
  update.bind(4, request.config_json);
  update.bind(5, run.number);
  update.exec();
  insert_session(db, row, request, owner, now, false);
  note_process(db, row, request, owner);
  return row;
}

// One more for the run to find, if it is being trained.
bool count_request(SQLite::Database& db, const RunId& run, const char* column) {
  SQLite::Statement update(
      db, fmt::format("UPDATE runs SET {0} = {0} + 1 WHERE id = ? AND state IN ('running', 'stopping')", column));
  update.bind(1, run);
  return update.exec() > 0;
}

}  // namespace

Result<ClaimedRow> claim_run(SQLite::Database& db, const ClaimRequest& request, const Owner& owner, double now,
                             bool look_only) {
  SQLite::Transaction transaction(db, SQLite::TransactionBehavior::IMMEDIATE);
  const auto run = find_run(db, request.id);
  if (!run) {
    ClaimedRow row = create_run(db, request, owner, now);
    if (!look_only) transaction.commit();
    return row;
  }
  const std::string who = fmt::format("run {} ({})", run->name, request.id);
  if (run->deleted)
    return refused(
        fmt::format("{} is in the trash", who),
        fmt::format("bring it back with: stacklab runs restore {}, or be rid of it with: stacklab runs delete "
                    "{} --purge --yes",
                    request.id, request.id));
  if (run->state == RunState::finished) {
    ClaimedRow row;
    row.claim = {Claim::Kind::already_finished, request.id, run->name, run->folder, run->step, 0, nullptr};
    return row;
  }
  std::string state(to_string(run->state));
  std::string cause = run->cause;
  if (is_active(run->state)) {
    const Liveness liveness = judge(run->owner, run->pulse, now);
    if (liveness.alive) {
      return refused(fmt::format("{} is already running in process {}", who, run->owner.process.pid),
                     fmt::format("watch it, or stop it with: stacklab stop {}", request.id));
    }
    state = to_string(RunState::lost);
    cause = liveness.cause;
  }
  if (!request.resume) {
    return refused(fmt::format("{} exists: {} at step {}{}", who, state, run->step, cause.empty() ? "" : ": " + cause),
                   "continue it with --resume, or change the config");
  }
  const bool both = run->step > 0 && !run->corpus_sha256.empty() && !request.corpus_sha256.empty();
  if (both && run->corpus_sha256.size() != request.corpus_sha256.size()) {
    // An earlier version hashed the text, this one the shards: neither follows from the other.
    if (!look_only)
      log_warning("{} was begun by an earlier version, which named its data in another way: they cannot be compared",
                  who);
  } else if (both && run->corpus_sha256 != request.corpus_sha256) {
    return refused(fmt::format("{} was trained on other data: its corpus had SHA-256 {}, this workspace's has {}", who,
                               run->corpus_sha256.substr(0, 12), request.corpus_sha256.substr(0, 12)),
                   "bring the first corpus back, or start a new run under another seed");
  }
  ClaimedRow row = continue_run(db, *run, request, owner, now);
  if (!look_only) transaction.commit();
  return row;
}

std::vector<std::string> mark_lost_runs(SQLite::Database& db, double now) {
  std::vector<std::string> ids;
  {
    SQLite::Statement query(db, "SELECT id FROM runs WHERE state IN ('running', 'stopping')");
    while (query.executeStep()) ids.push_back(query.getColumn(0).getString());
  }
  // Nothing is written, and no lock waited for, while all of them live.
  std::erase_if(ids, [&](const std::string& id) {
    const auto run = find_run(db, id);
    return !run || judge(run->owner, run->pulse, now).alive;
  });
  std::vector<std::string> notes;
  if (ids.empty()) return notes;
  SQLite::Transaction transaction(db, SQLite::TransactionBehavior::IMMEDIATE);
  for (const auto& id : ids) {
    const auto run = find_run(db, id);
    if (!run || !is_active(run->state)) continue;
    const Liveness liveness = judge(run->owner, run->pulse, now);
    if (liveness.alive) continue;
    SQLite::Statement update(db, "UPDATE runs SET state = 'lost', cause = ? WHERE number = ?");
    update.bind(1, liveness.cause);
    update.bind(2, run->number);
    update.exec();
    SQLite::Statement event(db,
                            "INSERT OR IGNORE INTO events (run, session, sequence, step, unix_time, kind, text) "
                            "VALUES (?, ?, 0, ?, ?, 'warning', ?)");
    event.bind(1, run->number);
    event.bind(2, run->session);
    event.bind(3, run->step);
    event.bind(4, now);
    event.bind(5, liveness.cause);
    event.exec();
    notes.push_back(fmt::format("run {} ({}) is lost: {}", run->name, id, liveness.cause));
  }
  transaction.commit();
  return notes;
}

// A pause does not take back a stop.
bool set_stop_requested(SQLite::Database& db, const RunId& run, StopKind kind) {
  SQLite::Statement update(db,
                           "UPDATE runs SET stop_requested = CASE WHEN stop_requested = 1 THEN 1 ELSE ? END, "
                           "state = 'stopping' WHERE id = ? AND state IN ('running', 'stopping')");
  update.bind(1, static_cast<int>(kind));
  update.bind(2, run);
  return update.exec() > 0;
}

bool set_checkpoint_requested(SQLite::Database& db, const RunId& run) {
  return count_request(db, run, "checkpoint_requested");
}

bool set_trace_requested(SQLite::Database& db, const RunId& run) { return count_request(db, run, "trace_requested"); }

}  // namespace stacklab::store
