#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/Transaction.h>
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "engine/base/json_reader.h"
#include "engine/base/text.h"
#include "engine/store/database.h"
#include "engine/store/left_spills.h"
#include "engine/store/pyramid.h"
#include "engine/store/queue.h"
#include "engine/store/run_query.h"
#include "engine/store/store_reader.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;

constexpr const char* event_columns =
    "e.id, e.unix_time, e.kind, e.step, e.text, e.severity, e.value, e.resolved, e.resolved_step";

StepRow step_row_at(const SQLite::Statement& row) {
  return {row.getColumn(0).getInt64(), row.getColumn(1).getInt64(), row.getColumn(2).getDouble(),
          row.getColumn(3).getDouble()};
}

RunEventRow event_at(const SQLite::Statement& row) {
  RunEventRow r;
  r.id = row.getColumn(0).getInt64();
  r.unix_time = row.getColumn(1).getDouble();
  r.event.kind = run_event_kind_from_string(row.getColumn(2).getString()).value_or(RunEvent::Kind::info);
  r.event.step = row.getColumn(3).getInt64();
  r.event.text = row.getColumn(4).getString();
  r.event.severity = severity_from_string(row.getColumn(5).getString()).value_or(RunEvent::Severity::none);
  if (!row.isColumnNull(6)) r.event.value = row.getColumn(6).getDouble();
  r.resolved = row.getColumn(7).getDouble();
  r.resolved_step = row.getColumn(8).getInt64();
  return r;
}

class SqliteReader final : public StoreReader {
 public:
  SqliteReader(fs::path workspace, store::ReadConnection connection)
      : workspace_(std::move(workspace)), connection_(std::move(connection)) {
    note_file();
  }

  Result<std::vector<RunSummary>> runs() override {
    return read([&](SQLite::Database& db) -> Result<std::vector<RunSummary>> {
      return store::read_runs(db, {"ORDER BY r.number"});
    });
  }

  Result<std::vector<RunSummary>> runs(const RunQuery& wanted) override {
    return read([&](SQLite::Database& db) -> Result<std::vector<RunSummary>> {
      const auto clause = store::compile(wanted, store::lost_runs(db));
      if (!clause) return tl::unexpected(clause.error());
      return store::read_runs(db, *clause);
    });
  }

  Result<std::vector<RunPlace>> order(const RunQuery& wanted, const std::string& group) override {
    return read([&](SQLite::Database& db) { return store::read_order(db, wanted, group); });
  }

  Result<std::vector<RunSummary>> numbered(const std::vector<std::int64_t>& numbers) override {
    return read([&](SQLite::Database& db) -> Result<std::vector<RunSummary>> {
      if (numbers.empty()) return std::vector<RunSummary>();
      std::string list;
      for (const std::int64_t n : numbers) list += (list.empty() ? "" : ", ") + std::to_string(n);
      return store::read_runs(db, {"WHERE r.number IN (" + list + ") ORDER BY r.number"});
    });
  }

  Result<std::int64_t> change_counter() override {
    return read([&](SQLite::Database& db) -> Result<std::int64_t> {
      return db.execAndGet("SELECT sum(value) FROM counters WHERE name IN ('changes', 'removals')").getInt64();
    });
  }

  Result<FilterWords> filter_words() override {
    return read([&](SQLite::Database& db) -> Result<FilterWords> {
      const auto column = [&db](const char* sql) {
        std::vector<std::string> words;
        SQLite::Statement query(db, sql);
        while (query.executeStep()) words.push_back(query.getColumn(0).getString());
        return words;
      };
      return FilterWords{column("SELECT DISTINCT tag FROM tags ORDER BY tag LIMIT 1000"),
                         column("SELECT name FROM metric_names ORDER BY name LIMIT 1000"),
                         column("SELECT DISTINCT name FROM (SELECT name FROM runs WHERE deleted = 0 "
                                "ORDER BY number DESC LIMIT 200)")};
    });
  }

