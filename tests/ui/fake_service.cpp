#include "tests/ui/fake_service.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "engine/store/pyramid.h"

namespace stacklab::ui {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

}  // namespace

class FakeReader final : public StoreReader {
 public:
  explicit FakeReader(FakeWorkspacePtr workspace) : w_(std::move(workspace)) {}

  Result<std::vector<RunSummary>> runs() override {
    const std::lock_guard lock(w_->mutex_);
    ++w_->reads_;
    if (!w_->read_error_.empty()) return failed(w_->read_error_, "close what holds the store");
    std::vector<RunSummary> all;
    for (const auto& run : w_->runs_) all.push_back(run.summary);
    return all;
  }
  Result<std::vector<RunSummary>> runs(const RunQuery&) override { return runs(); }
  Result<std::vector<RunPlace>> order(const RunQuery&, const std::string&) override {
    const auto all = runs();
    if (!all) return tl::unexpected(all.error());
    std::vector<RunPlace> places;
    for (const RunSummary& run : *all) places.push_back({run.number, {}, run.last_loss, run.val_loss, run.state});
    return places;
  }
  Result<std::vector<RunSummary>> numbered(const std::vector<std::int64_t>& numbers) override {
    auto all = runs();
    if (!all) return all;
    std::erase_if(*all, [&](const RunSummary& run) {
      return std::find(numbers.begin(), numbers.end(), run.number) == numbers.end();
    });
    return all;
  }
  Result<std::int64_t> change_counter() override { return ++changes_; }
  Result<FilterWords> filter_words() override { return FilterWords{}; }
  Result<std::map<RunState, std::int64_t>> counts_by_state() override {
    const std::lock_guard lock(w_->mutex_);
    std::map<RunState, std::int64_t> counts;
    for (const auto& run : w_->runs_) ++counts[run.summary.state];
    return counts;
  }
  Result<RunChanges> changes(std::int64_t) override {
    auto all = runs();
    if (!all) return tl::unexpected(all.error());
    return RunChanges{++changes_, true, std::move(*all)};
  }
  Result<RunSummary> run(const std::string& id) override {
    const std::lock_guard lock(w_->mutex_);
    if (auto* found = w_->find(id)) return found->summary;
    return failed("no run " + id);
  }
  Result<std::vector<SeriesPoint>> series(const RunId& run, const std::string& metric, std::int64_t after,
                                          std::int64_t limit) override {
    const std::lock_guard lock(w_->mutex_);
    auto* found = w_->find(run);
    if (!found) return failed("no run " + run);
    const auto& points = found->series[metric];
    auto it = std::upper_bound(points.begin(), points.end(), after,
                               [](std::int64_t s, const SeriesPoint& p) { return s < p.step; });
    return std::vector<SeriesPoint>(it, it + std::min<std::ptrdiff_t>(limit, points.end() - it));
  }
  Result<std::vector<SeriesBucket>> decimated(const RunId& run, const std::string& metric, std::int64_t from,
                                              std::int64_t to, std::int64_t max_points) override {
    auto points = series(run, metric, std::max<std::int64_t>(from, 1) - 1, std::numeric_limits<std::int64_t>::max());
    if (!points) return tl::unexpected(points.error());
    std::erase_if(*points, [&](const SeriesPoint& p) { return p.step > to; });
    std::vector<SeriesBucket> buckets;
    const std::size_t each = points->size() / static_cast<std::size_t>(max_points) + 1;
    for (std::size_t i = 0; i < points->size(); ++i) {
      if (i % each == 0) buckets.emplace_back();
      store::append(buckets.back(), store::bucket_of((*points)[i].step, (*points)[i].value));
    }
    return buckets;
  }
  Result<std::optional<SeriesPoint>> last_point(const RunId& run, const std::string& metric) override {
    const auto points = series(run, metric, -1, std::numeric_limits<std::int64_t>::max());
    if (!points) return tl::unexpected(points.error());
    return points->empty() ? std::nullopt : std::optional(points->back());
  }
  Result<std::vector<StepRow>> steps(const RunId& run, std::int64_t after, std::int64_t limit) override {
    const auto points = series(run, "loss", after, limit);
    if (!points) return tl::unexpected(points.error());
    std::vector<StepRow> rows;
    for (const SeriesPoint& p : *points) rows.push_back({p.step, p.step * 4096, static_cast<double>(p.step) * 0.3, 0});
    return rows;
  }
  Result<std::vector<StepRow>> sampled_steps(const RunId& run, std::int64_t from, std::int64_t to,
                                             std::int64_t) override {
    auto rows = steps(run, std::max<std::int64_t>(from, 1) - 1, std::numeric_limits<std::int64_t>::max());
    if (rows) std::erase_if(*rows, [&](const StepRow& row) { return row.step > to; });
    return rows;
  }
  Result<std::int64_t> series_epoch(const RunId& run) override {
    const std::lock_guard lock(w_->mutex_);
    auto* found = w_->find(run);
    if (!found) return failed("no run " + run);
    return found->epoch;
  }
  Result<std::vector<std::string>> metrics(const RunId& run) override {
    const std::lock_guard lock(w_->mutex_);
    std::vector<std::string> names;
    if (auto* found = w_->find(run))
      for (const auto& [name, points] : found->series) names.push_back(name);
    return names;
  }
  Result<std::vector<RunEventRow>> events(const RunId& run, std::int64_t after, std::int64_t limit) override {
    const std::lock_guard lock(w_->mutex_);
    std::vector<RunEventRow> rows;
    if (auto* found = w_->find(run))
      for (const auto& row : found->events)
        if (row.id > after && static_cast<std::int64_t>(rows.size()) < limit) rows.push_back(row);
    return rows;
  }
  Result<std::vector<AlertRow>> alerts(bool open_only, std::int64_t limit) override {
    const std::lock_guard lock(w_->mutex_);
    std::vector<AlertRow> rows;
    for (const auto& run : w_->runs_)
      for (const auto& row : run.events)
        if (row.event.is_alert() && !(open_only && row.resolved > 0))
          rows.push_back({run.summary.id, run.summary.name, row});
    std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.row.id > b.row.id; });
    if (static_cast<std::int64_t>(rows.size()) > limit) rows.resize(static_cast<std::size_t>(limit));
    return rows;
  }
  Result<std::vector<RunSummary>> ancestry(const RunId&) override { return std::vector<RunSummary>(); }
  Result<std::vector<QueueEntry>> queue() override { return std::vector<QueueEntry>(); }
  std::int64_t wal_bytes() override { return 204800; }

 private:
  FakeWorkspacePtr w_;
  std::int64_t changes_ = 0;
};

