// The experiment store of a workspace, <workspace>/stacklab.db, for one process that writes it.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/run/run.h"
#include "engine/store/store_reader.h"

namespace stacklab {

// What a process that trains needs of the disk beside its rows: the WAL at its usual largest, and the room for its last
// words.
inline constexpr std::int64_t store_room = (4 << 20) + (1 << 20);

struct StoreOptions {
  std::chrono::milliseconds commit_interval{200};  // rows wait at most this long for company
  std::int64_t commit_rows = 1000;                 // and are committed at once when there are so many
  std::chrono::milliseconds patience{5000};  // with a locked data base or full disk, before rows go to the spill file
  std::chrono::milliseconds busy_timeout{1000};    // of one attempt to write
  std::chrono::milliseconds claim_timeout{10000};  // for what somebody waits for
  std::int64_t held_rows_limit = 200000;           // in memory, when the spill file cannot be written either
  std::int64_t wal_limit = 32 << 20;               // bytes of WAL beyond which readers are waited for to shorten it
  std::int64_t max_pages = 0;                      // ceiling of the data base's size; 0: none
};

// What a person should know when it is not "all is written".
struct StoreHealth {
  bool available = true;
  std::string problem;            // why not
  std::int64_t held_rows = 0;     // in memory
  std::int64_t spilled_rows = 0;  // in the spill file, to be taken in
  std::int64_t lost_rows = 0;     // since the store was opened
};

// What a run may use at most, over all its processes. 0: no limit.
struct RunBudget {
  std::int64_t tokens = 0;
  double hours = 0, usd = 0, usd_per_hour = 0;
};

struct ClaimRequest {
  RunId id;
  std::string name;
  std::string folder;  // below runs/, when the run is new
  std::string config_json;
  std::string corpus_sha256;
  std::string commit;  // of this build
  std::int64_t total_steps = 0;
  bool resume = false;
  std::string tokenizer = {};
  bool detached = false;  // this process belongs to no terminal or window
  RunBudget budget = {};
  std::int64_t queue_entry = 0;  // that is begun with it
};

// The right to train a run, held until end().
struct Claim {
  enum class Kind { created, continued, already_finished };
  Kind kind = Kind::created;
  RunId run;
  std::string name;            // as stored: a config that was renamed keeps its first name
  std::string folder;          // below runs/, as stored
  std::int64_t step = 0;       // last recorded
  double process_seconds = 0;  // that earlier processes were at it
  class Hold;
  std::shared_ptr<Hold> hold;  // empty when already finished
};

// The completion record. state is one of finished, paused, failed, killed.
struct Completion {
  RunState state = RunState::finished;
  std::string cause;
  std::int64_t step = 0, tokens = 0;  // done in all; 0: as the recorded steps say
  double seconds = 0;
  std::int64_t parameters = 0, plan_bytes = 0, peak_bytes = 0;
  double tokens_per_second = 0;
  std::string queue_options = {};  // of a paused run that waits at the head of the queue: QueueEntry::options_json
};

// Pause and stop both finish the step, write a checkpoint and leave the run paused, to be resumed. A stopped run has
// ended for now; a paused one waits for its continuation at the head of the queue.
enum class StopKind { stop = 1, pause = 2 };

// What somebody asked a running job for, by the store.
struct RunRequests {
  std::function<void(const std::string& why, StopKind kind)> stop;  // called once
  std::function<void()> checkpoint;                                 // each time that one was asked for
  std::function<void()> trace = {};                                 // as checkpoint
};

// What people say about a run; it is no part of its config. What is not set stays.
struct RunEdit {
  std::optional<std::string> note = {};
  std::vector<std::string> add_tags = {}, remove_tags = {};
  std::optional<bool> archived = {}, deleted = {};

  bool empty() const { return !note && add_tags.empty() && remove_tags.empty() && !archived && !deleted; }
};

// A run that goes on from a step of another, with a checkpoint in its folder.
struct ForkedRun {
  RunId id, parent;
  std::string name, folder, config_json, corpus_sha256, tokenizer, commit, cause;
  std::int64_t total_steps = 0, step = 0, tokens = 0, parameters = 0;
  double seconds = 0;
};

class Store {
 public:
  // Opens or creates the store of a workspace (made if missing), takes in what dead processes left in spill files, and
  // marks runs whose process died as lost. Errors name the folder: not writable, disk full, of a newer version, not a
  // data base.
  static Result<std::unique_ptr<Store>> open(const std::filesystem::path& workspace, const StoreOptions& options = {});
  virtual ~Store() = default;  // commits or spills what is queued

  // Makes the run's row, or takes over one that no living process trains. Refused: it runs elsewhere, or exists and
  // resume is not set, or its corpus is not the one it was trained on. The requests of other processes arrive on a
  // thread of the store.
  virtual Result<Claim> claim(const ClaimRequest& request, RunRequests requests) = 0;
  // What claim would answer now, without claiming. Without a corpus_sha256 the data are not compared.
  virtual Result<Claim::Kind> look(const ClaimRequest& request) = 0;
  // Where the claimed run reports; to be destroyed before the store. Its calls queue and return.
  virtual std::unique_ptr<RunSink> sink(const Claim& claim) = 0;
  // Shows the run as stopping.
  virtual void note_stopping(const Claim& claim) = 0;
  // Waits until everything of the run and its completion record are safe, in the data base or the spill file.
  virtual Status end(const Claim& claim, const Completion& completion) = 0;

  // Asks whatever process trains the run. These queue and return, and are tried until the store can be written.
  virtual void request_stop(const RunId& run, StopKind kind = StopKind::stop) = 0;
  virtual void request_checkpoint(const RunId& run) = 0;
  virtual void request_trace(const RunId& run) = 0;
  // These wait until the request is written. False: no process should be training the run.
  virtual Result<bool> stop_by_request(const RunId& run, StopKind kind) = 0;
  virtual Result<bool> checkpoint_by_request(const RunId& run) = 0;
  virtual Result<bool> trace_by_request(const RunId& run) = 0;

  // These wait for the store. An edit returns the one that takes it back; refused for a run that is trained.
  virtual Result<RunEdit> edit(const RunId& run, const RunEdit& edit) = 0;
  virtual Status add_fork(const ForkedRun& fork) = 0;
  virtual Status purge(const RunId& run) = 0;  // one that is deleted

  // The queue. These wait for the store, too. ours: this process will start the entry in its turn; else it waits for a
  // person. A run is in it once. While it is trained its entry is kept out of sight, and leaves with end(): should the
  // process die, it waits again.
  virtual Result<std::int64_t> queue_add(const QueueEntry& entry, bool ours) = 0;
  // Ours; queues and returns. done gets the number on a thread of the store, unless it cannot be written.
  virtual void queue_add_later(const QueueEntry& entry, std::function<void(std::int64_t id)> done) = 0;
  virtual Status queue_move(std::int64_t entry, std::int64_t place) = 0;  // to the place-th from 0
  virtual Status queue_remove(std::int64_t entry) = 0;
  virtual Status queue_release(std::int64_t entry) = 0;  // it waits for a person from now on
  // The first entry that no living process will start becomes this one's; with an entry: that one, or a refusal.
  virtual Result<std::optional<QueueEntry>> queue_take(std::optional<std::int64_t> entry) = 0;

  // An error where the store's file is no longer in the workspace: moved, deleted or replaced.
  virtual Status check_place() const = 0;

  // Waits until all that was reported is committed or spilled.
  virtual Status flush() = 0;
  virtual StoreHealth health() const = 0;
};

}  // namespace stacklab
