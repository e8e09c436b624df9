#include "engine/service/job.h"

#include <fmt/core.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <new>
#include <utility>

#include "engine/base/atomic_file.h"
#include "engine/base/clock.h"
#include "engine/base/environment.h"
#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/config/config_io.h"
#include "engine/service/data_builds.h"
#include "engine/service/model_facts.h"
#include "engine/service/run_data.h"
#include "engine/service/watch.h"
#include "engine/train/checkpoint.h"
#include "engine/train/milestones.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;

void copy_result(JobOutcome& outcome, const TrainResult& r) {
  outcome.steps = r.steps;
  outcome.tokens = r.tokens;
  outcome.parameters = r.parameters;
  outcome.plan_bytes = r.plan_bytes;
  outcome.peak_bytes = r.peak_bytes;
  outcome.first_loss = r.first_loss;
  outcome.loss = r.loss;
  outcome.val_loss = r.val_loss;
  outcome.val_bpb = r.val_bpb;
  outcome.unigram_entropy = r.unigram_entropy;
  outcome.seconds = r.seconds;
  outcome.tokens_per_second = r.tokens_per_second;
  outcome.utilisation = r.utilisation;
  outcome.trace = r.trace;
}

void copy_stored(JobOutcome& outcome, const RunSummary& run) {
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  outcome.steps = run.step;
  outcome.tokens = run.tokens;
  outcome.parameters = run.parameters;
  outcome.plan_bytes = run.plan_bytes;
  outcome.peak_bytes = run.peak_bytes;
  outcome.first_loss = run.first_loss.value_or(none);
  outcome.loss = run.last_loss.value_or(none);
  outcome.val_loss = run.val_loss.value_or(none);
  outcome.seconds = run.seconds;
  outcome.tokens_per_second = run.tokens_per_second;
  outcome.unigram_entropy = none;
  outcome.val_bpb = none;
  for (const auto& [name, value] : run.facts)
    if (name == "unigram_entropy") outcome.unigram_entropy = value;
}

}  // namespace

// Hands on to the store, and keeps the job's snapshot up to date.
class Job::Sink final : public RunSink {
 public:
  Sink(Job& job, std::unique_ptr<RunSink> store) : job_(job), store_(std::move(store)) {}

  void progress(const Progress& progress) override {
    Progress shown = progress;
    if (shown.detail.empty()) shown.detail = job_.fallback_note_;
    job_.change_snapshot([&](JobSnapshot& s) { s.progress = shown; });
    store_->progress(shown);
  }
  void metrics(const MetricEvent& event) override { store_->metrics(event); }
  void event(const RunEvent& event) override { store_->event(event); }
  void resolved(RunEvent::Kind kind, std::int64_t step) override { store_->resolved(kind, step); }
  void beat(double next_within_seconds) override { store_->beat(next_within_seconds); }
  void resumed_after(std::int64_t step) override { store_->resumed_after(step); }
  void fact(std::string_view name, double value) override { store_->fact(name, value); }
  void settle() override { store_->settle(); }

 private:
  Job& job_;
  const std::unique_ptr<RunSink> store_;
};

Job::Job(JobOrder job_order, const std::string& name) : order(std::move(job_order)) {
  JobSnapshot first;
  first.job = order.job;
  first.name = name;
  first.progress.phase = "queued";
  first.run = order.stored_run;  // a continuation has its row already
  snapshot_ = std::make_shared<const JobSnapshot>(std::move(first));
}

std::shared_ptr<const JobSnapshot> Job::snapshot() const {
  std::lock_guard lock(mutex_);
  return snapshot_;
}

template <class Change>
void Job::change_snapshot(Change&& change) {
  std::lock_guard lock(mutex_);
  auto next = std::make_shared<JobSnapshot>(*snapshot_);
  change(*next);
  snapshot_ = std::move(next);
}

std::string Job::stopped_by() const {
  std::lock_guard lock(mutex_);
  return stopped_by_;
}

StopKind Job::stop_kind() const {
  std::lock_guard lock(mutex_);
  return stop_kind_;
}

// The budget asks for a stop as a person does; what is said at the end differs.
void Job::spend(const std::string& cause) {
  {
    std::lock_guard lock(mutex_);
    if (stopped_by_.empty()) spent_ = cause;
  }
  request_stop("the " + cause);
}