class FakeService final : public JobService {
 public:
  explicit FakeService(FakeWorkspacePtr workspace) : w_(std::move(workspace)) {
    const std::lock_guard lock(w_->mutex_);
    w_->service_alive_ = true;
  }
  ~FakeService() override {
    const std::lock_guard lock(w_->mutex_);
    w_->service_alive_ = false;
  }
  const std::filesystem::path& workspace() const override { return path_; }
  Result<std::unique_ptr<StoreReader>> reader() override { return std::make_unique<FakeReader>(w_); }
  std::int64_t submit(const RunConfig& config, const SubmitOptions&) override {
    const std::lock_guard lock(w_->mutex_);
    w_->submitted_.push_back(config);
    JobSnapshot job;
    job.job = w_->next_job_++;
    job.name = config.name;
    job.progress.phase = "queued";
    w_->jobs_.push_back(std::make_shared<const JobSnapshot>(job));
    return job.job;
  }
  std::int64_t resume(const RunId& run) override {
    const std::lock_guard lock(w_->mutex_);
    w_->resumed_.push_back(run);
    return w_->next_job_++;
  }
  void stop(const RunId& run) override {
    const std::lock_guard lock(w_->mutex_);
    w_->stopped_.push_back(run);
  }
  void pause(const RunId& run) override { stop(run); }
  void checkpoint(const RunId&) override {}
  void trace(const RunId& run) override { (void)ask(run, Request::trace); }
  Result<bool> ask(const RunId& run, Request request) override {
    if (request == Request::trace) {
      const std::lock_guard lock(w_->mutex_);
      if (!w_->request_error_.empty()) return failed(w_->request_error_, "close what holds the store");
      w_->traced_.push_back(run);
      auto* found = w_->find(run);
      return found && is_active(found->summary.state);
    }
    stop(run);
    return true;
  }
  Result<RunEdit> edit(const RunId&, const RunEdit&) override { return failed("not in this workspace"); }
  Status purge(const RunId&) override { return failed("not in this workspace"); }
  Result<RunId> fork(const RunId&, std::int64_t, const RunConfig&) override { return failed("not in this workspace"); }
  Result<DetachedRun> detach(const RunConfig&, bool) override { return failed("not in this workspace"); }
  Result<std::int64_t> queue_add(const RunConfig&, const SubmitOptions&) override {
    return failed("not in this workspace");
  }
  Result<std::optional<std::int64_t>> queue_start(std::optional<std::int64_t>) override {
    return std::optional<std::int64_t>();
  }
  Status queue_move(std::int64_t, std::int64_t) override { return {}; }
  Status queue_remove(std::int64_t) override { return {}; }
  void stop_job(std::int64_t) override {}
  void stop_all() override {
    const std::lock_guard lock(w_->mutex_);
    ++w_->stop_alls_;
    if (w_->stops_at_once_) w_->jobs_.clear();
  }
  std::vector<std::shared_ptr<const JobSnapshot>> jobs() const override {
    const std::lock_guard lock(w_->mutex_);
    return w_->jobs_;
  }
  std::optional<JobOutcome> outcome(std::int64_t job) const override {
    const std::lock_guard lock(w_->mutex_);
    const auto found = w_->outcomes_.find(job);
    return found == w_->outcomes_.end() ? std::nullopt : std::optional(found->second);
  }
  std::optional<JobOutcome> wait(std::int64_t job, double) override { return outcome(job); }

