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
#include "engine/planner/levers.h"
#include "engine/run/run.h"
#include "engine/service/detach.h"
#include "engine/store/store.h"
#include "engine/store/store_reader.h"

namespace stacklab {

struct SubmitOptions {
  bool resume = false;         // continue this config's run, or start it when there is nothing to continue
  std::int64_t max_steps = 0;  // stop early; not config
  // Used when data.corpus cannot be had (no network): the run is made with this corpus instead and says so. Empty:
  // fail.
  std::string fallback_corpus;
  // A trace of a few steps of this process is written there; empty: none.
  std::filesystem::path trace_file = {};
  std::int64_t trace_steps = 3;
  bool detached = false;  // this process belongs to no terminal or window
};

// What a job of this process is doing, for status bars before its run has a row and while it has one. Immutable.
struct JobSnapshot {
  std::int64_t job = 0;
  RunId run;         // empty until the run's row exists
  std::string name;  // the config's
  Progress progress;
  bool stopping = false;
};

// How a job ended. error is set when it failed or was refused, and (of kind stopped) when somebody stopped it before
// its end; a run that reached max_steps is paused without an error.
struct JobOutcome {
  std::int64_t job = 0;
  RunId run;  // empty when it ended before its run had a name
  RunState state = RunState::failed;
  std::optional<Error> error;
  std::int64_t steps = 0, tokens = 0, parameters = 0, plan_bytes = 0, peak_bytes = 0;
  double first_loss = 0, loss = 0, val_loss = 0, val_bpb = 0, unigram_entropy = 0, seconds = 0, tokens_per_second = 0;
  Utilisation utilisation;  // at tokens_per_second
  std::optional<TraceSummary> trace;
  std::optional<Levers> levers;   // of a run that was refused for its memory
  bool begun = false;             // it had its run's row
  bool already_finished = false;  // resume of a finished run: nothing was done
};

// Thread-safe. Every call returns at once (a queue push) except open, ask, wait and the destructor.
class JobService {
 public:
  // Opens or creates the workspace and its store, and marks runs whose process died as lost. Errors name the folder:
  // not writable, disk full, a store of a newer version, not a data base.
  static Result<std::unique_ptr<JobService>> open(const std::filesystem::path& workspace);
  // Opens for reading only: works on a read-only workspace; an empty or missing one is an error that says so.
  static Result<std::unique_ptr<StoreReader>> open_reader(const std::filesystem::path& workspace);

  virtual ~JobService() = default;  // stops all jobs cleanly (finish the step, checkpoint) and joins them

  virtual const std::filesystem::path& workspace() const = 0;
  virtual Result<std::unique_ptr<StoreReader>> reader() = 0;

  // Queues a validated config; jobs run one after another. Returns the job's number. Failures arrive as the job's
  // outcome.
  virtual std::int64_t submit(const RunConfig& config, const SubmitOptions& options) = 0;
  // Queues the continuation of a stopped, lost or failed run from its stored config.
  virtual std::int64_t resume(const RunId& run) = 0;
  // These ask a run of this process to finish its step, checkpoint and end; of another process: by the store (seen
  // within a second). Both leave it paused, to be resumed. A stopped run has ended for now; a paused one waits at the
  // head of the queue, for a person to let it go on.
  virtual void stop(const RunId& run) = 0;
  virtual void pause(const RunId& run) = 0;
  // A checkpoint after the step at hand, of a run of this process or another.
  virtual void checkpoint(const RunId& run) = 0;
  // The next steps of such a run are measured by operation; its facts and an event tell what they took.
  virtual void trace(const RunId& run) = 0;
  // The same, but waits until the run will see it. False: no process should be training it. An error: it could not be
  // asked.
  enum class Request { stop, pause, checkpoint, trace };
  virtual Result<bool> ask(const RunId& run, Request request) = 0;
  virtual void stop_job(std::int64_t job) = 0;
  virtual void stop_all() = 0;

  virtual std::vector<std::shared_ptr<const JobSnapshot>> jobs() const = 0;  // queued and running, in order
  virtual std::optional<JobOutcome> outcome(std::int64_t job) const = 0;     // empty while it is queued or running
  // What follows waits for the store or the disk: not for the window's own thread.

  // Tags, notes, archive and trash. Returns the edit that takes it back.
  virtual Result<RunEdit> edit(const RunId& run, const RunEdit& edit) = 0;
  // For good: a run in the trash.
  virtual Status purge(const RunId& run) = 0;
  // A new run, paused, that goes on from a checkpoint of another under this config. Returns its id.
  virtual Result<RunId> fork(const RunId& parent, std::int64_t step, const RunConfig& config) = 0;
  // As submit or resume, but trained by a process that outlives this one. Returns when it has claimed its run.
  virtual Result<DetachedRun> detach(const RunConfig& config, bool resume) = 0;

  // The workspace's queue (StoreReader::queue). Jobs that are submitted while another runs are in it too; those of
  // processes that are gone, and what is added here, wait until a person starts them.
  virtual Result<std::int64_t> queue_add(const RunConfig& config, const SubmitOptions& options) = 0;
  // Submits the entry, or the first that waits for a person; nothing when there is none. Returns the job.
  // An entry leaves the queue when its run has begun and ended; one that could not begin stays.
  virtual Result<std::optional<std::int64_t>> queue_start(std::optional<std::int64_t> entry) = 0;
  virtual Status queue_move(std::int64_t entry, std::int64_t place) = 0;  // to the place-th from 0
  virtual Status queue_remove(std::int64_t entry) = 0;

  // Blocks until the job has ended or the timeout has passed.
  virtual std::optional<JobOutcome> wait(std::int64_t job, double timeout_seconds) = 0;
};

}  // namespace stacklab
