// A workspace in memory behind the service's interface: the tests write what a store would hold, and see what the
// window asks for.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/service/job_service.h"
#include "ui/models/workspace_link.h"

namespace stacklab::ui {

// Shared by the test, the service and its readers; all access is under the mutex.
class FakeWorkspace {
 public:
  void put_run(RunSummary run);  // new, or in place of the one with its id
  RunSummary run(const RunId& id) const;
  void add_points(const RunId& run, const std::string& metric, const std::vector<SeriesPoint>& points);
  void supersede(const RunId& run, std::int64_t after);  // drops later points and changes the epoch
  void add_event(const RunId& run, RunEvent event);
  void resolve_alerts(const RunId& run, std::int64_t step);
  void set_jobs(std::vector<JobSnapshot> jobs);
  void end_job(JobOutcome outcome);
  void set_read_error(std::string error);
  void set_request_error(std::string error);  // of traces that are asked for
  // Whether a stop ends the jobs by itself, as a real one does.
  void set_stops_at_once(bool at_once);

  std::vector<RunId> stopped() const;
  std::vector<RunId> resumed() const;
  std::vector<RunId> traced() const;
  std::vector<RunConfig> submitted() const;
  int stop_alls() const;
  bool service_alive() const;
  std::int64_t reads() const;

 private:
  friend class FakeService;
  friend class FakeReader;
  struct Stored {
    RunSummary summary;
    std::map<std::string, std::vector<SeriesPoint>> series;
    std::vector<RunEventRow> events;
    std::int64_t epoch = 0;
  };
  Stored* find(const RunId& id);

  mutable std::mutex mutex_;
  std::vector<Stored> runs_;
  std::vector<std::shared_ptr<const JobSnapshot>> jobs_;
  std::map<std::int64_t, JobOutcome> outcomes_;
  std::vector<RunId> stopped_, resumed_, traced_;
  std::vector<RunConfig> submitted_;
  std::string read_error_, request_error_;
  std::int64_t next_event_ = 1, next_job_ = 1, reads_ = 0;
  int stop_alls_ = 0;
  bool stops_at_once_ = true, service_alive_ = false;
};

using FakeWorkspacePtr = std::shared_ptr<FakeWorkspace>;

// For LinkOptions: a service on the workspace, or readers alone.
LinkOptions fake_link(const FakeWorkspacePtr& workspace);
SystemInfo fake_system();
// A run that has been going for a while, with curves that look like a small model's.
RunSummary sample_run(int number, RunState state, std::int64_t step, std::int64_t total = 400);
void add_sample_curves(FakeWorkspace& workspace, const RunSummary& run);
RunConfig sample_config();

}  // namespace stacklab::ui
