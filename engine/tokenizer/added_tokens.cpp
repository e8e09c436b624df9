#include "engine/tokenizer/added_tokens.h"

#include <algorithm>
#include <cstring>

#include "engine/tokenizer/tokenizer.h"

namespace stacklab {

AddedTokens::AddedTokens(std::span<const AddedToken> tokens, bool with_special) {
  std::uint32_t nodes = 1;
  for (const AddedToken& token : tokens) {
    if (token.special && !with_special) continue;
    std::uint32_t node = 0;
    for (const char c : token.content) {
      const auto [edge, made] = next_.try_emplace(std::uint64_t{node} << 8 | static_cast<std::uint8_t>(c), nodes);
      nodes += made;
      node = edge->second;
    }
    ends_[node] = token.id;
    begins_[static_cast<std::uint8_t>(token.content[0])] = true;
  }
  if (std::count(begins_.begin(), begins_.end(), true) == 1)
    only_ = static_cast<int>(std::find(begins_.begin(), begins_.end(), true) - begins_.begin());
}

AddedTokens::Match AddedTokens::find(std::string_view text) const {
  if (ends_.empty()) return {text.size(), 0, 0};
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (only_ >= 0) {
      const void* found = std::memchr(text.data() + at, only_, text.size() - at);
      if (found == nullptr) break;
      at = static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
    } else if (!begins_[static_cast<std::uint8_t>(text[at])]) {
      continue;
    }
    Match best;
    std::uint32_t node = 0;
    for (std::size_t i = at; i < text.size(); ++i) {
      const auto edge = next_.find(std::uint64_t{node} << 8 | static_cast<std::uint8_t>(text[i]));
      if (edge == next_.end()) break;
      node = edge->second;
      if (const auto end = ends_.find(node); end != ends_.end()) best = {at, i + 1 - at, end->second};
    }
    if (best.bytes > 0) return best;
  }
  return {text.size(), 0, 0};
}

}  // namespace stacklab
