#include "engine/store/run_filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>

#include "engine/base/text.h"
#include "engine/run/run.h"
#include "engine/store/filter_lexer.h"

namespace stacklab {
namespace {

using store::FilterToken;
using Kind = RunFilter::Kind;
using Op = RunFilter::Op;
using Type = FilterKey::Type;

constexpr std::size_t longest_filter = 4000;
constexpr int deepest = 50;      // brackets and nots within each other
constexpr int most_terms = 200;  // SQLite takes a thousand

// "1e-4", "1.5M", "20k", "off".
std::optional<double> number_of(std::string_view text) {
  double scale = 1;
  if (!text.empty()) {
    constexpr std::pair<char, double> units[] = {{'k', 1e3}, {'K', 1e3},  {'M', 1e6}, {'G', 1e9},
                                                 {'B', 1e9}, {'T', 1e12}, {'%', 1}};
    for (const auto& [unit, factor] : units)
      if (text.back() == unit && text.size() > 1) {
        scale = factor;
        text.remove_suffix(1);
        break;
      }
  }
  if (text == "off" || text == "auto") return 0;
  if (const auto number = parse_double(text)) return *number * scale;
  return std::nullopt;
}

// "2025-01-31", "2025-01-31T14:05" in local time, or seconds since 1970.
std::optional<double> time_of(std::string_view text) {
  std::tm t{};
  const auto digits = [&](std::size_t from, std::size_t count) {
    return text.size() < from + count ? std::optional<std::int64_t>() : parse_int(text.substr(from, count));
  };
  const bool with_clock = text.size() == 16 && (text[10] == 'T' || text[10] == ' ') && text[13] == ':';
  if ((text.size() == 10 || with_clock) && text[4] == '-' && text[7] == '-') {
    const auto year = digits(0, 4), month = digits(5, 2), day = digits(8, 2);
    const auto hour = with_clock ? digits(11, 2) : 0, minute = with_clock ? digits(14, 2) : 0;
    if (!year || !month || !day || !hour || !minute) return std::nullopt;
    if (*year < 1970 || *month < 1 || *month > 12 || *day < 1 || *day > 31 || *hour < 0 || *hour > 23 || *minute < 0 ||
        *minute > 59)
      return std::nullopt;
    t.tm_year = static_cast<int>(*year) - 1900;
    t.tm_mon = static_cast<int>(*month) - 1;
    t.tm_mday = static_cast<int>(*day);
    t.tm_hour = static_cast<int>(*hour);
    t.tm_min = static_cast<int>(*minute);
    t.tm_isdst = -1;
    return static_cast<double>(std::mktime(&t));
  }
  return parse_double(text);
}

std::string listed(const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, ", ")); }

class Parser {
 public:
  explicit Parser(std::string_view text) : tokens_(store::filter_tokens(text)) {}

  tl::expected<RunFilter, FilterError> parse() {
    if (peek().kind == FilterToken::Kind::end) return RunFilter{};
    auto filter = any(0);
    if (!filter) return filter;
    if (peek().kind != FilterToken::Kind::end) return wrong(peek(), "there is no bracket that this one closes", "");
    return filter;
  }

 private:
  using Parsed = tl::expected<RunFilter, FilterError>;

