// One job of the service: from an order to a completion record. Runs on the job thread; stop and snapshot may be called
// from any.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/service/job_service.h"
#include "engine/service/job_steps.h"
#include "engine/store/store.h"

namespace stacklab {

struct JobOrder {
  std::int64_t job = 0;
  RunConfig config;
  RunId stored_run;  // set: continue this run from its stored config
  SubmitOptions options;
};

// What of the options outlives a process: QueueEntry::options_json.
std::string queue_json(const SubmitOptions& options);
SubmitOptions options_of(const std::string& queue_json);

class Job : public std::enable_shared_from_this<Job> {
 public:
  Job(JobOrder job_order, const std::string& name);

  const JobOrder order;

  // Never throws: whatever goes wrong inside is the outcome.
  JobOutcome run(const std::filesystem::path& workspace, Store& store, const JobSteps& steps);

  void request_stop(const std::string& by, StopKind kind = StopKind::stop);
  void request_checkpoint() { checkpoint_now_ = true; }
  void request_trace() { trace_now_ = true; }
  StopKind stop_kind() const;
  // Its entry in the workspace's queue; 0: none. Known some time after it was queued.
  std::atomic<std::int64_t> queue_entry = 0;
  std::atomic<bool> queue_asked = false;  // an entry was asked for, by this process
  std::shared_ptr<const JobSnapshot> snapshot() const;

 private:
  class Sink;

  JobOutcome execute();
  Result<RunConfig> ordered_config();
  bool knows_run(const RunId& id) const;
  CorpusProgress reporting(std::string phase);
  Status have_text(const std::string& name, const TokenCoding& coding, const DataConfig& data);
  Status have_texts(RunConfig& config, RunId& id, const TokenCoding& coding);
  Result<Dataset> data_for(RunConfig& config, RunId& id);
  JobOutcome train(const RunConfig& config, const RunId& id, const Dataset& data);
  Result<TrainResult> train_guarded(const TrainRequest& request, const Dataset& data, RunSink& sink);
  void conclude(const Claim& claim, const Result<TrainResult>& result, JobOutcome& outcome);
  void spend(const std::string& cause);
  Result<RunSummary> summary(const RunId& id) const;
  Status prepare_folder(const std::filesystem::path& folder, const RunConfig& config);

  Result<std::string> room_for_checkpoints(const RunConfig& config, const RunId& id) const;
  ClaimRequest claim_request(const RunConfig& config, const RunId& id) const;
  JobOutcome ended(const RunId& id, const Error& error) const;
  JobOutcome stored_outcome(const RunId& id) const;
  template <class Change>
  void change_snapshot(Change&& change);
  std::string stopped_by() const;

  const std::filesystem::path* workspace_ = nullptr;
  Store* store_ = nullptr;
  const JobSteps* steps_ = nullptr;
  std::atomic<bool> checkpoint_now_ = false, trace_now_ = false;
  std::string fallback_note_;  // why the run's corpus is not the one that was asked for

  mutable std::mutex mutex_;
  std::stop_source stop_;
  std::string stopped_by_;
  StopKind stop_kind_ = StopKind::stop;
  std::string spent_;  // of the budget: why the run has to stop
  std::shared_ptr<const JobSnapshot> snapshot_;
  std::optional<Claim> claim_;
};

}  // namespace stacklab