void Job::request_stop(const std::string& by, StopKind kind) {
  std::optional<Claim> claim;
  {
    std::lock_guard lock(mutex_);
    if (stopped_by_.empty()) {
      stopped_by_ = by;
      stop_kind_ = kind;
    }
    claim = claim_;
    auto next = std::make_shared<JobSnapshot>(*snapshot_);
    next->stopping = true;
    snapshot_ = std::move(next);
  }
  // Not under the lock: whoever waits for this may report to the sink at once.
  stop_.request_stop();
  if (claim) store_->note_stopping(*claim);
}

JobOutcome Job::run(const fs::path& workspace, Store& store, const JobSteps& steps) {
  workspace_ = &workspace;
  {
    std::lock_guard lock(mutex_);
    store_ = &store;
  }
  steps_ = &steps;
  Error error{Error::Kind::failed, "an unknown failure", {}};
  try {
    return execute();
  } catch (const std::bad_alloc&) {
    error = {Error::Kind::failed, "out of memory", "close other programs"};
  } catch (const std::exception& e) {
    error.what = e.what();
  } catch (...) {
  }
  std::optional<Claim> claim;
  {
    std::lock_guard lock(mutex_);
    claim = std::exchange(claim_, std::nullopt);
  }
  // Claimed and not ended, the run would seem to be trained by this process for as long as it lives.
  if (claim) static_cast<void>(store.end(*claim, {.state = RunState::failed, .cause = error.message()}));
  return ended(snapshot()->run, error);
}

JobOutcome Job::ended(const RunId& id, const Error& error) const {
  JobOutcome outcome;
  outcome.job = order.job;
  outcome.run = id;
  outcome.state = error.kind == Error::Kind::stopped ? RunState::paused : RunState::failed;
  outcome.error = error;
  return outcome;
}

Result<RunSummary> Job::summary(const RunId& id) const {
  auto reader = open_store_reader(*workspace_);
  if (!reader) return tl::unexpected(reader.error());
  return (*reader)->run(id);
}

JobOutcome Job::stored_outcome(const RunId& id) const {
  JobOutcome outcome;
  outcome.job = order.job;
  outcome.run = id;
  const auto run = summary(id);
  if (!run) return ended(id, run.error());
  outcome.state = run->state;
  outcome.already_finished = true;
  copy_stored(outcome, *run);
  return outcome;
}

JobOutcome Job::execute() {
  if (stop_.stop_requested())
    return ended({}, {Error::Kind::stopped, fmt::format("stopped by {} before it began", stopped_by()), {}});
  auto config = ordered_config();
  if (!config) return ended(order.stored_run, config.error());
  if (const auto valid = check_launch(*config); !valid) return ended({}, valid.error());
  if (const auto taken_in = take_in_tokenizer(*config, *workspace_); !taken_in) return ended({}, taken_in.error());
  if (const auto taken_in = take_in_corpus(*config, *workspace_, reporting("text"), stop_.get_token()); !taken_in)
    return ended({}, taken_in.error());
  RunId id = config_hash(*config);
  change_snapshot([&](JobSnapshot& s) { s.name = config->name; });

  // Nothing is fetched for a run that will not be trained.
  auto look = store_->look(claim_request(*config, id));
  if (!look) return ended(id, look.error());
  if (*look == Claim::Kind::already_finished) return stored_outcome(id);

  const auto data = data_for(*config, id);
  if (stop_.stop_requested())
    return ended({}, {Error::Kind::stopped, fmt::format("stopped by {} before training began", stopped_by()), {}});
  if (!data) return ended({}, data.error());
  return train(*config, id, *data);
}

Result<RunConfig> Job::ordered_config() {
  if (order.stored_run.empty()) return order.config;
  const auto run = summary(order.stored_run);
  if (!run) return tl::unexpected(run.error());
  return parse_config(run->config_json, fmt::format("the stored config of run {}", run->id));
}

bool Job::knows_run(const RunId& id) const { return summary(id).has_value(); }

CorpusProgress Job::reporting(std::string phase) {
  return [this, phase = std::move(phase)](std::string_view detail, std::int64_t done, std::int64_t total) {
    change_snapshot([&](JobSnapshot& s) { s.progress = {phase, std::string(detail), done, total}; });
  };
}

