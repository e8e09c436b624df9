// How often each piece of a text occurs. Short pieces live in a flat table, long ones, which are rare, beside it.
// Memory goes with their weight.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/tokenizer/piece_key.h"

namespace stacklab {

class PieceCounts {
 public:
  // Text goes on up to end, behind the piece.
  void add(const char* piece, std::size_t bytes, const char* end) {
    if (bytes > PieceKey::most_bytes) {
      add_long(std::string(piece, bytes), 1);
      return;
    }
    const PieceKey key = PieceKey::of(piece, bytes, end);
    add(key, bytes, hash_of(key, bytes), 1);
  }

  // What a piece counts for where memory is bounded: a table's entry, or so many bytes of a long one.
  static std::int64_t weight_of(std::size_t bytes) { return static_cast<std::int64_t>(bytes / 32 + 1); }

  std::size_t size() const { return used_ + long_.size(); }
  std::int64_t weight() const { return static_cast<std::int64_t>(used_) + long_weight_; }
  void clear();

  // Adds those of other whose hash falls to this share of so many.
  void add_share(const PieceCounts& other, std::size_t share, std::size_t shares);
  // Drops pieces that occur at most so often.
  void drop_rare(std::int64_t count);

  // visit(std::string_view piece, std::int64_t count); the order has no meaning.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const Slot& slot : slots_) {
      if (slot.bytes() > 0)
        visit(std::string_view(reinterpret_cast<const char*>(&slot.key), slot.bytes()), slot.count());
    }
    for (const auto& [piece, count] : long_) visit(std::string_view(piece), count);
  }

 private:
  struct Slot {
    PieceKey key;
    std::uint64_t count_and_bytes = 0;  // count * 32 + bytes; 0: free

    std::size_t bytes() const { return count_and_bytes & 31; }
    std::int64_t count() const { return static_cast<std::int64_t>(count_and_bytes >> 5); }
  };

  void add(const PieceKey& key, std::size_t bytes, std::uint64_t hash, std::int64_t count) {
    for (std::size_t i = hash >> shift_;; i = (i + 1) & (slots_.size() - 1)) {
      Slot& slot = slots_[i];
      if (slot.bytes() == bytes && slot.key == key) {
        slot.count_and_bytes += static_cast<std::uint64_t>(count) << 5;
        return;
      }
      if (slot.bytes() > 0) continue;
      slot = {key, static_cast<std::uint64_t>(count) << 5 | bytes};
      if (++used_ * 8 > slots_.size() * 5) grow();
      return;
    }
  }
  void add_long(const std::string& piece, std::int64_t count) {
    std::int64_t& all = long_[piece];
    if (all == 0) long_weight_ += weight_of(piece.size());
    all += count;
  }
  void grow();

  static constexpr int least_log2 = 12;
  std::vector<Slot> slots_ = std::vector<Slot>(std::size_t{1} << least_log2);
  int shift_ = 64 - least_log2;
  std::size_t used_ = 0;
  std::unordered_map<std::string, std::int64_t> long_;
  std::int64_t long_weight_ = 0;
};

}  // namespace stacklab
