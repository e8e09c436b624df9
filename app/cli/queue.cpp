// What waits to be trained in a workspace.
#include <fmt/format.h>

#include <memory>
#include <set>

#include "app/cli/common.h"
#include "app/cli/console.h"
#include "app/cli/run_job.h"
#include "app/cli/signals.h"
#include "engine/service/job_service.h"
#include "engine/service/model_facts.h"

namespace stacklab::cli {
namespace {

struct Options {
  std::string config;
  std::optional<std::int64_t> entry, place;
  bool resume = false;
  std::string fallback_corpus;
};

Result<std::unique_ptr<JobService>> open(Context& context) { return JobService::open(workspace_of(context.common)); }

Status show(Context& context, const std::string& words) {
  Result<std::unique_ptr<StoreReader>> reader = JobService::open_reader(workspace_of(context.common));
  if (!reader) return tl::unexpected(reader.error());
  const Result<std::vector<QueueEntry>> entries = (*reader)->queue();
  if (!entries) return tl::unexpected(entries.error());
  std::vector<std::vector<std::string>> rows = {{"entry", "run", "name", "waits for"}};
  JsonWriter w(2);
  w.begin_object();
  w.key("queue");
  w.begin_array();
  for (const QueueEntry& entry : *entries) {
    rows.push_back({std::to_string(entry.id), entry.run.substr(0, 8), entry.name,
                    entry.process != 0 ? fmt::format("its turn in process {}", entry.process) : "stacklab queue run"});
    w.begin_object();
    w.member("entry", entry.id);
    w.member("run", entry.run);
    w.member("name", entry.name);
    w.member("process", entry.process);
    w.member("added", entry.added);
    w.end_object();
  }
  w.end_array();
  w.end_object();
  if (!words.empty()) context.console.note(words);
  context.console.print(entries->empty() ? "Nothing waits.\n" : table(rows, {true, false, false, false}));
  context.console.print_json(w.text());
  return {};
}

Status add(Context& context, const Options& options) {
  const Result<RunConfig> config = config_of(options.config, context.common);
  if (!config) return tl::unexpected(config.error());
  if (Status valid = check_launch(*config); !valid) return valid;
  {
    const auto service = open(context);
    if (!service) return tl::unexpected(service.error());
    SubmitOptions submit;
    submit.resume = options.resume;
    submit.fallback_corpus = options.fallback_corpus;
    if (const auto added = (*service)->queue_add(*config, submit); !added) return tl::unexpected(added.error());
  }
  return show(context, {});
}

template <class Change>
Status change(Context& context, Change&& what) {
  {
    const auto service = open(context);
    if (!service) return tl::unexpected(service.error());
    if (Status done = what(**service); !done) return done;
  }
  return show(context, {});
}

// The first that waits for a person and was not tried yet.
Result<std::optional<QueueEntry>> next_entry(JobService& service, const std::set<std::int64_t>& tried,
                                             const std::optional<std::int64_t>& wanted) {
  const auto reader = service.reader();
  if (!reader) return tl::unexpected(reader.error());
  const auto entries = (*reader)->queue();
  if (!entries) return tl::unexpected(entries.error());
  for (const QueueEntry& entry : *entries)
    if (!tried.contains(entry.id) && (wanted ? entry.id == *wanted : entry.process == 0)) return std::optional(entry);
  if (wanted && tried.empty())
    return usage_error(fmt::format("the queue has no entry {}", *wanted), "see: stacklab queue list");
  return std::optional<QueueEntry>();
}

JobOutcome train_entry(JobService& service, const QueueEntry& entry, Console& console) {
  JobOutcome outcome;
  outcome.run = entry.run;
  const auto job = service.queue_start(entry.id);
  if (!job) outcome.error = job.error();
  if (!job || !*job) return outcome;
  return follow(service, **job, entry.name, 0, console);
}

// One after another, until none is left that waits for a person. A run that fails does not keep the next from starting.
Status run(Context& context, const Options& options) {
  allow_closed_output();  // the runs are in the store
  const auto service = open(context);
  if (!service) return tl::unexpected(service.error());
  JsonWriter w(2);
  w.begin_object();
  w.key("jobs");
  w.begin_array();
  std::optional<Error> first_error;
  std::int64_t failures = 0;
  std::set<std::int64_t> tried;
  for (;;) {
    const auto entry = next_entry(**service, tried, options.entry);
    if (!entry) return tl::unexpected(entry.error());
    if (!*entry) break;
    tried.insert((*entry)->id);
    const std::string& name = (*entry)->name;
    const JobOutcome outcome = train_entry(**service, **entry, context.console);
    context.console.print(
        fmt::format("{} ({}): {}{}{}\n", name, outcome.run.empty() ? (*entry)->run : outcome.run,
                    outcome.begun || outcome.already_finished ? to_string(outcome.state) : "could not begin, and stays",
                    outcome.error ? ": " : "", outcome.error ? outcome.error->message() : ""));
    w.begin_object();
    w.member("run", outcome.run);
    w.member("name", name);
    w.member("state", outcome.begun || outcome.already_finished ? to_string(outcome.state) : "queued");
    w.member("steps", outcome.steps);
    if (outcome.error) w.member("error", outcome.error->what);
    w.end_object();
    if (!outcome.error) continue;
    if (outcome.error->kind == Error::Kind::stopped) {
      first_error = outcome.error;
      failures = 1;
      break;
    }
    ++failures;
    if (!first_error) first_error = outcome.error;
  }
  w.end_array();
  w.end_object();
  if (tried.empty()) context.console.print("Nothing waits for a person to start it.\n");
  context.console.print_json(w.text());
  if (!first_error) return {};
  // What is wrong with an entry is not wrong with the command.
  if (first_error->kind == Error::Kind::usage) first_error->kind = Error::Kind::failed;
  if (failures > 1)
    first_error->what = fmt::format("{} of {} runs, the first: {}", failures, tried.size(), first_error->what);
  return tl::unexpected(*first_error);
}

}  // namespace

Verb queue_verb() {
  const auto options = std::make_shared<Options>();
  const Argument entry{"ENTRY", "", "Number of an entry, as queue list has it", &options->entry, true};
  Verb add_verb{"add",
                "Put a run at the end of the queue",
                "stacklab queue add experiments/first-run.json --set optim.adam_lr=3e-3",
                {{"CONFIG", "", "A config file", &options->config, true},
                 {"--resume", "", "Go on where the run is, if it has begun", &options->resume},
                 {"--fallback-corpus", "NAME", "Train on this corpus when the config's cannot be had",
                  &options->fallback_corpus}},
                {},
                [options](Context& context) { return add(context, *options); },
                {}};
  Verb list_verb{"list", "What waits, in order", "stacklab queue list", {}, {}, [](Context& c) { return show(c, {}); },
                 {}};
  Verb move_verb{"move",
                 "Change the order",
                 "stacklab queue move 3 --to 1",
                 {entry, {"--to", "PLACE", "From 1, the head", &options->place, true}},
                 {},
                 [options](Context& context) -> Status {
                   if (*options->place < 1) return usage_error("--to: places count from 1, the head");
                   return change(context, [&](JobService& service) {
                     return service.queue_move(*options->entry, *options->place - 1);
                   });
                 },
                 {}};
  Verb remove_verb{"remove",
                   "Take an entry out",
                   "stacklab queue remove 3",
                   {entry},
                   {},
                   [options](Context& context) {
                     return change(context, [&](JobService& service) { return service.queue_remove(*options->entry); });
                   },
                   {}};
  Argument one = entry;
  one.required = false;
  Verb run_verb{
      "run",
      "Train what waits for a person, one after another, in this process",
      "stacklab queue run",
      {one},
      {},
      [options](Context& context) { return run(context, *options); },
      "Ctrl-C finishes the step at hand, writes a checkpoint and ends; the rest stays in the queue. A run that\n"
      "cannot begin (a full disk, a corpus that cannot be had) stays there too, and the next has its turn; the\n"
      "exit code is then 1, or 3 where a guard refused the first of them. So does one whose process is killed:\n"
      "it waits to be gone on with."};
  return {
      "queue",
      "What waits to be trained",
      "stacklab queue list",
      {},
      {std::move(add_verb), std::move(list_verb), std::move(move_verb), std::move(remove_verb), std::move(run_verb)},
      {},
      "The queue is kept in the workspace. What another program left there when it ended, and paused runs, wait\n"
      "until a person starts them: nothing begins by itself."};
}

}  // namespace stacklab::cli
