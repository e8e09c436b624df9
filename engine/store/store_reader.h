// What the store shows: plain values, and the read-only door to them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/result.h"
#include "engine/run/run.h"

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
  std::string corpus_sha256;
  std::string config_json;
  std::vector<std::pair<std::string, double>> facts;  // reference lines
  // Figures of the last process that ended with a word; 0: none.
  std::int64_t parameters = 0, plan_bytes = 0, peak_bytes = 0;
  double tokens_per_second = 0;
};

struct SeriesPoint {
  std::int64_t step = 0;
  double value = 0;  // may be NaN or infinite
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
};

// Reads the store on a read-only connection of its own, in short transactions. Use from one thread at a time (the
// window's worker); cheap to make.
class StoreReader {
 public:
  virtual ~StoreReader() = default;
  virtual Result<std::vector<RunSummary>> runs() = 0;  // in order of creation
  virtual Result<RunSummary> run(
      const std::string& id_prefix_or_name) = 0;  // unique prefix of an id, or a name; suggests on failure
  // Points of one metric with step > after, ascending, at most limit. Superseded values are not shown.
  virtual Result<std::vector<SeriesPoint>> series(const RunId& run, const std::string& metric, std::int64_t after,
                                                  std::int64_t limit) = 0;
  // The point of the latest step; none where the run never reported this metric.
  virtual Result<std::optional<SeriesPoint>> last_point(const RunId& run, const std::string& metric) = 0;
  virtual Result<std::vector<StepRow>> steps(const RunId& run, std::int64_t after, std::int64_t limit) = 0;
  // Changes whenever rows of this run were superseded (a resume) or arrived late: what was read before is to be read
  // again.
  virtual Result<std::int64_t> series_epoch(const RunId& run) = 0;
  virtual Result<std::vector<std::string>> metrics(const RunId& run) = 0;
  virtual Result<std::vector<RunEventRow>> events(const RunId& run, std::int64_t after_id, std::int64_t limit) = 0;
  virtual std::int64_t wal_bytes() = 0;
};

// Errors name the folder: missing, empty, not a data base, of a newer version.
Result<std::unique_ptr<StoreReader>> open_store_reader(const std::filesystem::path& workspace);

}  // namespace stacklab
