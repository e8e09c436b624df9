// Short pieces as two words: compared and hashed without touching text again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace stacklab {

struct PieceKey {
  static constexpr std::size_t most_bytes = 16;

  std::uint64_t low = 0, high = 0;  // the bytes in order, then zeros; the length is kept beside

  bool operator==(const PieceKey&) const = default;

  // bytes <= most_bytes; text goes on up to end.
  static PieceKey of(const char* piece, std::size_t bytes, const char* end) {
    PieceKey key;
    if (end - piece >= static_cast<std::ptrdiff_t>(most_bytes)) {
      std::memcpy(&key, piece, most_bytes);
      // Of a little-endian word the first bytes are the low ones.
      if (bytes <= 8) {
        key.high = 0;
        if (bytes < 8) key.low &= (std::uint64_t{1} << (8 * bytes)) - 1;
      } else if (bytes < 16) {
        key.high &= (std::uint64_t{1} << (8 * (bytes - 8))) - 1;
      }
    } else {
      std::memcpy(&key, piece, bytes);
    }
    return key;
  }
};

// Its upper bits are the best ones.
inline std::uint64_t hash_of(const PieceKey& key, std::size_t bytes) {
  const auto product =
      static_cast<unsigned __int128>(key.low ^ 0x9E3779B97F4A7C15u) * (key.high ^ 0xD6E8FEB86659FD93u ^ bytes);
  const auto folded = static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  return folded * 0x9E3779B97F4A7C15u;
}

}  // namespace stacklab
