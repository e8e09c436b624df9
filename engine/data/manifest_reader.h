// Reads the fields of a manifest's objects, and remembers the first that is missing or of the wrong type.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace stacklab {

class ManifestReader {
 public:
  // where: what stands before the field's name in messages.
  explicit ManifestReader(const nlohmann::ordered_json& object, std::string where = {})
      : object_(object), where_(std::move(where)) {}

  std::string text(const char* key);
  std::int64_t size(const char* key);  // from 0 to 2^53
  double number(const char* key);      // finite
  const std::string& error() const { return error_; }

 private:
  const nlohmann::ordered_json* find(const char* key) const;
  void complain(const char* key, const char* wanted);

  const nlohmann::ordered_json& object_;
  std::string where_, error_;
};

}  // namespace stacklab