  const FilterToken& peek(std::size_t ahead = 0) const { return tokens_[std::min(next_ + ahead, tokens_.size() - 1)]; }
  const FilterToken& take() {
    const FilterToken& token = peek();
    if (next_ + 1 < tokens_.size()) ++next_;
    return token;
  }
  static bool is_word(const FilterToken& token, std::string_view lower) {
    return token.kind == FilterToken::Kind::word && token.text.size() == lower.size() &&
           std::equal(lower.begin(), lower.end(), token.text.begin(),
                      [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? b - 'A' + 'a' : b); });
  }
  // "and", "or" and "not" may be compared too: not = 3 has no meaning, so that they may not.
  bool at_and() const { return is_word(peek(), "and"); }
  bool at_or() const { return is_word(peek(), "or"); }
  bool at_not() const { return is_word(peek(), "not"); }

  static tl::unexpected<FilterError> wrong(const FilterToken& token, std::string what, std::string remedy) {
    return tl::unexpected<FilterError>({std::move(what), std::move(remedy), token.at, token.length});
  }

  Parsed any(int depth) { return joined(Kind::any, depth); }
  Parsed all(int depth) { return joined(Kind::all, depth); }

  Parsed joined(Kind kind, int depth) {
    const auto part = [&] { return kind == Kind::any ? all(depth) : term(depth); };
    RunFilter filter;
    filter.kind = kind;
    auto first = part();
    if (!first) return first;
    filter.parts.push_back(std::move(*first));
    for (;;) {
      if (kind == Kind::any) {
        if (!at_or()) break;
        take();
      } else if (at_and()) {
        take();
      } else if (at_or() || peek().kind == FilterToken::Kind::end || peek().kind == FilterToken::Kind::close) {
        break;  // what merely follows belongs to it
      }
      auto more = part();
      if (!more) return more;
      filter.parts.push_back(std::move(*more));
    }
    if (filter.parts.size() == 1) {
      RunFilter only = std::move(filter.parts.front());
      return only;
    }
    return filter;
  }

  Parsed term(int depth) {
    if (depth > deepest) return wrong(peek(), "brackets are nested too deep", fmt::format("at most {}", deepest));
    if (at_not() || (peek().kind == FilterToken::Kind::sign && peek().text == "!")) {
      take();
      auto inner = term(depth + 1);
      if (!inner) return inner;
      RunFilter filter;
      filter.kind = Kind::no;
      filter.parts.push_back(std::move(*inner));
      return filter;
    }
    if (peek().kind == FilterToken::Kind::open) {
      const FilterToken& open = take();
      if (peek().kind == FilterToken::Kind::close) return wrong(peek(), "the brackets are empty", "write a condition");
      auto inner = any(depth + 1);
      if (!inner) return inner;
      if (peek().kind != FilterToken::Kind::close) return wrong(open, "this bracket is not closed", "write )");
      take();
      return inner;
    }
    if (peek().kind == FilterToken::Kind::end)
      return wrong(peek(), "something is missing at the end", "write a condition, for example state:running");
    if (peek().kind == FilterToken::Kind::close) return wrong(peek(), "a condition is missing before the bracket", "");
    if (peek().kind == FilterToken::Kind::sign)
      return wrong(peek(), fmt::format("there is no key before \"{}\"", peek().text), "for example loss < 3");
    if (at_and() || at_or()) return wrong(peek(), fmt::format("a condition is missing before \"{}\"", peek().text), "");
    if (++terms_ > most_terms)
      return wrong(peek(), "these are too many conditions", fmt::format("at most {}", most_terms));
    if (peek().unfinished) return wrong(peek(), "a quote is missing at the end", "close it");
    if (peek().kind == FilterToken::Kind::word && peek(1).kind == FilterToken::Kind::sign && peek(1).text != "!")
      return comparison();
    RunFilter word;
    word.kind = Kind::word;
    word.text = take().text;
    return word;
  }

  Parsed comparison() {
    const FilterToken& name = take();
    const FilterToken& sign = take();
    const FilterToken& value = peek();
    const auto op = store::filter_op(sign.text);
    if (!op) return wrong(sign, fmt::format("\"{}\" compares nothing", sign.text), "use =, !=, <, <=, >, >= or :");
    FilterKey any_metric{name.text, Type::number, "", {}, true};
    const FilterKey* key = find_filter_key(name.text);
    if (key == nullptr && name.text.starts_with("metric.") && name.text.size() > 7) key = &any_metric;
    if (key == nullptr) {
      std::vector<std::string> known;
      for (const FilterKey& k : filter_keys()) {
        known.push_back(k.key);
        if (const auto dot = k.key.rfind('.'); dot != std::string::npos) known.push_back(k.key.substr(dot + 1));
      }
      std::string remedy = did_you_mean(name.text, known);
      if (remedy.empty())
        remedy = "a column (loss), a key of the config (optim.adam_lr) or a metric (metric.grad_norm)";
      return wrong(name, fmt::format("nothing is called \"{}\"", printable(name.text)), remedy);
    }
    if (value.kind != FilterToken::Kind::word && value.kind != FilterToken::Kind::quoted)
      return wrong(value.kind == FilterToken::Kind::end ? sign : value,
                   fmt::format("\"{}{}\" lacks a value", name.text, sign.text), example(*key));
    if (value.unfinished) return wrong(value, "a quote is missing at the end", "close it");
    take();
    return compared(*key, *op, name, sign, value);
  }

  static std::string example(const FilterKey& key) {
    if (!key.choices.empty()) return "one of " + listed(key.choices);
    switch (key.type) {
      case Type::number:
        return "a number";
      case Type::boolean:
        return "true or false";
      case Type::time:
        return "a day, as 2025-01-31";
      default:
        return "text, in quotes if it has spaces";
    }
  }

  static Parsed compared(const FilterKey& key, Op op, const FilterToken& name, const FilterToken& sign,
                         const FilterToken& value) {
    RunFilter filter;
    filter.key = key.key;
    filter.op = op;
    filter.text = value.text;
    const bool orders = op != Op::equal && op != Op::unequal && op != Op::contains;
    const auto refuse = [&] {
      return wrong(value, fmt::format("{} cannot be \"{}\"", name.text, printable(value.text)), example(key));
    };
    switch (key.type) {
      case Type::number:
      case Type::time:
      case Type::boolean: {
        std::optional<double> number;
        if (key.type == Type::time) number = time_of(value.text);
        if (key.type == Type::number) number = number_of(value.text);
        if (key.type == Type::boolean) {
          if (value.text == "true" || value.text == "yes" || value.text == "1") number = 1;
          if (value.text == "false" || value.text == "no" || value.text == "0") number = 0;
        }
        if (!number) return refuse();
        if (std::isnan(*number) && (!key.may_be_nan || orders))
          return wrong(value, "nothing can be compared with NaN", "losses and metrics: loss = nan, loss != nan");
        filter.kind = Kind::number;
        filter.number = *number;
        filter.text.clear();
        if (op == Op::contains) filter.op = Op::equal;
        return filter;
      }
      case Type::text:
        filter.kind = Kind::text;
        return filter;
      case Type::state:
      case Type::tag:
      case Type::is:
        if (orders) return wrong(sign, fmt::format("{} has no order", name.text), "use :, = or !=");
        if (!key.choices.empty() &&
            std::find(key.choices.begin(), key.choices.end(), value.text) == key.choices.end()) {
          const std::string meant = did_you_mean(value.text, key.choices);
          return wrong(value, fmt::format("{} cannot be \"{}\"", name.text, printable(value.text)),
                       meant.empty() ? example(key) : meant);
        }
        filter.kind = key.type == Type::state ? Kind::state : key.type == Type::tag ? Kind::tag : Kind::is;
        filter.op = op == Op::unequal ? Op::unequal : Op::equal;
        return filter;
    }
    return filter;
  }

  std::vector<FilterToken> tokens_;
  std::size_t next_ = 0;
  int terms_ = 0;
};

}  // namespace

tl::expected<RunFilter, FilterError> parse_run_filter(std::string_view text) {
  if (text.size() > longest_filter)
    return tl::unexpected<FilterError>(
        {"the filter is too long", fmt::format("at most {} bytes", longest_filter), longest_filter, 0});
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text.substr(i));
    const auto c = static_cast<unsigned char>(text[i]);
    if (length == 0 || (c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f)
      return tl::unexpected<FilterError>({"a character here is no text", "delete it", i, 1});
    i += length;
  }
  return Parser(text).parse();
}

Error to_error(const FilterError& error, std::string_view text) {
  const std::size_t at = std::min(error.at, text.size());
  const std::string place =
      error.length > 0 && at < text.size()
          ? fmt::format("at \"{}\", character {}", printable(text.substr(at, error.length), 40), at + 1)
          : "at the end";
  return {Error::Kind::usage, fmt::format("--filter: {} ({})", error.what, place), error.remedy};
}

bool asks_for(const RunFilter& filter, std::string_view is) {
  if (filter.kind == Kind::is) return filter.text == is;
  return std::any_of(filter.parts.begin(), filter.parts.end(), [is](const RunFilter& f) { return asks_for(f, is); });
}

}  // namespace stacklab
