#include "app/cli/run_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "app/cli/common.h"
#include "app/cli/console.h"
#include "app/cli/levers.h"
#include "app/cli/operations.h"
#include "app/cli/progress.h"
#include "app/cli/signals.h"
#include "engine/base/counted.h"
#include "engine/base/text.h"
#include "engine/service/model_facts.h"

namespace stacklab::cli {
namespace {

namespace fs = std::filesystem;

constexpr double look_every = 0.1;  // seconds between looks at the job
constexpr int reads_every = 5;      // looks between reads of the store

std::optional<double> known(double value) { return std::isnan(value) ? std::nullopt : std::optional(value); }

// What stands beside the bar, from the store, as anybody else would see it.
class Figures {
 public:
  explicit Figures(JobService& service) {
    if (Result<std::unique_ptr<StoreReader>> reader = service.reader()) reader_ = std::move(*reader);
  }
  std::string of(const RunId& id) {
    if (reader_ == nullptr || id.empty()) return {};
    const Result<RunSummary> run = reader_->run(id);
    if (!run || !run->last_loss) return text_;
    text_ = "loss " + loss_text(run->last_loss);
    if (run->val_loss) text_ += ", validation " + loss_text(run->val_loss);
    return text_;
  }

 private:
  std::unique_ptr<StoreReader> reader_;
  std::string text_;
};

struct Stored {
  std::string name;
  RunId id;
  fs::path folder;
  std::int64_t total_steps = 0;
};

Stored stored_run(JobService& service, const JobOutcome& outcome, const RunConfig& config) {
  Stored stored{config.name, outcome.run, {}, config.steps()};
  if (outcome.run.empty()) return stored;
  const Result<std::unique_ptr<StoreReader>> reader = service.reader();
  if (!reader) return stored;
  if (const Result<RunSummary> run = (*reader)->run(outcome.run)) {
    stored.name = run->name;
    stored.folder = service.workspace() / "runs" / run->folder;
    stored.total_steps = run->total_steps;
  }
  return stored;
}

// One line that says what was learnt.
std::string learnt(const JobOutcome& o, const Stored& run) {
  std::string text =
      fmt::format("{} ({}): loss {} to {}", run.name, run.id, loss_text(known(o.first_loss)), loss_text(known(o.loss)));
  if (const auto validation = known(o.val_loss)) text += fmt::format(", validation {}", loss_text(validation));
  if (const auto entropy = known(o.unigram_entropy); entropy && *entropy > 0)
    text += fmt::format(" (counting tokens gives {})", loss_text(entropy));
  return text + fmt::format(", {} in {}, stored in {}", counted(o.steps, "step"), format_duration(o.seconds),
                            run.folder.string());
}

std::string trace_table(const TraceSummary& trace) {
  return fmt::format("Steps {} to {} took {:.4f} s; the trace is in {}\n", trace.first_step, trace.last_step,
                     trace.seconds, trace.file) +
         operations_table(trace.operations, trace.seconds);
}

void write_trace(JsonWriter& w, const TraceSummary& trace) {
  w.key("trace");
  w.begin_object();
  w.member("file", trace.file);
  w.member("first_step", trace.first_step);
  w.member("last_step", trace.last_step);
  w.member("seconds", trace.seconds);
  write_operations(w, trace.operations, trace.seconds);
  w.end_object();
}

std::string as_json(const JobOutcome& o, const Stored& run, const fs::path& workspace) {
  JsonWriter w(2);
  w.begin_object();
  w.member("run", run.id);
  w.member("name", run.name);
  w.member("state", to_string(o.state));
  w.member("already_finished", o.already_finished);
  w.member("steps", o.steps);
  w.member("total_steps", run.total_steps);
  w.member("tokens", o.tokens);
  member_or_null(w, "first_loss", known(o.first_loss));
  // A loss that was measured and is not a number shows as "nan".
  w.member("loss", o.loss);
  member_or_null(w, "val_loss", known(o.val_loss));
  member_or_null(w, "val_bpb", known(o.val_bpb));
  member_or_null(w, "unigram_entropy", known(o.unigram_entropy));
  w.member("seconds", o.seconds);
  w.member("tokens_per_second", o.tokens_per_second);
  member_or_null(w, "mfu_6nd", known(o.utilisation.mfu_6nd));
  member_or_null(w, "mfu_attention", known(o.utilisation.mfu_attention));
  member_or_null(w, "mfu_documents", known(o.utilisation.mfu_documents));
  member_or_null(w, "hfu", known(o.utilisation.hfu));
  w.member("parameters", o.parameters);
  w.member("plan_bytes", o.plan_bytes);
  w.member("peak_bytes", o.peak_bytes);
  w.member("workspace", workspace.string());
  w.member("folder", run.folder.string());
  if (o.trace) write_trace(w, *o.trace);
  if (o.levers) w.key("levers"), write_levers(w, *o.levers);
  if (o.error) {
    w.member("error", o.error->what);
    w.member("remedy", o.error->remedy);
  }
  w.end_object();
  return w.text();
}

// A trace is written after its steps, and takes the place of an older trace but of nothing else.
Status check_trace_place(const fs::path& file) {
  if (file.empty()) return {};
  std::error_code ec;
  if (const fs::path folder = fs::absolute(file, ec).parent_path(); !fs::is_directory(folder, ec))
    return failed(fmt::format("--trace: there is no folder {}", folder.string()), "make it first");
  if (!fs::exists(file, ec)) return {};
  const auto refusal = [&](std::string_view why) {
    return refused(fmt::format("--trace: {} {}", file.string(), why), "name a file that does not exist");
  };
  if (!fs::is_regular_file(file, ec)) return refusal("is no file");
  if (fs::file_size(file, ec) == 0) return {};
  std::string begin(trace_beginning.size(), '\0');
  std::ifstream(file, std::ios::binary).read(begin.data(), static_cast<std::streamsize>(begin.size()));
  return begin == trace_beginning ? Status() : refusal("exists and is no trace");
}

// The same words without --detach, in a process of its own.
Status detach(Context& context, const RunConfig& config) {
  std::vector<std::string> words = context.words;
  std::erase(words, "--detach");
  const StopSignals signals;
  const Result<DetachedRun> run =
      start_detached(workspace_of(context.common), config, words, [] { return StopSignals::requested(); });
  if (!run) return tl::unexpected(run.error());
  context.console.print(
      fmt::format("{} ({}) is {} in process {}, which needs no terminal. Its output is in {}\n"
                  "Stop it with: stacklab stop {}\n",
                  run->name, run->run, to_string(run->state), run->process, run->log.string(), run->run));
  JsonWriter w(2);
  w.begin_object();
  w.member("run", run->run);
  w.member("name", run->name);
  w.member("state", to_string(run->state));
  w.member("process", run->process);
  w.member("log", run->log.string());
  w.end_object();
  context.console.print_json(w.text());
  return {};
}

}  // namespace

JobOutcome follow(JobService& service, std::int64_t job, const std::string& name, std::int64_t max_steps,
                  Console& console) {
  const StopSignals signals("Ended at once: the steps since the last checkpoint are lost.\n");
  ProgressDisplay display(name, console.quiet());
  Figures figures(service);
  std::string beside;
  bool asked = false;
  for (int look = 0;; ++look) {
    if (std::optional<JobOutcome> outcome = service.wait(job, look_every)) return *outcome;
    if (StopSignals::requested() && !asked) {
      asked = true;
      service.stop_job(job);
      console.note("Stopping: the step is finished and a checkpoint written. Ctrl-C again ends at once.");
    }
    for (const std::shared_ptr<const JobSnapshot>& snapshot : service.jobs()) {
      if (snapshot->job != job) continue;
      if (look % reads_every == 0) beside = figures.of(snapshot->run);
      Progress shown = snapshot->progress;
      if (shown.phase == "training" && max_steps > 0) shown.total = std::min(shown.total, max_steps);
      display.show(shown, beside);
    }
  }
}

std::vector<Argument> job_arguments(JobOptions& options) {
  return {
      {"--max-steps", "N", "Stop after this many steps of the run in all; --resume goes on", &options.max_steps},
      {"--detach", "", "In a process of its own, which goes on when this terminal closes", &options.detach},
      {"--trace", "FILE", "Write what every operation of a few steps cost, for ui.perfetto.dev", &options.trace},
      {"--trace-steps", "N", "How many steps (default: 3, from the second one of this process)", &options.trace_steps}};
}

Status run_job(Context& context, const RunConfig& config, bool resume, const JobOptions& options) {
  Console& console = context.console;
  allow_closed_output();  // the run is in the store
  if (Status valid = check_launch(config); !valid) return valid;
  if (options.max_steps && *options.max_steps < 1)
    return usage_error(fmt::format("--max-steps: {} is less than one step", *options.max_steps));
  if (options.trace_steps && *options.trace_steps < 1)
    return usage_error(fmt::format("--trace-steps: {} is less than one step", *options.trace_steps));
  if (Status place = check_trace_place(options.trace); !place) return place;

  if (options.detach) return detach(context, config);

  Result<std::unique_ptr<JobService>> service = JobService::open(workspace_of(context.common));
  if (!service) return tl::unexpected(service.error());
  SubmitOptions submit;
  submit.detached = is_detached_process();
  submit.resume = resume;
  submit.max_steps = options.max_steps.value_or(0);
  submit.fallback_corpus = options.fallback_corpus;
  submit.trace_file = options.trace;
  submit.trace_steps = options.trace_steps.value_or(submit.trace_steps);
  const std::int64_t job = (*service)->submit(config, submit);
  const JobOutcome outcome = follow(**service, job, config.name, submit.max_steps, console);
  const Stored run = stored_run(**service, outcome, config);

  if (outcome.levers) {
    console.note("\n" + lever_table(*outcome.levers));
    console.print_json(as_json(outcome, run, (*service)->workspace()));
  }

  // A budget that is spent ends a run in order, too.
  const bool ended_in_order =
      !outcome.error || outcome.error->kind == Error::Kind::stopped || outcome.state == RunState::paused;
  if (!run.id.empty() && ended_in_order) {
    if (outcome.already_finished)
      console.print("This run is already finished; nothing was done.\n");
    else if (outcome.steps < run.total_steps)
      console.print(fmt::format("Paused at step {} of {}. Continue with: stacklab resume {}\n",
                                format_integer(outcome.steps), format_integer(run.total_steps), run.id));
    console.print(learnt(outcome, run) + "\n");
    if (outcome.trace)
      console.note(trace_table(*outcome.trace));
    else if (!options.trace.empty())
      console.note("No step was left to trace: " + options.trace + " is not written");
    console.print_json(as_json(outcome, run, (*service)->workspace()));
  }
  return outcome.error ? Status(tl::unexpected(*outcome.error)) : Status();
}

}  // namespace stacklab::cli
