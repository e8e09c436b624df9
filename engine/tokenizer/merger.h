// Byte-pair merging of one piece: the merge of lowest rank first, leftmost first, until none applies.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace stacklab {

using TokenId = std::int32_t;

struct Merge {
  TokenId left, right, result;

  bool operator==(const Merge&) const = default;
};

class Merger {
 public:
  // merges by rank; byte_tokens: the token of each byte. No pair occurs twice.
  Merger(std::span<const Merge> merges, const std::array<TokenId, 256>& byte_tokens);

  // Appends the tokens of piece. Thread-safe. O(n log n) in the piece's length.
  void append(std::string_view piece, std::vector<TokenId>& ids) const;

 private:
  static constexpr std::uint32_t no_rank = ~std::uint32_t{0};
  struct Slot {
    std::uint64_t pair;
    std::uint32_t rank;
    TokenId result;
  };

  std::uint32_t rank_of(TokenId left, TokenId right) const;
  void append_short(std::string_view piece, std::vector<TokenId>& ids) const;
  void append_long(std::string_view piece, std::vector<TokenId>& ids) const;

  std::array<TokenId, 256> byte_tokens_;
  std::vector<TokenId> results_;           // by rank
  std::vector<std::uint32_t> byte_ranks_;  // [256 * 256], of pairs of bytes
  std::vector<Slot> slots_;                // open addressing, a power of two
  int shift_ = 0;
};

}  // namespace stacklab
