#include "engine/store/run_query.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "engine/base/clock.h"
#include "engine/base/text.h"
#include "engine/store/liveness.h"

namespace stacklab::store {
namespace {

constexpr const char* run_columns =
    "SELECT r.number, r.id, r.name, r.folder, r.state, r.cause, r.config_json, r.corpus_sha256, r.total_steps, "
    "r.phase, r.detail, r.done, r.total, r.created, r.finished, r.parameters, r.plan_bytes, r.peak_bytes, "
    "r.tokens_per_second, r.ended_step, r.ended_tokens, r.ended_seconds, r.last_step, r.last_tokens, r.last_seconds, "
    "r.loss_step, r.first_loss, r.loss, r.val_step, r.val_loss, s.commit_id, r.dirty, r.tokenizer, r.note, r.archived, "
    "r.deleted, r.parent, r.fork_step, r.detached, "
    "(SELECT count(*) FROM events WHERE run = r.number AND severity <> '' AND resolved = 0 AND superseded = 0), "
    "s.pid, s.process_start, s.boot_id, s.host, s.namespace, s.last_beat, s.next_by ";
constexpr const char* run_tables = "FROM runs r JOIN sessions s ON s.run = r.number AND s.session = r.session ";

// The state as it is, whatever the last word in the store was.
void judge_state(RunSummary& run, const Owner& owner, const Pulse& pulse, double now) {
  if (!is_active(run.state)) return;
  const auto liveness = judge(owner, pulse, now);
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
  // Where the last process ended, or the last row, whichever is later: not every step has a row.
  run.step = integer();
  run.tokens = run.step > 0 ? integer() : (++c, 0);
  run.seconds = run.step > 0 ? real() : (++c, 0);
  if (const std::int64_t last = integer(); last > run.step) {
    run.step = last;
    run.tokens = integer();
    run.seconds = real();
  } else {
    c += 2;
  }
  if (integer() > 0) {
    run.first_loss = number_at(row, c);
    run.last_loss = number_at(row, c + 1);
  }
  c += 2;
  if (integer() > 0) run.val_loss = number_at(row, c);
  ++c;
  run.commit = text();
  run.dirty = integer() != 0;
  run.tokenizer = text();
  run.note = text();
  run.archived = real();
  run.deleted = real();
  run.parent = text();
  run.fork_step = integer();
  run.detached = integer() != 0;
  run.open_alerts = integer();
  Owner owner;
  owner.process.pid = static_cast<int>(integer());
  owner.process.start_ticks = static_cast<std::uint64_t>(integer());
  owner.process.boot_id = text();
  owner.host = text();
  owner.process_namespace = text();
  Pulse pulse;
  pulse.last_beat = real();
  pulse.next_by = real();
  run.process = owner.process.pid;
  run.last_beat = pulse.last_beat;
  judge_state(run, owner, pulse, now);
  return run;
}

using Expression = RunClause;

// A column, a metric's last value, or a key of the config.
Result<Expression> expression_of(const std::string& key, const std::string& state) {
  static const std::map<std::string, std::string, std::less<>> columns = {
      {"number", "r.number"},
      {"id", "r.id"},
      {"name", "r.name"},
      {"cause", "r.cause"},
      {"created", "r.created"},
      {"finished", "CASE WHEN r.finished > 0 THEN r.finished END"},
      {"step", "max(r.ended_step, r.last_step)"},
      {"total_steps", "r.total_steps"},
      {"tokens", "max(r.ended_tokens, r.last_tokens)"},
      {"seconds", "max(r.ended_seconds, r.last_seconds)"},
      {"first_loss", "r.first_loss"},
      {"loss", "r.loss"},
      {"val_loss", "r.val_loss"},
      {"tokens_per_second", "r.tokens_per_second"},
      {"plan_bytes", "r.plan_bytes"},
      {"progress",
       "CASE WHEN r.total_steps > 0 THEN 100.0 * max(r.ended_step, r.last_step) / r.total_steps ELSE 0.0 END"},
      {"lr",
       "CASE WHEN json_valid(r.config_json) THEN CASE json_extract(r.config_json, '$.optim.matrices') WHEN 'adamw' "
       "THEN json_extract(r.config_json, '$.optim.adam_lr') ELSE json_extract(r.config_json, '$.optim.muon_lr') END "
       "END"},
      {"parameters", "r.parameters"},
      {"peak_bytes", "r.peak_bytes"},
      {"commit", "r.commit_id"},
      {"corpus_sha256", "r.corpus_sha256"},
      {"tokenizer", "r.tokenizer"},
      {"note", "r.note"},
      {"parent", "r.parent"},
      {"fork_step", "r.fork_step"}};
  if (key == "state") return Expression{state};
  if (const auto column = columns.find(key); column != columns.end()) return Expression{column->second};
  constexpr std::string_view metric_prefix = "metric.";
  if (key.starts_with(metric_prefix))
    return Expression{
        "(SELECT value FROM metrics WHERE run = r.number AND metric = (SELECT id FROM metric_names WHERE name = ?) "
        "ORDER BY step DESC LIMIT 1)",
        {key.substr(metric_prefix.size())}};
  const bool plain = std::all_of(key.begin(), key.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  });
  if (key.empty() || !plain || key.find('.') == std::string::npos)
    return usage_error(fmt::format("runs cannot be told apart by \"{}\"", printable(key)),
                       "name a key of the config (optim.adam_lr), a metric (metric.grad_norm), or one of: name, state, "
                       "loss, val_loss, step, tokens, seconds, created, note");
  return Expression{"CASE WHEN json_valid(r.config_json) THEN json_extract(r.config_json, ?) END", {"$." + key}};
}

const char* sign_of(RunFilter::Op op) {
  using Op = RunFilter::Op;
  switch (op) {
    case Op::unequal:
      return "<>";
    case Op::less:
      return "<";
    case Op::at_most:
      return "<=";
    case Op::greater:
      return ">";
    case Op::at_least:
      return ">=";
    case Op::equal:
    case Op::contains:
      break;
  }
  return "=";
}

// What is in a row, of the type that is asked for: a config of another version may have text where a number belongs.
Expression typed(Expression expression, bool number) {
  const std::size_t count = expression.values.size();
  expression.sql = fmt::format("CASE WHEN typeof({0}) IN ({1}) THEN {0} END", expression.sql,
                               number ? "'integer', 'real'" : "'text'");
  for (std::size_t i = 0; i < count; ++i) expression.values.push_back(expression.values[i]);
  return expression;
}

// Whether a figure was measured and is not a number (or, if not nan, is one).
Expression nan_of(const RunFilter& filter, const Expression& value, bool nan) {
  const char* null = nan ? "NULL" : "NOT NULL";
  constexpr std::pair<std::string_view, const char*> figures[] = {
      {"loss", "r.loss_step"}, {"first_loss", "r.loss_step"}, {"val_loss", "r.val_step"}};
  for (const auto& [key, step] : figures)
    if (filter.key == key) return {fmt::format("({} > 0 AND {} IS {})", step, value.sql, null), value.values};
  std::string sql = value.sql;
  const std::string_view select = "(SELECT value ";
  sql.replace(0, select.size(), fmt::format("(SELECT value IS {} ", null));
  return {fmt::format("coalesce({}, 0)", sql), value.values};
}

Result<Expression> condition_of(const RunFilter& filter, const std::string& state) {
  using Kind = RunFilter::Kind;
  using Op = RunFilter::Op;
  const std::string turned = filter.op == Op::unequal ? "NOT " : "";
  switch (filter.kind) {
    case Kind::all:
    case Kind::any: {
      Expression joined;
      for (const RunFilter& part : filter.parts) {
        auto inner = condition_of(part, state);
        if (!inner) return inner;
        joined.sql += (joined.sql.empty() ? "(" : filter.kind == Kind::all ? " AND " : " OR ") + inner->sql;
        joined.values.insert(joined.values.end(), inner->values.begin(), inner->values.end());
      }
      joined.sql = joined.sql.empty() ? (filter.kind == Kind::all ? "1" : "0") : joined.sql + ")";
      return joined;
    }
    case Kind::no: {
      auto inner = condition_of(filter.parts.front(), state);
      if (inner) inner->sql = "(NOT " + inner->sql + ")";
      return inner;
    }
    case Kind::word:
      return Expression{"(instr(lower(r.name), lower(?)) > 0 OR instr(lower(r.note), lower(?)) > 0)",
                        {filter.text, filter.text}};
    case Kind::tag:
      return Expression{fmt::format("({}EXISTS (SELECT 1 FROM tags WHERE run = r.number AND tag = ?))", turned),
                        {filter.text}};
    case Kind::state:
      return Expression{fmt::format("({}({} = ?))", turned, state), {filter.text}};
    case Kind::is: {
      constexpr std::pair<std::string_view, const char*> properties[] = {{"archived", "r.archived > 0"},
                                                                         {"deleted", "r.deleted > 0"},
                                                                         {"detached", "r.detached <> 0"},
                                                                         {"dirty", "r.dirty <> 0"},
                                                                         {"forked", "r.parent <> ''"}};
      for (const auto& [word, sql] : properties)
        if (filter.text == word) return Expression{fmt::format("({}({}))", turned, sql)};
      return usage_error(fmt::format("no run is \"{}\"", printable(filter.text)));
    }
    case Kind::number:
    case Kind::text:
      break;
  }
  const bool number = filter.kind == Kind::number;
  auto value = expression_of(filter.key, state);
  if (!value) return value;
  if (number && std::isnan(filter.number)) return nan_of(filter, *value, filter.op != Op::unequal);
  Expression expression = typed(*value, number);
  if (filter.op == Op::contains)
    expression.sql = fmt::format("coalesce(instr(lower({}), lower(?)) > 0, 0)", expression.sql);
  else
    expression.sql = fmt::format("coalesce({} {} ?, 0)", expression.sql, sign_of(filter.op));
  if (number)
    expression.values.emplace_back(filter.number);
  else
    expression.values.emplace_back(filter.text);
  return expression;
}

}  // namespace

