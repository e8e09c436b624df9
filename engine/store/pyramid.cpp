#include "engine/store/pyramid.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "engine/store/applier.h"

namespace stacklab::store {
namespace {

// A reader takes in at most so many buckets for each that it hands out.
constexpr std::int64_t read_per_bucket = 16;

constexpr const char* bucket_columns =
    "count, non_finite, gap_step, first_step, first, last_step, last, min_step, min, max_step, max";

double number_at(const SQLite::Statement& row, int column) {
  return row.isColumnNull(column) ? std::numeric_limits<double>::quiet_NaN() : row.getColumn(column).getDouble();
}

SeriesBucket bucket_at(const SQLite::Statement& row, int c) {
  SeriesBucket b;
  b.count = row.getColumn(c++).getInt64();
  b.non_finite = row.getColumn(c++).getInt64();
  b.gap_step = row.getColumn(c++).getInt64();
  b.first.step = row.getColumn(c++).getInt64();
  b.first.value = number_at(row, c++);
  b.last.step = row.getColumn(c++).getInt64();
  b.last.value = number_at(row, c++);
  b.min.step = row.getColumn(c++).getInt64();
  b.min.value = number_at(row, c++);
  b.max.step = row.getColumn(c++).getInt64();
  b.max.value = number_at(row, c);
  const bool first = std::isfinite(b.first.value), last = std::isfinite(b.last.value);
  b.mean = first && last ? std::midpoint(b.first.value, b.last.value)
           : first       ? b.first.value
           : last        ? b.last.value
                         : b.min.value;
  return b;
}

void put(SQLite::Statement& statement, std::int64_t run, std::int64_t metric, int level, std::int64_t bucket,
         const SeriesBucket& b) {
  int c = 1;
  const auto integer = [&](std::int64_t value) { statement.bind(c++, value); };
  const auto point = [&](const SeriesPoint& p) {
    integer(p.step);
    bind_number(statement, c++, p.value);
  };
  integer(run);
  integer(metric);
  integer(level);
  integer(bucket);
  integer(b.count);
  integer(b.non_finite);
  integer(b.gap_step);
  point(b.first);
  point(b.last);
  point(b.min);
  point(b.max);
  run_kept(statement);
}

std::string put_sql() {
  return std::string("INSERT OR REPLACE INTO pyramids (run, metric, level, bucket, ") + bucket_columns +
         ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
}

}  // namespace

SeriesBucket bucket_of(std::int64_t step, double value) {
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  SeriesBucket b;
  b.count = 1;
  b.first = b.last = {step, value};
  b.min = b.max = {step, std::isfinite(value) ? value : none};
  b.mean = b.min.value;
  b.non_finite = std::isfinite(value) ? 0 : 1;
  b.gap_step = std::isfinite(value) ? 0 : step;
  return b;
}

void append(SeriesBucket& a, const SeriesBucket& b) {
  if (a.count == 0) {
    a = b;
    return;
  }
  if (b.count == 0) return;
  if (a.non_finite == 0) a.gap_step = b.gap_step;
  const auto finite = static_cast<double>(b.count - b.non_finite);
  if (std::isnan(a.mean))
    a.mean = b.mean;
  else if (finite > 0)
    a.mean += (b.mean - a.mean) * (finite / (static_cast<double>(a.count - a.non_finite) + finite));
  // A side without a finite value has NaN here. Of equals, the earlier stays.
  if (std::isnan(a.min.value) || b.min.value < a.min.value) a.min = b.min;
  if (std::isnan(a.max.value) || b.max.value > a.max.value) a.max = b.max;
  a.count += b.count;
  a.non_finite += b.non_finite;
  a.last = b.last;
}

Pyramid::Pyramid(SQLite::Database& db)
    : db_(db),
      rows_(db,
            "SELECT step, value FROM metrics WHERE run = ? AND metric = ? AND step >= ? AND step < ? ORDER BY step"),
      buckets_(db, std::string("SELECT ") + bucket_columns +
                       " FROM pyramids WHERE run = ? AND metric = ? AND level = ? AND bucket >= ? AND bucket < ? "
                       "ORDER BY bucket"),
      put_(db, put_sql()),
      drop_(db, "DELETE FROM pyramids WHERE run = ? AND metric = ? AND level = ? AND bucket = ?") {}

std::optional<SeriesBucket> Pyramid::sum_up(std::int64_t run, std::int64_t metric, int level, std::int64_t bucket) {
  const std::int64_t begin = bucket << bits_per_level, end = (bucket + 1) << bits_per_level;
  SeriesBucket sum;
  SQLite::Statement& query = level == 1 ? rows_ : buckets_;
  int c = 1;
  query.bind(c++, run);
  query.bind(c++, metric);
  if (level > 1) query.bind(c++, level - 1);
  query.bind(c++, begin);
  query.bind(c, end);
  try {
    while (query.executeStep())
      append(sum, level == 1 ? bucket_of(query.getColumn(0).getInt64(), number_at(query, 1)) : bucket_at(query, 0));
  } catch (...) {
    query.tryReset();
    throw;
  }
  query.reset();
  return sum.count > 0 ? std::optional(sum) : std::nullopt;
}

void Pyramid::cut(std::int64_t run, std::int64_t after) {
  std::vector<std::int64_t> metrics;
  {
    SQLite::Statement query(db_,
                            "SELECT id FROM metric_names n WHERE EXISTS (SELECT 1 FROM pyramids WHERE run = ? AND "
                            "metric = n.id)");
    query.bind(1, run);
    while (query.executeStep()) metrics.push_back(query.getColumn(0).getInt64());
  }
  SQLite::Statement erase(db_, "DELETE FROM pyramids WHERE run = ? AND metric = ? AND level = ? AND bucket > ?");
  for (const std::int64_t metric : metrics) {
    for (int level = 1; level <= pyramid_levels; ++level) {
      erase.reset();
      erase.bind(1, run);
      erase.bind(2, metric);
      erase.bind(3, level);
      erase.bind(4, after >> (bits_per_level * level));
      erase.exec();
    }
    touch(run, metric, after);
  }
}

void Pyramid::update() {
  for (auto& [key, buckets] : touched_) {
    const auto [run, metric] = key;
    for (int level = 1; level <= pyramid_levels; ++level) {
      std::set<std::int64_t> above;
      for (const std::int64_t bucket : buckets) {
        above.insert(bucket >> bits_per_level);
        if (const auto sum = sum_up(run, metric, level, bucket)) {
          put(put_, run, metric, level, bucket, *sum);
          continue;
        }
        drop_.bind(1, run);
        drop_.bind(2, metric);
        drop_.bind(3, level);
        drop_.bind(4, bucket);
        run_kept(drop_);
      }
      buckets.swap(above);
    }
  }
  touched_.clear();
}

void build_pyramids(SQLite::Database& db) {
  db.exec("DELETE FROM pyramids");
  // Rows come in order of run, metric and step: of each level one bucket is open at a time.
  struct Open {
    std::int64_t bucket = -1;
    SeriesBucket sum;
  };
  std::vector<Open> open(pyramid_levels + 1);
  SQLite::Statement insert(db, put_sql());
  std::int64_t run = -1, metric = -1;
  const auto close = [&](int level) {
    Open& o = open[static_cast<std::size_t>(level)];
    if (o.sum.count > 0) put(insert, run, metric, level, o.bucket, o.sum);
    o = {};
  };
  SQLite::Statement query(db, "SELECT run, metric, step, value FROM metrics ORDER BY run, metric, step");
  while (query.executeStep()) {
    const std::int64_t r = query.getColumn(0).getInt64(), m = query.getColumn(1).getInt64();
    const std::int64_t step = query.getColumn(2).getInt64();
    if (r != run || m != metric)
      for (int level = 1; level <= pyramid_levels; ++level) close(level);
    run = r;
    metric = m;
    for (int level = 1; level <= pyramid_levels; ++level) {
      Open& o = open[static_cast<std::size_t>(level)];
      if (o.bucket != step >> (bits_per_level * level)) close(level);
      o.bucket = step >> (bits_per_level * level);
      append(o.sum, bucket_of(step, number_at(query, 3)));
    }
  }
  for (int level = 1; level <= pyramid_levels; ++level) close(level);
}

std::vector<SeriesBucket> read_decimated(SQLite::Database& db, std::int64_t run, std::int64_t metric, std::int64_t from,
                                         std::int64_t to, std::int64_t max_points) {
  // Within what there is, so that an open end asks for no coarser level than needed.
  SQLite::Statement ends(db,
                         "SELECT (SELECT step FROM metrics WHERE run = ?1 AND metric = ?2 AND step >= ?3 ORDER BY step "
                         "LIMIT 1), (SELECT step FROM metrics WHERE run = ?1 AND metric = ?2 AND step <= ?4 ORDER BY "
                         "step DESC LIMIT 1)");
  ends.bind(1, run);
  ends.bind(2, metric);
  ends.bind(3, from);
  ends.bind(4, to);
  ends.executeStep();
  if (ends.isColumnNull(0) || ends.isColumnNull(1)) return {};
  from = ends.getColumn(0).getInt64();
  to = ends.getColumn(1).getInt64();
  if (from > to) return {};
  max_points = std::max<std::int64_t>(max_points, 1);
  int level = 0;
  while (level < pyramid_levels && ((to - from) >> (bits_per_level * level)) >= max_points * read_per_bucket) ++level;

  std::vector<SeriesBucket> read;
  const auto read_rows = [&](std::int64_t first, std::int64_t last) {
    SQLite::Statement query(
        db, "SELECT step, value FROM metrics WHERE run = ? AND metric = ? AND step >= ? AND step <= ? ORDER BY step");
    query.bind(1, run);
    query.bind(2, metric);
    query.bind(3, first);
    query.bind(4, last);
    while (query.executeStep()) read.push_back(bucket_of(query.getColumn(0).getInt64(), number_at(query, 1)));
  };
  if (level == 0) {
    read_rows(from, to);
  } else {
    // Whole buckets from the level; what sticks out at either end from the levels below it.
    const auto whole = [&](auto&& self, int at, std::int64_t first, std::int64_t last) -> void {
      if (first > last) return;
      if (at == 0) return read_rows(first, last);
      const int bits = bits_per_level * at;
      const std::int64_t begin = (first + (std::int64_t{1} << bits) - 1) >> bits, end = (last + 1) >> bits;
      if (begin >= end) return self(self, at - 1, first, last);
      self(self, at - 1, first, (begin << bits) - 1);
      SQLite::Statement query(db, std::string("SELECT ") + bucket_columns +
                                      " FROM pyramids WHERE run = ? AND metric = ? AND level = ? AND bucket >= ? AND "
                                      "bucket < ? ORDER BY bucket");
      query.bind(1, run);
      query.bind(2, metric);
      query.bind(3, at);
      query.bind(4, begin);
      query.bind(5, end);
      while (query.executeStep()) read.push_back(bucket_at(query, 0));
      self(self, at - 1, end << bits, last);
    };
    whole(whole, level, from, to);
  }
  const auto n = static_cast<std::int64_t>(read.size());
  if (n <= max_points) return read;
  // Neighbours in steps are put together, so that a bucket stands for a stretch of the axis.
  std::vector<SeriesBucket> merged;
  std::int64_t slot = -1;
  const double per_step = static_cast<double>(max_points) / static_cast<double>(to - from + 1);
  for (const SeriesBucket& b : read) {
    const auto s = static_cast<std::int64_t>(static_cast<double>(b.first.step - from) * per_step);
    if (s != slot) merged.emplace_back();
    slot = s;
    append(merged.back(), b);
  }
  return merged;
}

}  // namespace stacklab::store
