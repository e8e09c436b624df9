// Steering runs, whatever process trains them: through the store, which every running job looks at with its heartbeat.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "app/cli/beside.h"
#include "app/cli/common.h"
#include "app/cli/console.h"
#include "app/cli/run_job.h"
#include "app/cli/signals.h"
#include "engine/base/text.h"
#include "engine/config/config_io.h"
#include "engine/service/data_builds.h"
#include "engine/service/job_service.h"

namespace stacklab::cli {
namespace {

constexpr auto look_every = std::chrono::milliseconds(50);

struct Options {
  std::string run;
  bool wait = false;
};

void report(Context& context, const RunSummary& run, RunState state, const std::string& text) {
  context.console.print(text + "\n");
  JsonWriter w(2);
  w.begin_object();
  w.member("run", run.id);
  w.member("name", run.name);
  w.member("state", to_string(state));
  w.member("step", run.step);
  w.end_object();
  context.console.print_json(w.text());
}

Result<RunSummary> find_run(Context& context, const std::string& wanted) {
  Result<std::unique_ptr<StoreReader>> reader = JobService::open_reader(workspace_of(context.common));
  if (!reader) return tl::unexpected(reader.error());
  return (*reader)->run(wanted);
}

struct Checkpoints {
  std::int64_t last = 0;      // step of the newest that the run is known to have
  std::int64_t failures = 0;  // attempts
  std::string failure;        // what the last one said
};

Checkpoints checkpoints_of(StoreReader& reader, const RunId& run) {
  Checkpoints seen;
  for (std::int64_t after = 0;;) {
    const auto events = reader.events(run, after, 1000);
    if (!events || events->empty()) return seen;
    after = events->back().id;
    for (const RunEventRow& row : *events) {
      if (row.event.kind != RunEvent::Kind::checkpoint) continue;
      if (row.event.is_alert())
        ++seen.failures, seen.failure = row.event.text;
      else
        seen.last = std::max(seen.last, row.event.step);
    }
  }
}

using Asked = JobService::Request;

// A request that is not where the run looks must not seem to be on its way.
Error not_asked(const RunSummary& run, Error why) {
  why.what = fmt::format("{} ({}) was not asked, and goes on: {}", run.name, run.id, why.what);
  why.remedy =
      fmt::format("{}; or, on its own computer: kill -INT {} (it ends as by stacklab stop)", why.remedy, run.process);
  return why;
}

// A paused run that is stopped does not wait for its continuation any more.
Status leave_queue(const std::filesystem::path& workspace, StoreReader& reader, const RunSummary& run) {
  const auto entries = reader.queue();
  if (!entries) return tl::unexpected(entries.error());
  for (const QueueEntry& entry : *entries) {
    if (entry.run != run.id || entry.process != 0) continue;
    Result<std::unique_ptr<JobService>> service = JobService::open(workspace);
    if (!service) return tl::unexpected(service.error());
    if (Status removed = (*service)->queue_remove(entry.id); !removed) return removed;
  }
  return {};
}

Status ended_already(Context& context, StoreReader& reader, const RunSummary& before) {
  const Result<RunSummary> run = reader.run(before.id);
  if (!run) return tl::unexpected(run.error());
  report(context, *run, run->state,
         fmt::format("{} ({}) is not running: it is {}", run->name, run->id, to_string(run->state)));
  return {};
}

Status ask(Context& context, const Options& options, Asked asked) {
  const std::filesystem::path workspace = workspace_of(context.common);
  Result<std::unique_ptr<StoreReader>> reader = JobService::open_reader(workspace);
  if (!reader) return tl::unexpected(reader.error());
  Result<RunSummary> run = (*reader)->run(options.run);
  if (!run) return tl::unexpected(run.error());
  if (!is_active(run->state)) {
    if (asked == Asked::stop)
      if (Status left = leave_queue(workspace, **reader, *run); !left) return left;
    return ended_already(context, **reader, *run);
  }
  const Checkpoints before = asked == Asked::checkpoint ? checkpoints_of(**reader, run->id) : Checkpoints();
  {
    Result<std::unique_ptr<JobService>> service = JobService::open(workspace);
    if (!service) return tl::unexpected(service.error());
    const Result<bool> running = (*service)->ask(run->id, asked);
    if (!running) return tl::unexpected(not_asked(*run, running.error()));
    if (!*running) return ended_already(context, **reader, *run);
  }
  if (!options.wait) {
    const char* what = asked == Asked::checkpoint ? "was asked for a checkpoint: it writes one after its step"
                       : asked == Asked::pause
                           ? "was asked to pause: it finishes its step, writes a checkpoint and waits in the queue"
                           : "was asked to stop: it finishes its step, writes a checkpoint and ends";
    report(context, *run, asked == Asked::checkpoint ? run->state : RunState::stopping,
           fmt::format("{} ({}) {}", run->name, run->id, what));
    return {};
  }
  const StopSignals signals;
  Checkpoints now = before;
  while (is_active(run->state) &&
         (asked != Asked::checkpoint || (now.last == before.last && now.failures == before.failures))) {
    if (StopSignals::requested()) return stopped("no longer waiting; the run was asked all the same");
    std::this_thread::sleep_for(look_every);
    run = (*reader)->run(run->id);
    if (!run) return tl::unexpected(run.error());
    if (asked == Asked::checkpoint) now = checkpoints_of(**reader, run->id);
  }
  const bool saved = asked == Asked::checkpoint && now.last > before.last;
  const std::string text =
      saved ? fmt::format("{} ({}) has a checkpoint of step {}", run->name, run->id, format_integer(now.last))
            : fmt::format("{} ({}) is {} at step {}", run->name, run->id, to_string(run->state),
                          format_integer(run->step));
  report(context, *run, run->state, text);
  if (now.failures > before.failures) return failed(fmt::format("{} ({}): {}", run->name, run->id, now.failure));
  // It ended, but not as it was asked to.
  if (!saved && run->state != RunState::paused && run->state != RunState::finished)
    return failed(fmt::format("{}: {}", text, run->cause));
  return {};
}

struct ResumeOptions {
  std::string run;
  JobOptions job;
};

// From the config that the run was started with. What does not belong to a run's identity may change.
Status resume(Context& context, const ResumeOptions& options) {
  const Result<StoredRun> run = stored_run(options.run, context.common);
  if (!run) return tl::unexpected(run.error());
  return run_job(context, run->config, true, options.job);
}

struct ForkOptions {
  std::string run, name;
  std::optional<std::int64_t> at;
  bool start = false;
  JobOptions job;
};

Status fork(Context& context, const ForkOptions& options) {
  const Result<RunSummary> parent = find_run(context, options.run);
  if (!parent) return tl::unexpected(parent.error());
  Result<RunConfig> config = parse_config(parent->config_json, fmt::format("the stored config of run {}", parent->id));
  if (!config) return tl::unexpected(config.error());
  if (Status s = apply_common(*config, context.common); !s) return s;
  if (!options.name.empty()) config->name = options.name;
  // A run is named after what it is trained on: text is taken in before the fork has its id.
  const Status taken_in = run_beside("data", context.console.quiet(), {"text", "", 0, 0},
                                     [&](const ReportProgress& report, std::stop_token stop) -> Status {
                                       return take_in_corpus(*config, workspace_of(context.common),
                                                             shown_as("text", report), std::move(stop));
                                     });
  if (!taken_in) return taken_in;
  RunId id;
  {
    Result<std::unique_ptr<JobService>> service = JobService::open(workspace_of(context.common));
    if (!service) return tl::unexpected(service.error());
    const Result<RunId> made = (*service)->fork(parent->id, *options.at, *config);
    if (!made) return tl::unexpected(made.error());
    id = *made;
  }
  const Result<RunSummary> made = find_run(context, id);
  if (!made) return tl::unexpected(made.error());
  if (!options.start) {
    report(context, *made, made->state,
           fmt::format("{} ({}) goes on from step {} of {}. Train it with: stacklab resume {}", made->name, made->id,
                       format_integer(*options.at), parent->name, made->id));
    return {};
  }
  config = parse_config(made->config_json, "the fork's config");
  if (!config) return tl::unexpected(config.error());
  return run_job(context, *config, true, options.job);
}

Argument run_argument(std::string& target) {
  return {"RUN", "", "A run's id, the start of one, or its name", &target, true};
}

Verb asking_verb(const std::string& name, const std::string& summary, Asked asked, const std::string& details) {
  const auto options = std::make_shared<Options>();
  return {name,
          summary,
          fmt::format("stacklab {} first-run --wait", name),
          {run_argument(options->run), {"--wait", "", "Until it is done", &options->wait}},
          {},
          [options, asked](Context& context) { return ask(context, *options, asked); },
          details};
}

}  // namespace

Verb stop_verb() {
  return asking_verb(
      "stop", "Ask a run to finish its step, write a checkpoint and end", Asked::stop,
      "The run may be trained by any process, a window too. It reads paused, \"stopped at step N\", and\n"
      "leaves the queue; nothing is lost, and stacklab resume goes on with it whenever you like.");
}
Verb pause_verb() {
  return asking_verb("pause", "Ask a run to finish its step, write a checkpoint and wait", Asked::pause,
                     "As stop, but the run keeps its place: it waits at the head of the queue, from where\n"
                     "stacklab queue run, or stacklab resume, goes on as if nothing had been.");
}
Verb checkpoint_verb() {
  return asking_verb("checkpoint", "Ask a run for a checkpoint now; it goes on", Asked::checkpoint,
                     "It is written after the step at hand, besides those of run.checkpoint_every, and kept by the\n"
                     "same rule (run.keep_last, run.keep_milestones).");
}

Verb fork_verb() {
  const auto options = std::make_shared<ForkOptions>();
  std::vector<Argument> arguments = {run_argument(options->run),
                                     {"--at", "STEP", "A step of which the run has a checkpoint", &options->at, true},
                                     {"--name", "NAME", "What to call it (default: RUN-atSTEP)", &options->name},
                                     {"--start", "", "Train it at once, in this process", &options->start}};
  for (Argument& argument : job_arguments(options->job)) arguments.push_back(std::move(argument));
  return {"fork",
          "Make a new run that goes on from a checkpoint of another",
          "stacklab fork first-run --at 600 --set optim.adam_lr=3e-4 --name cooler --start",
          std::move(arguments),
          {},
          [options](Context& context) { return fork(context, *options); },
          "The fork is a run of its own, with its own id even when nothing else changes; its curves begin after STEP.\n"
          "Keys that shape the model or its checkpoint, and train.batch_tokens, stay as they are."};
}

Verb resume_verb() {
  const auto options = std::make_shared<ResumeOptions>();
  std::vector<Argument> arguments = {{"RUN", "", "A run's id, the start of one, or its name", &options->run, true}};
  for (Argument& argument : job_arguments(options->job)) arguments.push_back(std::move(argument));
  return {"resume",
          "Go on with a paused, lost or failed run from its last checkpoint",
          "stacklab resume first-run --threads 2",
          std::move(arguments),
          {},
          [options](Context& context) { return resume(context, *options); },
          "It goes on in this process, bit for bit as if it had never paused. Keys of the section run may be changed\n"
          "with --set, --device and --threads, and stay as they were changed last; others would make it another run."};
}

}  // namespace stacklab::cli
