#include "engine/store/filter_lexer.h"

namespace stacklab::store {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_sign(char c) { return c == '=' || c == '!' || c == '<' || c == '>' || c == ':' || c == '~'; }

}  // namespace

std::vector<FilterToken> filter_tokens(std::string_view text) {
  using Kind = FilterToken::Kind;
  std::vector<FilterToken> tokens;
  std::size_t i = 0;
  while (i < text.size()) {
    const std::size_t at = i;
    const char c = text[i];
    if (is_space(c)) {
      ++i;
      continue;
    }
    FilterToken token;
    token.at = at;
    if (c == '(' || c == ')') {
      token.kind = c == '(' ? Kind::open : Kind::close;
      token.text = c;
      ++i;
    } else if (c == '"' || c == '\'') {
      token.kind = Kind::quoted;
      token.unfinished = true;
      for (++i; i < text.size(); ++i) {
        if (text[i] == c) {
          token.unfinished = false;
          ++i;
          break;
        }
        // A backslash lets a quote stand for itself.
        if (text[i] == '\\' && i + 1 < text.size() && (text[i + 1] == c || text[i + 1] == '\\')) ++i;
        token.text += text[i];
      }
    } else if (is_sign(c)) {
      token.kind = Kind::sign;
      token.text = c;
      ++i;
      if (i < text.size() && (text[i] == '=' || (c == '<' && text[i] == '>'))) token.text += text[i++];
    } else {
      token.kind = Kind::word;
      // A value may hold a colon: dates have some. A key does not, so that the first one is the sign.
      const bool value = !tokens.empty() && tokens.back().kind == Kind::sign;
      while (i < text.size() && !is_space(text[i]) && text[i] != '(' && text[i] != ')' && text[i] != '"' &&
             (!is_sign(text[i]) || (value && text[i] == ':')))
        ++i;
      token.text = text.substr(at, i - at);
    }
    token.length = i - at;
    tokens.push_back(std::move(token));
  }
  tokens.push_back({Kind::end, {}, text.size(), 0, false});
  return tokens;
}

std::optional<RunFilter::Op> filter_op(std::string_view sign) {
  using Op = RunFilter::Op;
  if (sign == "=" || sign == "==") return Op::equal;
  if (sign == "!=" || sign == "<>") return Op::unequal;
  if (sign == "<") return Op::less;
  if (sign == "<=") return Op::at_most;
  if (sign == ">") return Op::greater;
  if (sign == ">=") return Op::at_least;
  if (sign == ":" || sign == "~") return Op::contains;
  return std::nullopt;
}

}  // namespace stacklab::store
