#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cmath>
#include <ctime>
#include <memory>

#include "app/cli/common.h"
#include "app/cli/console.h"
#include "app/cli/run_edits.h"
#include "engine/base/atomic_file.h"
#include "engine/base/text.h"
#include "engine/service/job_service.h"

namespace stacklab::cli {
namespace {

constexpr std::int64_t page = 20'000;  // points per short transaction

struct Options {
  std::string run;
  std::string out;
};

struct ListOptions {
  bool archived = false, deleted = false, descending = false;
  std::string sort = "number";
  std::string filter;
  std::optional<std::int64_t> limit, offset;
};

// Local time, "2025-01-31 14:05"; "–" when it has not happened.
std::string time_text(double unix_time) {
  if (unix_time <= 0) return "–";
  const auto seconds = static_cast<std::time_t>(unix_time);
  std::tm local{};
  if (::localtime_r(&seconds, &local) == nullptr) return "–";
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}", local.tm_year + 1900, local.tm_mon + 1, local.tm_mday,
                     local.tm_hour, local.tm_min);
}

std::string state_text(const RunSummary& run) { return run.stalled ? "stalled" : std::string(to_string(run.state)); }

// more: what is known of the metrics beside the losses.
void write_summary(JsonWriter& w, const RunSummary& run, const std::vector<std::pair<std::string, double>>& more = {}) {
  w.member("id", run.id);
  w.member("name", run.name);
  w.member("number", run.number);
  w.member("state", to_string(run.state));
  w.member("cause", run.cause);
  w.member("stalled", run.stalled);
  w.member("step", run.step);
  w.member("total_steps", run.total_steps);
  w.member("tokens", run.tokens);
  w.member("seconds", run.seconds);
  w.member("created", run.created);
  w.key("finished");
  if (run.finished > 0)
    w.value(run.finished);
  else
    w.null();
  w.member("config_hash", run.id);
  w.member("commit", run.commit);
  w.member("dirty", run.dirty);
  w.member("tokenizer", run.tokenizer);
  write_edits(w, run);
  w.member("parent", run.parent);
  w.member("fork_step", run.fork_step);
  w.member("detached", run.detached);
  w.member("open_alerts", run.open_alerts);
  w.member("corpus_sha256", run.corpus_sha256);
  w.member("folder", "runs/" + run.folder);
  w.key("metrics");
  w.begin_object();
  member_or_null(w, "first_loss", run.first_loss);
  member_or_null(w, "loss", run.last_loss);
  member_or_null(w, "val_loss", run.val_loss);
  for (const auto& [name, value] : more) w.member(name, value);
  w.end_object();
}

// The latest value of each metric but the losses, which a summary has.
Result<std::vector<std::pair<std::string, double>>> latest(StoreReader& reader, const RunId& id) {
  const Result<std::vector<std::string>> names = reader.metrics(id);
  if (!names) return tl::unexpected(names.error());
  std::vector<std::pair<std::string, double>> values;
  for (const std::string& name : *names) {
    if (name == metric::loss || name == metric::val_loss) continue;
    const Result<std::optional<SeriesPoint>> point = reader.last_point(id, name);
    if (!point) return tl::unexpected(point.error());
    if (*point) values.emplace_back(name, (*point)->value);
  }
  return values;
}

// A filter that says is:archived or is:deleted means those; else they are out of sight.
Result<RunQuery> query_of(const ListOptions& options) {
  RunQuery query;
  for (const auto& [name, value] : {std::pair("--limit", options.limit), std::pair("--offset", options.offset)})
    if (value && *value < 0) return usage_error(fmt::format("{}: {} is below 0", name, *value));
  auto filter = parse_run_filter(options.filter);
  if (!filter) return tl::unexpected(to_error(filter.error(), options.filter));
  query.filter = std::move(*filter);
  query.archived = options.archived;
  query.deleted = options.deleted;
  query.order = options.sort;
  query.descending = options.descending;
  query.limit = options.limit.value_or(-1);
  query.offset = options.offset.value_or(0);
  return query;
}

bool any_run(StoreReader& reader) {
  RunQuery one;
  one.limit = 1;
  const auto runs = reader.runs(one);
  return runs && !runs->empty();
}

Status list(Context& context, const ListOptions& options) {
  const Result<RunQuery> query = query_of(options);
  if (!query) return tl::unexpected(query.error());
  Result<std::unique_ptr<StoreReader>> reader = JobService::open_reader(workspace_of(context.common));
  if (!reader) return tl::unexpected(reader.error());
  const Result<std::vector<RunSummary>> runs = (*reader)->runs(*query);
  if (!runs) return tl::unexpected(runs.error());
  std::vector<std::vector<std::string>> rows = {{"id", "name", "state", "step", "of", "loss", "validation", "created"}};
  JsonWriter w(2);
  w.begin_object();
  w.key("runs");
  w.begin_array();
  for (const RunSummary& run : *runs) {
    rows.push_back({run.id.substr(0, 8), run.name, state_text(run), format_integer(run.step),
                    format_integer(run.total_steps), loss_text(run.last_loss), loss_text(run.val_loss),
                    time_text(run.created)});
    w.begin_object();
    write_summary(w, run);
    w.end_object();
  }
  w.end_array();
  w.end_object();
  context.console.print(runs->empty() && !options.filter.empty() ? "No run is like that.\n"
                        : runs->empty() && (options.limit || options.offset) && any_run(**reader)
                            ? "--limit and --offset leave none.\n"
                        : runs->empty() ? "No runs yet. Start one: stacklab train experiments/first-run.json\n"
                                        : table(rows, {false, false, false, true, true, true, true, false}));
  context.console.print_json(w.text());
  return {};
}