  Result<std::map<RunState, std::int64_t>> counts_by_state() override {
    return read([&](SQLite::Database& db) -> Result<std::map<RunState, std::int64_t>> {
      SQLite::Statement query(db, "SELECT " + store::state_sql(store::lost_runs(db)) +
                                      " AS state, count(*) FROM runs r WHERE archived = 0 AND deleted = 0 GROUP BY 1");
      std::map<RunState, std::int64_t> counts;
      while (query.executeStep())
        if (const auto state = run_state_from_string(query.getColumn(0).getString()))
          counts[*state] += query.getColumn(1).getInt64();
      return counts;
    });
  }

  Result<RunChanges> changes(std::int64_t after) override {
    return read([&](SQLite::Database& db) -> Result<RunChanges> {
      const auto counter = [&db](const char* name) {
        SQLite::Statement query(db, "SELECT value FROM counters WHERE name = ?");
        query.bind(1, name);
        return query.executeStep() ? query.getColumn(0).getInt64() : 0;
      };
      RunChanges changes;
      changes.counter = counter("changes");
      const std::int64_t removals = counter("removals");
      // Another store, or an older copy of this one, may have been put in its place.
      changes.everything = after == 0 || removals != removals_ || after > changes.counter;
      removals_ = removals;
      // Whether an active run lives is a matter of the time, not of its row.
      changes.runs = changes.everything
                         ? store::read_runs(db, {"ORDER BY r.number"})
                         : store::read_runs(db, {"WHERE r.changed > ? OR r.state IN ('running', 'stopping') "
                                                 "ORDER BY r.number",
                                                 {after}});
      return changes;
    });
  }

  Result<RunSummary> run(const std::string& wanted) override {
    return read([&](SQLite::Database& db) -> Result<RunSummary> {
      auto exact = store::read_runs(db, {"WHERE r.id = ?", {wanted}});
      if (exact.size() == 1) return std::move(exact.front());
      // What is in the trash is meant only where nothing else is.
      for (const char* which : {"r.deleted = 0 AND ", ""}) {
        auto named = store::read_runs(db, {fmt::format("WHERE {}r.name = ? ORDER BY r.number", which), {wanted}});
        auto begun = wanted.empty() ? std::vector<RunSummary>()
                                    : store::read_runs(db, {fmt::format("WHERE {}substr(r.id, 1, length(?1)) = ?1 "
                                                                        "ORDER BY r.number",
                                                                        which),
                                                            {wanted}});
        if (named.size() == 1) return std::move(named.front());
        if (named.empty() && begun.size() == 1) return std::move(begun.front());
        const auto& many = named.empty() ? begun : named;
        if (many.size() > 1) {
          std::string ids;
          for (const auto& r : many) ids += (ids.empty() ? "" : ", ") + r.id;
          return usage_error(fmt::format("\"{}\" means several runs: {}", wanted, ids), "give more of the id");
        }
      }
      return tl::unexpected(unknown_run(db, wanted));
    });
  }

  Result<std::vector<SeriesPoint>> series(const RunId& run, const std::string& metric, std::int64_t after,
                                          std::int64_t limit) override {
    return read([&](SQLite::Database& db) -> Result<std::vector<SeriesPoint>> {
      const auto number = run_number(db, run);
      if (!number) return tl::unexpected(number.error());
      SQLite::Statement query(db,
                              "SELECT step, value FROM metrics WHERE run = ? AND metric = (SELECT id FROM metric_names "
                              "WHERE name = ?) AND step > ? ORDER BY step LIMIT ?");
      query.bind(1, *number);
      query.bind(2, metric);
      query.bind(3, after);
      query.bind(4, limit);
      std::vector<SeriesPoint> points;
      while (query.executeStep()) points.push_back({query.getColumn(0).getInt64(), store::number_at(query, 1)});
      return points;
    });
  }

