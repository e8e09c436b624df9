#include "engine/service/job_service.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "engine/service/job.h"
#include "engine/service/job_steps.h"

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

  void stop(const RunId& run) override {
    std::vector<std::shared_ptr<Job>> own;
    {
      std::lock_guard lock(mutex_);
      for (const auto& job : live_)
        if (job->snapshot()->run == run || job->order.stored_run == run) own.push_back(job);
    }
    for (const auto& job : own) job->request_stop("the user");
    if (own.empty()) store_->request_stop(run);
    changed_.notify_all();
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
  std::int64_t enqueue(JobOrder order, const std::string& name) {
    std::int64_t number = 0;
    {
      std::lock_guard lock(mutex_);
      number = order.job = ++last_job_;
      live_.push_back(std::make_shared<Job>(std::move(order), name));
    }
    changed_.notify_all();
    return number;
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
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<JobService>> open_job_service(const fs::path& workspace, JobSteps steps,
                                                     const StoreOptions& options) {
  auto store = Store::open(workspace, options);
  if (!store) return tl::unexpected(store.error());
  std::error_code ec;
  return std::make_unique<Service>(fs::absolute(workspace, ec), std::move(*store), std::move(steps));
}

Result<std::unique_ptr<StoreReader>> JobService::open_reader(const fs::path& workspace) {
  return open_store_reader(workspace);
}

}  // namespace stacklab
