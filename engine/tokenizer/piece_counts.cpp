#include "engine/tokenizer/piece_counts.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace stacklab {
namespace {

// Not the upper bits, which decide the place in the table: a share would else be a range of it.
std::size_t share_of(std::uint64_t hash, std::size_t shares) { return (hash >> 8) % shares; }

}  // namespace

void PieceCounts::clear() {
  std::fill(slots_.begin(), slots_.end(), Slot{});
  used_ = 0;
  long_.clear();
  long_weight_ = 0;
}

void PieceCounts::add_share(const PieceCounts& other, std::size_t share, std::size_t shares) {
  for (const Slot& slot : other.slots_) {
    if (slot.bytes() == 0) continue;
    const std::uint64_t hash = hash_of(slot.key, slot.bytes());
    if (share_of(hash, shares) == share) add(slot.key, slot.bytes(), hash, slot.count());
  }
  for (const auto& [piece, count] : other.long_) {
    if (share_of(std::hash<std::string>()(piece), shares) == share) add_long(piece, count);
  }
}

void PieceCounts::drop_rare(std::int64_t count) {
  const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(std::size_t{1} << least_log2));
  shift_ = 64 - least_log2;
  used_ = 0;
  for (const Slot& slot : old) {
    if (slot.bytes() > 0 && slot.count() > count)
      add(slot.key, slot.bytes(), hash_of(slot.key, slot.bytes()), slot.count());
  }
  std::erase_if(long_, [&](const auto& entry) {
    if (entry.second > count) return false;
    long_weight_ -= weight_of(entry.first.size());
    return true;
  });
}

void PieceCounts::grow() {
  const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(slots_.size() * 2));
  --shift_;
  used_ = 0;
  for (const Slot& slot : old) {
    if (slot.bytes() > 0) add(slot.key, slot.bytes(), hash_of(slot.key, slot.bytes()), slot.count());
  }
}

}  // namespace stacklab
