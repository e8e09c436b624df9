#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/Transaction.h>
#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <map>

#include "engine/base/text.h"
#include "engine/store/database.h"
#include "engine/store/liveness.h"
#include "engine/store/store_reader.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;

constexpr const char* run_columns =
    "SELECT r.number, r.id, r.name, r.folder, r.state, r.cause, r.config_json, r.corpus_sha256, r.total_steps, "
    "r.phase, "
    "r.detail, r.done, r.total, r.created, r.finished, r.parameters, r.plan_bytes, r.peak_bytes, r.tokens_per_second, "
    "r.ended_step, r.ended_tokens, r.ended_seconds, s.commit_id, s.pid, s.process_start, s.boot_id, s.host, "
    "s.namespace, s.last_beat, s.next_by "
    "FROM runs r JOIN sessions s ON s.run = r.number AND s.session = r.session ";

double number_at(const SQLite::Statement& row, int column) {
  return row.isColumnNull(column) ? std::numeric_limits<double>::quiet_NaN() : row.getColumn(column).getDouble();
}

// The state as it is, whatever the last word in the store was.
void judge_state(RunSummary& run, const store::Owner& owner, const store::Pulse& pulse, double now) {
  if (!is_active(run.state)) return;
  const auto liveness = store::judge(owner, pulse, now);
  run.stalled = liveness.stalled;
  if (liveness.alive) return;
  run.state = RunState::lost;
  run.cause = liveness.cause;
}

RunSummary summary_of(const SQLite::Statement& row, double now) {
  RunSummary run;
  int c = 0;
  const auto text = [&] { return row.getColumn(c++).getString(); };
  const auto integer = [&] { return row.getColumn(c++).getInt64(); };
  const auto real = [&] { return row.getColumn(c++).getDouble(); };
  run.number = integer();
  run.id = text();
  run.name = text();
  run.folder = text();
  run.state = run_state_from_string(text()).value_or(RunState::failed);
  run.cause = text();
  run.config_json = text();
  run.corpus_sha256 = text();
  run.total_steps = integer();
  run.progress.phase = text();
  run.progress.detail = text();
  run.progress.done = integer();
  run.progress.total = integer();
  run.created = real();
  run.finished = real();
  run.parameters = integer();
  run.plan_bytes = integer();
  run.peak_bytes = integer();
  run.tokens_per_second = real();
  run.step = integer();
  run.tokens = integer();
  run.seconds = real();
  if (run.step == 0) {  // superseded
    run.tokens = 0;
    run.seconds = 0;
  }
  run.commit = text();
  store::Owner owner;
  owner.process.pid = static_cast<int>(integer());
  owner.process.start_ticks = static_cast<std::uint64_t>(integer());
  owner.process.boot_id = text();
  owner.host = text();
  owner.process_namespace = text();
  store::Pulse pulse;
  pulse.last_beat = real();
  pulse.next_by = real();
  run.process = owner.process.pid;
  run.last_beat = pulse.last_beat;
  judge_state(run, owner, pulse, now);
  return run;
}

// The few values of a run that come from its rows, each found by one step in an index.
class Figures {
 public:
  explicit Figures(SQLite::Database& db)
      : last_step_(db, "SELECT step, tokens, seconds FROM steps WHERE run = ? ORDER BY step DESC LIMIT 1"),
        first_(db, "SELECT value FROM metrics WHERE run = ? AND metric = ? ORDER BY step LIMIT 1"),
        last_(db, "SELECT value FROM metrics WHERE run = ? AND metric = ? ORDER BY step DESC LIMIT 1"),
        facts_(db, "SELECT name, value FROM facts WHERE run = ? ORDER BY name") {
    SQLite::Statement query(db, "SELECT id, name FROM metric_names WHERE name IN (?, ?)");
    query.bind(1, std::string(metric::loss));
    query.bind(2, std::string(metric::val_loss));
    while (query.executeStep())
      (query.getColumn(1).getString() == metric::loss ? loss_ : val_loss_) = query.getColumn(0).getInt64();
  }

  void fill(RunSummary& run) {
    last_step_.reset();
    last_step_.bind(1, run.number);
    if (last_step_.executeStep() && last_step_.getColumn(0).getInt64() > run.step) {
      run.step = last_step_.getColumn(0).getInt64();
      run.tokens = last_step_.getColumn(1).getInt64();
      run.seconds = last_step_.getColumn(2).getDouble();
    }
    last_step_.reset();
    run.first_loss = value(first_, run.number, loss_);
    run.last_loss = value(last_, run.number, loss_);
    run.val_loss = value(last_, run.number, val_loss_);
    facts_.reset();
    facts_.bind(1, run.number);
    while (facts_.executeStep()) run.facts.emplace_back(facts_.getColumn(0).getString(), number_at(facts_, 1));
    facts_.reset();
  }

