#include <algorithm>

#include "engine/store/filter_lexer.h"
#include "engine/store/run_filter.h"

namespace stacklab {
namespace {

using store::FilterToken;
using Type = FilterKey::Type;

std::string lower(std::string_view text) {
  std::string low(text);
  for (char& c : low)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return low;
}

// Beginnings of the word or of its last part come first, then what holds the letters anywhere.
int fit(const std::string& candidate, const std::string& typed) {
  if (typed.empty()) return 1;
  const std::string low = lower(candidate);
  if (low.starts_with(typed)) return 3;
  const std::size_t dot = low.rfind('.');
  if (dot != std::string::npos && std::string_view(low).substr(dot + 1).starts_with(typed)) return 2;
  return low.find(typed) != std::string::npos ? 1 : 0;
}

std::string quoted(const std::string& value) {
  const bool plain = !value.empty() && value.find_first_of(" \t\"'()=!<>~\\") == std::string::npos;
  if (plain) return value;
  std::string text = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + "\"";
}

class Offers {
 public:
  Offers(FilterCompletions& to, std::string typed) : to_(to), typed_(lower(typed)) {}
  ~Offers() {
    std::stable_sort(ranked_.begin(), ranked_.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    for (auto& [rank, choice] : ranked_) to_.choices.push_back(std::move(choice));
  }
  Offers(const Offers&) = delete;
  Offers& operator=(const Offers&) = delete;
  void add(const std::string& name, const std::string& text, const std::string& help) {
    if (const int rank = fit(name, typed_)) ranked_.push_back({rank, {text, help}});
  }

 private:
  FilterCompletions& to_;
  std::string typed_;
  std::vector<std::pair<int, FilterCompletion>> ranked_;
};

void offer_values(const FilterKey& key, const FilterWords& words, Offers& offers) {
  const auto add_all = [&](const std::vector<std::string>& values) {
    for (const std::string& value : values) offers.add(value, quoted(value), "");
  };
  add_all(key.choices);
  if (key.type == Type::boolean) add_all({"true", "false"});
  if (key.type == Type::tag) add_all(words.tags);
  if (key.key == "name") add_all(words.names);
  if (key.may_be_nan) offers.add("nan", "nan", "measured, and not a number");
}

void offer_keys(const FilterWords& words, Offers& offers) {
  for (const FilterKey& key : filter_keys()) offers.add(key.key, key.key, key.help);
  for (const std::string& metric : words.metrics)
    if (const std::string key = "metric." + metric; find_filter_key(key) == nullptr)
      offers.add(key, key, "last value of this metric");
}

void offer_signs(const FilterKey& key, Offers& offers) {
  const bool ordered = key.type == Type::number || key.type == Type::time || key.type == Type::text;
  if (key.type == Type::text) offers.add(":", ":", "contains");
  if (key.type == Type::tag || key.type == Type::state || key.type == Type::is) offers.add(":", ":", "is");
  offers.add("=", "=", "is");
  offers.add("!=", "!=", "is not");
  if (!ordered) return;
  offers.add("<", "<", "less than");
  offers.add("<=", "<=", "at most");
  offers.add(">", ">", "more than");
  offers.add(">=", ">=", "at least");
}

}  // namespace

FilterCompletions complete_run_filter(std::string_view text, std::size_t cursor, const FilterWords& words) {
  using Kind = FilterToken::Kind;
  cursor = std::min(cursor, text.size());
  const std::vector<FilterToken> tokens = store::filter_tokens(text.substr(0, cursor));
  const auto from_end = [&](std::size_t n) -> const FilterToken* {
    return tokens.size() > n + 1 ? &tokens[tokens.size() - 2 - n] : nullptr;  // the last one is the end
  };
  FilterCompletions to;
  to.from = to.to = cursor;
  const FilterToken* last = from_end(0);
  const bool touching = last != nullptr && last->at + last->length == cursor;
  // The token in which the cursor stands is what is being typed; a sign is finished.
  const bool typing = touching && (last->kind == Kind::word || (last->kind == Kind::quoted && last->unfinished));
  const FilterToken* before = typing ? from_end(1) : last;
  const FilterToken* before_that = typing ? from_end(2) : from_end(1);
  if (typing) {
    to.from = last->at;
    // The rest of the word behind the cursor goes too.
    while (to.to < text.size() && text.find_first_of(" \t()\"'=!<>:~", to.to) != to.to) ++to.to;
  }
  const std::string typed = typing ? last->text : std::string();
  if (before != nullptr && before->kind == Kind::sign && before->text != "!") {
    const FilterKey* key = before_that != nullptr ? find_filter_key(before_that->text) : nullptr;
    Offers offers(to, typed);
    if (key != nullptr) offer_values(*key, words, offers);
    return to;
  }
  const bool after_key = !typing && last != nullptr && last->kind == Kind::word &&
                         find_filter_key(last->text) != nullptr &&
                         !(from_end(1) != nullptr && from_end(1)->kind == Kind::sign);
  if (after_key) {
    Offers offers(to, "");
    offer_signs(*find_filter_key(last->text), offers);
    return to;
  }
  Offers offers(to, typed);
  const bool after_condition = before != nullptr && before->kind != Kind::open && before->text != "and" &&
                               before->text != "or" && before->text != "not" && before->text != "!";
  if (after_condition) {
    offers.add("and", "and", "both");
    offers.add("or", "or", "either");
    if (!typing) return to;
  }
  offer_keys(words, offers);
  offers.add("not", "not", "turns the next condition round");
  return to;
}

}  // namespace stacklab
