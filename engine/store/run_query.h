// Rows of the run list, and the SQL of its queries.
#pragma once

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/base/result.h"
#include "engine/store/store_reader.h"

namespace stacklab::store {

// What follows "FROM runs r JOIN sessions s": conditions, order, limit, with the values of its parameters.
struct RunClause {
  std::string sql;
  std::vector<std::variant<std::int64_t, double, std::string>> values = {};
};

// Each run with the state that it really has.
std::vector<RunSummary> read_runs(SQLite::Database& db, const RunClause& clause);

// The runs whose stored state says that a process is at them, though it is gone.
std::vector<std::int64_t> lost_runs(SQLite::Database& db);
// The SQL of a run's real state.
std::string state_sql(const std::vector<std::int64_t>& lost);

Result<std::vector<RunPlace>> read_order(SQLite::Database& db, const RunQuery& wanted, const std::string& group);
Result<RunClause> compile(const RunQuery& query, const std::vector<std::int64_t>& lost);

double number_at(const SQLite::Statement& row, int column);  // NULL is NaN

}  // namespace stacklab::store
