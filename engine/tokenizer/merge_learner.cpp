#include "engine/tokenizer/merge_learner.h"

#include <fmt/core.h>

#include <algorithm>

#include "engine/tokenizer/byte_alphabet.h"

namespace stacklab {
namespace {

constexpr std::uint32_t wall = ~std::uint32_t{0};
constexpr std::uint32_t dead = wall - 1;

constexpr std::uint64_t pair_key(std::uint32_t left, std::uint32_t right) { return std::uint64_t{left} << 32 | right; }

std::uint64_t pair_hash(std::uint64_t key) {
  key *= 0x9E3779B97F4A7C15u;
  return (key ^ key >> 32) * 0xD6E8FEB86659FD93u;
}

}  // namespace

Result<MergeLearner> MergeLearner::create(std::vector<PieceCounts> counts) {
  MergeLearner learner;
  struct Piece {
    std::int64_t count;
    std::string_view bytes;
  };
  std::vector<Piece> pieces;
  std::uint64_t size = 1;
  for (const PieceCounts& part : counts) {
    part.for_each([&](std::string_view bytes, std::int64_t count) {
      learner.bytes_ += count * static_cast<std::int64_t>(bytes.size());
      if (bytes.size() < 2) return;
      pieces.push_back({count, bytes});
      size += bytes.size() + 1;
    });
  }
  if (size >= dead)
    return failed(fmt::format("the text has {} bytes of different pieces, more than can be learnt from", size),
                  "lower the bound on pieces, or train on a part of the text");
  // Which of two equally frequent pieces comes first changes nothing.
  std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.count > b.count; });
  learner.text_.reserve(size);
  learner.text_.push_back(wall);
  for (const Piece& piece : pieces) {
    for (const char byte : piece.bytes)
      learner.text_.push_back(static_cast<Symbol>(byte_rank(static_cast<std::uint8_t>(byte))));
    learner.text_.push_back(wall);
    const auto end = static_cast<std::uint32_t>(learner.text_.size());
    if (!learner.weights_.empty() && learner.weights_.back().second == piece.count)
      learner.weights_.back().first = end;
    else
      learner.weights_.emplace_back(end, piece.count);
  }
  pieces = {};
  counts.clear();
  learner.tokens_ = learner.bytes_;
  for (int r = 0; r < 256; ++r) {
    learner.vocabulary_.push_back(std::string(1, static_cast<char>(byte_of_rank(r))));
    learner.ids_.emplace(learner.vocabulary_.back(), static_cast<Symbol>(r));
    learner.lengths_.push_back(1);
  }
  learner.count_pairs_of_bytes();
  return learner;
}

void MergeLearner::count_pairs_of_bytes() {
  pair_index_.resize(std::size_t{1} << 16);
  std::vector<std::int64_t> counts(256 * 256);
  std::vector<std::uint32_t> sizes(256 * 256);
  const auto for_pairs = [&](auto&& visit) {
    std::uint32_t place = 1;
    for (const auto& [end, weight] : weights_) {
      for (; place < end; ++place) {
        if (text_[place] != wall && text_[place + 1] != wall)
          visit(place, text_[place] << 8 | text_[place + 1], weight);
      }
    }
  };
  for_pairs([&](std::uint32_t, Symbol both, std::int64_t weight) {
    counts[both] += weight;
    ++sizes[both];
  });
  std::vector<std::uint64_t> next(256 * 256);
  std::uint64_t total = 0;
  for (Symbol both = 0; both < 256 * 256; ++both) {
    next[both] = total;
    if (sizes[both] == 0) continue;
    Pair& pair = pairs_[find_pair(both >> 8, both & 255)];
    pair.count = counts[both];
    pair.places = total;
    pair.size = sizes[both];
    total += sizes[both];
    heap_least_ = std::max(heap_least_, pair.count + 1);
  }
  places_.resize(total);
  for_pairs([&](std::uint32_t place, Symbol both, std::int64_t) { places_[next[both]++] = place; });
}

