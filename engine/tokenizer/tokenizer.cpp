#include "engine/tokenizer/tokenizer.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <set>
#include <unordered_map>

#include "engine/base/text.h"
#include "engine/base/thread_team.h"
#include "engine/tokenizer/added_tokens.h"
#include "engine/tokenizer/piece_key.h"

namespace stacklab {
namespace {

// Remembers the tokens of short pieces: text repeats itself. Direct-mapped, one cache line an entry.
class PieceCache {
 public:
  static constexpr std::size_t most_tokens = 11;
  struct alignas(64) Entry {
    PieceKey key;
    std::uint8_t bytes = 0;  // 0: empty
    std::uint8_t tokens = 0;
    std::array<TokenId, most_tokens> ids;
  };

  Entry& entry(const PieceKey& key, std::size_t bytes) { return entries_[hash_of(key, bytes) >> (64 - log2_entries)]; }

 private:
  static constexpr int log2_entries = 16;
  std::vector<Entry> entries_ = std::vector<Entry>(std::size_t{1} << log2_entries);
};

Status check_vocabulary(const TokenizerModel& model, std::array<TokenId, 256>& byte_tokens) {
  byte_tokens.fill(-1);
  std::vector<bool> only_added(model.vocabulary.size());
  for (const AddedToken& token : model.added) {
    if (token.id < 0 || static_cast<std::size_t>(token.id) >= model.vocabulary.size())
      return failed(fmt::format("added token \"{}\": there is no id {}", printable(token.content), token.id));
    if (!token.in_vocabulary) only_added[static_cast<std::size_t>(token.id)] = true;
  }
  for (std::size_t id = 0; id < model.vocabulary.size(); ++id) {
    const std::string& bytes = model.vocabulary[id];
    if (bytes.empty()) return failed(fmt::format("token {} is empty", id));
    if (bytes.size() == 1 && !only_added[id])
      byte_tokens[static_cast<std::uint8_t>(bytes[0])] = static_cast<TokenId>(id);
  }
  for (std::size_t b = 0; b < 256; ++b) {
    if (byte_tokens[b] < 0)
      return failed(fmt::format("the byte 0x{:02X} has no token, so text would be lost", b),
                    "a byte-level vocabulary has all 256");
  }
  return {};
}

Status check_merges(const TokenizerModel& model) {
  const auto size = static_cast<TokenId>(model.vocabulary.size());
  std::set<std::pair<TokenId, TokenId>> seen;
  for (std::size_t i = 0; i < model.merges.size(); ++i) {
    const Merge& m = model.merges[i];
    for (const TokenId id : {m.left, m.right, m.result}) {
      if (id < 0 || id >= size) return failed(fmt::format("merge {} names id {} of {} tokens", i, id, size));
    }
    const auto bytes = [&](TokenId id) -> const std::string& { return model.vocabulary[static_cast<std::size_t>(id)]; };
    if (bytes(m.left) + bytes(m.right) != bytes(m.result))
      return failed(fmt::format("the parts of merge {} do not make its result", i));
    if (!seen.insert({m.left, m.right}).second)
      return failed(fmt::format("merge {}, \"{}\" and \"{}\", occurs twice", i, printable(bytes(m.left)),
                                printable(bytes(m.right))));
  }
  return {};
}

Status check_added(const TokenizerModel& model) {
  std::set<std::string_view> contents;
  std::set<TokenId> ids;
  for (const AddedToken& token : model.added) {
    const std::string name = printable(token.content);
    if (token.content.empty())
      return failed(fmt::format("added token {} is empty, it would match everywhere", token.id));
    if (!contents.insert(token.content).second) return failed(fmt::format("added token \"{}\" occurs twice", name));
    if (!ids.insert(token.id).second) return failed(fmt::format("two added tokens have id {}", token.id));
    if (model.vocabulary[static_cast<std::size_t>(token.id)] != token.content)
      return failed(fmt::format("added token \"{}\" takes id {} of \"{}\"", name, token.id,
                                printable(model.vocabulary[static_cast<std::size_t>(token.id)])));
  }
  return {};
}

}  // namespace

struct Tokenizer::State {
  // What one thread needs while it encodes.
  struct Scratch {
    PieceCache cache;
    std::vector<TokenId> tokens;
  };

  TokenizerModel model;
  std::optional<Split> split;
  Merger merger;
  AddedTokens text_added, all_added;                    // without and with special tokens
  std::unordered_map<std::string_view, TokenId> whole;  // only where merges may be ignored
  std::mutex mutex;
  std::vector<std::unique_ptr<Scratch>> idle;

  State(TokenizerModel given, const std::array<TokenId, 256>& byte_tokens)
      : model(std::move(given)),
        split(split_of_pattern(model.pattern)),
        merger(model.merges, byte_tokens),
        text_added(model.added, false),
        all_added(model.added, true) {
    if (!model.ignore_merges) return;
    std::vector<bool> only_added(model.vocabulary.size());
    for (const AddedToken& a : model.added) only_added[static_cast<std::size_t>(a.id)] = !a.in_vocabulary;
    for (std::size_t id = 0; id < model.vocabulary.size(); ++id) {
      if (!only_added[id]) whole.emplace(model.vocabulary[id], static_cast<TokenId>(id));
    }
  }

