#include "engine/store/applier.h"

#include <SQLiteCpp/Transaction.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "engine/base/clock.h"
#include "engine/store/queue.h"
#include "engine/store/schema.h"

namespace stacklab::store {

void run_kept(SQLite::Statement& statement) {
  try {
    statement.exec();
  } catch (...) {
    statement.tryReset();
    throw;
  }
  statement.reset();
}

void bind_number(SQLite::Statement& statement, int index, double value) {
  if (std::isnan(value))
    statement.bind(index);
  else
    statement.bind(index, value);
}

Applier::Applier(SQLite::Database& db)
    : db_(db),
      pyramid_(db),
      insert_metric_(db, "INSERT OR REPLACE INTO metrics (run, metric, step, value) VALUES (?, ?, ?, ?)"),
      fill_metric_(db, "INSERT OR IGNORE INTO metrics (run, metric, step, value) VALUES (?, ?, ?, ?)"),
      insert_step_(db, "INSERT OR REPLACE INTO steps (run, step, tokens, seconds, unix_time) VALUES (?, ?, ?, ?, ?)"),
      fill_step_(db, "INSERT OR IGNORE INTO steps (run, step, tokens, seconds, unix_time) VALUES (?, ?, ?, ?, ?)"),
      insert_event_(db,
                    "INSERT OR IGNORE INTO events (run, session, sequence, step, unix_time, kind, text, superseded, "
                    "severity, value) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"),
      insert_fact_(db, "INSERT OR REPLACE INTO facts (run, name, value) VALUES (?, ?, ?)"),
      fill_fact_(db, "INSERT OR IGNORE INTO facts (run, name, value) VALUES (?, ?, ?)"),
      update_figures_(db, std::string(update_figures) + " WHERE number = ?") {}

bool Applier::apply(const Record& record) {
  Place* place = place_of(record.key);
  if (!place) return false;
  std::visit([&](const auto& body) { apply_to(*place, body); }, record.body);
  return true;
}

void Applier::finish() {
  pyramid_.update();
  for (const std::int64_t number : touched_) {
    update_figures_.bind(1, number);
    run_kept(update_figures_);
  }
  touched_.clear();
}

void Applier::forget() {
  places_.clear();
  metric_ids_.clear();
  touched_.clear();
  pyramid_.forget();
}

Applier::Place* Applier::place_of(const SessionKey& key) {
  auto found = places_.find(key);
  if (found == places_.end()) {
    std::optional<Place> place;
    SQLite::Statement query(db_,
                            "SELECT r.number, r.session, s.after_step, "
                            "(SELECT min(later.after_step) FROM sessions later WHERE later.run = r.number AND "
                            "later.session > s.session) "
                            "FROM runs r JOIN sessions s ON s.run = r.number WHERE r.id = ? AND s.session = ?");
    query.bind(1, key.run);
    query.bind(2, key.session);
    if (query.executeStep()) {
      place.emplace();
      place->run_number = query.getColumn(0).getInt64();
      place->session = key.session;
      place->current = query.getColumn(1).getInt64() == key.session;
      place->begun = !query.isColumnNull(2);
      if (!query.isColumnNull(3)) place->last_step = query.getColumn(3).getInt64();
    }
    found = places_.emplace(key, place).first;
  }
  return found->second ? &*found->second : nullptr;
}

std::int64_t Applier::metric_id(const std::string& name) {
  if (const auto known = metric_ids_.find(name); known != metric_ids_.end()) return known->second;
  SQLite::Statement insert(db_, "INSERT OR IGNORE INTO metric_names (name) VALUES (?)");
  insert.bind(1, name);
  insert.exec();
  SQLite::Statement query(db_, "SELECT id FROM metric_names WHERE name = ?");
  query.bind(1, name);
  query.executeStep();
  const std::int64_t id = query.getColumn(0).getInt64();
  metric_ids_.emplace(name, id);
  return id;
}

void Applier::apply_to(Place& place, const StepRecord& r) {
  if (r.step > place.last_step) return;
  // A process that went on without saying from where has gone on from the step before its first.
  if (place.current && !place.begun) apply_to(place, ResumedRecord{r.step - 1});
  auto& step = place.current ? insert_step_ : fill_step_;
  step.bind(1, place.run_number);
  step.bind(2, r.step);
  step.bind(3, r.tokens);
  step.bind(4, r.process_seconds);
  step.bind(5, r.unix_time);
  run_kept(step);
  auto& metric = place.current ? insert_metric_ : fill_metric_;
  for (const auto& [name, value] : r.values) {
    metric.bind(1, place.run_number);
    metric.bind(2, metric_id(name));
    metric.bind(3, r.step);
    bind_number(metric, 4, value);
    run_kept(metric);
    pyramid_.touch(place.run_number, metric_id(name), r.step);
  }
  touched_.insert(place.run_number);
}

void Applier::apply_to(Place& place, const EventRecord& r) {
  insert_event_.bind(1, place.run_number);
  insert_event_.bind(2, place.session);
  insert_event_.bind(3, r.sequence);
  insert_event_.bind(4, r.step);
  insert_event_.bind(5, r.unix_time);
  insert_event_.bind(6, std::string(to_string(r.kind)));
  insert_event_.bind(7, r.text);
  insert_event_.bind(8, r.step > place.last_step && !outlives_step(r.kind) ? 1 : 0);
  insert_event_.bind(9, std::string(to_string(r.severity)));
  if (r.value)
    bind_number(insert_event_, 10, *r.value);
  else
    insert_event_.bind(10);
  run_kept(insert_event_);
}

// Alerts of an earlier process count too: what troubled it may be over now.
void Applier::apply_to(Place& place, const ResolvedRecord& r) {
  SQLite::Statement update(db_,
                           "UPDATE events SET resolved = ?, resolved_step = ? WHERE run = ? AND kind = ? AND "
                           "severity <> '' AND resolved = 0 AND (session < ? OR (session = ? AND sequence < ?))");
  update.bind(1, r.unix_time);
  update.bind(2, r.step);
  update.bind(3, place.run_number);
  update.bind(4, std::string(to_string(r.kind)));
  update.bind(5, place.session);
  update.bind(6, place.session);
  update.bind(7, r.sequence);
  update.exec();
}

void Applier::apply_to(Place& place, const FactRecord& r) {
  auto& fact = place.current ? insert_fact_ : fill_fact_;
  fact.bind(1, place.run_number);
  fact.bind(2, r.name);
  bind_number(fact, 3, r.value);
  run_kept(fact);
}

void Applier::apply_to(Place& place, const ResumedRecord& r) {
  if (!place.current || place.begun) return;
  supersede(place.run_number, place.session, r.after_step);
  SQLite::Statement update(db_, "UPDATE sessions SET after_step = ? WHERE run = ? AND session = ?");
  update.bind(1, r.after_step);
  update.bind(2, place.run_number);
  update.bind(3, place.session);
  update.exec();
  // What troubled an earlier process (a full disk, a stall) is not known of this one.
  SQLite::Statement resolve(
      db_,
      "UPDATE events SET resolved = ?, resolved_step = ? WHERE run = ? AND "
      "severity <> '' AND resolved = 0 AND session < ? AND kind IN ('stall', 'budget', 'disk', 'store')");
  resolve.bind(1, unix_seconds());
  resolve.bind(2, r.after_step);
  resolve.bind(3, place.run_number);
  resolve.bind(4, place.session);
  resolve.exec();
  place.begun = true;
  for (auto& [key, other] : places_) {
    if (other && other->run_number == place.run_number && other->session < place.session)
      other->last_step = std::min(other->last_step, r.after_step);
  }
}

void Applier::apply_to(Place& place, const EndRecord& r) {
  SQLite::Statement session(db_, "UPDATE sessions SET ended = ? WHERE run = ? AND session = ?");
  session.bind(1, r.unix_time);
  session.bind(2, place.run_number);
  session.bind(3, place.session);
  session.exec();
  // What troubled the process ended with it.
  SQLite::Statement settled(db_,
                            "UPDATE events SET resolved = ?, resolved_step = step WHERE run = ? AND session = ? AND "
                            "severity <> '' AND resolved = 0 AND kind IN ('stall', 'disk', 'store')");
  settled.bind(1, r.unix_time);
  settled.bind(2, place.run_number);
  settled.bind(3, place.session);
  settled.exec();
  if (!place.current) return;
  const bool over = r.state == RunState::finished || r.state == RunState::failed || r.state == RunState::killed;
  SQLite::Statement update(db_,
                           "UPDATE runs SET state = ?, cause = ?, finished = ?, stop_requested = 0, "
                           "checkpoint_requested = 0, trace_requested = 0 WHERE number = ?");
  update.bind(1, std::string(to_string(r.state)));
  update.bind(2, r.cause);
  update.bind(3, over ? r.unix_time : 0.0);
  update.bind(4, place.run_number);
  update.exec();
  end_in_queue(db_, place.run_number, place.session, r.state == RunState::finished, r.queue_options);
  // A process that failed before its first step has no figures to put in place of an earlier one's.
  if (r.step <= 0) return;
  SQLite::Statement figures(db_,
                            "UPDATE runs SET ended_step = ?, ended_tokens = ?, ended_seconds = ?, parameters = ?, "
                            "plan_bytes = ?, peak_bytes = ?, tokens_per_second = ? WHERE number = ?");
  figures.bind(1, r.step);
  figures.bind(2, r.tokens);
  figures.bind(3, r.seconds);
  figures.bind(4, r.parameters);
  figures.bind(5, r.plan_bytes);
  figures.bind(6, r.peak_bytes);
  figures.bind(7, std::isfinite(r.tokens_per_second) ? r.tokens_per_second : 0.0);
  figures.bind(8, place.run_number);
  figures.exec();
}

void Applier::supersede(std::int64_t run_number, std::int64_t session, std::int64_t after_step) {
  const auto execute = [&](const char* sql) {
    SQLite::Statement statement(db_, sql);
    statement.bind(":run", run_number);
    if (std::string_view(sql).find(":step") != std::string_view::npos) statement.bind(":step", after_step);
    if (std::string_view(sql).find(":session") != std::string_view::npos) statement.bind(":session", session);
    statement.exec();
  };
  execute("DELETE FROM metrics WHERE run = :run AND metric IN (SELECT id FROM metric_names) AND step > :step");
  execute("DELETE FROM steps WHERE run = :run AND step > :step");
  pyramid_.cut(run_number, after_step);
  touched_.insert(run_number);
  // What was said stays said; what was measured at a step that is no more does not.
  execute(
      "UPDATE events SET superseded = 1 WHERE run = :run AND step > :step AND session < :session "
      "AND kind IN ('checkpoint', 'spike', 'logit', 'non_finite')");
  // Nor does the end of a trouble that came after.
  execute(
      "UPDATE events SET resolved = 0, resolved_step = 0 WHERE run = :run AND step <= :step AND resolved_step > :step "
      "AND kind IN ('spike', 'logit', 'non_finite')");
  execute(
      "UPDATE runs SET epoch = epoch + 1, ended_step = CASE WHEN ended_step > :step THEN 0 ELSE ended_step END "
      "WHERE number = :run");
}

Result<std::int64_t> Applier::take_in(const std::function<Result<std::int64_t>(const Visit&)>& for_each) {
  SQLite::Transaction transaction(db_, SQLite::TransactionBehavior::IMMEDIATE);
  begin();
  std::int64_t unplaced = 0;
  std::set<RunId> touched;
  const auto unreadable = for_each([&](const Record& record) {
    if (apply(record))
      touched.insert(record.key.run);
    else
      ++unplaced;
  });
  if (!unreadable) return unreadable;
  finish();
  // Readers may have read past these steps already.
  for (const auto& id : touched) {
    SQLite::Statement update(db_, "UPDATE runs SET epoch = epoch + 1 WHERE id = ?");
    update.bind(1, id);
    update.exec();
  }
  transaction.commit();
  return unplaced + *unreadable;
}

}  // namespace stacklab::store