  Result<std::vector<SeriesBucket>> decimated(const RunId& run, const std::string& metric, std::int64_t from,
                                              std::int64_t to, std::int64_t max_points) override {
    return read([&](SQLite::Database& db) -> Result<std::vector<SeriesBucket>> {
      const auto number = run_number(db, run);
      if (!number) return tl::unexpected(number.error());
      SQLite::Statement query(db, "SELECT id FROM metric_names WHERE name = ?");
      query.bind(1, metric);
      if (!query.executeStep()) return std::vector<SeriesBucket>();
      return store::read_decimated(db, *number, query.getColumn(0).getInt64(), from, to, max_points);
    });
  }

  Result<std::optional<SeriesPoint>> last_point(const RunId& run, const std::string& metric) override {
    return read([&](SQLite::Database& db) -> Result<std::optional<SeriesPoint>> {
      const auto number = run_number(db, run);
      if (!number) return tl::unexpected(number.error());
      SQLite::Statement query(db,
                              "SELECT step, value FROM metrics WHERE run = ? AND metric = (SELECT id FROM metric_names "
                              "WHERE name = ?) ORDER BY step DESC LIMIT 1");
      query.bind(1, *number);
      query.bind(2, metric);
      if (!query.executeStep()) return std::optional<SeriesPoint>();
      return std::optional(SeriesPoint{query.getColumn(0).getInt64(), store::number_at(query, 1)});
    });
  }

  Result<std::vector<StepRow>> steps(const RunId& run, std::int64_t after, std::int64_t limit) override {
    return read([&](SQLite::Database& db) -> Result<std::vector<StepRow>> {
      const auto number = run_number(db, run);
      if (!number) return tl::unexpected(number.error());
      SQLite::Statement query(
          db, "SELECT step, tokens, seconds, unix_time FROM steps WHERE run = ? AND step > ? ORDER BY step LIMIT ?");
      query.bind(1, *number);
      query.bind(2, after);
      query.bind(3, limit);
      std::vector<StepRow> rows;
      while (query.executeStep()) rows.push_back(step_row_at(query));
      return rows;
    });
  }

  Result<std::vector<StepRow>> sampled_steps(const RunId& run, std::int64_t from, std::int64_t to,
                                             std::int64_t most) override {
    return read([&](SQLite::Database& db) -> Result<std::vector<StepRow>> {
      const auto number = run_number(db, run);
      if (!number) return tl::unexpected(number.error());
      std::vector<StepRow> rows;
      const auto next = [&](const char* order, std::int64_t low, std::int64_t high) -> std::optional<StepRow> {
        SQLite::Statement query(db, fmt::format("SELECT step, tokens, seconds, unix_time FROM steps WHERE run = ? AND "
                                                "step >= ? AND step <= ? ORDER BY step {} LIMIT 1",
                                                order));
        query.bind(1, *number);
        query.bind(2, low);
        query.bind(3, high);
        if (!query.executeStep()) return std::nullopt;
        return step_row_at(query);
      };
      const auto first = next("ASC", from, to), last = next("DESC", from, to);
      if (!first || !last) return rows;
      const std::int64_t stride = (last->step - first->step) / std::max<std::int64_t>(most, 1) + 1;
      SQLite::Statement query(db,
                              "SELECT step, tokens, seconds, unix_time FROM steps WHERE run = ? AND step >= ? AND "
                              "step <= ? ORDER BY step LIMIT ?");
      query.bind(1, *number);
      query.bind(3, to);
      query.bind(4, stride == 1 ? std::int64_t{-1} : std::int64_t{1});
      for (std::int64_t at = first->step; at <= last->step;) {
        query.reset();
        query.bind(2, at);
        while (query.executeStep()) rows.push_back(step_row_at(query));
        at = stride == 1 ? last->step + 1 : std::max(at, rows.back().step - stride + 1) + stride;
      }
      if (rows.back().step < last->step) rows.push_back(*last);
      return rows;
    });
  }