Status Job::have_text(const std::string& name, const TokenCoding& coding, const DataConfig& data) {
  const CorpusProgress report = reporting("text");
  report("looking for " + name, 0, 0);
  if (has_shards(name, coding, data, *workspace_)) return {};
  const auto corpus = steps_->ensure_corpus(name, *workspace_, report, stop_.get_token());
  return corpus ? Status() : tl::unexpected(corpus.error());
}

// The texts of the config, or the fallback's: then config and id become the fallback's too.
Status Job::have_texts(RunConfig& config, RunId& id, const TokenCoding& coding) {
  const auto mixture = mixture_of(config.data);
  if (!mixture) return tl::unexpected(mixture.error());
  if (!config.data.mixture.empty()) {
    for (const MixturePart& part : *mixture)
      if (Status here = have_text(part.name, coding, config.data); !here) return here;
    return {};
  }
  const std::string& fallback = order.options.fallback_corpus;
  const bool may_fall_back = !fallback.empty() && fallback != config.data.corpus;
  RunConfig other = config;
  other.data.corpus = fallback;
  // A run that began with the fallback goes on with it, though the corpus itself could be had by now.
  if (may_fall_back && !knows_run(id) && knows_run(config_hash(other))) {
    config = other;
    id = config_hash(config);
    return have_text(fallback, coding, config.data);
  }
  const Status first = have_text(config.data.corpus, coding, config.data);
  // Only what cannot be fetched is replaced: not a wrong name, and not a corpus that is here and damaged.
  std::error_code ec;
  const bool not_to_be_had =
      !first && first.error().kind == Error::Kind::failed && !fs::exists(*workspace_ / "data" / config.data.corpus, ec);
  if (!not_to_be_had || stop_.stop_requested() || !may_fall_back) return first;
  fallback_note_ = fmt::format("corpus {} in place of {}: {}", fallback, config.data.corpus, first.error().message());
  log_warning("{}", fallback_note_);
  reporting("text")(fallback_note_, 0, 0);
  if (const Status second = have_text(fallback, coding, config.data); !second) {
    return failed(fmt::format("neither corpus can be had: {}; {}", first.error().message(), second.error().what),
                  second.error().remedy);
  }
  config = other;
  id = config_hash(config);
  return {};
}

Result<Dataset> Job::data_for(RunConfig& config, RunId& id) {
  if (names_shards(config.data, *workspace_))
    return open_named_shards(config, *workspace_, reporting("shards"), stop_.get_token());
  const auto coding = coding_named(config.data.tokenizer, *workspace_);
  if (!coding) return tl::unexpected(coding.error());
  if (Status fits = check_vocabulary(config, *coding); !fits) return tl::unexpected(fits.error());
  if (Status here = have_texts(config, id, *coding); !here) return tl::unexpected(here.error());
  const auto mixture = mixture_of(config.data);
  if (!mixture) return tl::unexpected(mixture.error());
  return open_run_data(config, *mixture, *coding, *workspace_, reporting("shards"), stop_.get_token());
}

ClaimRequest Job::claim_request(const RunConfig& config, const RunId& id) const {
  ClaimRequest request;
  request.id = id;
  request.name = config.name;
  request.folder = config.name + "-" + id;  // validate() saw to it that the name can be one
  request.config_json = to_json(config);
  request.commit = build_info().commit;
  request.total_steps = config.steps();
  request.tokenizer = config.data.tokenizer;
  request.resume = order.options.resume;
  request.detached = order.options.detached;
  request.queue_entry = queue_entry;
  const BudgetConfig& b = config.run.budget;
  request.budget = {b.tokens, b.hours, b.usd, b.usd_per_hour};
  return request;
}

