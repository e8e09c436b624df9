#include "engine/tokenizer/byte_alphabet.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace stacklab {
namespace {

struct Alphabet {
  std::array<std::uint16_t, 256> character;  // of a byte
  std::array<std::int16_t, 0x144> byte;      // of a character; -1: none
  std::array<std::uint8_t, 256> rank, of_rank;

  Alphabet() {
    byte.fill(-1);
    int shifted = 0x100;
    for (int b = 0; b < 256; ++b) {
      const bool prints = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
      const int c = prints ? b : shifted++;
      character[static_cast<std::size_t>(b)] = static_cast<std::uint16_t>(c);
      byte[static_cast<std::size_t>(c)] = static_cast<std::int16_t>(b);
    }
    std::iota(of_rank.begin(), of_rank.end(), std::uint8_t{0});
    std::sort(of_rank.begin(), of_rank.end(),
              [&](std::uint8_t a, std::uint8_t b) { return character[a] < character[b]; });
    for (int r = 0; r < 256; ++r) rank[of_rank[static_cast<std::size_t>(r)]] = static_cast<std::uint8_t>(r);
  }
};

const Alphabet& alphabet() {
  static const Alphabet made;
  return made;
}

}  // namespace

int byte_rank(std::uint8_t byte) { return alphabet().rank[byte]; }
std::uint8_t byte_of_rank(int rank) { return alphabet().of_rank[static_cast<std::size_t>(rank)]; }

std::string spell_bytes(std::string_view bytes) {
  std::string out;
  for (const char b : bytes) {
    const unsigned c = alphabet().character[static_cast<std::uint8_t>(b)];
    if (c < 0x80) {
      out += static_cast<char>(c);
    } else {
      out += static_cast<char>(0xC0 | c >> 6);
      out += static_cast<char>(0x80 | (c & 0x3F));
    }
  }
  return out;
}

std::optional<std::string> unspell_bytes(std::string_view spelled) {
  std::string out;
  for (std::size_t i = 0; i < spelled.size(); ++i) {
    unsigned c = static_cast<std::uint8_t>(spelled[i]);
    if (c >= 0x80) {
      if (c >= 0xE0 || i + 1 == spelled.size()) return {};
      c = (c & 0x1F) << 6 | (static_cast<std::uint8_t>(spelled[++i]) & 0x3F);
    }
    const int byte = c < alphabet().byte.size() ? alphabet().byte[c] : -1;
    if (byte < 0) return {};
    out += static_cast<char>(byte);
  }
  return out;
}

}  // namespace stacklab
