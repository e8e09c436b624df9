// Steering runs, whatever process trains them: through the store, which every running job looks at with its heartbeat.
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <thread>

#include "app/cli/common.h"
#include "app/cli/console.h"
#include "app/cli/run_job.h"
#include "app/cli/signals.h"
#include "engine/base/text.h"
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

Status stop(Context& context, const Options& options) {
  const std::filesystem::path workspace = workspace_of(context.common);
  Result<std::unique_ptr<StoreReader>> reader = JobService::open_reader(workspace);
  if (!reader) return tl::unexpected(reader.error());
  Result<RunSummary> run = (*reader)->run(options.run);
  if (!run) return tl::unexpected(run.error());
  if (!is_active(run->state)) {
    report(context, *run, run->state,
           fmt::format("{} ({}) is not running: it is {}", run->name, run->id, to_string(run->state)));
    return {};
  }
  {
    Result<std::unique_ptr<JobService>> service = JobService::open(workspace);
    if (!service) return tl::unexpected(service.error());
    (*service)->stop(run->id);
  }
  if (!options.wait) {
    report(context, *run, RunState::stopping,
           fmt::format("{} ({}) was asked to stop: it finishes its step, writes a checkpoint and ends", run->name,
                       run->id));
    return {};
  }
  const StopSignals signals;
  while (is_active(run->state)) {
    if (StopSignals::requested()) return stopped("no longer waiting; the run was asked to stop all the same");
    std::this_thread::sleep_for(look_every);
    run = (*reader)->run(run->id);
    if (!run) return tl::unexpected(run.error());
  }
  report(context, *run, run->state,
         fmt::format("{} ({}) is {} at step {}", run->name, run->id, to_string(run->state), format_integer(run->step)));
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

Verb stopping_verb(const std::string& name, const std::string& summary) {
  const auto options = std::make_shared<Options>();
  return {name,
          summary,
          fmt::format("stacklab {} first-run --wait", name),
          {{"RUN", "", "A run's id, the start of one, or its name", &options->run, true},
           {"--wait", "", "Until the run has ended", &options->wait}},
          {},
          [options](Context& context) { return stop(context, *options); },
          "The run may be trained by any process, a window too. It finishes its step, writes a checkpoint and reads\n"
          "paused; stacklab resume goes on as if nothing had been. stop and pause are the same."};
}

}  // namespace

Verb stop_verb() { return stopping_verb("stop", "Ask a run to finish its step, write a checkpoint and end"); }
Verb pause_verb() {
  return stopping_verb("pause", "Ask a run to finish its step and write a checkpoint, to go on later");
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
          "with --set, --device and --threads; others would make it another run."};
}

}  // namespace stacklab::cli
