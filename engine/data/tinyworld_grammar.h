// Phrases with choices and slots, as resources/tinyworld/ writes them: "[a|an old] {thing}, {V} feet [long|wide]".
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/philox.h"
#include "engine/base/result.h"

namespace stacklab {

// Draws in a row, a pure function of (seed, stream, index): the same numbers whatever was drawn elsewhere.
class Dice {
 public:
  Dice(std::uint64_t seed, std::uint32_t stream, std::uint64_t index) : philox_(seed, stream), next_(index << 20) {}

  std::size_t below(std::size_t n) { return static_cast<std::size_t>(philox_.below(next_++, n)); }
  std::int64_t between(std::int64_t low, std::int64_t high) {  // both may come
    return low + static_cast<std::int64_t>(below(static_cast<std::size_t>(high - low + 1)));
  }
  bool percent(std::size_t chance) { return below(100) < chance; }
  template <class Container>
  const auto& pick(const Container& items) {
    return items[below(items.size())];
  }
  template <class T>
  void shuffle(std::vector<T>& items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

 private:
  Philox philox_;
  std::uint64_t next_;
};

class Phrase {
 public:
  struct Node {
    enum class Kind { text, slot, choice };
    Kind kind = Kind::text;
    std::string text;  // or the slot's name
    std::vector<std::vector<Node>> choices;
  };

  // Errors: brackets that do not match, an empty slot.
  static Result<Phrase> parse(std::string_view text);

  using Slot = std::function<std::string(std::string_view name)>;
  // Without a slot function slots are left empty.
  std::string expand(Dice& dice, const Slot& slot = {}) const;
  std::int64_t variants() const;  // how many texts it stands for, slots left open
  void collect_words(std::set<std::string>& lower_case) const;
  void collect_slots(std::set<std::string>& names) const;
  const std::vector<Node>& nodes() const { return nodes_; }

 private:
  std::vector<Node> nodes_;
};

// The words of a text in lower case: runs of letters.
void collect_words(std::string_view text, std::set<std::string>& lower_case);
// The first letter of every sentence in capitals.
std::string sentence_case(std::string text);
// "an old mill", "a mill".
std::string with_article(std::string_view noun);

}  // namespace stacklab