  Result<std::int64_t> series_epoch(const RunId& run) override {
    return read([&](SQLite::Database& db) -> Result<std::int64_t> {
      SQLite::Statement query(db, "SELECT epoch FROM runs WHERE id = ?");
      query.bind(1, run);
      if (!query.executeStep()) return tl::unexpected(unknown_run(db, run));
      return query.getColumn(0).getInt64();
    });
  }

  Result<std::vector<std::string>> metrics(const RunId& run) override {
    return read([&](SQLite::Database& db) -> Result<std::vector<std::string>> {
      const auto number = run_number(db, run);
      if (!number) return tl::unexpected(number.error());
      SQLite::Statement query(db,
                              "SELECT name FROM metric_names n WHERE EXISTS "
                              "(SELECT 1 FROM metrics WHERE run = ? AND metric = n.id) ORDER BY n.id");
      query.bind(1, *number);
      std::vector<std::string> names;
      while (query.executeStep()) names.push_back(query.getColumn(0).getString());
      return names;
    });
  }

  Result<std::vector<RunEventRow>> events(const RunId& run, std::int64_t after_id, std::int64_t limit) override {
    return read([&](SQLite::Database& db) -> Result<std::vector<RunEventRow>> {
      const auto number = run_number(db, run);
      if (!number) return tl::unexpected(number.error());
      SQLite::Statement query(db, std::string("SELECT ") + event_columns +
                                      " FROM events e WHERE e.run = ? AND e.id > ? AND NOT e.superseded "
                                      "ORDER BY e.id LIMIT ?");
      query.bind(1, *number);
      query.bind(2, after_id);
      query.bind(3, limit);
      std::vector<RunEventRow> rows;
      while (query.executeStep()) rows.push_back(event_at(query));
      return rows;
    });
  }

  Result<std::vector<AlertRow>> alerts(bool open_only, std::int64_t limit) override {
    return read([&](SQLite::Database& db) -> Result<std::vector<AlertRow>> {
      SQLite::Statement query(db, fmt::format("SELECT {}, r.id, r.name FROM events e JOIN runs r ON r.number = e.run "
                                              "WHERE e.severity <> '' AND e.superseded = 0 {} AND r.archived = 0 AND "
                                              "r.deleted = 0 ORDER BY e.id DESC LIMIT ?",
                                              event_columns, open_only ? "AND e.resolved = 0" : ""));
      query.bind(1, limit);
      std::vector<AlertRow> rows;
      while (query.executeStep()) {
        AlertRow& alert = rows.emplace_back();
        alert.row = event_at(query);
        alert.run = query.getColumn(9).getString();
        alert.name = query.getColumn(10).getString();
      }
      return rows;
    });
  }

  Result<std::vector<RunSummary>> ancestry(const RunId& run) override {
    return read([&](SQLite::Database& db) -> Result<std::vector<RunSummary>> {
      std::vector<RunSummary> line;
      RunId next = run;
      for (;;) {
        auto found = store::read_runs(db, {"WHERE r.id = ?", {next}});
        if (found.empty()) break;
        next = found.front().parent;
        line.push_back(std::move(found.front()));
        // A run is older than its fork; a store that says otherwise must not be followed in a circle.
        if (line.size() > 1 && line.back().number >= line[line.size() - 2].number) break;
      }
      if (line.empty()) return tl::unexpected(unknown_run(db, run));
      line.erase(line.begin());
      return line;
    });
  }

  Result<std::vector<QueueEntry>> queue() override {
    return read([&](SQLite::Database& db) -> Result<std::vector<QueueEntry>> { return store::read_queue(db); });
  }

  std::int64_t wal_bytes() override {
    std::error_code ec;
    const auto size = fs::file_size(store::database_file(workspace_).string() + "-wal", ec);
    return ec ? 0 : static_cast<std::int64_t>(size);
  }

