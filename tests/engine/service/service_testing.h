// What tests of the service share: a tiny config, a tiny corpus, and a trainer that does what the test says.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <string>

#include "engine/config/config_io.h"
#include "engine/service/job_service.h"
#include "engine/service/job_steps.h"
#include "tests/engine/service/sample.h"
#include "tests/engine/store/store_testing.h"

namespace stacklab {

constexpr double long_enough = 100;  // seconds; what is waited for comes at once or never

// Pretends to train: a step is a row. Keeps its place in a file of the run's folder, as checkpoints do.
class PretendTrainer {
 public:
  std::atomic<int> calls = 0;
  std::atomic<std::int64_t> pause_at = 0;  // waits there (after the step is reported) for go_on() or a stop

  Result<TrainResult> train(const TrainRequest& request, const Dataset&, RunSink& sink, const std::stop_token& stop) {
    ++calls;
    const std::int64_t total = request.config.steps();
    const auto place = request.run_dir / "place";
    TrainResult r;
    if (request.resume) {
      if (std::filesystem::exists(place)) r.steps = std::stoll(file_text(place));
      sink.resumed_after(r.steps);
    }
    sink.fact("unigram_entropy", 2.5);
    const std::int64_t end = request.max_steps > 0 ? std::min(request.max_steps, total) : total;
    while (r.steps < end && !stop.stop_requested()) {
      ++r.steps;
      sink.beat(10);
      sink.metrics(test_metrics(r.steps, loss_at(r.steps)));
      sink.progress({"training", {}, r.steps, total});
      if (r.steps == pause_at) wait(stop);
    }
    put_file(place, std::to_string(r.steps));
    sink.event({RunEvent::Kind::checkpoint, r.steps, "checkpoint"});
    r.tokens = r.steps * request.config.train.batch_tokens;
    r.first_loss = loss_at(1);
    r.loss = loss_at(r.steps);
    r.val_loss = 1.5;
    r.unigram_entropy = 2.5;
    r.seconds = 1.25;
    r.tokens_per_second = 1000;
    r.parameters = 4321;
    r.plan_bytes = 100;
    r.peak_bytes = 200;
    r.complete = r.steps == total;
    return r;
  }

  static double loss_at(std::int64_t step) { return 5.0 / static_cast<double>(step); }

  void wait_until_paused() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return paused_; });
  }
  void go_on() {
    std::lock_guard lock(mutex_);
    go_ = true;
    changed_.notify_all();
  }

 private:
  void wait(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    paused_ = true;
    changed_.notify_all();
    changed_.wait(lock, stop, [&] { return go_; });
    paused_ = go_ = false;
  }

  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool paused_ = false, go_ = false;
};

class ServiceTest : public testing::Test {
 protected:
  ServiceTest() { must(make_sample("sample", workspace())); }

  JobSteps steps() {
    return {[this](std::string_view name, const std::filesystem::path& workspace, const CorpusProgress& progress,
                   std::stop_token) -> Result<Corpus> {
              ++corpora_;
              progress("making it", 1, 2);
              return make_sample(name, workspace);
            },
            [this](const TrainRequest& request, const Dataset& data, RunSink& sink, std::stop_token stop) {
              return trainer_.train(request, data, sink, stop);
            }};
  }
  std::unique_ptr<JobService> open(JobSteps job_steps) {
    return must(open_job_service(workspace(), std::move(job_steps)));
  }
  std::unique_ptr<JobService> open() { return open(steps()); }

  std::filesystem::path workspace() const { return folder_ / "workspace"; }
  RunSummary stored(const RunConfig& config) {
    return must(must(open_store_reader(workspace()))->run(config_hash(config)));
  }
  static JobOutcome outcome_of(JobService& service, std::int64_t job) {
    const auto outcome = service.wait(job, long_enough);
    if (!outcome) throw std::runtime_error("the job did not end");
    return *outcome;
  }
  static JobOutcome run(JobService& service, const RunConfig& config, const SubmitOptions& options = {}) {
    return outcome_of(service, service.submit(config, options));
  }

  TemporaryFolder folder_;
  PretendTrainer trainer_;
  std::atomic<int> corpora_ = 0;
};

}  // namespace stacklab