 private:
  FakeWorkspacePtr w_;
  std::filesystem::path path_ = "fake";
};

FakeWorkspace::Stored* FakeWorkspace::find(const RunId& id) {
  for (auto& run : runs_)
    if (run.summary.id == id) return &run;
  return nullptr;
}

void FakeWorkspace::put_run(RunSummary run) {
  const std::lock_guard lock(mutex_);
  if (auto* found = find(run.id))
    found->summary = std::move(run);
  else
    runs_.push_back({std::move(run), {}, {}, 0});
}

RunSummary FakeWorkspace::run(const RunId& id) const {
  const std::lock_guard lock(mutex_);
  return const_cast<FakeWorkspace*>(this)->find(id)->summary;
}

void FakeWorkspace::add_points(const RunId& run, const std::string& metric, const std::vector<SeriesPoint>& points) {
  const std::lock_guard lock(mutex_);
  auto& to = find(run)->series[metric];
  to.insert(to.end(), points.begin(), points.end());
}

void FakeWorkspace::supersede(const RunId& run, std::int64_t after) {
  const std::lock_guard lock(mutex_);
  auto* found = find(run);
  for (auto& [name, points] : found->series)
    std::erase_if(points, [&](const SeriesPoint& p) { return p.step > after; });
  ++found->epoch;
}

void FakeWorkspace::add_event(const RunId& run, RunEvent event) {
  const std::lock_guard lock(mutex_);
  auto* found = find(run);
  if (event.is_alert()) ++found->summary.open_alerts;
  found->events.push_back({next_event_++, now(), std::move(event)});
}

void FakeWorkspace::resolve_alerts(const RunId& run, std::int64_t step) {
  const std::lock_guard lock(mutex_);
  auto* found = find(run);
  for (RunEventRow& row : found->events) {
    if (!row.event.is_alert() || row.resolved > 0) continue;
    row.resolved = now();
    row.resolved_step = step;
  }
  found->summary.open_alerts = 0;
}

void FakeWorkspace::set_jobs(std::vector<JobSnapshot> jobs) {
  const std::lock_guard lock(mutex_);
  jobs_.clear();
  for (auto& job : jobs) {
    next_job_ = std::max(next_job_, job.job + 1);
    jobs_.push_back(std::make_shared<const JobSnapshot>(std::move(job)));
  }
}

void FakeWorkspace::end_job(JobOutcome outcome) {
  const std::lock_guard lock(mutex_);
  std::erase_if(jobs_, [&](const auto& job) { return job->job == outcome.job; });
  const std::int64_t job = outcome.job;
  outcomes_[job] = std::move(outcome);
}

void FakeWorkspace::set_read_error(std::string error) {
  const std::lock_guard lock(mutex_);
  read_error_ = std::move(error);
}

void FakeWorkspace::set_request_error(std::string error) {
  const std::lock_guard lock(mutex_);
  request_error_ = std::move(error);
}

std::vector<RunId> FakeWorkspace::traced() const {
  const std::lock_guard lock(mutex_);
  return traced_;
}

void FakeWorkspace::set_stops_at_once(bool at_once) {
  const std::lock_guard lock(mutex_);
  stops_at_once_ = at_once;
}

std::vector<RunId> FakeWorkspace::stopped() const {
  const std::lock_guard lock(mutex_);
  return stopped_;
}
std::vector<RunId> FakeWorkspace::resumed() const {
  const std::lock_guard lock(mutex_);
  return resumed_;
}
std::vector<RunConfig> FakeWorkspace::submitted() const {
  const std::lock_guard lock(mutex_);
  return submitted_;
}
int FakeWorkspace::stop_alls() const {
  const std::lock_guard lock(mutex_);
  return stop_alls_;
}
bool FakeWorkspace::service_alive() const {
  const std::lock_guard lock(mutex_);
  return service_alive_;
}
std::int64_t FakeWorkspace::reads() const {
  const std::lock_guard lock(mutex_);
  return reads_;
}