double number_at(const SQLite::Statement& row, int column) {
  return row.isColumnNull(column) ? std::numeric_limits<double>::quiet_NaN() : row.getColumn(column).getDouble();
}

std::vector<RunSummary> read_runs(SQLite::Database& db, const RunClause& clause) {
  SQLite::Statement query(db, std::string(run_columns) + run_tables + clause.sql);
  for (std::size_t i = 0; i < clause.values.size(); ++i)
    std::visit([&](const auto& value) { query.bind(static_cast<int>(i) + 1, value); }, clause.values[i]);
  SQLite::Statement facts(db, "SELECT name, value FROM facts WHERE run = ? ORDER BY name");
  SQLite::Statement tags(db, "SELECT tag FROM tags WHERE run = ? ORDER BY tag");
  const double now = unix_seconds();
  std::vector<RunSummary> runs;
  while (query.executeStep()) {
    RunSummary& run = runs.emplace_back(summary_of(query, now));
    facts.reset();
    facts.bind(1, run.number);
    while (facts.executeStep()) run.facts.emplace_back(facts.getColumn(0).getString(), number_at(facts, 1));
    tags.reset();
    tags.bind(1, run.number);
    while (tags.executeStep()) run.tags.push_back(tags.getColumn(0).getString());
  }
  return runs;
}

