// A run made again, and held against what was recorded of it.
#include "engine/service/replay.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <stop_token>

#include "app/cli/common.h"
#include "app/cli/console.h"
#include "app/cli/progress.h"
#include "app/cli/signals.h"
#include "engine/base/text.h"

namespace stacklab::cli {
namespace {

struct Options {
  std::string run;
  std::optional<std::int64_t> steps, from;
};

std::string as_json(const ReplayResult& r, const std::string& name) {
  JsonWriter w(2);
  w.begin_object();
  w.member("run", r.run);
  w.member("name", name);
  w.member("from", r.from);
  w.member("steps", r.steps);
  w.member("identical", r.identical());
  w.key("first_difference");
  if (const auto& d = r.first_difference) {
    w.begin_object();
    w.member("step", d->step);
    w.member(d->file.empty() ? "metric" : "tensor", d->name);
    if (!d->file.empty()) {
      w.member("file", d->file);
      w.member("element", d->element);
    }
    w.member("recorded", d->recorded);
    w.member("replayed", d->replayed);
    w.end_object();
  } else {
    w.null();
  }
  w.member("values_compared", r.values);
  w.member("tensors_compared", r.tensors);
  w.key("environment");
  w.begin_array();
  for (const FieldChange& c : r.environment) {
    w.begin_object();
    w.member("field", c.field);
    w.member("recorded", c.was);
    w.member("now", c.is);
    w.member("changes_bits", c.bits);
    w.end_object();
  }
  w.end_array();
  w.end_object();
  return w.text();
}

std::string difference_text(const Difference& d) {
  const std::string where = d.file.empty()
                                ? d.name
                                : fmt::format("{} of {}{}", d.name, d.file,
                                              d.element < 0 ? std::string() : fmt::format(", element {}", d.element));
  return fmt::format("the first difference is at step {}: {} was {}, is {}", d.step, where, d.recorded, d.replayed);
}

Status replay_run(Context& context, const Options& options) {
  if (options.steps && *options.steps < 1)
    return usage_error(fmt::format("--steps: {} is less than one step", *options.steps));
  if (options.from && *options.from < 0) return usage_error(fmt::format("--from: {} is no step", *options.from));
  const std::filesystem::path workspace = workspace_of(context.common);
  const Result<StoredRun> stored = stored_run(options.run, context.common);
  if (!stored) return tl::unexpected(stored.error());

  const StopSignals signals;
  std::stop_source stop;
  std::optional<ProgressDisplay> display(std::in_place, stored->name, context.console.quiet());
  const auto show = [&](const Progress& progress) {
    if (StopSignals::requested()) stop.request_stop();
    display->show(progress, {});
  };
  const Result<ReplayResult> result =
      replay(workspace, {stored->config, options.from.value_or(-1), options.steps.value_or(0)}, show, stop.get_token());
  display.reset();
  if (!result) return tl::unexpected(result.error());
  if (!result->environment.empty())
    context.console.print(fmt::format("Differs from when it was recorded: {}.\n", to_text(result->environment)));
  const std::string what =
      fmt::format("{} ({}), steps {} to {}: {} values and {} tensors compared", stored->name, result->run,
                  result->from + 1, result->from + result->steps, result->values, result->tensors);
  context.console.print_json(as_json(*result, stored->name));
  if (!result->identical())
    return failed(fmt::format("{}; {}", what, difference_text(*result->first_difference)),
                  result->environment.empty() ? "the same build on the same computer should give the same bits"
                                              : "what differs between then and now is named above");
  context.console.print(what + ": the same, bit by bit.\n");
  return {};
}

}  // namespace

Verb replay_verb() {
  const auto options = std::make_shared<Options>();
  return {
      "replay",
      "Train part of a run again, beside it, and compare bit by bit",
      "stacklab replay first-run --steps 20",
      {{"RUN", "", "A run's id, the start of one, or its name", &options->run, true},
       {"--steps", "N", "So many steps (default: from the checkpoint before the newest up to the newest)",
        &options->steps},
       {"--from", "STEP", "Begin after this step: 0, or one that has a checkpoint (default: chosen)", &options->from}},
      {},
      [options](Context& context) { return replay_run(context, *options); },
      "Every number that the steps recorded is compared, and at the next checkpoint every tensor; neither the run\n"
      "nor the store is touched. What differs in build, libraries or device is said first. Exit code 1: not the\n"
      "same."};
}

}  // namespace stacklab::cli