JobOutcome Job::train(const RunConfig& config, const RunId& id, const Dataset& data) {
  const auto room = room_for_checkpoints(config, id);
  if (!room) return ended(id, room.error());
  ClaimRequest request = claim_request(config, id);
  request.corpus_sha256 = data.corpus_hash();
  const std::weak_ptr<Job> self = weak_from_this();
  RunRequests requests;
  requests.stop = [self](const std::string& why, StopKind kind) {
    if (const auto job = self.lock()) job->request_stop(why, kind);
  };
  requests.checkpoint = [self] {
    if (const auto job = self.lock()) job->request_checkpoint();
  };
  requests.trace = [self] {
    if (const auto job = self.lock()) job->request_trace();
  };
  const auto claim = store_->claim(request, std::move(requests));
  if (!claim) return ended(id, claim.error());
  if (claim->kind == Claim::Kind::already_finished) return stored_outcome(id);
  // The store may come from somebody else: a run never leaves its workspace.
  if (claim->folder != fs::path(claim->folder).filename() || claim->folder.starts_with('.'))
    return ended(id, failed(fmt::format("the store names {} as the run's folder, which is not one of this workspace",
                                        claim->folder))
                         .value());
  {
    std::lock_guard lock(mutex_);
    claim_ = *claim;
  }
  change_snapshot([&](JobSnapshot& s) {
    s.run = id;
    s.progress = {"starting", fallback_note_, 0, 0};
  });
  // A stop that came before the claim was known could not be shown by the store.
  if (stop_.stop_requested()) store_->note_stopping(*claim);

  WatchOptions watch;
  watch.config = &config;
  watch.run = id;
  watch.workspace = *workspace_;
  watch.store = store_;
  watch.seconds_before = claim->process_seconds;
  watch.checkpoint_bytes = checkpoint_size(config).total();
  watch.stop = [this](const std::string& cause) { spend(cause); };
  watch.clock = steady_seconds;
  watch.free_bytes = [this] { return disk_free(*workspace_); };
  Sink sink(*this, std::make_unique<WatchingSink>(watch, store_->sink(*claim)));
  if (!fallback_note_.empty()) sink.event({RunEvent::Kind::warning, claim->step, fallback_note_});
  if (!room->empty()) sink.event({RunEvent::Kind::warning, claim->step, *room});
  TrainRequest todo;
  todo.config = config;
  todo.run_dir = *workspace_ / "runs" / claim->folder;
  todo.max_steps = order.options.max_steps;
  todo.resume = order.options.resume;
  todo.known_steps = claim->step;
  todo.trace = {order.options.trace_file, order.options.trace_steps};
  todo.checkpoint_now = &checkpoint_now_;
  todo.trace_now = &trace_now_;
  // A fork's first checkpoint was made by the run that it goes on from.
  if (!config.train.parent.empty()) todo.also_accepted = {config.train.parent.substr(0, config.train.parent.find('@'))};
  const BudgetWatch budget(config.run.budget, claim->process_seconds);
  JobOutcome outcome;
  todo.memory_remedy = [&](std::int64_t available) {
    if (auto levers = memory_levers(config, available)) outcome.levers = std::move(*levers);
    return outcome.levers ? to_text(*outcome.levers) : std::string();
  };
  outcome.job = order.job;
  outcome.run = id;
  outcome.begun = true;
  // A process that was stopped by its budget has left less than a step of it.
  const double usual_step = claim->step > 0 ? claim->process_seconds / static_cast<double>(claim->step) : 0;
  if (const auto spent =
          budget.spent(claim->step * config.train.batch_tokens, config.train.batch_tokens, 0, usual_step)) {
    if (const auto known = summary(id)) copy_stored(outcome, *known);
    spend(*spent);
    conclude(*claim, failed(*spent), outcome);
  } else {
    conclude(*claim, train_guarded(todo, data, sink), outcome);
  }
  return outcome;
}

