#include "app/cli/common.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "engine/base/text.h"
#include "engine/config/config_io.h"
#include "engine/service/job_service.h"

namespace stacklab::cli {

std::vector<Argument> common_arguments(Common& c) {
  return {
      {"--workspace", "DIR", "Where runs, data and the store are (default: $STACKLAB_WORKSPACE, else ./workspace)",
       &c.workspace},
      {"--set", "KEY=VALUE", "Change a key of the config, for example optim.adam_lr=1e-3; may be repeated", &c.set},
      {"--device", "NAME", "cpu, cuda, cuda-emulated, reference or auto", &c.device},
      {"--threads", "N", "Threads for work on the CPU (default: all)", &c.threads},
      {"--seed", "N", "The same as --set train.seed=N", &c.seed},
      {"--json", "", "One JSON document on stdout, and nothing else there", &c.json},
      {"--quiet", "", "Only results, warnings and errors", &c.quiet},
      {"--yes", "", "Answer yes to every question", &c.yes},
  };
}

std::filesystem::path workspace_of(const Common& common) {
  if (!common.workspace.empty()) return common.workspace;
  const char* from_environment = std::getenv("STACKLAB_WORKSPACE");
  return from_environment != nullptr && *from_environment != '\0' ? from_environment : "workspace";
}

Status apply_common(RunConfig& config, const Common& common) {
  const auto apply = [&config](const std::string& option, const std::string& assignment) -> Status {
    Status changed = set_field(config, assignment);
    if (!changed) changed.error().what = fmt::format("{}: {}", option, changed.error().what);
    return changed;
  };
  for (const std::string& assignment : common.set)
    if (Status s = apply("--set", assignment); !s) return s;
  if (!common.device.empty())
    if (Status s = apply("--device", "run.device=" + common.device); !s) return s;
  if (common.threads)
    if (Status s = apply("--threads", fmt::format("run.threads={}", *common.threads)); !s) return s;
  if (common.seed)
    if (Status s = apply("--seed", fmt::format("train.seed={}", *common.seed)); !s) return s;
  return {};
}

Result<RunConfig> config_of(const std::string& file, const Common& common) {
  Result<RunConfig> config = load_config(file);
  if (!config) return config;
  if (Status s = apply_common(*config, common); !s) return tl::unexpected(s.error());
  return config;
}

Status confirm(const Context& context, const std::string& what) {
  if (context.common.yes) return {};
  std::string answer;
  if (::isatty(STDIN_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1) {
    fmt::print(stderr, "{}? [y/N] ", what);
    std::getline(std::cin, answer);
  }
  if (answer == "y" || answer == "Y" || answer == "yes") return {};
  return refused("did not " + what, "say --yes");
}

Status confirm_replacing(const Context& context, const std::filesystem::path& file) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored)) return {};
  return confirm(context, "replace " + file.string());
}

Result<StoredRun> stored_run(const std::string& run, const Common& common) {
  Result<std::unique_ptr<StoreReader>> reader = JobService::open_reader(workspace_of(common));
  if (!reader) return tl::unexpected(reader.error());
  const Result<RunSummary> row = (*reader)->run(run);
  if (!row) return tl::unexpected(row.error());
  Result<RunConfig> config = parse_config(row->config_json, fmt::format("the stored config of run {}", row->id));
  if (!config) return tl::unexpected(config.error());
  if (Status s = apply_common(*config, common); !s) return tl::unexpected(s.error());
  if (config_hash(*config) != row->id)
    return usage_error(fmt::format("{} ({}) is another run with these settings", row->name, row->id),
                       "change only keys of the section run, or start a new run with: stacklab train");
  return StoredRun{row->id, row->name, std::move(*config)};
}

void member_or_null(JsonWriter& json, std::string_view name, const std::optional<double>& value) {
  json.key(name);
  if (value)
    json.value(*value);
  else
    json.null();
}

std::string loss_text(const std::optional<double>& value) {
  if (!value) return "–";
  return std::isfinite(*value) ? fmt::format("{:.3f}", *value) : shortest(*value);
}

}  // namespace stacklab::cli
