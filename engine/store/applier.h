// Turns records into rows, inside a transaction of the caller. Applying a record twice leaves what applying it once
// does.
#pragma once

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "engine/base/result.h"
#include "engine/store/pyramid.h"
#include "engine/store/records.h"

namespace stacklab::store {

class Applier {
 public:
  explicit Applier(SQLite::Database& db);

  // At the start of every transaction: other processes may have taken runs over meanwhile.
  void begin() { places_.clear(); }
  // At the end of it: brings up to date what follows from the rows.
  void finish();

  // False when the store holds no such run or session: the record has no place.
  bool apply(const Record& record);

  // After a rollback: what was learnt in the transaction does not hold.
  void forget();

  // Applies records that come late, in a transaction of its own. for_each calls its argument for every record and
  // returns how many could not be read. Returns how many had no place or could not be read.
  using Visit = std::function<void(const Record&)>;
  Result<std::int64_t> take_in(const std::function<Result<std::int64_t>(const Visit&)>& for_each);

 private:
  // Where records of one session go. A session that was followed by another may only fill in steps before the other's
  // first.
  struct Place {
    std::int64_t run_number = 0;
    std::int64_t session = 0;
    bool current = true;
    bool begun = false;  // after_step is known
    std::int64_t last_step = std::numeric_limits<std::int64_t>::max();
  };
  Place* place_of(const SessionKey& key);
  std::int64_t metric_id(const std::string& name);
  // Rows of step > after_step become past; the run's epoch moves on.
  void supersede(std::int64_t run_number, std::int64_t session, std::int64_t after_step);

  void apply_to(Place& place, const StepRecord& r);
  void apply_to(Place& place, const EventRecord& r);
  void apply_to(Place& place, const FactRecord& r);
  void apply_to(Place& place, const ResumedRecord& r);
  void apply_to(Place& place, const EndRecord& r);
  void apply_to(Place& place, const ResolvedRecord& r);

  SQLite::Database& db_;
  std::map<SessionKey, std::optional<Place>> places_;
  std::map<std::string, std::int64_t> metric_ids_;
  std::set<std::int64_t> touched_;  // runs whose rows changed
  Pyramid pyramid_;
  SQLite::Statement insert_metric_, fill_metric_, insert_step_, fill_step_, insert_event_, insert_fact_, fill_fact_,
      update_figures_;
};

// Runs a statement that is kept, and leaves it ready for the next time also when it throws.
void run_kept(SQLite::Statement& statement);
// NaN as NULL: SQLite has no NaN.
void bind_number(SQLite::Statement& statement, int index, double value);

}  // namespace stacklab::store