SystemInfo fake_system() {
  SystemInfo info;
  info.cpu = "Sample Processor 7B12";
  info.threads = 2;
  info.isa = "AVX2";
  info.memory_total = 8'300'000'000;
  info.memory_free = 5'900'000'000;
  info.disk_free = 41'200'000'000;
  info.gpu_note = "No NVIDIA device was found; training uses the CPU.";
  info.devices = {"reference"};
  info.libraries = {{"SQLite", "3.40.1"}};
  info.version = "0.1.0";
  info.commit = "0123456789ab";
  info.fingerprint = "0123456789abcdef";
  return info;
}

LinkOptions fake_link(const FakeWorkspacePtr& workspace) {
  LinkOptions options;
  options.open = [workspace]() -> Result<OpenedWorkspace> {
    auto service = std::make_shared<FakeService>(workspace);
    return OpenedWorkspace{service, std::make_unique<FakeReader>(workspace)};
  };
  options.system_info = fake_system;
  options.active_period_ms = options.idle_period_ms = 20;
  return options;
}

RunConfig sample_config() {
  RunConfig config;
  config.name = "first-run";
  config.model.vocab_size = 256;
  config.train.tokens = 1638400;
  return config;
}

RunSummary sample_run(int number, RunState state, std::int64_t step, std::int64_t total) {
  RunSummary run;
  char id[16];
  std::snprintf(id, sizeof id, "%012x", 0x4c1a00 + number * 7919);
  run.id = id;
  run.name = number == 0 ? "first-run" : "variant-" + std::to_string(number);
  run.folder = run.name + "-" + run.id;
  run.number = number;
  run.state = state;
  run.step = step;
  run.total_steps = total;
  run.tokens = step * 4096;
  run.seconds = static_cast<double>(step) * 0.3;
  run.created = now() - run.seconds;
  run.last_beat = now() - 1;
  run.progress = {"training", "", step, total};
  run.commit = "b41e7f0c2d11";
  run.config_json = R"({
  "name": ")" + run.name +
                    R"(",
  "model": {"vocab_size": 256, "d_model": 64, "n_layers": 2},
  "data": {"corpus": "kjv", "tokenizer": "bytes"},
  "train": {"tokens": 1638400, "batch_tokens": 4096, "seq_len": 256, "precision": "fp32"},
  "run": {"device": "reference"}
})";
  run.facts = {{"unigram_entropy", 2.874}, {"uniform_entropy", std::log(256.0)}, {"parameters", 117120}};
  return run;
}

void add_sample_curves(FakeWorkspace& workspace, const RunSummary& run) {
  std::vector<SeriesPoint> loss, val, lr, norm, speed;
  std::uint32_t seed = 12345 + static_cast<std::uint32_t>(run.number) * 77;
  const auto noise = [&seed] {
    seed = seed * 1664525u + 1013904223u;
    return static_cast<double>(seed >> 8) / (1 << 24) - 0.5;
  };
  const double floor = 1.55 + 0.07 * static_cast<double>(run.number);
  for (std::int64_t s = 1; s <= run.step; ++s) {
    const double x = static_cast<double>(s), total = static_cast<double>(run.total_steps);
    const double smooth = floor + 2.2 * std::exp(-x / (0.02 * total)) + 1.8 * std::exp(-x / (0.16 * total));
    loss.push_back({s, smooth + 0.13 * noise()});
    if (s % std::max<std::int64_t>(1, run.total_steps / 16) == 0) val.push_back({s, smooth + 0.05});
    const double warm = std::min(1.0, x / (0.05 * total)), left = (total - x) / (0.2 * total);
    lr.push_back({s, 3e-3 * warm * std::min(1.0, 0.1 + 0.9 * std::sqrt(std::max(0.0, left)))});
    norm.push_back({s, 0.35 + 2.5 * std::exp(-x / (0.05 * total)) + 0.12 * (noise() + 0.5)});
    speed.push_back({s, 13651 + 900 * noise() - (s % 50 == 0 ? 4000 : 0)});
  }
  workspace.add_points(run.id, "loss", loss);
  workspace.add_points(run.id, "val_loss", val);
  workspace.add_points(run.id, "adam_lr", lr);
  workspace.add_points(run.id, "grad_norm", norm);
  workspace.add_points(run.id, "tokens_per_second", speed);
  RunSummary with = run;
  if (!loss.empty()) {
    with.first_loss = loss.front().value;
    with.last_loss = loss.back().value;
  }
  if (!val.empty()) with.val_loss = val.back().value;
  workspace.put_run(with);
  for (std::int64_t s = 100; s <= run.step; s += 100)
    workspace.add_event(run.id, {RunEvent::Kind::checkpoint, s, "Checkpoint of step " + std::to_string(s)});
}

}  // namespace stacklab::ui
