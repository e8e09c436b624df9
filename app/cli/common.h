// What several commands need.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "app/cli/verb.h"
#include "engine/base/json_writer.h"
#include "engine/config/run_config.h"

namespace stacklab::cli {

std::vector<Argument> common_arguments(Common& common);

// --workspace, else $STACKLAB_WORKSPACE, else ./workspace.
std::filesystem::path workspace_of(const Common& common);

// --set, --device, --threads and --seed, in this order.
Status apply_common(RunConfig& config, const Common& common);
// The config of a file with these applied.
Result<RunConfig> config_of(const std::string& file, const Common& common);

// Asks on the terminal whether to "remove the corpus x"; --yes says so beforehand. Where nobody can be asked, or the
// answer is no, it is refused.
Status confirm(const Context& context, const std::string& what);

// The same before a file that exists is replaced by --out; nothing where there is none.
Status confirm_replacing(const Context& context, const std::filesystem::path& file);

// A run of the workspace, with the config that it was started with and the operational keys that these options change.
struct StoredRun {
  std::string id, name;
  RunConfig config;
};
// run: an id, the start of one, or a name. Errors: keys that would make it another run.
Result<StoredRun> stored_run(const std::string& run, const Common& common);

// A measured number, or null when it was not measured. NaN counts as measured where the caller says so by giving it.
void member_or_null(JsonWriter& json, std::string_view name, const std::optional<double>& value);
// "3.149", or "–" when unknown; NaN and infinities are spelt.
std::string loss_text(const std::optional<double>& value);

}  // namespace stacklab::cli
