// JSON that others wrote: parsed within bounds, its fields read with the same words everywhere.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace stacklab {

// What walks JSON level by level does so on the stack: nothing of ours nests deeper than a few levels.
inline constexpr int deepest_json = 64;

// The parser takes a NUL byte for the end of a text, whatever follows it; none is in JSON.
bool has_nul(std::string_view text);

// The root is an object. The error is a reason to put behind a file's name: "is not JSON, or not whole", a NUL byte,
// nested too deeply, a key that is there twice (the first would be lost silently).
tl::expected<nlohmann::ordered_json, std::string> parse_json_object(std::string_view text);

// A number, or one of the words that JsonWriter puts for those that JSON lacks: "nan", "inf", "-inf".
std::optional<double> number_or_word(const nlohmann::ordered_json& value);

// Reads the fields of an object (of anything else none), and remembers the first that is missing or does not fit.
class JsonFields {
 public:
  // where: what stands before the field's name in messages. The object must outlive this.
  explicit JsonFields(const nlohmann::ordered_json& object, std::string where = {})
      : object_(object), where_(std::move(where)) {}

  std::string text(const char* key);
  std::int64_t count(const char* key);    // from 0 to 2^53: exact in any reader, and sums do not overflow
  double number(const char* key);         // finite
  double number_or_nan(const char* key);  // null is NaN, which JSON has not
  double any_number(const char* key);     // number_or_word
  bool flag(const char* key);
  // The field of an object that is one, or an empty one with a complaint.
  const nlohmann::ordered_json& object(const char* key);
  const nlohmann::ordered_json& list(const char* key);

  // Null: it is missing.
  const nlohmann::ordered_json* find(const char* key) const;
  // What is wrong with a field that was read: "is not the step".
  void fault(std::string_view key, std::string_view what);
  const std::string& error() const { return error_; }  // empty: all is well

 private:
  void missing(const char* key, const char* wanted);

  const nlohmann::ordered_json& object_;
  std::string where_, error_;
};

}  // namespace stacklab
