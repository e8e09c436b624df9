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

}  // namespace

std::vector<QueueEntry> read_queue(SQLite::Database& db) {
  SQLite::Statement query(db,
                          "SELECT id, run, name, config_json, options_json, added, pid, process_start, boot_id, host, "
                          "namespace FROM queue ORDER BY place, id");
  const double now = unix_seconds();
  std::vector<QueueEntry> entries;
  while (query.executeStep()) {
    QueueEntry& entry = entries.emplace_back();
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
    // Of a process that cannot be asked, on another computer, nothing is heard: it has the benefit of the doubt.
    if (owner.process.pid != 0 && judge(owner, {now, now}, now).alive) entry.process = owner.process.pid;
  }
  return entries;
}

std::int64_t add_to_queue(SQLite::Database& db, const QueueEntry& entry, const std::optional<Owner>& owner,
                          double now) {
  SQLite::Statement insert(
      db,
      "INSERT INTO queue (place, run, name, config_json, options_json, added, pid, process_start, "
      "boot_id, host, namespace) VALUES ((SELECT coalesce(max(place), 0) + 1 FROM queue), ?, ?, ?, "
      "?, ?, ?, ?, ?, ?, ?)");
  const Owner nobody;
  const Owner& o = owner ? *owner : nobody;
  insert.bind(1, entry.run);
  insert.bind(2, entry.name);
  insert.bind(3, entry.config_json);
  insert.bind(4, entry.options_json);
  insert.bind(5, now);
  insert.bind(6, o.process.pid);
  insert.bind(7, static_cast<std::int64_t>(o.process.start_ticks));
  insert.bind(8, o.process.boot_id);
  insert.bind(9, o.host);
  insert.bind(10, o.process_namespace);
  insert.exec();
  return db.getLastInsertRowid();
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
  SQLite::Statement update(
      db, "UPDATE queue SET pid = ?, process_start = ?, boot_id = ?, host = ?, namespace = ? WHERE id = ?");
  update.bind(1, owner.process.pid);
  update.bind(2, static_cast<std::int64_t>(owner.process.start_ticks));
  update.bind(3, owner.process.boot_id);
  update.bind(4, owner.host);
  update.bind(5, owner.process_namespace);
  update.bind(6, taken->id);
  update.exec();
  transaction.commit();
  taken->process = owner.process.pid;
  return taken;
}

}  // namespace stacklab::store
