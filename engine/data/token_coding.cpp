#include "engine/data/token_coding.h"

#include <algorithm>

#include "engine/base/sha256.h"
#include "engine/base/text.h"
#include "engine/base/thread_team.h"
#include "engine/tokenizer/tokenizer_json.h"

namespace stacklab {
namespace {

constexpr std::string_view end_of_text = "<|endoftext|>";

}  // namespace

TokenCoding TokenCoding::bytes() {
  TokenCoding coding;
  coding.name_ = "bytes";
  coding.sha256_ = sha256_hex(std::string_view("bytes"));
  coding.token_bytes_.assign(256, 1);
  return coding;
}

Result<TokenCoding> TokenCoding::of(Tokenizer tokenizer, std::string name) {
  TokenCoding coding;
  coding.name_ = std::move(name);
  const TokenizerModel& model = tokenizer.model();
  coding.json_ = tokenizer_json(model);
  coding.sha256_ = sha256_hex(std::string_view(coding.json_));
  for (const std::string& token : model.vocabulary)
    coding.token_bytes_.push_back(static_cast<std::int32_t>(token.size()));
  for (const AddedToken& token : model.added) {
    if (token.special) coding.token_bytes_[static_cast<std::size_t>(token.id)] = 0;
    if (token.special && token.content == end_of_text) coding.end_ = token.id;
    // A token that is looked for in the text might lie across a line's end.
    if (!token.special && token.content.find('\n') != std::string::npos) coding.may_cut_ = false;
  }
  std::vector<TokenId> nothing;
  if (Status fine = tokenizer.encode("", Specials::as_text, nothing); !fine) return tl::unexpected(fine.error());
  coding.tokenizer_ = std::make_shared<const Tokenizer>(std::move(tokenizer));
  return coding;
}

std::size_t TokenCoding::safe_cut(std::string_view text, std::size_t from) const {
  if (!tokenizer_) return std::min(from, text.size());
  const std::size_t cut = may_cut_ ? find_safe_cut(text.substr(0, longest_part), from) : std::string_view::npos;
  if (cut != std::string_view::npos || text.size() <= longest_part) return cut;
  std::size_t at = longest_part;
  // Not inside a character: its later bytes begin with 10.
  for (int back = 0; back < 4 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80; ++back) --at;
  return at;
}

Result<std::vector<std::vector<TokenId>>> TokenCoding::encode(std::span<const std::string_view> texts,
                                                              ThreadTeam& team) const {
  if (tokenizer_) return tokenizer_->encode_batch(texts, Specials::as_text, team);
  std::vector<std::vector<TokenId>> all(texts.size());
  team.for_each(static_cast<std::int64_t>(texts.size()), [&](std::int64_t i) {
    const std::string_view text = texts[static_cast<std::size_t>(i)];
    const auto* begin = reinterpret_cast<const std::uint8_t*>(text.data());
    all[static_cast<std::size_t>(i)].assign(begin, begin + text.size());
  });
  return all;
}

Result<std::string> TokenCoding::decode(std::span<const TokenId> ids) const {
  if (tokenizer_) return tokenizer_->decode(ids);
  std::string text;
  for (const TokenId id : ids) {
    if (id < 0 || id > 255) return failed("id " + std::to_string(id) + " is no byte");
    text.push_back(static_cast<char>(id));
  }
  return text;
}

}  // namespace stacklab
