// Reading, writing, checking and naming a RunConfig. All of it follows from the field lists.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/config/run_config.h"

namespace stacklab {

// Reads a config from JSON text or a file. Unknown keys, wrong types and values out of range are errors that name the
// file, the key, what was found and the nearest known name. Missing keys keep their defaults. Duplicate keys are
// refused.
Result<RunConfig> parse_config(std::string_view json, std::string_view source_name);
Result<RunConfig> load_config(const std::filesystem::path& file);

// Pretty JSON with every key, two-space indented, in the order of the field lists; numbers read back exactly.
std::string to_json(const RunConfig& config);

// Applies "section.key=value" (from --set). Errors as parse_config's.
Status set_field(RunConfig& config, std::string_view assignment);

// What the config says as a whole: every value in its range, divisibility (heads by KV heads, ...). True of a model
// without a run too, so that counting and planning need no more.
Status check_model(const RunConfig& config);
// check_model, and the step: batch by sequence length and micro-batch, and that this build has its parts. Planning
// needs no more.
Status check_step(const RunConfig& config);
// check_step, and the run: lengths, warm-up against the run, and that this build can read the data. Called before
// anything starts.
Status validate(const RunConfig& config);

// Canonical JSON of the identity fields (model, optim, data, train): sorted keys, no spaces, shortest round-trip
// numbers; keys added after the first release are left out while they have their default.
std::string canonical_json(const RunConfig& config);

// SHA-256 of canonical_json, first 12 hex digits: the run's id.
std::string config_hash(const RunConfig& config);

// The identity keys whose values differ, those of the model first: "model.n_layers is 3 there and 4 here".
std::vector<std::string> identity_differences(const RunConfig& there, const RunConfig& here);

// The steps of run.keep_milestones, ascending, each once. Errors name the key.
Result<std::vector<std::int64_t>> milestones_of(const RunOptions& run);

}  // namespace stacklab
