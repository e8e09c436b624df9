// What turns documents into token ids: a tokenizer, or the bytes themselves.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/tokenizer/tokenizer.h"

namespace stacklab {

// After every document comes the token <|endoftext|>, where the tokenizer has it as a special token: the model learns
// where texts end. Bytes have no token to spare: there only the boundary is kept. Text never becomes a special token.
class TokenCoding {
 public:
  static TokenCoding bytes();
  // name: of the tokenizer, for messages. Errors: a pattern that cannot be split by.
  static Result<TokenCoding> of(Tokenizer tokenizer, std::string name);

  const std::string& name() const { return name_; }      // "bytes", or the tokenizer's
  const std::string& sha256() const { return sha256_; }  // of json()
  const std::string& json() const { return json_; }      // tokenizer.json; empty for bytes
  std::int64_t vocabulary_size() const { return static_cast<std::int64_t>(token_bytes_.size()); }
  std::optional<TokenId> end_of_document() const { return end_; }
  // Bytes of text that each token stands for; 0 for special ones.
  std::span<const std::int32_t> token_bytes() const { return token_bytes_; }

  // Where a long document may be cut, at or after from, so that its parts can be encoded apart; npos: nowhere. What is
  // longer than longest_part is cut there anyway, between characters: ids are then of two texts.
  static constexpr std::size_t longest_part = std::size_t{16} << 20;
  std::size_t safe_cut(std::string_view text, std::size_t from) const;

  // The ids of each text, whatever the number of threads.
  Result<std::vector<std::vector<TokenId>>> encode(std::span<const std::string_view> texts, ThreadTeam& team) const;
  Result<std::string> decode(std::span<const TokenId> ids) const;

 private:
  std::string name_, json_, sha256_;
  std::shared_ptr<const Tokenizer> tokenizer_;  // empty: bytes
  std::optional<TokenId> end_;
  std::vector<std::int32_t> token_bytes_;
  bool may_cut_ = true;
};

}  // namespace stacklab