Status show(Context& context, const Options& options) {
  Result<std::unique_ptr<StoreReader>> reader = JobService::open_reader(workspace_of(context.common));
  if (!reader) return tl::unexpected(reader.error());
  const Result<RunSummary> found = (*reader)->run(options.run);
  if (!found) return tl::unexpected(found.error());
  const RunSummary& run = *found;
  const Result<std::vector<RunEventRow>> events = (*reader)->events(run.id, 0, page);
  if (!events) return tl::unexpected(events.error());

  const auto metrics = latest(**reader, run.id);
  if (!metrics) return tl::unexpected(metrics.error());

  std::string text = fmt::format("{} ({})\n", run.name, run.id);
  const auto line = [&text](std::string_view name, const std::string& value) {
    text += fmt::format("{:<16} {}\n", name, value);
  };
  line("state", state_text(run) + (run.cause.empty() ? "" : ": " + run.cause));
  line("step", fmt::format("{} of {}", format_integer(run.step), format_integer(run.total_steps)));
  line("tokens", format_integer(run.tokens));
  line("loss", fmt::format("{} to {}", loss_text(run.first_loss), loss_text(run.last_loss)));
  line("validation loss", loss_text(run.val_loss));
  // Those of single heads are many, and have their place in --json and in exports.
  for (const auto& [name, value] : *metrics)
    if (name.find('.') == std::string::npos) line(name, shortest(value));
  for (const auto& [name, value] : run.facts) line(name, shortest(value));
  line("time", format_duration(run.seconds));
  line("created", time_text(run.created));
  line("ended", time_text(run.finished));
  line("commit", run.commit);
  line("corpus", run.corpus_sha256);
  line("folder", (workspace_of(context.common) / "runs" / run.folder).string());
  if (!run.parent.empty()) line("forked from", fmt::format("{} after step {}", run.parent, run.fork_step));
  if (!run.tags.empty()) line("tags", fmt::format("{}", fmt::join(run.tags, ", ")));
  if (!run.note.empty()) line("note", run.note);
  for (const RunEventRow& row : *events)
    text += fmt::format("{}  step {:>6}  {:<10}  {}{}\n", time_text(row.unix_time), row.event.step,
                        to_string(row.event.kind), row.event.text,
                        !row.event.is_alert() ? ""
                        : row.resolved > 0    ? fmt::format(" [alert, over at step {}]", row.resolved_step)
                                              : " [alert, open]");
  context.console.print(text);

  JsonWriter w(2);
  w.begin_object();
  write_summary(w, run, *metrics);
  w.member("parameters", run.parameters);
  w.member("plan_bytes", run.plan_bytes);
  w.member("peak_bytes", run.peak_bytes);
  w.member("tokens_per_second", run.tokens_per_second);
  w.key("facts");
  w.begin_object();
  for (const auto& [name, value] : run.facts) w.member(name, value);
  w.end_object();
  w.key("config");
  w.raw(trim(run.config_json));
  w.key("events");
  w.begin_array();
  for (const RunEventRow& row : *events) {
    w.begin_object();
    w.member("time", row.unix_time);
    w.member("step", row.event.step);
    w.member("kind", to_string(row.event.kind));
    w.member("text", row.event.text);
    if (row.event.is_alert()) {
      w.member("severity", to_string(row.event.severity));
      w.member("open", row.resolved <= 0);
      w.member("resolved_step", row.resolved_step);
    }
    w.end_object();
  }
  w.end_array();
  w.end_object();
  context.console.print_json(w.text());
  return {};
}

// Every point of every metric, in pieces, so that long runs need little memory.
template <class Visit>
Status for_points(StoreReader& reader, const RunId& id, const std::string& metric, Visit&& visit) {
  for (std::int64_t after = -1;;) {
    const Result<std::vector<SeriesPoint>> points = reader.series(id, metric, after, page);
    if (!points) return tl::unexpected(points.error());
    for (const SeriesPoint& point : *points) visit(point);
    if (static_cast<std::int64_t>(points->size()) < page) return {};
    after = points->back().step;
  }
}

// Where an export goes: stdout, or a file that appears whole.
class Sink {
 public:
  static Result<Sink> open(const std::string& out, Console& console) {
    Sink sink;
    sink.console_ = &console;
    if (out.empty() || out == "-") return sink;
    Result<AtomicFile> file = AtomicFile::create(out);
    if (!file) return tl::unexpected(file.error());
    sink.file_.emplace(std::move(*file));
    return sink;
  }
  void write(std::string_view text, bool flush = false) {
    buffer_ += text;
    if (!flush && buffer_.size() < 1 << 20) return;
    if (file_ && written_) written_ = file_->write(buffer_);
    if (!file_) console_->print(buffer_);
    buffer_.clear();
  }
  Status finish() {
    write({}, true);
    if (file_ && written_) written_ = file_->commit();
    return written_;
  }
  bool to_file() const { return file_.has_value(); }