  std::unique_ptr<Scratch> borrow() {
    {
      const std::lock_guard lock(mutex);
      if (!idle.empty()) {
        auto scratch = std::move(idle.back());
        idle.pop_back();
        return scratch;
      }
    }
    return std::make_unique<Scratch>();
  }
  void give_back(std::unique_ptr<Scratch> scratch) {
    const std::lock_guard lock(mutex);
    idle.push_back(std::move(scratch));
  }

  void append_piece(std::string_view piece, std::vector<TokenId>& ids) const {
    if (model.ignore_merges) {
      if (const auto found = whole.find(piece); found != whole.end()) {
        ids.push_back(found->second);
        return;
      }
    }
    merger.append(piece, ids);
  }

  // Text without added tokens.
  void append_text(std::string_view text, Scratch& scratch, std::vector<TokenId>& ids) const {
    std::string normalised;
    if (model.nfc) {
      normalised = to_nfc(text);
      text = normalised;
    }
    const char* const end = text.data() + text.size();
    for_each_piece(*split, text, [&](const char* piece, std::size_t bytes) {
      if (bytes > PieceKey::most_bytes) return append_piece({piece, bytes}, ids);
      const PieceKey key = PieceKey::of(piece, bytes, end);
      PieceCache::Entry& entry = scratch.cache.entry(key, bytes);
      if (entry.bytes == bytes && entry.key == key) {
        if (entry.tokens == 1) return ids.push_back(entry.ids[0]);
        ids.insert(ids.end(), entry.ids.begin(), entry.ids.begin() + entry.tokens);
        return;
      }
      scratch.tokens.clear();
      append_piece({piece, bytes}, scratch.tokens);
      ids.insert(ids.end(), scratch.tokens.begin(), scratch.tokens.end());
      if (scratch.tokens.size() > PieceCache::most_tokens) return;
      entry.key = key;
      entry.bytes = static_cast<std::uint8_t>(bytes);
      entry.tokens = static_cast<std::uint8_t>(scratch.tokens.size());
      std::copy(scratch.tokens.begin(), scratch.tokens.end(), entry.ids.begin());
    });
  }

  void append(std::string_view text, Specials specials, Scratch& scratch, std::vector<TokenId>& ids) const {
    const AddedTokens& added = specials == Specials::recognised ? all_added : text_added;
    while (!text.empty()) {
      const AddedTokens::Match match = added.find(text);
      append_text(text.substr(0, match.at), scratch, ids);
      if (match.bytes == 0) return;
      ids.push_back(match.id);
      text.remove_prefix(match.at + match.bytes);
    }
  }

  Status check_split() const {
    if (split) return {};
    return failed(
        fmt::format("this tokenizer splits text by a pattern of its own, \"{}\"", printable(model.pattern, 200)),
        fmt::format("known are those of {}", fmt::join(split_names(), ", ")));
  }
};

Tokenizer::Tokenizer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Result<Tokenizer> Tokenizer::create(TokenizerModel model) {
  std::array<TokenId, 256> byte_tokens;
  Status fine = check_pattern(model.pattern);
  if (fine) fine = check_vocabulary(model, byte_tokens);
  if (fine) fine = check_added(model);
  if (fine) fine = check_merges(model);
  if (!fine) return tl::unexpected(fine.error());
  return Tokenizer(std::make_unique<State>(std::move(model), byte_tokens));
}

const TokenizerModel& Tokenizer::model() const { return state_->model; }
std::optional<Split> Tokenizer::split() const { return state_->split; }

std::optional<TokenId> Tokenizer::added_token(std::string_view content) const {
  for (const AddedToken& token : state_->model.added) {
    if (token.content == content) return token.id;
  }
  return {};
}

Status Tokenizer::encode(std::string_view text, Specials specials, std::vector<TokenId>& ids) const {
  if (Status fine = state_->check_split(); !fine) return fine;
  std::unique_ptr<State::Scratch> scratch = state_->borrow();
  state_->append(text, specials, *scratch, ids);
  state_->give_back(std::move(scratch));
  return {};
}

Result<std::vector<std::vector<TokenId>>> Tokenizer::encode_batch(std::span<const std::string_view> documents,
                                                                  Specials specials, ThreadTeam& team) const {
  if (Status fine = state_->check_split(); !fine) return tl::unexpected(fine.error());
  std::vector<std::vector<TokenId>> all(documents.size());
  // Documents differ in length: each thread takes the next one.
  std::atomic<std::size_t> next = 0;
  team.for_each(team.threads(), [&](std::int64_t) {
    std::unique_ptr<State::Scratch> scratch = state_->borrow();
    for (std::size_t i = next++; i < documents.size(); i = next++) {
      all[i].reserve(documents[i].size() / 4 + 16);
      state_->append(documents[i], specials, *scratch, all[i]);
    }
    state_->give_back(std::move(scratch));
  });
  return all;
}

Result<std::string> Tokenizer::decode(std::span<const TokenId> ids) const {
  const std::vector<std::string>& vocabulary = state_->model.vocabulary;
  std::string text;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || static_cast<std::size_t>(ids[i]) >= vocabulary.size())
      return failed(fmt::format("id {} at place {} is outside the vocabulary of {}", ids[i], i, vocabulary.size()));
    text += vocabulary[static_cast<std::size_t>(ids[i])];
  }
  return text;
}

}  // namespace stacklab
