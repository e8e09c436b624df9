// Learns merges from counted pieces: again and again the most frequent pair of neighbours, of equally frequent ones the
// one of the smallest (left id, right id). The work of a merge grows with the places where its pair stands, never with
// the length of a piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/base/result.h"
#include "engine/tokenizer/merger.h"
#include "engine/tokenizer/piece_counts.h"

namespace stacklab {

class MergeLearner {
 public:
  // Takes the counts apart. Ids below 256 are bytes in the order of byte_alphabet.h. Errors: more text than 32 bits
  // count.
  static Result<MergeLearner> create(std::vector<PieceCounts> counts);

  // The next merge, of a pair that occurs at least min_frequency times; empty: there is none left. Its result may be a
  // token that is there already.
  std::optional<Merge> next(std::int64_t min_frequency);
  // The bytes of each id so far.
  const std::vector<std::string>& vocabulary() const { return vocabulary_; }
  // Of all counted text: its bytes, and the tokens that it has by now.
  std::int64_t bytes() const { return bytes_; }
  std::int64_t tokens() const { return tokens_; }

 private:
  using Symbol = std::uint32_t;
  struct Pair {
    Symbol left, right;
    std::int64_t count;
    std::uint64_t places;  // where its places begin in places_
    std::uint32_t size;    // how many, among them some that are no longer it
  };
  struct Candidate {
    std::int64_t count;  // at most too high
    std::uint64_t key;
    std::uint32_t pair;
    // Of a heap's order: less is worse.
    bool operator<(const Candidate& o) const { return count != o.count ? count < o.count : key > o.key; }
  };
  // What a merge found on one side of its places, by neighbour.
  struct Neighbour {
    Symbol symbol;
    std::uint32_t size;
    std::int64_t count;
    std::uint64_t places;
  };
  struct Side {
    std::vector<Neighbour> neighbours;
    std::vector<std::uint32_t> index;                            // by symbol: one more than its place above; 0: none
    std::vector<std::pair<std::uint32_t, std::uint32_t>> found;  // neighbour, place
    void add(Symbol symbol, std::uint32_t place, std::int64_t count);
    void clear();
  };

  MergeLearner() = default;
  void count_pairs_of_bytes();
  std::uint32_t find_pair(Symbol left, Symbol right);  // makes it when it is new
  void grow_index();
  void push(std::uint32_t pair);
  bool refill(std::int64_t min_frequency);
  Symbol token_of(Symbol left, Symbol right);
  void apply(std::uint32_t pair, Symbol result);
  void enter(Side& side, Symbol result, bool on_left);

  // All pieces, most frequent first, with a wall before each and at the end. A token stands in its first and its last
  // place; what lies between is dead.
  std::vector<Symbol> text_;
  std::vector<std::pair<std::uint32_t, std::int64_t>> weights_;  // up to which place pieces occur how often
  std::vector<std::uint32_t> places_;
  std::vector<Pair> pairs_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pair_index_;  // open addressing: one more than the pair, hash
  std::vector<Candidate> heap_;
  std::int64_t heap_least_ = 0;  // pairs that occur less often are not in the heap yet
  Side left_, right_;
  std::int64_t bytes_ = 0, tokens_ = 0;
  std::vector<std::string> vocabulary_;
  std::vector<std::uint32_t> lengths_;
  std::unordered_map<std::string, Symbol> ids_;
};

}  // namespace stacklab
