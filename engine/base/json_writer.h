// Writes JSON piece by piece. Numbers read back exactly; NaN and infinities, which JSON lacks, become the words "nan",
// "inf", "-inf"; text that is not UTF-8 has its bad bytes replaced. Costs its users no JSON library's header.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stacklab {

// With quotes and escapes.
std::string json_quoted(std::string_view text);

class JsonWriter {
 public:
  // indent 0: all in one line, without spaces.
  explicit JsonWriter(int indent = 0) : indent_(indent) {}

  void begin_object() { begin('{'); }
  void end_object() { end('}'); }
  void begin_array() { begin('['); }
  void end_array() { end(']'); }
  void key(std::string_view name);

  void value(std::string_view text) { put(json_quoted(text)); }
  void value(const char* text) { value(std::string_view(text)); }
  void value(const std::string& text) { value(std::string_view(text)); }
  void value(bool b) { put(b ? "true" : "false"); }
  void value(double number);
  template <std::integral T>
  requires(!std::same_as<T, bool>) void value(T number) { put(std::to_string(number)); }
  void null() { put("null"); }
  // JSON text made elsewhere, put in as it is.
  void raw(std::string_view json) { put(json); }

  template <class T>
  void member(std::string_view name, const T& v) {
    key(name);
    value(v);
  }

  // Everything so far; whole when every begin has had its end.
  const std::string& text() const { return text_; }

 private:
  void begin(char bracket);
  void end(char bracket);
  void put(std::string_view token);
  void before_item();
  void line();

  int indent_;
  std::string text_;
  std::vector<bool> filled_;  // per open bracket: has an item
  bool after_key_ = false;
};

}  // namespace stacklab
