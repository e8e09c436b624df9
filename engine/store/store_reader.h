// What the store shows: plain values, and the read-only door to them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/base/result.h"
#include "engine/run/run.h"
#include "engine/store/run_filter.h"

namespace stacklab {

// One row of the run list, as the store has it, with the state as it really is: a run whose process is gone reads
// "lost".
struct RunSummary {
  RunId id;
  std::string name;
  std::string folder;       // below <workspace>/runs/
  std::int64_t number = 0;  // from 0 in order of creation: gives the run its colour
  RunState state = RunState::queued;
  std::string
      cause;  // why it is in that state: "stopped at step 40 by the user", "process 4711 ended without ...", ...
  bool stalled = false;      // running, but the promised beat is late
  std::int64_t process = 0;  // that trains it, or did last
  double last_beat = 0;      // unix time; 0: none yet
  Progress progress;
  std::int64_t step = 0;
  std::int64_t total_steps = 0;
  std::int64_t tokens = 0;
  double seconds = 0;                                     // spent training
  std::optional<double> first_loss, last_loss, val_loss;  // empty: not measured; NaN: measured and not a number
  double created = 0;                                     // unix time
  double finished = 0;                                    // unix time; 0: not finished
  std::string commit;                                     // of the build that trained it last
  bool dirty = false;                                     // that build's sources had changes
  std::string corpus_sha256;
  std::string tokenizer;
  std::string config_json;
  std::vector<std::pair<std::string, double>> facts;  // reference lines
  std::vector<std::string> tags;                      // in order
  std::string note;
  double archived = 0, deleted = 0;  // unix time; 0: it is not
  RunId parent;                      // forked from it, after fork_step; empty: from none
  std::int64_t fork_step = 0;
  bool detached = false;         // its process belongs to no terminal or window
  std::int64_t open_alerts = 0;  // not resolved
  // Figures of the last process that ended with a word; 0: none.
  std::int64_t parameters = 0, plan_bytes = 0, peak_bytes = 0;
  double tokens_per_second = 0;
};

struct SeriesPoint {
  std::int64_t step = 0;
  double value = 0;  // may be NaN or infinite
  bool operator==(const SeriesPoint&) const = default;
};

// Neighbouring points of a series, summed up: enough to draw them in one column of a picture.
struct SeriesBucket {
  std::int64_t count = 0;
  std::int64_t non_finite = 0;  // of these: NaN or infinite
  std::int64_t gap_step = 0;    // the first of them
  SeriesPoint first, last;
  SeriesPoint min, max;  // of the finite values; NaN where there is none
  double mean = 0;       // of the finite values; of what the store had summed up before, by the ends of its parts
};

// What a step's row tells besides the metrics: the other x axes.
struct StepRow {
  std::int64_t step = 0;
  std::int64_t tokens = 0;
  double process_seconds = 0;
  double unix_time = 0;
};

struct RunEventRow {
  std::int64_t id = 0;  // increasing in order of arrival
  double unix_time = 0;
  RunEvent event;
  double resolved = 0;  // of an alert: unix time; 0: it is open
  std::int64_t resolved_step = 0;
};

struct AlertRow {
  RunId run;
  std::string name;  // the run's
  RunEventRow row;
};

// Which runs, in which order.
struct RunQuery {
  RunFilter filter = {};
  bool archived = false, deleted = false;  // these too
  std::string order = "number";            // as a comparison's key, or "name", "state"
  bool descending = false;
  std::int64_t limit = -1, offset = 0;
};

// A run's place in a list, with what groups of runs are summed up from.
struct RunPlace {
  std::int64_t number = 0;
  std::string group;  // value of the key that the list is grouped by; empty: it has none
  std::optional<double> loss, val_loss;
  RunState state = RunState::queued;
  bool operator==(const RunPlace&) const = default;
};

// What changed since a reader looked last.
struct RunChanges {
  std::int64_t counter = 0;      // for the next look
  bool everything = false;       // runs were removed: forget those that are not in runs, which holds all
  std::vector<RunSummary> runs;  // new or changed, in order of creation
};

// One key in which configs differ, with the value of each; empty: the config has no such key.
struct ConfigDifference {
  std::string key;
  std::vector<std::string> values;
};

// What waits to be trained.
struct QueueEntry {
  std::int64_t id = 0;
  RunId run;  // hash of the config
  std::string name;
  std::string config_json;
  std::string options_json;
  double added = 0;
  std::int64_t process = 0;  // that will start it in its turn; 0: it waits for a person
};

// Reads the store on a read-only connection of its own, in short transactions. Use from one thread at a time (the
// window's worker); cheap to make.
class StoreReader {
 public:
  virtual ~StoreReader() = default;
  virtual Result<std::vector<RunSummary>> runs() = 0;  // in order of creation, archived and deleted ones too
  // Done in SQL. A key that cannot be one is a usage error.
  virtual Result<std::vector<RunSummary>> runs(const RunQuery& query) = 0;
  // The same without the rows, each run with its value of the key `group` (empty: none); and rows by their numbers.
  virtual Result<std::vector<RunPlace>> order(const RunQuery& query, const std::string& group) = 0;
  virtual Result<std::vector<RunSummary>> numbered(const std::vector<std::int64_t>& numbers) = 0;
  // A number that has changed when anything of a list may have.
  virtual Result<std::int64_t> change_counter() = 0;
  // What there is for a filter to name: tags, metrics, the newest names.
  virtual Result<FilterWords> filter_words() = 0;
  virtual Result<std::map<RunState, std::int64_t>> counts_by_state() = 0;  // neither archived nor deleted
  // Cheap: what another look at runs() would show anew. 0 at first.
  virtual Result<RunChanges> changes(std::int64_t after) = 0;
  virtual Result<RunSummary> run(
      const std::string& id_prefix_or_name) = 0;  // unique prefix of an id, or a name; suggests on failure
  // Points of one metric with step > after, ascending, at most limit. Superseded values are not shown.
  virtual Result<std::vector<SeriesPoint>> series(const RunId& run, const std::string& metric, std::int64_t after,
                                                  std::int64_t limit) = 0;
  // The values of steps from..to in at most max_points buckets, in time that depends on max_points alone. No minimum,
  // maximum or gap is missed.
  virtual Result<std::vector<SeriesBucket>> decimated(const RunId& run, const std::string& metric, std::int64_t from,
                                                      std::int64_t to, std::int64_t max_points) = 0;
  // The point of the latest step; none where the run never reported this metric.
  virtual Result<std::optional<SeriesPoint>> last_point(const RunId& run, const std::string& metric) = 0;
  virtual Result<std::vector<StepRow>> steps(const RunId& run, std::int64_t after, std::int64_t limit) = 0;
  // Rows of steps from..to, evenly spread and at most most + 1 of them, the first and the last among them, in time that
  // depends on most alone.
  virtual Result<std::vector<StepRow>> sampled_steps(const RunId& run, std::int64_t from, std::int64_t to,
                                                     std::int64_t most) = 0;
  // Changes whenever rows of this run were superseded (a resume) or arrived late: what was read before is to be read
  // again.
  virtual Result<std::int64_t> series_epoch(const RunId& run) = 0;
  virtual Result<std::vector<std::string>> metrics(const RunId& run) = 0;
  virtual Result<std::vector<RunEventRow>> events(const RunId& run, std::int64_t after_id, std::int64_t limit) = 0;
  // Alerts of all runs that are neither archived nor deleted, the newest first.
  virtual Result<std::vector<AlertRow>> alerts(bool open_only, std::int64_t limit) = 0;
  // The runs that this one was forked from, nearest first.
  virtual Result<std::vector<RunSummary>> ancestry(const RunId& run) = 0;
  virtual Result<std::vector<QueueEntry>> queue() = 0;  // in order
  virtual std::int64_t wal_bytes() = 0;
};

// The keys in which these configs (JSON) are not all alike, sorted; "run.threads" and the like.
std::vector<ConfigDifference> config_differences(const std::vector<std::string>& config_jsons);

// Errors name the folder: missing, empty, not a data base, of a newer version.
Result<std::unique_ptr<StoreReader>> open_store_reader(const std::filesystem::path& workspace);

}  // namespace stacklab