 private:
  Console* console_ = nullptr;
  std::optional<AtomicFile> file_;
  std::string buffer_;
  Status written_;
};

Status export_csv(StoreReader& reader, const RunSummary& run, const std::vector<std::string>& metrics,
                  const std::string& out, Console& console) {
  Result<Sink> sink = Sink::open(out, console);
  if (!sink) return tl::unexpected(sink.error());
  sink->write("metric,step,value\n");
  for (const std::string& metric : metrics)
    if (Status s = for_points(
            reader, run.id, metric,
            [&](const SeriesPoint& p) { sink->write(fmt::format("{},{},{}\n", metric, p.step, shortest(p.value))); });
        !s)
      return s;
  return sink->finish();
}

Status export_run(Context& context, const Options& options) {
  Result<std::unique_ptr<StoreReader>> reader = JobService::open_reader(workspace_of(context.common));
  if (!reader) return tl::unexpected(reader.error());
  const Result<RunSummary> run = (*reader)->run(options.run);
  if (!run) return tl::unexpected(run.error());
  const Result<std::vector<std::string>> metrics = (*reader)->metrics(run->id);
  if (!metrics) return tl::unexpected(metrics.error());
  if (Status sure = confirm_replacing(context, options.out); !sure) return sure;
  if (!context.console.json()) {
    if (Status s = export_csv(**reader, *run, *metrics, options.out, context.console); !s) return s;
  } else {
    JsonWriter w;
    w.begin_object();
    w.member("id", run->id);
    w.member("name", run->name);
    w.member("state", to_string(run->state));
    w.key("metrics");
    w.begin_object();
    for (const std::string& metric : *metrics) {
      w.key(metric);
      w.begin_array();
      Status s = for_points(**reader, run->id, metric, [&w](const SeriesPoint& p) {
        w.begin_array();
        w.value(p.step);
        w.value(p.value);
        w.end_array();
      });
      if (!s) return s;
      w.end_array();
    }
    w.end_object();
    w.end_object();
    if (options.out.empty() || options.out == "-")
      context.console.print_json(w.text());
    else if (Status s = write_file_atomically(options.out, w.text() + "\n"); !s)
      return s;
  }
  if (!options.out.empty() && options.out != "-")
    context.console.note(fmt::format("{} of {} ({}) written to {}", context.console.json() ? "JSON" : "CSV", run->name,
                                     run->id, options.out));
  return {};
}

}  // namespace

Verb runs_verb() {
  const auto options = std::make_shared<Options>();
  const Argument run{"ID", "", "A run's id, the start of one, or its name", &options->run, true};
  const auto listed = std::make_shared<ListOptions>();
  Verb list_verb{
      "list",
      "The runs of the workspace with their state and last losses",
      "stacklab runs list --filter \"lr > 1e-4 and tag:ablation and not state:failed\" --sort val_loss",
      {{"--filter", "TEXT", "Only runs that this holds for", &listed->filter},
       {"--archived", "", "Archived ones too", &listed->archived},
       {"--deleted", "", "Those in the trash too", &listed->deleted},
       {"--sort", "KEY", "By this column, config key or metric (default: number, the order of creation)",
        &listed->sort},
       {"--descending", "", "The largest first", &listed->descending},
       {"--limit", "N", "At most so many", &listed->limit},
       {"--offset", "N", "Leave out the first", &listed->offset}},
      {},
      [listed](Context& context) { return list(context, *listed); },
      "A filter compares columns (loss, val_loss, lr, step, tokens, state, tag, note, created, ...), keys of "
      "the config\n(optim.adam_lr, or n_layers alone) and metrics (metric.grad_norm) with values: = != < <= > "
      ">= and : for \"contains\".\nWords alone are looked for in names and notes. and, or, not, ( ) and "
      "\"quotes\" as one expects; loss = nan finds\nruns that diverged, is:archived those that are put "
      "away. Of what is sorted, runs without a value come last."};
  Verb show_verb{"show",
                 "One run: state, losses, facts, events",
                 "stacklab runs show first-run",
                 {run},
                 {},
                 [options](Context& context) { return show(context, *options); },
                 {}};
  Verb export_verb{"export",
                   "Every recorded value of a run, as CSV (metric,step,value) or with --json",
                   "stacklab runs export first-run --out first-run.csv",
                   {run, {"--out", "FILE", "Write there instead of to stdout", &options->out}},
                   {},
                   [options](Context& context) { return export_run(context, *options); },
                   {}};
  std::vector<Verb> verbs = {std::move(list_verb), std::move(show_verb), std::move(export_verb)};
  for (Verb& verb : run_edit_verbs()) verbs.push_back(std::move(verb));
  return {"runs", "What was trained", "stacklab runs list", {}, std::move(verbs), {}, {}};
}

}  // namespace stacklab::cli
