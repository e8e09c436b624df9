#include "engine/config/config_io.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "engine/base/atomic_file.h"
#include "engine/base/json_reader.h"
#include "engine/base/json_writer.h"
#include "engine/base/sha256.h"
#include "engine/base/text.h"
#include "engine/config/fields.h"
#include "engine/config/values.h"

namespace stacklab {
namespace {

constexpr std::int64_t largest_file = 1 << 20;

// Fills a config event by event: nothing is built for what does not belong, however deep or long it is.
class ConfigReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit ConfigReader(RunConfig& config) : fields_(fields_of(config)) {}

  Error error{Error::Kind::usage, {}, {}};

  bool null() override { return scalar_error("null"); }
  bool boolean(bool value) override { return take(value); }
  bool number_integer(number_integer_t value) override { return take(std::int64_t{value}); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<number_unsigned_t>(INT64_MAX)) return take(static_cast<double>(value));
    return take(static_cast<std::int64_t>(value));
  }
  bool number_float(number_float_t value, const string_t&) override { return take(value); }
  bool string(string_t& value) override { return take(value); }
  bool binary(binary_t&) override { return scalar_error("binary data"); }

  bool start_object(std::size_t) override {
    if (!started_) {
      started_ = true;
      return true;
    }
    if (!is_section(key_)) {
      if (find_field(fields_, key_) != nullptr) return fail(fmt::format("\"{}\" is one value, not a section", key_));
      return unknown();
    }
    section_ = key_ + ".";
    return true;
  }
  bool end_object() override {
    if (!section_.empty()) section_.pop_back();
    const std::size_t dot = section_.rfind('.');
    section_.resize(dot == std::string::npos ? 0 : dot + 1);
    return true;
  }
  bool key(string_t& name) override {
    // A dot inside a name must not pass for a section.
    if (name.find('.') != std::string::npos || name.size() > 200) return unknown_name(name);
    key_ = section_ + name;
    if (!seen_.insert(key_).second)
      return fail(fmt::format("\"{}\" occurs twice", printable(key_)), "keep one of them");
    return true;
  }
  bool start_array(std::size_t) override { return scalar_error("a list"); }
  bool end_array() override { return true; }

  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception& e) override {
    const std::string_view what = e.what();
    const std::size_t at = what.find("] ");
    return fail("not valid JSON: " + printable(what.substr(at == std::string_view::npos ? 0 : at + 2), 300));
  }

 private:
  bool is_section(std::string_view key) const {
    return std::any_of(fields_.begin(), fields_.end(), [key](const Field& f) {
      return f.key.size() > key.size() && f.key.starts_with(key) && f.key[key.size()] == '.';
    });
  }

  template <class T>
  bool take(const T& value) {
    if (!started_) return scalar_error("a single value");
    Field* field = find_field(fields_, key_);
    if (field == nullptr)
      return is_section(key_) ? fail(fmt::format("\"{}\" is a section: write {{...}}", key_)) : unknown();
    Status assigned = assign(*field, value);
    if (!assigned) error = assigned.error();
    return assigned.has_value();
  }

  bool scalar_error(std::string_view what) {
    if (!started_) return fail(fmt::format("{} instead of an object", what), "a config is one JSON object: {...}");
    const Field* field = find_field(fields_, key_);
    if (field == nullptr && !is_section(key_)) return unknown();
    return fail(fmt::format("{}: {} does not belong here", key_, what),
                what == "null" ? "leave the key out to keep its default" : "");
  }
  bool unknown() { return unknown_name(key_); }
  bool unknown_name(std::string_view name) {
    error = unknown_key(name, fields_);
    return false;
  }
  bool fail(std::string what, std::string remedy = {}) {
    error = {Error::Kind::usage, std::move(what), std::move(remedy)};
    return false;
  }

  std::vector<Field> fields_;
  bool started_ = false;
  std::string section_;  // "" or "optim.schedule."
  std::string key_;      // of the value to come, with its sections
  std::set<std::string> seen_;
};

