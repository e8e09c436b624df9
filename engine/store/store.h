// The experiment store of a workspace, <workspace>/stacklab.db, for one process that writes it.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "engine/base/result.h"
#include "engine/run/run.h"

namespace stacklab {

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

struct ClaimRequest {
  RunId id;
  std::string name;
  std::string folder;  // below runs/, when the run is new
  std::string config_json;
  std::string corpus_sha256;
  std::string commit;  // of this build
  std::int64_t total_steps = 0;
  bool resume = false;
};

// The right to train a run, held until end().
struct Claim {
  enum class Kind { created, continued, already_finished };
  Kind kind = Kind::created;
  RunId run;
  std::string name;       // as stored: a config that was renamed keeps its first name
  std::string folder;     // below runs/, as stored
  std::int64_t step = 0;  // last recorded
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
};

class Store {
 public:
  // Opens or creates the store of a workspace (made if missing), takes in what dead processes left in spill files, and
  // marks runs whose process died as lost. Errors name the folder: not writable, disk full, of a newer version, not a
  // data base.
  static Result<std::unique_ptr<Store>> open(const std::filesystem::path& workspace, const StoreOptions& options = {});
  virtual ~Store() = default;  // commits or spills what is queued

  // Makes the run's row, or takes over one that no living process trains. Refused: it runs elsewhere, or exists and
  // resume is not set, or its corpus is not the one it was trained on. on_stop is called once, on a thread of the
  // store, when another process asks this run to stop.
  virtual Result<Claim> claim(const ClaimRequest& request, std::function<void(const std::string& why)> on_stop) = 0;
  // What claim would answer now, without claiming. Without a corpus_sha256 the data are not compared.
  virtual Result<Claim::Kind> look(const ClaimRequest& request) = 0;
  // Where the claimed run reports; to be destroyed before the store. Its calls queue and return.
  virtual std::unique_ptr<RunSink> sink(const Claim& claim) = 0;
  // Shows the run as stopping.
  virtual void note_stopping(const Claim& claim) = 0;
  // Waits until everything of the run and its completion record are safe, in the data base or the spill file.
  virtual Status end(const Claim& claim, const Completion& completion) = 0;

  // Asks whatever process trains the run to stop. Queues and returns.
  virtual void request_stop(const RunId& run) = 0;

  // Waits until all that was reported is committed or spilled.
  virtual Status flush() = 0;
  virtual StoreHealth health() const = 0;
};

}  // namespace stacklab