 private:
  // Every read is one short transaction whose statements are finished when it returns: an open one would keep the WAL
  // from shrinking.
  template <class F>
  auto read(F&& f) -> decltype(f(std::declval<SQLite::Database&>())) {
    if (auto current = follow_file(); !current) return tl::unexpected(current.error());
    return store::guarded(workspace_, [&] {
      SQLite::Transaction transaction(*connection_.db);
      return f(*connection_.db);
    });
  }

  // A connection without locks is right only while nobody writes: when the file has changed, another is made.
  Status follow_file() {
    if (!connection_.immutable) return {};
    const auto before = std::make_pair(time_, size_);
    note_file();
    if (before == std::make_pair(time_, size_) && wal_bytes() == 0) return {};
    auto again = store::open_for_reading(workspace_);
    if (!again) return tl::unexpected(again.error());
    connection_ = std::move(*again);
    note_file();
    return {};
  }

  void note_file() {
    std::error_code ec;
    time_ = fs::last_write_time(store::database_file(workspace_), ec);
    size_ = fs::file_size(store::database_file(workspace_), ec);
  }

  static Result<std::int64_t> run_number(SQLite::Database& db, const RunId& run) {
    SQLite::Statement query(db, "SELECT number FROM runs WHERE id = ?");
    query.bind(1, run);
    if (!query.executeStep()) return tl::unexpected(unknown_run(db, run));
    return query.getColumn(0).getInt64();
  }

  static Error unknown_run(SQLite::Database& db, const std::string& wanted) {
    std::vector<std::string> names;
    SQLite::Statement query(db, "SELECT id, name FROM runs ORDER BY number DESC");
    while (query.executeStep()) {
      names.push_back(query.getColumn(1).getString());
      names.push_back(query.getColumn(0).getString());
    }
    if (names.empty())
      return {Error::Kind::usage, fmt::format("there is no run \"{}\"", wanted), "there is none at all yet"};
    const std::string nearest = did_you_mean(wanted, names);
    return {Error::Kind::usage, fmt::format("there is no run \"{}\"", wanted),
            nearest.empty() ? "see: stacklab runs list" : nearest};
  }

  fs::path workspace_;
  store::ReadConnection connection_;
  fs::file_time_type time_{};
  std::uintmax_t size_ = 0;
  std::int64_t removals_ = 0;  // when changes() was asked last
};

// "run.threads" and its value, for every key.
void flatten(const nlohmann::ordered_json& json, const std::string& prefix, std::map<std::string, std::string>& into) {
  for (const auto& [key, value] : json.items()) {
    if (value.is_object())
      flatten(value, prefix + key + ".", into);
    else
      into[prefix + key] = value.is_string() ? value.get<std::string>() : value.dump();
  }
}

}  // namespace

std::vector<ConfigDifference> config_differences(const std::vector<std::string>& config_jsons) {
  std::vector<std::map<std::string, std::string>> configs;
  std::map<std::string, std::string> keys;
  for (const std::string& text : config_jsons) {
    const auto json = parse_json_object(text);
    auto& config = configs.emplace_back();
    if (json) flatten(*json, {}, config);
    keys.insert(config.begin(), config.end());
  }
  std::vector<ConfigDifference> differences;
  for (const auto& [key, value] : keys) {
    ConfigDifference difference{key, {}};
    for (const auto& config : configs) {
      const auto found = config.find(key);
      difference.values.push_back(found == config.end() ? std::string() : found->second);
    }
    const auto& v = difference.values;
    if (std::any_of(v.begin(), v.end(), [&](const std::string& other) { return other != v.front(); }))
      differences.push_back(std::move(difference));
  }
  return differences;
}

Result<std::unique_ptr<StoreReader>> open_store_reader(const fs::path& workspace) {
  std::error_code ec;
  const fs::path folder = fs::absolute(workspace, ec);
  store::take_in_before_reading(folder);
  auto connection = store::open_for_reading(folder);
  if (!connection) return tl::unexpected(connection.error());
  return std::make_unique<SqliteReader>(folder, std::move(*connection));
}

}  // namespace stacklab