// One JSON object per section, in the order of the list; fields of a section follow each other.
std::string write(const std::vector<Field>& fields, int indent) {
  JsonWriter json(indent);
  json.begin_object();
  std::vector<std::string> open;
  for (const Field& field : fields) {
    std::vector<std::string> path = split(field.key, '.');
    const std::string key = std::move(path.back());
    path.pop_back();
    std::size_t shared = 0;
    while (shared < open.size() && shared < path.size() && open[shared] == path[shared]) ++shared;
    for (; open.size() > shared; open.pop_back()) json.end_object();
    for (; open.size() < path.size(); open.push_back(path[open.size()])) {
      json.key(path[open.size()]);
      json.begin_object();
    }
    // 0 and -0 are one value.
    std::visit(
        [&](const auto* value) {
          json.member(key, *value == std::decay_t<decltype(*value)>() ? std::decay_t<decltype(*value)>() : *value);
        },
        field.value);
  }
  for (; !open.empty(); open.pop_back()) json.end_object();
  json.end_object();
  return json.text();
}

}  // namespace

Result<RunConfig> parse_config(std::string_view json, std::string_view source_name) {
  const auto named = [source_name](Error error) {
    error.what = fmt::format("{}: {}", source_name, error.what);
    return tl::unexpected(std::move(error));
  };
  if (trim(json).empty()) return named({Error::Kind::usage, "the file is empty", "a config is one JSON object: {...}"});
  if (has_nul(json))
    return named({Error::Kind::usage, "a NUL byte, which is not JSON", "a config is one JSON object: {...}"});
  if (json.size() > static_cast<std::size_t>(largest_file))
    return named(
        {Error::Kind::usage, fmt::format("{} bytes are too many for a config", json.size()), "name a config file"});
  RunConfig config;
  ConfigReader reader(config);
  if (!nlohmann::json::sax_parse(json.begin(), json.end(), &reader)) return named(std::move(reader.error));
  return config;
}

Result<RunConfig> load_config(const std::filesystem::path& file) {
  const Result<std::string> text = read_file(file, largest_file);
  if (!text) return tl::unexpected(text.error());
  return parse_config(*text, file.string());
}

std::string to_json(const RunConfig& config) {
  RunConfig copy = config;
  return write(fields_of(copy), 2) + "\n";
}

Status set_field(RunConfig& config, std::string_view assignment) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string_view::npos)
    return usage_error(fmt::format("\"{}\" sets nothing", printable(assignment)), "write section.key=value");
  const std::string_view key = trim(assignment.substr(0, equals));
  RunConfig changed = config;
  std::vector<Field> fields = fields_of(changed);
  Field* field = find_field(fields, key);
  if (field == nullptr) return tl::unexpected(unknown_key(key, fields));
  if (Status assigned = assign_text(*field, trim(assignment.substr(equals + 1))); !assigned) return assigned;
  config = std::move(changed);
  return {};
}

std::string canonical_json(const RunConfig& config) {
  RunConfig copy = config, defaults;
  std::vector<Field> fields = fields_of(copy);
  const std::vector<Field> default_fields = fields_of(defaults);
  std::vector<Field> identity;
  for (std::size_t i = 0; i < fields.size(); ++i)
    if (fields[i].identity && !(fields[i].added_later && value_of(fields[i]) == value_of(default_fields[i])))
      identity.push_back(std::move(fields[i]));
  std::sort(identity.begin(), identity.end(),
            [](const Field& a, const Field& b) { return split(a.key, '.') < split(b.key, '.'); });
  return write(identity, 0);
}

std::vector<std::string> identity_differences(const RunConfig& there, const RunConfig& here) {
  RunConfig a = there, b = here;
  const std::vector<Field> before = fields_of(a), now = fields_of(b);
  const auto text = [](const Field& field) {
    return std::visit(
        [](const auto* value) {
          JsonWriter json;
          json.value(*value);
          return json.text();
        },
        field.value);
  };
  std::vector<std::string> differ;
  for (std::size_t i = 0; i < now.size(); ++i)
    if (now[i].identity && value_of(before[i]) != value_of(now[i]))
      differ.push_back(fmt::format("{} is {} there and {} here", now[i].key, text(before[i]), text(now[i])));
  return differ;
}

Result<std::vector<std::int64_t>> milestones_of(const RunOptions& run) {
  std::vector<std::int64_t> steps;
  if (trim(run.keep_milestones).empty()) return steps;
  for (const std::string& word : split(run.keep_milestones, ',')) {
    const std::optional<std::int64_t> step = parse_int(trim(word));
    if (!step || *step < 1)
      return usage_error(fmt::format("run.keep_milestones: \"{}\" is not a step", printable(word)),
                         "write steps with commas between them, for example 1000,2000");
    steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end());
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  return steps;
}

std::string config_hash(const RunConfig& config) { return sha256_hex(canonical_json(config)).substr(0, 12); }

}  // namespace stacklab
