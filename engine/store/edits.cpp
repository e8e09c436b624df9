#include "engine/store/edits.h"

#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/Transaction.h>
#include <fmt/core.h>

#include "engine/store/run_query.h"

namespace stacklab::store {
namespace {

constexpr std::size_t longest_tag = 100;

Result<RunSummary> find(SQLite::Database& db, const RunId& run) {
  auto found = read_runs(db, {"WHERE r.id = ?", {run}});
  if (found.empty()) return usage_error(fmt::format("there is no run {}", run), "see: stacklab runs list");
  return std::move(found.front());
}

template <class T>
void set(SQLite::Database& db, const char* column, const T& value, std::int64_t number) {
  SQLite::Statement update(db, fmt::format("UPDATE runs SET {} = ? WHERE number = ?", column));
  update.bind(1, value);
  update.bind(2, number);
  update.exec();
}

}  // namespace

Result<RunEdit> edit_run(SQLite::Database& db, const RunId& run, const RunEdit& edit, double now) {
  SQLite::Transaction transaction(db, SQLite::TransactionBehavior::IMMEDIATE);
  const auto found = find(db, run);
  if (!found) return tl::unexpected(found.error());
  RunEdit back;
  if (edit.note && *edit.note != found->note) {
    back.note = found->note;
    set(db, "note", *edit.note, found->number);
  }
  const auto change_tags = [&](const std::vector<std::string>& tags, const char* sql, std::vector<std::string>& undo) {
    for (const std::string& tag : tags) {
      SQLite::Statement change(db, sql);
      change.bind(1, found->number);
      change.bind(2, tag);
      if (change.exec() > 0) undo.push_back(tag);
    }
  };
  for (const std::string& tag : edit.add_tags)
    if (tag.empty() || tag.size() > longest_tag || tag.find_first_of(" \t\n,") != std::string::npos)
      return usage_error(fmt::format("\"{}\" cannot be a tag", tag.substr(0, longest_tag)),
                         "a tag is one word of at most 100 bytes without a comma");
  change_tags(edit.add_tags, "INSERT OR IGNORE INTO tags (run, tag) VALUES (?, ?)", back.remove_tags);
  change_tags(edit.remove_tags, "DELETE FROM tags WHERE run = ? AND tag = ?", back.add_tags);
  if (edit.archived && *edit.archived != (found->archived > 0)) {
    if (*edit.archived && is_active(found->state))
      return refused(fmt::format("{} ({}) is being trained", found->name, run), "stop it first");
    back.archived = !*edit.archived;
    set(db, "archived", *edit.archived ? now : 0.0, found->number);
  }
  if (edit.deleted && *edit.deleted != (found->deleted > 0)) {
    if (*edit.deleted && is_active(found->state))
      return refused(fmt::format("{} ({}) is being trained in process {}", found->name, run, found->process),
                     fmt::format("stop it first: stacklab stop {} --wait", run));
    back.deleted = !*edit.deleted;
    set(db, "deleted", *edit.deleted ? now : 0.0, found->number);
  }
  transaction.commit();
  return back;
}

Status add_fork(SQLite::Database& db, const ForkedRun& fork, const Owner& owner, double now) {
  SQLite::Transaction transaction(db, SQLite::TransactionBehavior::IMMEDIATE);
  if (const auto existing = read_runs(db, {"WHERE r.id = ?", {fork.id}}); !existing.empty())
    return refused(fmt::format("that fork exists: {} ({})", existing.front().name, fork.id),
                   fmt::format("go on with it: stacklab resume {}", fork.id));
  const std::int64_t number = db.execAndGet("SELECT coalesce(max(number) + 1, 0) FROM runs").getInt64();
  SQLite::Statement insert(db,
                           "INSERT INTO runs (number, id, name, folder, state, cause, config_json, corpus_sha256, "
                           "total_steps, created, session, ended_step, ended_tokens, ended_seconds, parameters, "
                           "tokenizer, parent, fork_step) "
                           "VALUES (?, ?, ?, ?, 'paused', ?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?)");
  insert.bind(1, number);
  insert.bind(2, fork.id);
  insert.bind(3, fork.name);
  insert.bind(4, fork.folder);
  insert.bind(5, fork.cause);
  insert.bind(6, fork.config_json);
  insert.bind(7, fork.corpus_sha256);
  insert.bind(8, fork.total_steps);
  insert.bind(9, now);
  insert.bind(10, fork.step);
  insert.bind(11, fork.tokens);
  insert.bind(12, fork.seconds);
  insert.bind(13, fork.parameters);
  insert.bind(14, fork.tokenizer);
  insert.bind(15, fork.parent);
  insert.bind(16, fork.step);
  insert.exec();
  // The session of whoever forked: it trained nothing.
  SQLite::Statement session(db,
                            "INSERT INTO sessions (run, session, pid, process_start, boot_id, host, namespace, "
                            "commit_id, started, ended, next_by, after_step) "
                            "VALUES (?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  session.bind(1, number);
  session.bind(2, owner.process.pid);
  session.bind(3, static_cast<std::int64_t>(owner.process.start_ticks));
  session.bind(4, owner.process.boot_id);
  session.bind(5, owner.host);
  session.bind(6, owner.process_namespace);
  session.bind(7, fork.commit);
  session.bind(8, now);
  session.bind(9, now);
  session.bind(10, now);
  session.bind(11, fork.step);
  session.exec();
  transaction.commit();
  return {};
}

Status purge_run(SQLite::Database& db, const RunId& run) {
  SQLite::Transaction transaction(db, SQLite::TransactionBehavior::IMMEDIATE);
  const auto found = find(db, run);
  if (!found) return tl::unexpected(found.error());
  if (found->deleted <= 0)
    return refused(fmt::format("{} ({}) is not in the trash", found->name, run),
                   fmt::format("put it there first: stacklab runs delete {}", run));
  SQLite::Statement erase(db, "DELETE FROM runs WHERE number = ?");
  erase.bind(1, found->number);
  erase.exec();
  transaction.commit();
  return {};
}

}  // namespace stacklab::store
