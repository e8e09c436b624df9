// Cuts text into pieces that merges never cross, as regular expressions of well-known tokenizers say. Written by hand:
// linear in the length of any text, no recursion, any bytes. The pieces' concatenation is the text.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/tokenizer/characters.h"

namespace stacklab {

enum class Split { gpt2, qwen2, llama3, cl100k, nanochat };

// "gpt2", ... and back.
std::string_view to_string(Split split);
std::optional<Split> split_from_string(std::string_view name);
std::vector<std::string> split_names();

// The regular expression, as tokenizer.json spells it. Several spellings mean the same split.
std::string_view pattern_of(Split split);
std::optional<Split> split_of_pattern(std::string_view pattern);
// cl100k with \p{N}{1,3}+, which readers of tokenizer.json take differently: only where this program wrote it is it
// known to be three digits.
bool is_older_cl100k(std::string_view pattern);
// Errors: what is no regular expression at all (a bracket left open, nothing to repeat).
Status check_pattern(std::string_view pattern);

// The first place at or after from where every split cuts whatever is around it, so that both sides can be split apart:
// after a line break between two characters of ASCII that are seen. npos: none.
std::size_t find_safe_cut(std::string_view text, std::size_t from);

namespace split_detail {

struct Rules {
  bool gpt2 = false;            // words begin with a space only; contractions in small letters
  int digits = 0;               // at most so many in a piece
  bool keeps_last_run = false;  // white space at the end of the text is one piece, line breaks or not
};

constexpr Rules rules_of(Split split) {
  switch (split) {
    case Split::gpt2:
      return {true, 0, false};
    case Split::qwen2:
      return {false, 1, false};
    case Split::cl100k:
      return {false, 3, true};
    case Split::nanochat:
      return {false, 2, false};
    default:
      return {false, 3, false};
  }
}

// Bytes of 's, 't, 're, 've, 'm, 'll, 'd at p, where an apostrophe stands; 0: none. Folding takes capitals and the long
// s as well.
template <bool folds>
inline int contraction(const char* p, const char* end) {
  const auto letter = [p](int i) { return folds ? static_cast<char>(p[i] | 0x20) : p[i]; };
  if (end - p < 2) return 0;
  const char first = letter(1);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
  if (end - p < 3) return 0;
  if (folds && p[1] == '\xC5' && p[2] == '\xBF') return 3;
  const char second = letter(2);
  return (second == 'e' && (first == 'r' || first == 'v')) || (second == 'l' && first == 'l') ? 3 : 0;
}

struct Scanner {
  const std::uint8_t* classes;
  const char* end;

  Char read(const char* p) const { return read_char(classes, p, end); }
  const char* skip(const char* p, std::uint8_t wanted) const {
    while (p < end) {
      const Char c = read(p);
      if (c.char_class != wanted) break;
      p += c.bytes;
    }
    return p;
  }

  template <Split split>
  const char* white_space_end(const char* p) const {
    constexpr Rules rules = rules_of(split);
    const char* r = p;
    const char* last = p;           // where the last character of the run begins
    const char* after_newline = p;  // behind its last line break
    while (r < end) {
      const Char c = read(r);
      if (!(c.char_class & char_class::space)) break;
      last = r;
      r += c.bytes;
      if (c.char_class & char_class::newline) after_newline = r;
    }
    if (rules.keeps_last_run && r == end) return r;
    if (!rules.gpt2 && after_newline > p) return after_newline;
    // The last character is left to the word that follows, unless it is all there is.
    return r == end || last == p ? r : last;
  }

  template <Split split>
  const char* piece_end(const char* p) const {
    constexpr Rules rules = rules_of(split);
    if (*p == '\'') {
      if (const int n = contraction<!rules.gpt2>(p, end)) return p + n;
    }
    const Char c = read(p);
    const char* q = p + c.bytes;
    if constexpr (rules.gpt2) {
      if (*p == ' ' && q < end) {
        const Char d = read(q);
        if (!(d.char_class & char_class::space)) return skip(q + d.bytes, d.char_class);
      }
      if (!(c.char_class & char_class::space)) return skip(q, c.char_class);
      return white_space_end<split>(p);
    } else {
      if (c.char_class == char_class::letter) return skip(q, char_class::letter);
      if (c.char_class == char_class::number) {
        for (int n = 1; n < rules.digits && q < end; ++n) {
          const Char d = read(q);
          if (d.char_class != char_class::number) break;
          q += d.bytes;
        }
        return q;
      }
      const Char d = q < end ? read(q) : Char{char_class::space, 0};
      if (d.char_class == char_class::letter && !(c.char_class & char_class::newline))
        return skip(q + d.bytes, char_class::letter);
      if (c.char_class == char_class::other || (*p == ' ' && d.char_class == char_class::other)) {
        q = skip(q, char_class::other);
        while (q < end && (*q == '\r' || *q == '\n')) ++q;
        return q;
      }
      return white_space_end<split>(p);
    }
  }

  template <Split split, class Visit>
  void run(const char* p, Visit& visit) const {
    while (p < end) {
      const char* q = piece_end<split>(p);
      visit(p, static_cast<std::size_t>(q - p));
      p = q;
    }
  }
};

}  // namespace split_detail

// visit(const char* begin, std::size_t bytes) for every piece, in order.
template <class Visit>
void for_each_piece(Split split, std::string_view text, Visit&& visit) {
  const char* begin = text.data();
  const split_detail::Scanner scanner{char_classes(), begin + text.size()};
  switch (split) {
    case Split::gpt2:
      return scanner.run<Split::gpt2>(begin, visit);
    case Split::qwen2:
      return scanner.run<Split::qwen2>(begin, visit);
    case Split::llama3:
      return scanner.run<Split::llama3>(begin, visit);
    case Split::cl100k:
      return scanner.run<Split::cl100k>(begin, visit);
    case Split::nanochat:
      return scanner.run<Split::nanochat>(begin, visit);
  }
}

}  // namespace stacklab
