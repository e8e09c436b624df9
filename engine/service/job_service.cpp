#include "engine/service/job_service.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "engine/base/atomic_file.h"
#include "engine/base/process.h"
#include "engine/config/config_io.h"
#include "engine/service/forks.h"
#include "engine/service/job.h"
#include "engine/service/job_steps.h"
#include "engine/service/trash.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;

class Service final : public JobService {
 public:
  Service(fs::path workspace, std::unique_ptr<Store> store, JobSteps steps)
      : workspace_(std::move(workspace)),
        store_(std::move(store)),
        steps_(std::move(steps)),
        thread_([this] { loop(); }) {}

  ~Service() override {
    {
      std::lock_guard lock(mutex_);
      closing_ = true;
    }
    changed_.notify_all();
    stop_all();
    thread_.join();
  }

  const fs::path& workspace() const override { return workspace_; }
  Result<std::unique_ptr<StoreReader>> reader() override { return open_store_reader(workspace_); }

  std::int64_t submit(const RunConfig& config, const SubmitOptions& options) override {
    JobOrder order;
    order.config = config;
    order.options = options;
    return enqueue(std::move(order), config.name);
  }

  std::int64_t resume(const RunId& run) override {
    JobOrder order;
    order.stored_run = run;
    order.options.resume = true;
    return enqueue(std::move(order), run);
  }

  void stop(const RunId& run) override { ask_to_stop(run, StopKind::stop); }
  void pause(const RunId& run) override { ask_to_stop(run, StopKind::pause); }
  void checkpoint(const RunId& run) override {
    const auto own = jobs_of(run);
    for (const auto& job : own) job->request_checkpoint();
    if (own.empty()) store_->request_checkpoint(run);
  }
  void trace(const RunId& run) override {
    const auto own = jobs_of(run);
    for (const auto& job : own) job->request_trace();
    if (own.empty()) store_->request_trace(run);
  }

  Result<bool> ask(const RunId& run, Request request) override {
    const bool own = !jobs_of(run).empty();
    switch (request) {
      case Request::checkpoint:
        if (!own) return store_->checkpoint_by_request(run);
        checkpoint(run);
        return true;
      case Request::trace:
        if (!own) return store_->trace_by_request(run);
        trace(run);
        return true;
      default: {
        const StopKind kind = request == Request::pause ? StopKind::pause : StopKind::stop;
        if (!own) return store_->stop_by_request(run, kind);
        ask_to_stop(run, kind);
        return true;
      }
    }
  }

  Result<RunEdit> edit(const RunId& run, const RunEdit& edit) override {
    const auto found = summary_of(run);
    if (!found) return tl::unexpected(found.error());
    return edit_with_folders(workspace_, *store_, *found, edit);
  }
  Status purge(const RunId& run) override {
    const auto found = summary_of(run);
    if (!found) return tl::unexpected(found.error());
    return purge_with_folders(workspace_, *store_, *found);
  }
  Result<RunId> fork(const RunId& parent, std::int64_t step, const RunConfig& config) override {
    const auto found = summary_of(parent);
    if (!found) return tl::unexpected(found.error());
    return make_fork(workspace_, *store_, *found, step, config);
  }

  Result<DetachedRun> detach(const RunConfig& config, bool resume) override {
    // The process reads the config from a file, with whatever this window changed in it.
    // It is swept up with this process, or by the next that opens the workspace.
    const auto folder = AtomicDirectory::create(workspace_ / "runs" / "detached");
    if (!folder) return tl::unexpected(folder.error());
    const fs::path file = folder->path() / (config.name + ".json");
    if (Status written = write_file_atomically(file, to_json(config)); !written) return tl::unexpected(written.error());
    std::vector<std::string> words = {"train", file.string(), "--workspace", workspace_.string()};
    if (resume) words.emplace_back("--resume");
    auto run = start_detached(workspace_, config, words, {});
    if (run) {
      std::lock_guard lock(mutex_);
      children_.push_back(run->process);
    }
    return run;
  }

  Result<std::int64_t> queue_add(const RunConfig& config, const SubmitOptions& options) override {
    return store_->queue_add(entry_of(config, options), false);
  }
  Result<std::optional<std::int64_t>> queue_start(std::optional<std::int64_t> wanted) override {
    const auto entry = store_->queue_take(wanted);
    if (!entry) return tl::unexpected(entry.error());
    if (!*entry) return std::optional<std::int64_t>();
    const auto config =
        parse_config((*entry)->config_json, fmt::format("the config of entry {} of the queue", (*entry)->id));
    if (!config) return tl::unexpected(config.error());
    JobOrder order;
    order.config = *config;
    order.options = options_of((*entry)->options_json);
    return std::optional(enqueue(std::move(order), config->name, (*entry)->id));
  }
  Status queue_move(std::int64_t entry, std::int64_t place) override { return store_->queue_move(entry, place); }
  Status queue_remove(std::int64_t entry) override {
    std::shared_ptr<Job> own;
    {
      std::lock_guard lock(mutex_);
      for (const auto& job : live_)
        if (job->queue_entry == entry) own = job;
    }
    if (own) own->request_stop("the user");
    return store_->queue_remove(entry);
  }

  void stop_job(std::int64_t number) override {
    std::shared_ptr<Job> found;
    {
      std::lock_guard lock(mutex_);
      for (const auto& job : live_)
        if (job->order.job == number) found = job;
    }
    if (found) found->request_stop("the user");
    changed_.notify_all();
  }

