#include "app/cli/run_edits.h"

#include <fmt/format.h>

#include <memory>

#include "app/cli/common.h"
#include "app/cli/console.h"
#include "app/cli/run_job.h"
#include "engine/base/atomic_file.h"
#include "engine/base/text.h"
#include "engine/config/config_io.h"
#include "engine/service/job_service.h"
#include "engine/service/trash.h"

namespace stacklab::cli {
namespace {

struct Options {
  std::string run, text, out, name;
  std::vector<std::string> words, remove;
  std::optional<std::int64_t> keep;
  bool clear = false, undo = false, purge = false, start = false;
  JobOptions job;
};

Result<RunSummary> find_run(Context& context, const std::string& wanted) {
  Result<std::unique_ptr<StoreReader>> reader = JobService::open_reader(workspace_of(context.common));
  if (!reader) return tl::unexpected(reader.error());
  return (*reader)->run(wanted);
}

void write_run(JsonWriter& w, const RunSummary& run) {
  w.member("run", run.id);
  w.member("id", run.id);
  w.member("name", run.name);
  w.member("state", to_string(run.state));
  write_edits(w, run);
}

// Makes the edit and says how the run stands then.
Status edit(Context& context, const std::string& wanted, const RunEdit& change, const std::string& said) {
  const Result<RunSummary> run = find_run(context, wanted);
  if (!run) return tl::unexpected(run.error());
  if (!change.empty()) {
    const auto service = JobService::open(workspace_of(context.common));
    if (!service) return tl::unexpected(service.error());
    if (const auto back = (*service)->edit(run->id, change); !back) return tl::unexpected(back.error());
  }
  const Result<RunSummary> now = find_run(context, run->id);
  if (!now) return tl::unexpected(now.error());
  std::string text = fmt::format("{} ({}){}\n", now->name, now->id, said.empty() ? ":" : " " + said);
  if (said.empty()) {
    text += fmt::format("tags  {}\n", now->tags.empty() ? "–" : fmt::format("{}", fmt::join(now->tags, ", ")));
    text += fmt::format("note  {}\n", now->note.empty() ? "–" : now->note);
  }
  context.console.print(text);
  JsonWriter w(2);
  w.begin_object();
  write_run(w, *now);
  w.end_object();
  context.console.print_json(w.text());
  return {};
}

// Shown on terminals and in windows, for as long as there is the store.
Status check_text(const std::vector<std::string>& words) {
  for (const std::string& word : words)
    for (std::string_view rest = word; !rest.empty();) {
      const std::size_t length = utf8_length(rest);
      if (length == 0) return usage_error(fmt::format("\"{}\" is not UTF-8 text", printable(word)));
      rest.remove_prefix(length);
    }
  return {};
}

Status tag(Context& context, const Options& options) {
  if (Status text = check_text(options.words); !text) return text;
  RunEdit change;
  change.add_tags = options.words;
  change.remove_tags = options.remove;
  return edit(context, options.run, change, {});
}

Status note(Context& context, const Options& options) {
  if (Status text = check_text(options.words); !text) return text;
  RunEdit change;
  if (options.clear || !options.words.empty()) change.note = fmt::format("{}", fmt::join(options.words, " "));
  return edit(context, options.run, change, {});
}

Status archive(Context& context, const Options& options) {
  RunEdit change;
  change.archived = !options.undo;
  return edit(context, options.run, change,
              options.undo ? "is listed again" : "is archived: runs list shows it with --archived only");
}

Status purge(Context& context, const Options& options) {
  const Result<RunSummary> run = find_run(context, options.run);
  if (!run) return tl::unexpected(run.error());
  if (!context.common.yes)
    return refused(fmt::format("{} ({}) would be gone for good, with its checkpoints and curves", run->name, run->id),
                   "say so with --yes");
  const auto service = JobService::open(workspace_of(context.common));
  if (!service) return tl::unexpected(service.error());
  if (run->deleted <= 0) {
    RunEdit change;
    change.deleted = true;
    if (const auto back = (*service)->edit(run->id, change); !back) return tl::unexpected(back.error());
  }
  if (Status done = (*service)->purge(run->id); !done) return done;
  context.console.print(fmt::format("{} ({}) is gone\n", run->name, run->id));
  JsonWriter w(2);
  w.begin_object();
  w.member("run", run->id);
  w.member("name", run->name);
  w.member("purged", true);
  w.end_object();
  context.console.print_json(w.text());
  return {};
}

Status remove(Context& context, const Options& options) {
  if (options.purge) return purge(context, options);
  RunEdit change;
  change.deleted = true;
  return edit(context, options.run, change,
              fmt::format("is in the trash. Bring it back with: stacklab runs restore {}", options.run));
}

Status restore(Context& context, const Options& options) {
  const Result<RunSummary> run = find_run(context, options.run);
  if (!run) return tl::unexpected(run.error());
  const std::filesystem::path workspace = workspace_of(context.common);
  const std::filesystem::path trash = workspace / "trash" / run->folder;
  std::error_code ec;
  if (run->deleted > 0 && run->step > 0 && !std::filesystem::exists(trash, ec) &&
      !std::filesystem::exists(workspace / "runs" / run->folder, ec))
    return failed(
        fmt::format("the folder of {} ({}) is not in the trash: {} is gone", run->name, run->id, trash.string()),
        "put it back there, or remove the run with --purge");
  RunEdit change;
  change.deleted = false;
  return edit(context, options.run, change, "is back");
}

Status prune(Context& context, const Options& options) {
  const std::int64_t keep = options.keep.value_or(1);
  if (keep < 1) return usage_error("--keep: the newest checkpoint stays", "give 1 or more");
  Result<std::unique_ptr<StoreReader>> reader = JobService::open_reader(workspace_of(context.common));
  if (!reader) return tl::unexpected(reader.error());
  std::vector<RunSummary> runs;
  for (const std::string& wanted : options.words) {
    Result<RunSummary> run = (*reader)->run(wanted);
    if (!run) return tl::unexpected(run.error());
    if (run->state != RunState::finished)
      return refused(
          fmt::format("{} ({}) is {}: it may still need its checkpoints", run->name, run->id, to_string(run->state)),
          "only finished runs are pruned");
    runs.push_back(std::move(*run));
  }
  if (options.words.empty()) {
    Result<std::vector<RunSummary>> all = (*reader)->runs();
    if (!all) return tl::unexpected(all.error());
    runs = std::move(*all);
  }
  const bool dry_run = !context.common.yes;
  const auto pruned = prune_finished(workspace_of(context.common), runs, keep, dry_run);
  if (!pruned) return tl::unexpected(pruned.error());
  std::int64_t bytes = 0;
  std::string text;
  JsonWriter w(2);
  w.begin_object();
  w.member("dry_run", dry_run);
  w.key("runs");
  w.begin_array();
  for (const PrunedRun& run : *pruned) {
    bytes += run.bytes;
    text += fmt::format("{} ({}): checkpoints of steps {}, {}\n", run.name, run.run, fmt::join(run.steps, ", "),
                        format_bytes(static_cast<double>(run.bytes)));
    w.begin_object();
    w.member("run", run.run);
    w.member("name", run.name);
    w.key("steps");
    w.begin_array();
    for (const std::int64_t step : run.steps) w.value(step);
    w.end_array();
    w.member("bytes", run.bytes);
    w.end_object();
  }
  w.end_array();
  w.member("bytes", bytes);
  w.end_object();
  context.console.print(pruned->empty() ? "Nothing to remove.\n" : text);
  if (dry_run && !pruned->empty()) context.console.note("Nothing was removed yet; do it with --yes.");
  context.console.print_json(w.text());
  return {};
}

Status diff(Context& context, const Options& options) {
  if (options.words.size() < 2)
    return usage_error("runs diff needs two runs or more", "see: stacklab runs diff --help");
  Result<std::unique_ptr<StoreReader>> reader = JobService::open_reader(workspace_of(context.common));
  if (!reader) return tl::unexpected(reader.error());
  std::vector<RunSummary> runs;
  std::vector<std::string> configs;
  for (const std::string& wanted : options.words) {
    Result<RunSummary> run = (*reader)->run(wanted);
    if (!run) return tl::unexpected(run.error());
    configs.push_back(run->config_json);
    runs.push_back(std::move(*run));
  }
  std::vector<std::string> header = {"key"}, losses = {"loss"}, validation = {"val_loss"}, steps = {"step"};
  std::vector<bool> right = {false};
  JsonWriter w(2);
  w.begin_object();
  w.key("runs");
  w.begin_array();
  for (const RunSummary& run : runs) {
    header.push_back(fmt::format("{} ({})", run.name, run.id.substr(0, 8)));
    losses.push_back(loss_text(run.last_loss));
    validation.push_back(loss_text(run.val_loss));
    steps.push_back(format_integer(run.step));
    right.push_back(false);
    w.begin_object();
    w.member("id", run.id);
    w.member("name", run.name);
    w.member("state", to_string(run.state));
    w.member("step", run.step);
    member_or_null(w, "loss", run.last_loss);
    member_or_null(w, "val_loss", run.val_loss);
    w.end_object();
  }
  w.end_array();
  std::vector<std::vector<std::string>> rows = {header};
  w.key("differences");
  w.begin_array();
  for (const ConfigDifference& difference : config_differences(configs)) {
    std::vector<std::string> row = {difference.key};
    w.begin_object();
    w.member("key", difference.key);
    w.key("values");
    w.begin_array();
    for (const std::string& value : difference.values) {
      row.push_back(value.empty() ? "–" : value);
      w.value(value);
    }
    w.end_array();
    w.end_object();
    rows.push_back(std::move(row));
  }
  w.end_array();
  w.end_object();
  for (auto* row : {&steps, &losses, &validation}) rows.push_back(std::move(*row));
  context.console.print(table(rows, right));
  context.console.print_json(w.text());
  return {};
}

Status clone(Context& context, const Options& options) {
  const Result<RunSummary> run = find_run(context, options.run);
  if (!run) return tl::unexpected(run.error());
  Result<RunConfig> config = parse_config(run->config_json, fmt::format("the stored config of run {}", run->id));
  if (!config) return tl::unexpected(config.error());
  config->train.parent.clear();  // a clone begins at the beginning
  if (Status s = apply_common(*config, context.common); !s) return s;
  if (!options.name.empty()) config->name = options.name;
  if (options.start) return run_job(context, *config, false, options.job);
  if (options.out.empty() || options.out == "-") {
    context.console.print(to_json(*config));
    context.console.print_json(trim(to_json(*config)));
    return {};
  }
  if (Status sure = confirm_replacing(context, options.out); !sure) return sure;
  if (Status written = write_file_atomically(options.out, to_json(*config)); !written) return written;
  context.console.note(fmt::format("The config of {} ({}) is in {}", run->name, run->id, options.out));
  JsonWriter w(2);
  w.begin_object();
  w.member("run", config_hash(*config));
  w.member("name", config->name);
  w.member("file", options.out);
  w.end_object();
  context.console.print_json(w.text());
  return {};
}

}  // namespace

void write_edits(JsonWriter& w, const RunSummary& run) {
  w.key("tags");
  w.begin_array();
  for (const std::string& tag : run.tags) w.value(tag);
  w.end_array();
  w.member("note", run.note);
  w.member("archived", run.archived > 0);
  w.member("deleted", run.deleted > 0);
}

std::vector<Verb> run_edit_verbs() {
  const auto o = std::make_shared<Options>();
  const Argument run{"ID", "", "A run's id, the start of one, or its name", &o->run, true};
  const auto does = [o](Status (*act)(Context&, const Options&)) {
    return [o, act](Context& context) { return act(context, *o); };
  };
  Argument tags{"TAG", "", "Tags to add, one word each; none: show what there is", &o->words};
  tags.many = true;
  Argument words{"TEXT", "", "The note; none: show it", &o->words};
  words.many = true;
  Argument several{"ID", "", "Two runs or more", &o->words, true};
  several.many = true;
  Argument pruned{"ID", "", "Which runs (default: all that are finished)", &o->words};
  pruned.many = true;
  std::vector<Argument> clone_arguments = {run,
                                           {"--out", "FILE", "Write it there instead of to stdout", &o->out},
                                           {"--name", "NAME", "What to call it", &o->name},
                                           {"--start", "", "Train it at once instead", &o->start}};
  for (Argument& argument : job_arguments(o->job)) clone_arguments.push_back(std::move(argument));

  std::vector<Verb> verbs;
  verbs.push_back({"diff",
                   "What differs between the configs of runs, and how they did",
                   "stacklab runs diff first-run cooler",
                   {several},
                   {},
                   does(diff),
                   {}});
  verbs.push_back({"clone",
                   "The config of a run, with changes, for a new one",
                   "stacklab runs clone first-run --set train.seed=2 --name second --out second.json",
                   std::move(clone_arguments),
                   {},
                   does(clone),
                   {}});
  verbs.push_back({"tag",
                   "Add tags to a run or take them away",
                   "stacklab runs tag first-run ablation baseline --remove draft",
                   {run, tags, {"--remove", "TAG", "Take it away; may be repeated", &o->remove}},
                   {},
                   does(tag),
                   {}});
  verbs.push_back({"note",
                   "Write a note on a run",
                   "stacklab runs note first-run \"diverged after the warm-up\"",
                   {run, words, {"--clear", "", "Take the note away", &o->clear}},
                   {},
                   does(note),
                   {}});
  verbs.push_back({"archive",
                   "Put a run out of sight; nothing of it goes",
                   "stacklab runs archive first-run",
                   {run, {"--undo", "", "Back into sight", &o->undo}},
                   {},
                   does(archive),
                   {}});
  verbs.push_back({"delete",
                   "Put a run in the trash",
                   "stacklab runs delete first-run",
                   {run, {"--purge", "", "For good: its folder, rows and curves; needs --yes", &o->purge}},
                   {},
                   does(remove),
                   "Its folder goes to <workspace>/trash, from where stacklab runs restore brings it back."});
  verbs.push_back(
      {"restore", "Bring a run back from the trash", "stacklab runs restore first-run", {run}, {}, does(restore), {}});
  verbs.push_back(
      {"prune",
       "Remove old checkpoints of finished runs",
       "stacklab runs prune --keep 1 --yes",
       {pruned, {"--keep", "N", "Newest checkpoints that stay (default: 1)", &o->keep}},
       {},
       does(prune),
       "Without --yes it only says what would go. Milestones (run.keep_milestones) stay, and so does every\n"
       "checkpoint of a run that is not finished."});
  return verbs;
}

}  // namespace stacklab::cli
