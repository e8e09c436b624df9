// A byte-level BPE tokenizer: text to ids and back, for any bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/tokenizer/merger.h"
#include "engine/tokenizer/pretokenizer.h"

namespace stacklab {

class ThreadTeam;

// A token that merges do not make: it is looked for in the text before anything else.
struct AddedToken {
  TokenId id = 0;
  std::string content;
  bool special = true;         // control, not text: found only where the caller allows it
  bool in_vocabulary = false;  // the vocabulary lists it as well

  bool operator==(const AddedToken&) const = default;
};

// What a tokenizer is. Ids are dense: every id below vocabulary.size() has its token.
struct TokenizerModel {
  std::string pattern;                  // of the split into pieces
  bool nfc = false;                     // text is normalised to form C first
  bool ignore_merges = false;           // a piece that is a token becomes that token, whatever the merges say
  std::vector<std::string> vocabulary;  // the bytes of each id; the content, for added tokens
  std::vector<Merge> merges;            // by rank
  std::vector<AddedToken> added;

  bool operator==(const TokenizerModel&) const = default;
};

// Whether the text of a special token becomes that token, or is text like any other. Text of documents and of people is
// always encoded as_text; only what a program wrote itself may contain control tokens.
enum class Specials { as_text, recognised };

class Tokenizer {
 public:
  // Errors: a byte without a token, ids that are not dense, a merge whose parts do not make its result, the same merge
  // twice, added tokens that are empty, doubled or in each other's place, a pattern that is none.
  static Result<Tokenizer> create(TokenizerModel model);
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  const TokenizerModel& model() const;
  std::int64_t vocabulary_size() const { return static_cast<std::int64_t>(model().vocabulary.size()); }
  std::optional<Split> split() const;  // empty: a pattern that is not among ours
  std::optional<TokenId> added_token(std::string_view content) const;

  // Appends the ids of text. Thread-safe. The one error: the pattern is not among ours.
  Status encode(std::string_view text, Specials specials, std::vector<TokenId>& ids) const;
  // One list of ids per document, whatever the number of threads.
  Result<std::vector<std::vector<TokenId>>> encode_batch(std::span<const std::string_view> documents, Specials specials,
                                                         ThreadTeam& team) const;
  // The bytes of the ids. Errors name an id outside the vocabulary.
  Result<std::string> decode(std::span<const TokenId> ids) const;

 private:
  struct State;
  explicit Tokenizer(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace stacklab
