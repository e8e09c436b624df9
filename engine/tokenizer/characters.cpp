#include "engine/tokenizer/characters.h"

#include <utf8proc.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "engine/base/text.h"

namespace stacklab {
namespace {

constexpr std::int32_t code_points = 0x110000;

bool is_white_space(std::int32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

std::uint8_t class_of(std::int32_t c) {
  if (c == '\r' || c == '\n') return char_class::space | char_class::newline;
  if (is_white_space(c)) return char_class::space;
  switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return char_class::letter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return char_class::number;
    default:
      return char_class::other;
  }
}

// Text without marks that compose, so that most text is not taken apart. Every character below U+0300 is in form C.
bool surely_nfc(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<std::uint8_t>(c) < 0xCC; });
}

void append_composed(std::vector<utf8proc_int32_t>& codes, std::string& out) {
  // Sorting is done here: utf8proc's own is quadratic in the length of a run of marks.
  const auto combining = [](utf8proc_int32_t c) { return utf8proc_get_property(c)->combining_class; };
  for (auto i = codes.begin(); i != codes.end();) {
    if (combining(*i) == 0) {
      ++i;
      continue;
    }
    const auto end = std::find_if(i, codes.end(), [&](utf8proc_int32_t c) { return combining(c) == 0; });
    std::stable_sort(i, end, [&](utf8proc_int32_t a, utf8proc_int32_t b) { return combining(a) < combining(b); });
    i = end;
  }
  const utf8proc_ssize_t composed =
      utf8proc_normalize_utf32(codes.data(), static_cast<utf8proc_ssize_t>(codes.size()),
                               static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  for (utf8proc_ssize_t i = 0; i < composed; ++i) {
    utf8proc_uint8_t bytes[4];
    const utf8proc_ssize_t n = utf8proc_encode_char(codes[static_cast<std::size_t>(i)], bytes);
    out.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(n));
  }
  codes.clear();
}

}  // namespace

const std::uint8_t* char_classes() {
  static const std::unique_ptr<std::uint8_t[]> classes = [] {
    auto made = std::make_unique<std::uint8_t[]>(code_points);
    for (std::int32_t c = 0; c < code_points; ++c) made[static_cast<std::size_t>(c)] = class_of(c);
    return made;
  }();
  return classes.get();
}

std::string to_nfc(std::string_view text) {
  if (surely_nfc(text)) return std::string(text);
  std::string out;
  out.reserve(text.size());
  std::vector<utf8proc_int32_t> codes;
  while (!text.empty()) {
    const std::size_t n = utf8_length(text);
    if (n == 0) {
      append_composed(codes, out);
      out += text.front();
      text.remove_prefix(1);
      continue;
    }
    utf8proc_int32_t code = 0;
    utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(n), &code);
    utf8proc_int32_t parts[16];
    const utf8proc_ssize_t count = utf8proc_decompose_char(
        code, parts, 16, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE), nullptr);
    codes.insert(codes.end(), parts, parts + std::clamp<utf8proc_ssize_t>(count, 0, 16));
    text.remove_prefix(n);
  }
  append_composed(codes, out);
  return out;
}

}  // namespace stacklab