  void stop_all() override {
    std::deque<std::shared_ptr<Job>> all;
    {
      std::lock_guard lock(mutex_);
      all = live_;
    }
    for (const auto& job : all) job->request_stop("the user");
    changed_.notify_all();
  }

  std::vector<std::shared_ptr<const JobSnapshot>> jobs() const override {
    std::lock_guard lock(mutex_);
    std::erase_if(children_, [](int pid) { return reap_process(pid).has_value(); });
    std::vector<std::shared_ptr<const JobSnapshot>> snapshots;
    for (const auto& job : live_) snapshots.push_back(job->snapshot());
    return snapshots;
  }

  std::optional<JobOutcome> outcome(std::int64_t job) const override {
    std::lock_guard lock(mutex_);
    const auto found = outcomes_.find(job);
    return found == outcomes_.end() ? std::nullopt : std::optional(found->second);
  }

  std::optional<JobOutcome> wait(std::int64_t job, double timeout_seconds) override {
    constexpr double forever = 1e9;  // seconds, and still within the clock's range
    const auto deadline = std::chrono::steady_clock::now() +
                          std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                              std::chrono::duration<double>(std::clamp(timeout_seconds, 0.0, forever)));
    std::unique_lock lock(mutex_);
    if (job < 1 || job > last_job_) return std::nullopt;
    changed_.wait_until(lock, deadline, [&] { return outcomes_.contains(job); });
    const auto found = outcomes_.find(job);
    return found == outcomes_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  static QueueEntry entry_of(const RunConfig& config, const SubmitOptions& options) {
    QueueEntry entry;
    entry.run = config_hash(config);
    entry.name = config.name;
    entry.config_json = to_json(config);
    entry.options_json = queue_json(options);
    return entry;
  }

  Result<RunSummary> summary_of(const RunId& run) {
    const auto reader = open_store_reader(workspace_);
    if (!reader) return tl::unexpected(reader.error());
    return (*reader)->run(run);
  }

  std::vector<std::shared_ptr<Job>> jobs_of(const RunId& run) {
    std::vector<std::shared_ptr<Job>> own;
    std::lock_guard lock(mutex_);
    for (const auto& job : live_)
      if (job->snapshot()->run == run || job->order.stored_run == run) own.push_back(job);
    return own;
  }

  void ask_to_stop(const RunId& run, StopKind kind) {
    const auto own = jobs_of(run);
    for (const auto& job : own) job->request_stop("the user", kind);
    if (own.empty()) store_->request_stop(run, kind);
    changed_.notify_all();
  }

  std::int64_t enqueue(JobOrder order, const std::string& name, std::int64_t entry = 0) {
    std::shared_ptr<Job> job;
    bool waits = false;
    {
      std::lock_guard lock(mutex_);
      waits = !live_.empty();
      order.job = ++last_job_;
      job = std::make_shared<Job>(std::move(order), name);
      job->queue_entry = entry;
      live_.push_back(job);
    }
    changed_.notify_all();
    // What has to wait is kept, should this process not come to it.
    if (waits && entry == 0 && job->order.stored_run.empty()) {
      job->queue_asked = true;
      store_->queue_add_later(entry_of(job->order.config, job->order.options),
                              [job](std::int64_t id) { job->queue_entry = id; });
    }
    return job->order.job;
  }

  // What began leaves the queue with its end. What this process could not come to stays for another, and what a person
  // put there until it can begin.
  void settle_queue(const Job& job, const JobOutcome& outcome) {
    if (job.queue_asked && job.queue_entry == 0) static_cast<void>(store_->flush());  // its number is on its way
    const std::int64_t entry = job.queue_entry;
    if (entry == 0 || outcome.begun) return;
    const bool stopped = outcome.error && outcome.error->kind == Error::Kind::stopped;
    const bool stays = outcome.error && (job.queue_asked ? closing_ && stopped : true);
    static_cast<void>(stays ? store_->queue_release(entry) : store_->queue_remove(entry));
  }

  void loop() {
    for (;;) {
      std::shared_ptr<Job> job;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return closing_ || !live_.empty(); });
        if (live_.empty()) return;
        job = live_.front();
      }
      JobOutcome outcome = job->run(workspace_, *store_, steps_);
      settle_queue(*job, outcome);
      {
        std::lock_guard lock(mutex_);
        outcomes_.emplace(outcome.job, std::move(outcome));
        std::erase(live_, job);
      }
      changed_.notify_all();
    }
  }

  const fs::path workspace_;
  const std::unique_ptr<Store> store_;
  const JobSteps steps_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Job>> live_;  // the first one runs
  std::map<std::int64_t, JobOutcome> outcomes_;
  std::int64_t last_job_ = 0;
  std::atomic<bool> closing_ = false;
  mutable std::vector<int> children_;  // detached processes, to be reaped when they end
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<JobService>> open_job_service(const fs::path& workspace, JobSteps steps,
                                                     const StoreOptions& options) {
  auto store = Store::open(workspace, options);
  if (!store) return tl::unexpected(store.error());
  remove_stale_temporaries(workspace / "runs");
  std::error_code ec;
  return std::make_unique<Service>(fs::absolute(workspace, ec), std::move(*store), std::move(steps));
}

Result<std::unique_ptr<StoreReader>> JobService::open_reader(const fs::path& workspace) {
  return open_store_reader(workspace);
}

}  // namespace stacklab