// The completion record, and the outcome for whoever waits.
void Job::conclude(const Claim& claim, const Result<TrainResult>& result, JobOutcome& outcome) {
  std::string spent;
  {
    std::lock_guard lock(mutex_);
    spent = spent_;
  }
  Completion completion;
  if (result) {
    copy_result(outcome, *result);
    completion.step = result->steps;
    completion.tokens = result->tokens;
    completion.seconds = result->seconds;
    completion.parameters = result->parameters;
    completion.plan_bytes = result->plan_bytes;
    completion.peak_bytes = result->peak_bytes;
    completion.tokens_per_second = result->tokens_per_second;
  }
  if (result && result->complete) {
    completion.state = RunState::finished;
  } else if (!spent.empty() && (result || result.error().what == spent)) {
    completion.state = RunState::paused;
    completion.cause = spent;
    outcome.error =
        Error{Error::Kind::refused, fmt::format("{} ({}) stopped: its {}", claim.name, claim.run, spent),
              fmt::format("go on with a larger one, or 0 for none: stacklab resume {} --set run.budget.{}=0", claim.run,
                          spent.find("usd") != std::string::npos     ? "usd"
                          : spent.find("hours") != std::string::npos ? "hours"
                                                                     : "tokens")};
  } else if (!result) {
    completion.state = result.error().kind == Error::Kind::stopped ? RunState::paused : RunState::failed;
    outcome.error = result.error();
    completion.cause = result.error().message();
  } else if (stop_.stop_requested()) {
    completion.state = RunState::paused;
    completion.cause = fmt::format("{} at step {} by {}", stop_kind() == StopKind::pause ? "paused" : "stopped",
                                   result->steps, stopped_by());
    outcome.error = Error{Error::Kind::stopped, completion.cause, {}};
  } else {
    completion.state = RunState::paused;
    completion.cause = fmt::format("reached --max-steps {}", order.options.max_steps);
  }
  outcome.state = completion.state;
  // One that was paused goes on first, when a person says so.
  if (completion.state == RunState::paused && outcome.error && outcome.error->kind == Error::Kind::stopped &&
      stop_kind() == StopKind::pause) {
    SubmitOptions options;
    options.resume = true;
    options.max_steps = order.options.max_steps;
    completion.queue_options = queue_json(options);
  }
  {
    std::lock_guard lock(mutex_);
    claim_.reset();
  }
  Status stored = store_->end(claim, completion);
  if (stored) stored = store_->check_place();
  if (!stored && (!outcome.error || outcome.error->kind == Error::Kind::stopped)) {
    outcome.error =
        Error{Error::Kind::failed, "the run ended, but its end could not be recorded: " + stored.error().what,
              stored.error().remedy};
  }
}

// All checkpoints that are kept at once must fit, beside those of this run that are there already.
Result<std::string> Job::room_for_checkpoints(const RunConfig& config, const RunId& id) const {
  const std::int64_t free = disk_free(*workspace_);
  if (free < 0) return std::string();
  std::int64_t there = 0;
  if (auto reader = open_store_reader(*workspace_))
    if (const auto run = (*reader)->run(id)) there = std::ssize(list_checkpoints(*workspace_ / "runs" / run->folder));
  const std::int64_t one = checkpoint_size(config).total(), at_once = checkpoints_at_once(config);
  const std::int64_t more = std::max<std::int64_t>(1, at_once - there);
  if (one <= (free - store_room) / more) return std::string();
  const std::string numbers =
      fmt::format("{} {}, the store's journal up to {}, and {} are free in {}",
                  more == 1 ? "a checkpoint takes" : fmt::format("{} checkpoints are kept at once, each of", more),
                  format_bytes(static_cast<double>(one)), format_bytes(static_cast<double>(store_room)),
                  format_bytes(static_cast<double>(free)), workspace_->string());
  if (config.run.disk_guard)
    return refused("the disk is too full to train: " + numbers,
                   "free some space, choose another workspace, keep fewer (run.keep_last, run.keep_milestones), or "
                   "--set run.disk_guard=false");
  return "The disk is too full: " + numbers;
}

Result<TrainResult> Job::train_guarded(const TrainRequest& request, const Dataset& data, RunSink& sink) {
  try {
    if (auto ready = prepare_folder(request.run_dir, request.config); !ready) return tl::unexpected(ready.error());
    return steps_->train(request, data, sink, stop_.get_token());
  } catch (const std::bad_alloc&) {
    return failed("out of memory", "close other programs, or use a smaller micro_batch or model");
  } catch (const std::exception& e) {
    return failed(fmt::format("training broke off: {}", e.what()));
  } catch (...) {
    return failed("training broke off for an unknown reason");
  }
}

// The run's folder with its config, which stays as it was first written.
Status Job::prepare_folder(const fs::path& folder, const RunConfig& config) {
  std::error_code ec;
  fs::create_directories(folder, ec);
  if (ec) return tl::unexpected<Error>(file_error("cannot create the run's folder", folder, ec.value()));
  const fs::path file = folder / "config.json";
  if (fs::exists(file, ec)) return {};
  return write_file_atomically(file, to_json(config));
}

}  // namespace stacklab
