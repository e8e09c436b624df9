// Curves summed up as they grow, so that a million points are drawn without being read. Level k of a metric holds one
// bucket for every 16^k steps that has a value: step s lies in bucket s >> 4k. Level 0 is the rows themselves.
#pragma once

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "engine/store/store_reader.h"

namespace stacklab::store {

inline constexpr int pyramid_levels = 4;  // the top one holds 65,536 steps a bucket
inline constexpr int bits_per_level = 4;

// One value, as the narrowest bucket.
SeriesBucket bucket_of(std::int64_t step, double value);
// What is in b follows what is in a.
void append(SeriesBucket& a, const SeriesBucket& b);

// Keeps the levels in step with the rows, inside the transaction that changes them: whatever was touched is summed up
// again from the level below, so that rows that are replaced, come late or come twice leave the same.
class Pyramid {
 public:
  explicit Pyramid(SQLite::Database& db);

  void touch(std::int64_t run, std::int64_t metric, std::int64_t step) {
    touched_[{run, metric}].insert(step >> bits_per_level);
  }
  // Rows of steps > after are gone.
  void cut(std::int64_t run, std::int64_t after);
  void update();
  void forget() { touched_.clear(); }

 private:
  std::optional<SeriesBucket> sum_up(std::int64_t run, std::int64_t metric, int level, std::int64_t bucket);

  SQLite::Database& db_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::set<std::int64_t>> touched_;  // buckets of level 1
  SQLite::Statement rows_, buckets_, put_, drop_;
};

// From all rows; for a store that had none.
void build_pyramids(SQLite::Database& db);

// At most max_points buckets that cover the values of steps from..to; single values where they are few enough.
std::vector<SeriesBucket> read_decimated(SQLite::Database& db, std::int64_t run, std::int64_t metric, std::int64_t from,
                                         std::int64_t to, std::int64_t max_points);

}  // namespace stacklab::store
