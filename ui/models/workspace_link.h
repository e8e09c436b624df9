// The window's link to the service. Everything that may wait (opening, reading, measuring the machine) happens on a
// thread of its own; intents are queue pushes and go straight through.
#pragma once

#include <QObject>
#include <QThread>
#include <functional>
#include <memory>

#include "ui/models/snapshot.h"

namespace stacklab::ui {

class WorkspaceReader;

// What opening a workspace gives. Without a service the window can look but not steer.
struct OpenedWorkspace {
  std::shared_ptr<JobService> service;
  std::unique_ptr<StoreReader> reader;
};

struct LinkOptions {
  std::function<Result<OpenedWorkspace>()> open;
  std::function<SystemInfo()> system_info;  // empty: not measured
  int active_period_ms = 200;               // between looks at the store while something runs
  int idle_period_ms = 1000;
  std::int64_t chunk_points = 20000;
  std::int64_t most_points = 32768;  // of a series that come one by one; a longer one comes summed up
};

class WorkspaceLink : public QObject {
  Q_OBJECT
 public:
  explicit WorkspaceLink(LinkOptions options, QObject* parent = nullptr);
  // Stops the jobs and waits, unless close() has done so before.
  ~WorkspaceLink() override;

  void open();

  // The series wanted from now on. Each comes from its start once, then what is new. Returns the generation: a key
  // asked for without a break keeps the one it had.
  std::uint64_t follow(const std::vector<SeriesKey>& keys);
  // Where long runs are looked at closely, in ascending sections that leave nothing out; a run without any: alike
  // everywhere.
  void look_at(const SectionsByRun& sections);
  std::uint64_t follow_events(const RunId& run);
  std::uint64_t generation_of(const SeriesKey& key) const;

  // Intents.
  bool can_steer() const { return !service_.expired() && !closing_; }
  std::int64_t submit(const RunConfig& config, const SubmitOptions& options);  // -1: cannot
  void resume(const RunId& run);
  void stop(const RunId& run);
  void stop_job(std::int64_t job);
  // Measures the next steps of a run by operation, whatever process trains it. asked gets what went wrong, or nothing.
  void trace(const RunId& run, std::function<void(const QString& error)> asked);

  // Runs work on the reading thread, then done (if the link still lives) on this one.
  void in_background(std::function<void()> work, std::function<void()> done);

  // The same with the store in hand. reader is null where nothing is open, service where nothing can be written.
  void with_store(std::function<void(StoreReader* reader, JobService* service)> work, std::function<void()> done);

  // Stops all jobs cleanly; emits closed() when they have saved and everything is shut. Calling it again is harmless.
  void close();
  // The same where another window shows this workspace and its jobs go on.
  void leave();
  bool is_closing() const { return closing_; }

 signals:
  void opened();
  void open_failed(const QString& what, const QString& remedy);
  void snapshot_ready(stacklab::ui::WorkspaceSnapshotPtr snapshot);
  void chunk_ready(stacklab::ui::SeriesChunkPtr chunk);
  void events_ready(stacklab::ui::EventsChunkPtr events);
  void notices_ready(stacklab::ui::NoticesChunkPtr notices);
  void system_ready(stacklab::ui::SystemInfoPtr info);
  void closed();

 private:
  QThread thread_;
  WorkspaceReader* reader_;  // lives on thread_
  std::weak_ptr<JobService> service_;
  std::vector<std::pair<SeriesKey, std::uint64_t>> followed_;
  std::uint64_t generation_ = 0;
  bool closing_ = false;
};

}  // namespace stacklab::ui
