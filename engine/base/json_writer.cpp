#include "engine/base/json_writer.h"

#include <fmt/format.h>

#include <cmath>

#include "engine/base/text.h"

namespace stacklab {

std::string json_quoted(std::string_view text) {
  std::string out = "\"";
  for (std::size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x80) {
      const std::size_t length = utf8_length(text.substr(i));
      out += length == 0 ? std::string_view("\uFFFD") : text.substr(i, length);
      i += std::max<std::size_t>(length, 1);
      continue;
    }
    ++i;
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (c < 0x20 || c == 0x7f)
          out += fmt::format("\\u{:04x}", c);
        else
          out += static_cast<char>(c);
    }
  }
  return out + '"';
}

void JsonWriter::line() {
  if (indent_ == 0) return;
  text_ += '\n';
  text_.append(filled_.size() * static_cast<std::size_t>(indent_), ' ');
}

void JsonWriter::before_item() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (filled_.empty()) return;
  if (filled_.back()) text_ += ',';
  filled_.back() = true;
  line();
}

void JsonWriter::begin(char bracket) {
  before_item();
  text_ += bracket;
  filled_.push_back(false);
}

void JsonWriter::end(char bracket) {
  const bool had_items = filled_.back();
  filled_.pop_back();
  if (had_items) line();
  text_ += bracket;
}

void JsonWriter::key(std::string_view name) {
  before_item();
  text_ += json_quoted(name);
  text_ += indent_ == 0 ? ":" : ": ";
  after_key_ = true;
}

void JsonWriter::put(std::string_view token) {
  before_item();
  text_ += token;
}

void JsonWriter::value(double number) { put(std::isfinite(number) ? shortest(number) : json_quoted(shortest(number))); }

}  // namespace stacklab