std::uint32_t MergeLearner::find_pair(Symbol left, Symbol right) {
  const std::uint64_t hash = pair_hash(pair_key(left, right));
  const auto tag = static_cast<std::uint32_t>(hash);
  const std::size_t mask = pair_index_.size() - 1;
  for (std::size_t i = (hash >> 32) & mask;; i = (i + 1) & mask) {
    auto& [pair, its_tag] = pair_index_[i];
    if (pair == 0) {
      pairs_.push_back({left, right, 0, 0, 0});
      pair = static_cast<std::uint32_t>(pairs_.size());
      its_tag = tag;
      if (pairs_.size() * 2 > pair_index_.size()) grow_index();
      return static_cast<std::uint32_t>(pairs_.size() - 1);
    }
    if (its_tag == tag && pairs_[pair - 1].left == left && pairs_[pair - 1].right == right) return pair - 1;
  }
}

void MergeLearner::grow_index() {
  const std::size_t mask = pair_index_.size() * 2 - 1;
  pair_index_.assign(mask + 1, {});
  for (std::size_t p = 0; p < pairs_.size(); ++p) {
    const std::uint64_t hash = pair_hash(pair_key(pairs_[p].left, pairs_[p].right));
    std::size_t i = (hash >> 32) & mask;
    while (pair_index_[i].first != 0) i = (i + 1) & mask;
    pair_index_[i] = {static_cast<std::uint32_t>(p + 1), static_cast<std::uint32_t>(hash)};
  }
}

void MergeLearner::push(std::uint32_t pair) {
  const Pair& p = pairs_[pair];
  if (p.count < heap_least_) return;
  heap_.push_back({p.count, pair_key(p.left, p.right), pair});
  std::push_heap(heap_.begin(), heap_.end());
}

// Rare pairs are many and most are never merged, so they enter the heap only when nothing more frequent is left.
bool MergeLearner::refill(std::int64_t min_frequency) {
  while (heap_.empty() && heap_least_ > min_frequency) {
    const std::int64_t most = heap_least_;
    heap_least_ = std::max(min_frequency, heap_least_ / 2);
    for (std::size_t p = 0; p < pairs_.size(); ++p) {
      if (pairs_[p].count >= heap_least_ && pairs_[p].count < most)
        heap_.push_back({pairs_[p].count, pair_key(pairs_[p].left, pairs_[p].right), static_cast<std::uint32_t>(p)});
    }
    std::make_heap(heap_.begin(), heap_.end());
  }
  return !heap_.empty();
}

std::optional<Merge> MergeLearner::next(std::int64_t min_frequency) {
  min_frequency = std::max<std::int64_t>(min_frequency, 1);
  while (!heap_.empty() || refill(min_frequency)) {
    const Candidate top = heap_.front();
    std::pop_heap(heap_.begin(), heap_.end());
    heap_.pop_back();
    if (top.count != pairs_[top.pair].count) {
      push(top.pair);
      continue;
    }
    if (top.count < min_frequency) return {};
    const Symbol left = pairs_[top.pair].left, right = pairs_[top.pair].right;
    const Symbol result = token_of(left, right);
    apply(top.pair, result);
    return Merge{static_cast<TokenId>(left), static_cast<TokenId>(right), static_cast<TokenId>(result)};
  }
  return {};
}

MergeLearner::Symbol MergeLearner::token_of(Symbol left, Symbol right) {
  std::string bytes = vocabulary_[left] + vocabulary_[right];
  const auto [entry, is_new] = ids_.try_emplace(bytes, static_cast<Symbol>(vocabulary_.size()));
  if (is_new) {
    lengths_.push_back(static_cast<std::uint32_t>(bytes.size()));
    vocabulary_.push_back(std::move(bytes));
  }
  return entry->second;
}

