#include "engine/run/trainer_state.h"

#include <fmt/core.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace stacklab {
namespace {

constexpr int format_version = 1;
constexpr const char* generator = "philox4x32-10";

// JSON has no NaN: null stands for a loss that is not there or not finite.
nlohmann::json number_or_null(double v) { return std::isfinite(v) ? nlohmann::json(v) : nlohmann::json(nullptr); }

// Reads fields of one object; the first that does not fit is kept as the fault.
class FieldReader {
 public:
  explicit FieldReader(const nlohmann::json& object) : object_(object) {}

  std::int64_t count(const char* name) {
    const auto at = object_.find(name);
    // Up to 2^53: exact in any reader, and sums of them do not overflow.
    if (at != object_.end() && at->is_number_integer() && at->get<std::int64_t>() >= 0 &&
        at->get<std::int64_t>() <= std::int64_t{1} << 53)
      return at->get<std::int64_t>();
    fault(name, "is missing or no whole number from 0");
    return 0;
  }
  double seconds(const char* name) {
    const auto at = object_.find(name);
    if (at != object_.end() && at->is_number() && std::isfinite(at->get<double>()) && at->get<double>() >= 0)
      return at->get<double>();
    fault(name, "is missing or no time");
    return 0;
  }
  double loss(const char* name) {
    const auto at = object_.find(name);
    if (at == object_.end() || !(at->is_number() || at->is_null())) fault(name, "is missing or no number");
    return at != object_.end() && at->is_number() ? at->get<double>() : std::numeric_limits<double>::quiet_NaN();
  }
  std::string text(const char* name) {
    const auto at = object_.find(name);
    if (at != object_.end() && at->is_string()) return at->get<std::string>();
    fault(name, "is missing or no text");
    return {};
  }
  void fault(const char* name, std::string_view what) {
    if (fault_.empty()) fault_ = fmt::format("{} {}", name, what);
  }
  const std::string& fault() const { return fault_; }

 private:
  const nlohmann::json& object_;
  std::string fault_;
};

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
  return json.dump(2) + "\n";
}

Result<TrainerFile> parse_trainer_file(std::string_view json, std::string_view source_name) {
  const auto bad = [source_name](std::string_view cause) {
    return failed(fmt::format("{}: not the state of a trainer: {}", source_name, cause));
  };
  const auto root = nlohmann::json::parse(json, nullptr, false);
  if (!root.is_object()) return bad("not a JSON object");
  FieldReader read(root);
  TrainerFile file;
  const std::int64_t version = read.count("format_version");
  if (read.fault().empty() && version != format_version)
    return failed(fmt::format("{}: written by another version of Stacklab (format {})", source_name, version),
                  "go on with the version that wrote it");
  file.config_hash = read.text("config_hash");
  TrainerState& s = file.state;
  s.step = read.count("step");
  s.tokens = read.count("tokens");
  s.seconds = read.seconds("seconds");
  s.first_loss = read.loss("first_loss");
  s.loss = read.loss("loss");
  s.val_loss = read.loss("val_loss");
  s.skipped = read.count("skipped");
  if (s.skipped > s.step) read.fault("skipped", "is more than step");
  if (!read.fault().empty()) return bad(read.fault());
  // Where these are missing an earlier build wrote it: the position is the step.
  if (const auto data = root.find("data"); data != root.end()) {
    if (!data->is_object()) return bad("data is no object");
    FieldReader position(*data);
    file.seed = position.count("seed");
    if (position.count("batches") != s.step) position.fault("batches", "is not the step");
    if (!position.fault().empty()) return bad("data: " + position.fault());
  }
  if (const auto random = root.find("random"); random != root.end()) {
    if (!random->is_object()) return bad("random is no object");
    FieldReader numbers(*random);
    if (numbers.text("generator") != generator) numbers.fault("generator", "is not the one of this build");
    if (numbers.count("seed") != file.seed) numbers.fault("seed", "is not the seed of the data");
    if (numbers.count("step") != s.step) numbers.fault("step", "is not the step");
    if (!numbers.fault().empty()) return bad("random: " + numbers.fault());
  }
  const auto sums = root.find("sha256");
  if (sums == root.end() || !sums->is_object()) return bad("sha256 is missing or no object");
  for (const auto& [name, sum] : sums->items()) {
    if (!sum.is_string()) return bad("sha256 holds what is no text");
    file.sha256[name] = sum.get<std::string>();
  }
  return file;
}

}  // namespace stacklab