std::vector<std::int64_t> lost_runs(SQLite::Database& db) {
  std::vector<std::int64_t> lost;
  for (const RunSummary& run : read_runs(db, {"WHERE r.state IN ('running', 'stopping')"}))
    if (run.state == RunState::lost) lost.push_back(run.number);
  return lost;
}

std::string state_sql(const std::vector<std::int64_t>& lost) {
  if (lost.empty()) return "r.state";
  std::string numbers;
  for (const std::int64_t n : lost) numbers += (numbers.empty() ? "" : ", ") + std::to_string(n);
  return "CASE WHEN r.number IN (" + numbers + ") THEN 'lost' ELSE r.state END";
}

Result<std::vector<RunPlace>> read_order(SQLite::Database& db, const RunQuery& wanted, const std::string& group) {
  const std::vector<std::int64_t> lost = lost_runs(db);
  Expression grouped{"''"};
  if (!group.empty()) {
    auto expression = expression_of(group, state_sql(lost));
    if (!expression) return tl::unexpected(expression.error());
    grouped = std::move(*expression);
  }
  auto clause = compile(wanted, lost);
  if (!clause) return tl::unexpected(clause.error());
  SQLite::Statement query(db, fmt::format("SELECT r.number, CAST({} AS TEXT), r.val_step, r.val_loss, r.loss_step, "
                                          "r.loss, r.state {}{}",
                                          grouped.sql, run_tables, clause->sql));
  int parameter = 0;
  for (const auto* values : {&grouped.values, &clause->values})
    for (const auto& value : *values) std::visit([&](const auto& v) { query.bind(++parameter, v); }, value);
  std::vector<RunPlace> places;
  while (query.executeStep()) {
    RunPlace& place = places.emplace_back();
    place.number = query.getColumn(0).getInt64();
    if (!query.isColumnNull(1)) place.group = query.getColumn(1).getString();
    if (query.getColumn(2).getInt64() > 0) place.val_loss = number_at(query, 3);
    if (query.getColumn(4).getInt64() > 0) place.loss = number_at(query, 5);
    place.state = run_state_from_string(query.getColumn(6).getString()).value_or(RunState::failed);
    if (std::binary_search(lost.begin(), lost.end(), place.number)) place.state = RunState::lost;
  }
  return places;
}

Result<RunClause> compile(const RunQuery& query, const std::vector<std::int64_t>& lost) {
  const std::string state = state_sql(lost);
  RunClause clause;
  const auto require = [&clause](const std::string& condition) {
    clause.sql += (clause.sql.empty() ? "WHERE " : " AND ") + condition;
  };
  if (!query.archived && !asks_for(query.filter, "archived")) require("r.archived = 0");
  if (!query.deleted && !asks_for(query.filter, "deleted")) require("r.deleted = 0");
  if (!query.filter.matches_all()) {
    auto condition = condition_of(query.filter, state);
    if (!condition) return tl::unexpected(condition.error());
    require(condition->sql);
    clause.values.insert(clause.values.end(), condition->values.begin(), condition->values.end());
  }
  auto order = expression_of(query.order, state);
  if (!order) return tl::unexpected(order.error());
  // What has no value comes last, whichever way round.
  clause.sql += fmt::format(" ORDER BY {0} IS NULL, {0} {1}, r.number", order->sql, query.descending ? "DESC" : "ASC");
  for (int i = 0; i < 2; ++i) clause.values.insert(clause.values.end(), order->values.begin(), order->values.end());
  clause.sql += " LIMIT ? OFFSET ?";
  clause.values.emplace_back(query.limit);
  clause.values.emplace_back(query.offset);
  return clause;
}

}  // namespace stacklab::store
