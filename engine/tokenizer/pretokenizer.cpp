#include "engine/tokenizer/pretokenizer.h"

#include <fmt/core.h>

#include <array>
#include <utility>

#include "engine/base/text.h"

namespace stacklab {
namespace {

// tiktoken's own spelling, and what this program wrote once. Where {1,3}+ is no possessive quantifier but a repeated
// group, as in Oniguruma, which Hugging Face reads with, a piece is any number of digits. Read as three where
// this program wrote it.
constexpr std::string_view older_cl100k =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s)";

using Spelling = std::pair<std::string_view, Split>;

// The first spelling of a split is the one that is written. A possessive ?+, *+ or ++ in one of them changes how a
// pattern is searched, not what it finds.
constexpr std::array<Spelling, 8> spellings = {{
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", Split::gpt2},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     Split::qwen2},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     Split::llama3},
    {R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s)",
     Split::cl100k},
    {R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,2}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)",
     Split::nanochat},
    {R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)",
     Split::llama3},
    {R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", Split::gpt2},
    {older_cl100k, Split::cl100k},
}};

constexpr std::array<std::pair<std::string_view, Split>, 5> names = {{{"gpt2", Split::gpt2},
                                                                      {"qwen2", Split::qwen2},
                                                                      {"llama3", Split::llama3},
                                                                      {"cl100k", Split::cl100k},
                                                                      {"nanochat", Split::nanochat}}};

bool is_seen(char c) { return c > 0x20 && c < 0x7F; }

}  // namespace

std::string_view to_string(Split split) {
  for (const auto& [name, s] : names) {
    if (s == split) return name;
  }
  return {};
}

std::optional<Split> split_from_string(std::string_view name) {
  for (const auto& [n, split] : names) {
    if (n == name) return split;
  }
  return {};
}

std::vector<std::string> split_names() {
  std::vector<std::string> all;
  for (const auto& [name, split] : names) all.emplace_back(name);
  return all;
}

std::string_view pattern_of(Split split) {
  for (const auto& [pattern, s] : spellings) {
    if (s == split) return pattern;
  }
  return {};
}

std::optional<Split> split_of_pattern(std::string_view pattern) {
  for (const auto& [p, split] : spellings) {
    if (p == pattern) return split;
  }
  return {};
}

bool is_older_cl100k(std::string_view pattern) { return pattern == older_cl100k; }

Status check_pattern(std::string_view pattern) {
  int open = 0;
  bool repeatable = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    switch (pattern[i]) {
      case '\\':
        if (++i == pattern.size()) return failed("a backslash at the end of the pattern");
        repeatable = true;
        break;
      case '[': {
        const std::size_t begin = i;
        i += pattern.substr(i + 1, 1) == "^" ? 2 : 1;
        if (pattern.substr(i, 1) == "]") ++i;
        while (i < pattern.size() && pattern[i] != ']') i += pattern[i] == '\\' ? 2 : 1;
        if (i >= pattern.size()) return failed(fmt::format("the [ at byte {} of the pattern is not closed", begin));
        repeatable = true;
        break;
      }
      case '(':
        ++open;
        repeatable = false;
        if (pattern.substr(i + 1, 1) == "?") {
          i = pattern.find_first_of(":=!>)", i);
          if (i == std::string_view::npos) return failed("a group of the pattern is not closed");
          if (pattern[i] == ')') --open;
        }
        break;
      case ')':
        if (--open < 0) return failed(fmt::format("the ) at byte {} of the pattern closes nothing", i));
        repeatable = true;
        break;
      case '|':
        repeatable = false;
        break;
      case '*':
      case '+':
      case '?':
        if (!repeatable) return failed(fmt::format("nothing to repeat at byte {} of the pattern", i));
        break;
      default:
        repeatable = true;
    }
  }
  if (open > 0) return failed("a ( of the pattern is not closed");
  return {};
}

std::size_t find_safe_cut(std::string_view text, std::size_t from) {
  for (std::size_t i = text.find('\n', std::max<std::size_t>(from, 2) - 1);
       i != std::string_view::npos && i + 1 < text.size(); i = text.find('\n', i + 1)) {
    if (is_seen(text[i - 1]) && is_seen(text[i + 1])) return i + 1;
  }
  return std::string_view::npos;
}

}  // namespace stacklab