 private:
  static std::optional<double> value(SQLite::Statement& query, std::int64_t run, std::optional<std::int64_t> metric) {
    if (!metric) return std::nullopt;
    query.reset();
    query.bind(1, run);
    query.bind(2, *metric);
    std::optional<double> found;
    if (query.executeStep()) found = number_at(query, 0);
    query.reset();
    return found;
  }

  SQLite::Statement last_step_, first_, last_, facts_;
  std::optional<std::int64_t> loss_, val_loss_;
};

class SqliteReader final : public StoreReader {
 public:
  SqliteReader(fs::path workspace, store::ReadConnection connection)
      : workspace_(std::move(workspace)), connection_(std::move(connection)) {
    note_file();
  }

  Result<std::vector<RunSummary>> runs() override {
    return read([&](SQLite::Database& db) { return summaries(db, "ORDER BY r.number", {}); });
  }

  Result<RunSummary> run(const std::string& wanted) override {
    auto found = read([&](SQLite::Database& db) -> Result<RunSummary> {
      auto exact = summaries(db, "WHERE r.id = ?", wanted);
      if (exact->size() == 1) return std::move(exact->front());
      auto named = summaries(db, "WHERE r.name = ? ORDER BY r.number", wanted);
      auto begun = wanted.empty() ? std::vector<RunSummary>()
                                  : *summaries(db, "WHERE substr(r.id, 1, length(?1)) = ?1 ORDER BY r.number", wanted);
      if (named->size() == 1) return std::move(named->front());
      if (named->empty() && begun.size() == 1) return std::move(begun.front());
      const auto& many = named->empty() ? begun : *named;
      if (many.size() > 1) {
        std::string ids;
        for (const auto& r : many) ids += (ids.empty() ? "" : ", ") + r.id;
        return usage_error(fmt::format("\"{}\" means several runs: {}", wanted, ids), "give more of the id");
      }
      return tl::unexpected(unknown_run(db, wanted));
    });
    return found;
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
      while (query.executeStep()) points.push_back({query.getColumn(0).getInt64(), number_at(query, 1)});
      return points;
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
      return std::optional(SeriesPoint{query.getColumn(0).getInt64(), number_at(query, 1)});
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
      while (query.executeStep()) {
        rows.push_back({query.getColumn(0).getInt64(), query.getColumn(1).getInt64(), query.getColumn(2).getDouble(),
                        query.getColumn(3).getDouble()});
      }
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
      SQLite::Statement query(db,
                              "SELECT id, unix_time, kind, step, text FROM events "
                              "WHERE run = ? AND id > ? AND NOT superseded ORDER BY id LIMIT ?");
      query.bind(1, *number);
      query.bind(2, after_id);
      query.bind(3, limit);
      std::vector<RunEventRow> rows;
      while (query.executeStep()) {
        const auto kind = run_event_kind_from_string(query.getColumn(2).getString());
        rows.push_back({query.getColumn(0).getInt64(), query.getColumn(1).getDouble(),
                        RunEvent{kind.value_or(RunEvent::Kind::info), query.getColumn(3).getInt64(),
                                 query.getColumn(4).getString()}});
      }
      return rows;
    });
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

  static Result<std::vector<RunSummary>> summaries(SQLite::Database& db, const char* which,
                                                   const std::optional<std::string>& argument) {
    SQLite::Statement query(db, std::string(run_columns) + which);
    if (argument) query.bind(1, *argument);
    Figures figures(db);
    const double now = store::unix_now();
    std::vector<RunSummary> runs;
    while (query.executeStep()) {
      runs.push_back(summary_of(query, now));
      figures.fill(runs.back());
    }
    return runs;
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
};

}  // namespace

Result<std::unique_ptr<StoreReader>> open_store_reader(const fs::path& workspace) {
  std::error_code ec;
  const fs::path folder = fs::absolute(workspace, ec);
  auto connection = store::open_for_reading(folder);
  if (!connection) return tl::unexpected(connection.error());
  return std::make_unique<SqliteReader>(folder, std::move(*connection));
}

}  // namespace stacklab
