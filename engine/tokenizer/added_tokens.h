// Finds added tokens in text: the leftmost first, the longest of those that begin there.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>

#include "engine/tokenizer/merger.h"

namespace stacklab {

struct AddedToken;

class AddedTokens {
 public:
  struct Match {
    std::size_t at = 0;     // where it begins; the length of the text when there is none
    std::size_t bytes = 0;  // 0: none
    TokenId id = 0;
  };

  // with_special: or only those that are text.
  AddedTokens(std::span<const AddedToken> tokens, bool with_special);

  Match find(std::string_view text) const;

 private:
  // A tree of prefixes: from a node by a byte to the next.
  std::unordered_map<std::uint64_t, std::uint32_t> next_;
  std::unordered_map<std::uint32_t, TokenId> ends_;  // nodes where a token ends
  std::array<bool, 256> begins_{};
  int only_ = -1;  // the one byte that tokens begin with; -1: there are several
};

}  // namespace stacklab