void MergeLearner::Side::add(Symbol symbol, std::uint32_t place, std::int64_t count) {
  std::uint32_t& at = index[symbol];
  if (at == 0) {
    neighbours.push_back({symbol, 0, 0, 0});
    at = static_cast<std::uint32_t>(neighbours.size());
  }
  Neighbour& n = neighbours[at - 1];
  ++n.size;
  n.count += count;
  found.emplace_back(at - 1, place);
}

void MergeLearner::Side::clear() {
  for (const Neighbour& n : neighbours) index[n.symbol] = 0;
  neighbours.clear();
  found.clear();
}

void MergeLearner::apply(std::uint32_t merged, Symbol result) {
  const Pair pair = pairs_[merged];
  const std::uint32_t left_length = lengths_[pair.left], right_length = lengths_[pair.right];
  left_.index.resize(vocabulary_.size());
  right_.index.resize(vocabulary_.size());
  auto weight = weights_.begin();
  const std::uint32_t* const places = places_.data() + pair.places;
  constexpr std::uint32_t ahead = 12;
  for (std::uint32_t n = 0; n < pair.size; ++n) {
    if (n + ahead < pair.size) __builtin_prefetch(text_.data() + places[n + ahead]);
    const std::uint32_t at = places[n], middle = at + left_length;
    if (text_[at] != pair.left || text_[middle] != pair.right) continue;
    // Places ascend, and so the weight is further on, mostly near.
    if (at >= weight->first) {
      std::ptrdiff_t step = 1;
      while (weights_.end() - weight > step && at >= (weight + step)->first) {
        weight += step;
        step *= 2;
      }
      weight = std::upper_bound(weight, std::min(weight + step + 1, weights_.end()), at,
                                [](std::uint32_t a, const auto& w) { return a < w.first; });
    }
    const std::uint32_t end = middle + right_length;
    tokens_ -= weight->second;
    const Symbol before = text_[at - 1], after = text_[end];
    if (before != wall) left_.add(before, at - lengths_[before], weight->second);
    if (after != wall) right_.add(after, at, weight->second);
    text_[middle - 1] = dead;
    text_[middle] = dead;
    text_[at] = result;
    text_[end - 1] = result;
  }
  // Counts first rise and then fall: of "abab", the pair that the first merge makes is taken away by the second.
  enter(left_, result, true);
  enter(right_, result, false);
  for (const Neighbour& n : left_.neighbours) pairs_[find_pair(n.symbol, pair.left)].count -= n.count;
  for (const Neighbour& n : right_.neighbours) pairs_[find_pair(pair.right, n.symbol)].count -= n.count;
  pairs_[merged].count = 0;
  for (const Neighbour& n : left_.neighbours) push(find_pair(n.symbol, result));
  for (const Neighbour& n : right_.neighbours) push(find_pair(result, n.symbol));
  left_.clear();
  right_.clear();
}

void MergeLearner::enter(Side& side, Symbol result, bool on_left) {
  for (Neighbour& n : side.neighbours) {
    Pair& pair = pairs_[on_left ? find_pair(n.symbol, result) : find_pair(result, n.symbol)];
    pair.count += n.count;
    const std::uint64_t begin = places_.size();
    // A token that another merge has made before brings places of its own.
    places_.resize(begin + pair.size + n.size);
    std::copy_n(places_.begin() + static_cast<std::ptrdiff_t>(pair.places), pair.size,
                places_.begin() + static_cast<std::ptrdiff_t>(begin));
    n.places = begin + pair.size;
    pair.places = begin;
    pair.size += n.size;
  }
  for (const auto& [neighbour, place] : side.found) places_[side.neighbours[neighbour].places++] = place;
  for (const Neighbour& n : side.neighbours) {
    const Pair& pair = pairs_[on_left ? find_pair(n.symbol, result) : find_pair(result, n.symbol)];
    if (pair.size == n.size) continue;
    std::sort(places_.begin() + static_cast<std::ptrdiff_t>(pair.places),
              places_.begin() + static_cast<std::ptrdiff_t>(pair.places + pair.size));
  }
}

}  // namespace stacklab
