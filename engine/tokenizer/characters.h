// What the patterns of pre-tokenizers ask of a character: is it a letter, a number, white space, a line break?
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stacklab {

namespace char_class {
inline constexpr std::uint8_t other = 0, letter = 1, number = 2, space = 4, newline = 8;  // a newline is a space too
}

// By code point, 0x110000 entries: general categories L and N, and White_Space. Made at the first call.
const std::uint8_t* char_classes();

struct Char {
  std::uint8_t char_class;
  std::uint8_t bytes;
};

// The character at p, before end. A byte that begins no well-formed UTF-8 is a character of class other by itself.
inline Char read_char(const std::uint8_t* classes, const char* p, const char* end) {
  const auto byte = [p](int i) { return static_cast<std::uint8_t>(p[i]); };
  const auto follows = [&](int i) { return (byte(i) & 0xC0) == 0x80; };
  const std::uint32_t c = byte(0);
  if (c < 0x80) return {classes[c], 1};
  if (c < 0xC2) return {char_class::other, 1};
  if (c < 0xE0) {
    if (end - p < 2 || !follows(1)) return {char_class::other, 1};
    return {classes[(c & 0x1F) << 6 | (byte(1) & 0x3F)], 2};
  }
  if (c < 0xF0) {
    if (end - p < 3 || !follows(1) || !follows(2)) return {char_class::other, 1};
    const std::uint32_t code = (c & 0x0F) << 12 | (byte(1) & 0x3Fu) << 6 | (byte(2) & 0x3Fu);
    if (code < 0x800 || (code >= 0xD800 && code < 0xE000)) return {char_class::other, 1};
    return {classes[code], 3};
  }
  if (c >= 0xF5 || end - p < 4 || !follows(1) || !follows(2) || !follows(3)) return {char_class::other, 1};
  const std::uint32_t code = (c & 0x07) << 18 | (byte(1) & 0x3Fu) << 12 | (byte(2) & 0x3Fu) << 6 | (byte(3) & 0x3Fu);
  if (code < 0x10000 || code > 0x10FFFF) return {char_class::other, 1};
  return {classes[code], 4};
}

// Normalisation form C. Bytes that are not UTF-8 stay as they are, and nothing composes across them. Linear in the
// length, but for sorting runs of marks.
std::string to_nfc(std::string_view text);

}  // namespace stacklab
