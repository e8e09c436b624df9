// The only door that app/ and ui/ use: submit and steer runs, read what the store holds.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/config/run_config.h"
#include "engine/run/run.h"

namespace stacklab {

// One row of the run list, as the store has it, with the state as it really is: a run whose process is gone reads "lost".
struct RunSummary {
  RunId id;
  std::string name;
  std::int64_t number = 0;  // from 0 in order of creation: gives the run its colour
  RunState state = RunState::queued;
  std::string cause;  // why it is in that state: "stopped by the user", "process 4711 ended without a word", ...
  bool stalled = false;  // running, but the promised beat is late
  double last_beat = 0;  // unix time; 0: none yet
  Progress progress;
  std::int64_t step = 0;
  std::int64_t total_steps = 0;
  std::int64_t tokens = 0;
  double seconds = 0;  // spent training
  std::optional<double> first_loss, last_loss, val_loss;
  double created = 0;   // unix time
  double finished = 0;  // unix time; 0: not finished
  std::string commit;
  std::string corpus_sha256;
  std::string config_json;
  std::vector<std::pair<std::string, double>> facts;  // reference lines
};

struct SeriesPoint {
  std::int64_t step = 0;
  double value = 0;  // may be NaN or infinite
};

struct RunEventRow {
  std::int64_t id = 0;  // increasing in order of arrival
  double unix_time = 0;
  RunEvent event;
};

// Reads the store on a read-only connection of its own, in short transactions. Use from one thread at a time (the window's worker);
// cheap to make.
class StoreReader {
 public:
  virtual ~StoreReader() = default;
  virtual Result<std::vector<RunSummary>> runs() = 0;                  // in order of creation
  virtual Result<RunSummary> run(const std::string& id_prefix_or_name) = 0;  // unique prefix of an id, or a name; suggests on failure
  // Points of one metric with step > after, ascending, at most limit. Superseded values are not shown.
  virtual Result<std::vector<SeriesPoint>> series(const RunId& run, const std::string& metric, std::int64_t after,
                                                  std::int64_t limit) = 0;
  // Changes whenever rows of this run were superseded (a resume): what was read before is to be read again.
  virtual Result<std::int64_t> series_epoch(const RunId& run) = 0;
  virtual Result<std::vector<std::string>> metrics(const RunId& run) = 0;
  virtual Result<std::vector<RunEventRow>> events(const RunId& run, std::int64_t after_id, std::int64_t limit) = 0;
  virtual std::int64_t wal_bytes() = 0;
};

struct SubmitOptions {
  bool resume = false;         // continue this config's run, or start it when there is nothing to continue
  std::int64_t max_steps = 0;  // stop early; not config
  // Used when data.corpus cannot be had (no network): the run is made with this corpus instead and says so. Empty: fail.
  std::string fallback_corpus;
};

// What a job of this process is doing, for status bars before its run has a row and while it has one. Immutable.
struct JobSnapshot {
  std::int64_t job = 0;
  RunId run;         // empty until the run's row exists
  std::string name;  // the config's
  Progress progress;
  bool stopping = false;
};

// How a job ended. error is set when it failed or was refused.
struct JobOutcome {
  std::int64_t job = 0;
  RunId run;
  RunState state = RunState::failed;
  std::optional<Error> error;
  std::int64_t steps = 0, tokens = 0, parameters = 0, plan_bytes = 0, peak_bytes = 0;
  double first_loss = 0, loss = 0, val_loss = 0, unigram_entropy = 0, seconds = 0, tokens_per_second = 0;
  bool already_finished = false;  // resume of a finished run: nothing was done
};

// Thread-safe. Every call returns at once (a queue push) except open, wait and the destructor.
class JobService {
 public:
  // Opens or creates the workspace and its store, and marks runs whose process died as lost. Errors name the folder: not writable, disk
  // full, a store of a newer version, not a data base.
  static Result<std::unique_ptr<JobService>> open(const std::filesystem::path& workspace);
  // Opens for reading only: works on a read-only workspace; an empty or missing one is an error that says so.
  static Result<std::unique_ptr<StoreReader>> open_reader(const std::filesystem::path& workspace);

  virtual ~JobService() = default;  // stops all jobs cleanly (finish the step, checkpoint) and joins them

  virtual const std::filesystem::path& workspace() const = 0;
  virtual Result<std::unique_ptr<StoreReader>> reader() = 0;

  // Queues a validated config; jobs run one after another. Returns the job's number. Failures arrive as the job's outcome.
  virtual std::int64_t submit(const RunConfig& config, const SubmitOptions& options) = 0;
  // Queues the continuation of a stopped, lost or failed run from its stored config.
  virtual std::int64_t resume(const RunId& run) = 0;
  // Asks a run of this process to finish its step, checkpoint and end. Of another process: by the store (seen at its next beat).
  virtual void stop(const RunId& run) = 0;
  virtual void stop_job(std::int64_t job) = 0;
  virtual void stop_all() = 0;

  virtual std::vector<std::shared_ptr<const JobSnapshot>> jobs() const = 0;  // queued and running, in order
  virtual std::optional<JobOutcome> outcome(std::int64_t job) const = 0;     // empty while it is queued or running
  // Blocks until the job has ended or the timeout has passed.
  virtual std::optional<JobOutcome> wait(std::int64_t job, double timeout_seconds) = 0;
};

}  // namespace stacklab
