// The part of WorkspaceLink that lives on the reading thread.
#pragma once

#include <QElapsedTimer>
#include <QHash>
#include <QObject>
#include <QTimer>
#include <atomic>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>

#include "ui/models/workspace_link.h"

namespace stacklab::ui {

class WorkspaceReader : public QObject {
  Q_OBJECT
 public:
  explicit WorkspaceReader(LinkOptions options);

  // On the reading thread.
  void open();
  void follow(std::vector<std::pair<SeriesKey, std::uint64_t>> keys);
  void look_at(SectionsByRun sections);
  void follow_events(RunId run, std::uint64_t generation);
  void wake();
  void drain();  // waits, turn by turn, until the jobs have ended; then shuts everything and emits drained()

  void leave();  // shuts everything, whatever jobs there are, and emits drained()
  // Null where nothing is open. On the reading thread, for work that comes in between.
  StoreReader* store() const { return reader_.get(); }
  JobService* job_service() const { return service_.get(); }

  // From any thread.
  void hurry() { hurry_ = true; }              // leave long reads: something else is asked for
  void chunk_taken() { --chunks_in_flight_; }  // the window has taken one in
  void snapshot_taken() { snapshot_in_flight_ = false; }
  // What has been opened; empty before and after. Never a strong reference: the service ends on the reading thread.
  std::weak_ptr<JobService> service();

 signals:
  void opened();
  void open_failed(const QString& what, const QString& remedy);
  void snapshot_ready(stacklab::ui::WorkspaceSnapshotPtr snapshot);
  void chunk_ready(stacklab::ui::SeriesChunkPtr chunk);
  void events_ready(stacklab::ui::EventsChunkPtr events);
  void notices_ready(stacklab::ui::NoticesChunkPtr notices);
  void system_ready(stacklab::ui::SystemInfoPtr info);
  void drained();

 private:
  struct Followed {
    std::uint64_t generation = 0;
    std::int64_t epoch = -1;
    bool restart = false;   // the window is still to be told
    bool complete = false;  // and knows that it has all there is
    std::int64_t last_step = std::numeric_limits<std::int64_t>::min();
    double clock_start = 0;  // unix time of the first row
    std::int64_t sent = 0;   // points, since it was read from its start
    bool summed = false;     // some of them stand for others
  };

  void look();
  void pump();
  void read_runs(WorkspaceSnapshot& snapshot);
  void read_jobs(WorkspaceSnapshot& snapshot);
  void start_over(const SeriesKey& key, Followed& followed);
  Status read_chunk(const SeriesKey& key, Followed& followed, SeriesChunk& chunk);
  Status read_summed(const SeriesKey& key, Followed& followed, SeriesChunk& chunk);
  bool read_series();  // false: left early, more is waiting
  void read_events();
  void read_notices();
  void read_alerts(NoticesChunk& chunk);
  void read_system();
  void schedule(int ms);

  LinkOptions options_;
  std::shared_ptr<JobService> service_;
  std::unique_ptr<StoreReader> reader_;
  QTimer* timer_;
  QTimer* pump_timer_;
  QElapsedTimer since_system_;
  std::uint64_t generation_ = 0;
  std::map<SeriesKey, Followed> followed_;
  SectionsByRun sections_;
  RunId events_run_;
  std::uint64_t events_generation_ = 0;
  std::int64_t last_event_ = 0;
  std::int64_t events_epoch_ = -1;
  std::int64_t open_alerts_ = 0;  // of that run, when its alerts were last read
  std::set<std::int64_t> known_jobs_;
  std::vector<JobOutcome> ended_;
  std::unordered_map<std::string, ConfigFacts> configs_;
  // How far each run's events have been looked through for notices, and what it looked like then.
  struct Heard {
    std::string name;
    std::int64_t last_event = 0, step = 0;
    double beat = -1, seen = -2;
    RunState state = RunState::queued, seen_state = RunState::queued;
  };
  std::map<RunId, Heard> heard_;
  std::map<std::int64_t, RunSummary> runs_;  // by number, as the store had them last
  std::int64_t changes_seen_ = 0;
  // Alerts of all runs, as they were told last: when they were over.
  std::map<std::int64_t, double> alerts_told_;
  bool alerts_stale_ = true;
  QElapsedTimer since_alerts_;
  QString error_;
  bool active_ = false, draining_ = false;
  std::atomic<bool> hurry_ = false;
  std::atomic<bool> snapshot_in_flight_ = false;
  std::atomic<int> chunks_in_flight_ = 0;
  std::mutex service_mutex_;
  std::weak_ptr<JobService> shared_service_;
};

}  // namespace stacklab::ui
