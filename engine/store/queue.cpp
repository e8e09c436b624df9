#include "engine/store/queue.h"

#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/Transaction.h>
#include <fmt/core.h>

#include <algorithm>

#include "engine/base/clock.h"

namespace stacklab::store {
namespace {

tl::unexpected<Error> no_entry(std::int64_t id) {
  return usage_error(fmt::format("the queue has no entry {}", id), "see: stacklab queue list");
}

void put_place(SQLite::Database& db, std::int64_t id, double place) {
  SQLite::Statement update(db, "UPDATE queue SET place = ? WHERE id = ?");
  update.bind(1, place);
  update.bind(2, id);
  update.exec();
}

void give_to(SQLite::Database& db, std::int64_t id, const Owner& owner) {
  SQLite::Statement update(
      db, "UPDATE queue SET pid = ?, process_start = ?, boot_id = ?, host = ?, namespace = ? WHERE id = ?");
  update.bind(1, owner.process.pid);
  update.bind(2, static_cast<std::int64_t>(owner.process.start_ticks));
  update.bind(3, owner.process.boot_id);
  update.bind(4, owner.host);
  update.bind(5, owner.process_namespace);
  update.bind(6, id);
  update.exec();
}

// place: an expression over the queue.
std::int64_t insert(SQLite::Database& db, const QueueEntry& entry, const char* place, double now) {
  SQLite::Statement insert(db, fmt::format("INSERT INTO queue (place, run, name, config_json, options_json, added) "
                                           "VALUES ((SELECT {} FROM queue), ?, ?, ?, ?, ?)",
                                           place));
  insert.bind(1, entry.run);
  insert.bind(2, entry.name);
  insert.bind(3, entry.config_json);
  insert.bind(4, entry.options_json);
  insert.bind(5, now);
  insert.exec();
  return db.getLastInsertRowid();
}

}  // namespace

std::vector<QueueEntry> read_queue(SQLite::Database& db) {
  // With the beat of the process that trains the run, where that is the entry's.
  SQLite::Statement query(db,
                          "SELECT q.id, q.run, q.name, q.config_json, q.options_json, q.added, q.pid, "
                          "q.process_start, q.boot_id, q.host, q.namespace, s.last_beat, s.next_by FROM queue q "
                          "LEFT JOIN runs r ON r.id = q.run AND r.state IN ('running', 'stopping') "
                          "LEFT JOIN sessions s ON s.run = r.number AND s.session = r.session AND s.pid = q.pid AND "
                          "s.process_start = q.process_start AND s.boot_id = q.boot_id ORDER BY q.place, q.id");
  const double now = unix_seconds();
  std::vector<QueueEntry> entries;
  while (query.executeStep()) {
    QueueEntry entry;
    entry.id = query.getColumn(0).getInt64();
    entry.run = query.getColumn(1).getString();
    entry.name = query.getColumn(2).getString();
    entry.config_json = query.getColumn(3).getString();
    entry.options_json = query.getColumn(4).getString();
    entry.added = query.getColumn(5).getDouble();
    Owner owner;
    owner.process.pid = query.getColumn(6).getInt();
    owner.process.start_ticks = static_cast<std::uint64_t>(query.getColumn(7).getInt64());
    owner.process.boot_id = query.getColumn(8).getString();
    owner.host = query.getColumn(9).getString();
    owner.process_namespace = query.getColumn(10).getString();
    const bool trained = !query.isColumnNull(12);
    // Of a process that cannot be asked, on another computer, nothing is heard: it has the benefit of the doubt.
    const Pulse pulse =
        trained ? Pulse{query.getColumn(11).getDouble(), query.getColumn(12).getDouble()} : Pulse{now, now};
    const bool alive = owner.process.pid != 0 && judge(owner, pulse, now).alive;
    if (trained && alive) continue;
    if (alive) entry.process = owner.process.pid;
    entries.push_back(std::move(entry));
  }
  return entries;
}

Result<std::int64_t> add_to_queue(SQLite::Database& db, const QueueEntry& entry, const std::optional<Owner>& owner,
                                  double now) {
  SQLite::Transaction transaction(db, SQLite::TransactionBehavior::IMMEDIATE);
  const std::vector<QueueEntry> waiting = read_queue(db);
  SQLite::Statement there(db, "SELECT id FROM queue WHERE run = ?");
  there.bind(1, entry.run);
  if (there.executeStep()) {
    const std::int64_t id = there.getColumn(0).getInt64();
    const auto found = std::find_if(waiting.begin(), waiting.end(), [id](const QueueEntry& e) { return e.id == id; });
    if (found == waiting.end())
      return refused(fmt::format("{} ({}) is in the queue already, and being trained", entry.name, entry.run));
    if (!owner || found->process != 0)
      return refused(fmt::format("{} ({}) is in the queue already, as entry {}", entry.name, entry.run, id),
                     fmt::format("take that out with: stacklab queue remove {}", id));
    give_to(db, id, *owner);
    transaction.commit();
    return id;
  }
  const std::int64_t id = insert(db, entry, "coalesce(max(place), 0) + 1", now);
  if (owner) give_to(db, id, *owner);
  transaction.commit();
  return id;
}

// Should the process die, whoever starts the entry again goes on where the run is.
void begin_in_queue(SQLite::Database& db, const QueueEntry& entry, const Owner& owner) {
  SQLite::Statement query(db, "SELECT id FROM queue WHERE run = ? OR id = ?");
  query.bind(1, entry.run);
  query.bind(2, entry.id);
  std::vector<std::int64_t> ids;
  while (query.executeStep()) ids.push_back(query.getColumn(0).getInt64());
  for (const std::int64_t id : ids) {
    SQLite::Statement update(db,
                             "UPDATE queue SET run = ?, config_json = ?, options_json = CASE WHEN "
                             "json_valid(options_json) THEN json_set(options_json, '$.resume', json('true')) ELSE "
                             "'{\"resume\":true}' END WHERE id = ?");
    update.bind(1, entry.run);
    update.bind(2, entry.config_json);
    update.bind(3, id);
    update.exec();
    give_to(db, id, owner);
  }
}

void end_in_queue(SQLite::Database& db, std::int64_t run_number, std::int64_t session, bool finished,
                  const std::string& options_json) {
  QueueEntry entry;
  {
    SQLite::Statement run(db, "SELECT id, name, config_json FROM runs WHERE number = ?");
    run.bind(1, run_number);
    if (!run.executeStep()) return;
    entry.run = run.getColumn(0).getString();
    entry.name = run.getColumn(1).getString();
    entry.config_json = run.getColumn(2).getString();
    entry.options_json = options_json;
  }
  SQLite::Statement leave(db,
                          "DELETE FROM queue WHERE run = ? AND (? OR EXISTS (SELECT 1 FROM sessions s WHERE s.run = ? "
                          "AND s.session = ? AND s.pid = queue.pid AND s.process_start = queue.process_start AND "
                          "s.boot_id = queue.boot_id))");
  leave.bind(1, entry.run);
  leave.bind(2, finished || !options_json.empty() ? 1 : 0);
  leave.bind(3, run_number);
  leave.bind(4, session);
  leave.exec();
  if (!options_json.empty()) insert(db, entry, "coalesce(min(place), 0) - 1", unix_seconds());
}

Status move_in_queue(SQLite::Database& db, std::int64_t id, std::int64_t place) {
  SQLite::Transaction transaction(db, SQLite::TransactionBehavior::IMMEDIATE);
  std::vector<QueueEntry> entries = read_queue(db);
  const auto found = std::find_if(entries.begin(), entries.end(), [id](const QueueEntry& e) { return e.id == id; });
  if (found == entries.end()) return no_entry(id);
  const QueueEntry moved = *found;
  entries.erase(found);
  entries.insert(entries.begin() + std::clamp<std::int64_t>(place, 0, static_cast<std::int64_t>(entries.size())),
                 moved);
  for (std::size_t i = 0; i < entries.size(); ++i) put_place(db, entries[i].id, static_cast<double>(i));
  transaction.commit();
  return {};
}

Status remove_from_queue(SQLite::Database& db, std::int64_t id) {
  SQLite::Statement erase(db, "DELETE FROM queue WHERE id = ?");
  erase.bind(1, id);
  return erase.exec() > 0 ? Status() : no_entry(id);
}

Status release_in_queue(SQLite::Database& db, std::int64_t id) {
  SQLite::Statement update(db, "UPDATE queue SET pid = 0 WHERE id = ?");
  update.bind(1, id);
  return update.exec() > 0 ? Status() : no_entry(id);
}

Result<std::optional<QueueEntry>> take_from_queue(SQLite::Database& db, const Owner& owner,
                                                  std::optional<std::int64_t> id) {
  SQLite::Transaction transaction(db, SQLite::TransactionBehavior::IMMEDIATE);
  std::optional<QueueEntry> taken;
  for (const QueueEntry& entry : read_queue(db)) {
    if (id && entry.id != *id) continue;
    if (entry.process != 0) {
      if (id)
        return refused(
            fmt::format("entry {} of the queue waits in process {}, which will start it", *id, entry.process));
      continue;
    }
    taken = entry;
    break;
  }
  if (!taken) {
    if (id) return no_entry(*id);
    return std::optional<QueueEntry>();
  }
  give_to(db, taken->id, owner);
  transaction.commit();
  taken->process = owner.process.pid;
  return taken;
}

}  // namespace stacklab::store
