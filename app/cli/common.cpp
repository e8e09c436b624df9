#include "app/cli/common.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "engine/base/text.h"
#include "engine/config/config_io.h"

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
