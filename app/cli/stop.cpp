#include <fmt/format.h>

#include <memory>

#include "app/cli/common.h"
#include "app/cli/console.h"
#include "engine/service/job_service.h"

namespace stacklab::cli {
namespace {

Status stop(Context& context, const std::string& id) {
  const std::filesystem::path workspace = workspace_of(context.common);
  Result<std::unique_ptr<StoreReader>> reader = JobService::open_reader(workspace);
  if (!reader) return tl::unexpected(reader.error());
  Result<RunSummary> run = (*reader)->run(id);
  if (!run) return tl::unexpected(run.error());
  if (is_active(run->state)) {
    Result<std::unique_ptr<JobService>> service = JobService::open(workspace);
    if (!service) return tl::unexpected(service.error());
    (*service)->stop(run->id);
  }
  const bool active = is_active(run->state);
  context.console.print(
      active ? fmt::format("{} ({}) was asked to stop: it finishes its step, writes a checkpoint and ends\n", run->name,
                           run->id)
             : fmt::format("{} ({}) is not running: it is {}\n", run->name, run->id, to_string(run->state)));
  JsonWriter w(2);
  w.begin_object();
  w.member("run", run->id);
  w.member("name", run->name);
  w.member("state", to_string(active ? RunState::stopping : run->state));
  w.end_object();
  context.console.print_json(w.text());
  return {};
}

}  // namespace

Verb stop_verb() {
  const auto id = std::make_shared<std::string>();
  return {"stop",
          "Ask a run to finish its step, write a checkpoint and end",
          "stacklab stop first-run",
          {{"RUN", "", "A run's id, the start of one, or its name", id.get(), true}},
          {},
          [id](Context& context) { return stop(context, *id); },
          {}};
}

}  // namespace stacklab::cli
