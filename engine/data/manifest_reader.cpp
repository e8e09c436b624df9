#include "engine/data/manifest_reader.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace stacklab {

const nlohmann::ordered_json* ManifestReader::find(const char* key) const {
  if (!object_.is_object()) return nullptr;
  const auto at = object_.find(key);
  return at == object_.end() ? nullptr : &*at;
}

void ManifestReader::complain(const char* key, const char* wanted) {
  if (error_.empty()) error_ = "\"" + where_ + key + "\" is missing or not " + wanted;
}

std::string ManifestReader::text(const char* key) {
  const auto* field = find(key);
  if (field && field->is_string()) return field->get<std::string>();
  return complain(key, "a text"), std::string();
}

std::int64_t ManifestReader::size(const char* key) {
  const auto* field = find(key);
  if (field && field->is_number_integer() && *field >= 0 && *field <= std::int64_t{1} << 53)
    return field->get<std::int64_t>();
  return complain(key, "a whole number from 0"), 0;
}

double ManifestReader::number(const char* key) {
  const auto* field = find(key);
  if (field && field->is_number() && std::isfinite(field->get<double>())) return field->get<double>();
  return complain(key, "a number"), 0;
}

}  // namespace stacklab
