#include "engine/tokenizer/merger.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <functional>
#include <queue>

namespace stacklab {
namespace {

// Up to here, looking at every pair for each merge is faster than a heap.
constexpr std::size_t longest_short_piece = 64;

constexpr std::uint64_t pair_key(TokenId left, TokenId right) {
  return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
}
constexpr std::uint64_t no_pair = ~std::uint64_t{0};
constexpr std::uint64_t mix = 0x9E3779B97F4A7C15u;

}  // namespace

Merger::Merger(std::span<const Merge> merges, const std::array<TokenId, 256>& byte_tokens)
    : byte_tokens_(byte_tokens), byte_ranks_(256 * 256, no_rank) {
  const std::size_t size = std::bit_ceil(std::max<std::size_t>(merges.size() * 2, 16));
  slots_.assign(size, {no_pair, no_rank, 0});
  shift_ = 64 - std::countr_zero(size);
  results_.reserve(merges.size());
  for (const Merge& merge : merges) {
    const std::uint64_t key = pair_key(merge.left, merge.right);
    std::size_t i = (key * mix) >> shift_;
    while (slots_[i].pair != no_pair) i = (i + 1) & (size - 1);
    slots_[i] = {key, static_cast<std::uint32_t>(results_.size()), merge.result};
    results_.push_back(merge.result);
  }
  for (std::size_t a = 0; a < 256; ++a) {
    for (std::size_t b = 0; b < 256; ++b) byte_ranks_[a << 8 | b] = rank_of(byte_tokens_[a], byte_tokens_[b]);
  }
}

std::uint32_t Merger::rank_of(TokenId left, TokenId right) const {
  const std::uint64_t key = pair_key(left, right);
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t i = (key * mix) >> shift_;; i = (i + 1) & mask) {
    if (slots_[i].pair == key) return slots_[i].rank;
    if (slots_[i].pair == no_pair) return no_rank;
  }
}

void Merger::append(std::string_view piece, std::vector<TokenId>& ids) const {
  piece.size() <= longest_short_piece ? append_short(piece, ids) : append_long(piece, ids);
}

void Merger::append_short(std::string_view piece, std::vector<TokenId>& ids) const {
  std::size_t n = piece.size();
  std::array<TokenId, longest_short_piece> tokens;
  std::array<std::uint32_t, longest_short_piece> ranks;  // of the pair that begins here
  for (std::size_t i = 0; i < n; ++i) {
    const auto byte = static_cast<std::uint8_t>(piece[i]);
    tokens[i] = byte_tokens_[byte];
    if (i + 1 < n) ranks[i] = byte_ranks_[std::size_t{byte} << 8 | static_cast<std::uint8_t>(piece[i + 1])];
  }
  while (n > 1) {
    std::size_t best = 0;
    for (std::size_t i = 1; i + 1 < n; ++i) best = ranks[i] < ranks[best] ? i : best;
    if (ranks[best] == no_rank) break;
    tokens[best] = results_[ranks[best]];
    --n;
    for (std::size_t i = best + 1; i < n; ++i) {
      tokens[i] = tokens[i + 1];
      if (i + 1 < n) ranks[i] = ranks[i + 1];
    }
    if (best > 0) ranks[best - 1] = rank_of(tokens[best - 1], tokens[best]);
    if (best + 1 < n) ranks[best] = rank_of(tokens[best], tokens[best + 1]);
  }
  ids.insert(ids.end(), tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(n));
}

void Merger::append_long(std::string_view piece, std::vector<TokenId>& ids) const {
  constexpr std::size_t none = ~std::size_t{0};
  struct Symbol {
    TokenId token;
    std::uint32_t rank;  // of the pair with the next symbol
    std::size_t before, next;
  };
  const std::size_t n = piece.size();
  std::vector<Symbol> symbols(n);
  struct Candidate {
    std::uint32_t rank;
    std::size_t at;
    bool operator>(const Candidate& o) const { return rank != o.rank ? rank > o.rank : at > o.at; }
  };
  std::vector<Candidate> first;
  for (std::size_t i = 0; i < n; ++i) {
    const auto byte = static_cast<std::uint8_t>(piece[i]);
    const std::uint32_t rank =
        i + 1 < n ? byte_ranks_[std::size_t{byte} << 8 | static_cast<std::uint8_t>(piece[i + 1])] : no_rank;
    symbols[i] = {byte_tokens_[byte], rank, i == 0 ? none : i - 1, i + 1 < n ? i + 1 : none};
    if (rank != no_rank) first.push_back({rank, i});
  }
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue(std::greater<>{}, std::move(first));
  const auto look_again = [&](std::size_t i) {
    Symbol& s = symbols[i];
    s.rank = s.next == none ? no_rank : rank_of(s.token, symbols[s.next].token);
    if (s.rank != no_rank) queue.push({s.rank, i});
  };
  while (!queue.empty()) {
    const Candidate top = queue.top();
    queue.pop();
    Symbol& s = symbols[top.at];
    if (s.rank != top.rank) continue;  // what it was made for is gone
    Symbol& gone = symbols[s.next];
    s.token = results_[s.rank];
    s.next = gone.next;
    gone.rank = no_rank;
    if (s.next != none) symbols[s.next].before = top.at;
    look_again(top.at);
    if (s.before != none) look_again(s.before);
  }
  for (std::size_t i = 0; i != none; i = symbols[i].next) ids.push_back(symbols[i].token);
}

}  // namespace stacklab
