#include "engine/run/trainer_state.h"

#include <fmt/core.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/base/json_reader.h"
#include "engine/base/sha256.h"

namespace stacklab {
namespace {

constexpr int format_version = 1;
constexpr const char* generator = "philox4x32-10";

// Of everything else in the file, so that no number of it changes unseen.
constexpr const char* own_hash = "content_sha256";

std::string with_own_hash(nlohmann::json json) {
  json[own_hash] = sha256_hex(json.dump());
  return json.dump(2) + "\n";
}

// JSON has no NaN: null stands for a loss that is not there or not finite.
nlohmann::json number_or_null(double v) { return std::isfinite(v) ? nlohmann::json(v) : nlohmann::json(nullptr); }

}  // namespace

std::string to_json(const TrainerFile& file) {
  const TrainerState& s = file.state;
  const nlohmann::json json = {{"format_version", format_version},
                               {"config_hash", file.config_hash},
                               {"step", s.step},
                               {"tokens", s.tokens},
                               {"seconds", s.seconds},
                               {"first_loss", number_or_null(s.first_loss)},
                               {"loss", number_or_null(s.loss)},
                               {"val_loss", number_or_null(s.val_loss)},
                               {"skipped", s.skipped},
                               {"data", {{"seed", file.seed}, {"batches", s.step}}},
                               {"random", {{"generator", generator}, {"seed", file.seed}, {"step", s.step}}},
                               {"sha256", file.sha256}};
  return with_own_hash(json);
}

Result<TrainerFile> parse_trainer_file(std::string_view json, std::string_view source_name) {
  const auto bad = [source_name](std::string_view cause) {
    return failed(fmt::format("{}: not the state of a trainer: {}", source_name, cause));
  };
  const auto root = parse_json_object(json);
  if (!root) return bad(root.error());
  JsonFields read(*root);
  TrainerFile file;
  const std::int64_t version = read.count("format_version");
  if (read.error().empty() && version != format_version)
    return failed(fmt::format("{}: written by another version of Stacklab (format {})", source_name, version),
                  "go on with the version that wrote it");
  file.config_hash = read.text("config_hash");
  TrainerState& s = file.state;
  s.step = read.count("step");
  s.tokens = read.count("tokens");
  s.seconds = read.number("seconds");
  s.first_loss = read.number_or_nan("first_loss");
  s.loss = read.number_or_nan("loss");
  s.val_loss = read.number_or_nan("val_loss");
  s.skipped = read.count("skipped");
  if (s.seconds < 0) read.fault("seconds", "is below 0");
  if (s.skipped > s.step) read.fault("skipped", "is more than step");
  // Where these are missing an earlier build wrote it: the position is the step.
  if (read.find("data")) {
    JsonFields position(read.object("data"), "data.");
    file.seed = position.count("seed");
    if (position.count("batches") != s.step) position.fault("batches", "is not the step");
    if (read.error().empty() && !position.error().empty()) return bad(position.error());
  }
  if (read.find("random")) {
    JsonFields numbers(read.object("random"), "random.");
    if (numbers.text("generator") != generator) numbers.fault("generator", "is not the one of this build");
    if (numbers.count("seed") != file.seed) numbers.fault("seed", "is not the seed of the data");
    if (numbers.count("step") != s.step) numbers.fault("step", "is not the step");
    if (read.error().empty() && !numbers.error().empty()) return bad(numbers.error());
  }
  JsonFields sums(read.object("sha256"), "sha256.");
  if (!read.error().empty()) return bad(read.error());
  for (const auto& [name, sum] : read.object("sha256").items()) file.sha256[name] = sums.text(name.c_str());
  if (!sums.error().empty()) return bad(sums.error());
  // Earlier builds wrote none.
  if (read.find(own_hash)) {
    const std::string hash = read.text(own_hash);
    nlohmann::json rest = *root;
    rest.erase(own_hash);
    if (hash != sha256_hex(rest.dump())) return bad("it is not what was saved (SHA-256 differs)");
  }
  return file;
}

}  // namespace stacklab
