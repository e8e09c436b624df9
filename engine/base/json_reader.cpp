#include "engine/base/json_reader.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <vector>

#include "engine/base/text.h"

namespace stacklab {

using Json = nlohmann::ordered_json;

bool has_nul(std::string_view text) { return text.find('\0') != std::string_view::npos; }

tl::expected<Json, std::string> parse_json_object(std::string_view text) {
  if (has_nul(text)) return tl::unexpected(fmt::format("has a NUL byte at {}, which is not JSON", text.find('\0')));
  bool deep = false;
  std::string twice;
  std::vector<std::unordered_set<std::string>> keys;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& value) {
    using Event = Json::parse_event_t;
    deep |= depth > deepest_json;
    // What is left out takes no memory, and its ends are not told.
    if (deep || !twice.empty()) return false;
    if (event == Event::object_start) keys.emplace_back();
    if (event == Event::object_end) keys.pop_back();
    if (event == Event::key && !keys.back().insert(value.get_ref<const std::string&>()).second)
      twice = fmt::format("has the key \"{}\" twice", printable(value.get_ref<const std::string&>()));
    return true;
  };
  Json root = Json::parse(text, watch, /*allow_exceptions=*/false);
  if (deep) return tl::unexpected(fmt::format("is nested deeper than {} levels", deepest_json));
  if (!twice.empty()) return tl::unexpected(twice);
  if (root.is_discarded()) return tl::unexpected(std::string("is not JSON, or not whole"));
  if (!root.is_object()) return tl::unexpected(std::string("is not a JSON object"));
  return root;
}

std::optional<double> number_or_word(const Json& value) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (value.is_number()) return value.get<double>();
  if (value == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (value == "inf") return infinity;
  if (value == "-inf") return -infinity;
  return std::nullopt;
}

const Json* JsonFields::find(const char* key) const {
  if (!object_.is_object()) return nullptr;
  const auto at = object_.find(key);
  return at == object_.end() ? nullptr : &*at;
}

void JsonFields::fault(std::string_view key, std::string_view what) {
  if (error_.empty()) error_ = fmt::format("\"{}{}\" {}", where_, key, what);
}

void JsonFields::missing(const char* key, const char* wanted) {
  fault(key, fmt::format("is missing or not {}", wanted));
}

std::string JsonFields::text(const char* key) {
  const Json* field = find(key);
  if (field && field->is_string()) return field->get<std::string>();
  return missing(key, "a text"), std::string();
}

std::int64_t JsonFields::count(const char* key) {
  const Json* field = find(key);
  if (field && field->is_number_integer() && *field >= 0 && *field <= std::int64_t{1} << 53)
    return field->get<std::int64_t>();
  return missing(key, "a whole number from 0"), 0;
}

double JsonFields::number(const char* key) {
  const Json* field = find(key);
  if (field && field->is_number() && std::isfinite(field->get<double>())) return field->get<double>();
  return missing(key, "a number"), 0;
}

double JsonFields::number_or_nan(const char* key) {
  const Json* field = find(key);
  if (field && field->is_null()) return std::numeric_limits<double>::quiet_NaN();
  return number(key);
}

double JsonFields::any_number(const char* key) {
  const Json* field = find(key);
  if (const auto value = field ? number_or_word(*field) : std::nullopt) return *value;
  return missing(key, "a number"), 0;
}

bool JsonFields::flag(const char* key) {
  const Json* field = find(key);
  if (field && field->is_boolean()) return field->get<bool>();
  return missing(key, "true or false"), false;
}

const Json& JsonFields::object(const char* key) {
  static const Json empty = Json::object();
  const Json* field = find(key);
  if (field && field->is_object()) return *field;
  return missing(key, "an object"), empty;
}

const Json& JsonFields::list(const char* key) {
  static const Json empty = Json::array();
  const Json* field = find(key);
  if (field && field->is_array()) return *field;
  return missing(key, "a list"), empty;
}

}  // namespace stacklab
