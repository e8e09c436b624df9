#include "engine/tokenizer/trainer.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <set>

#include "engine/base/thread_team.h"
#include "engine/tokenizer/merge_learner.h"
#include "engine/tokenizer/piece_counts.h"

namespace stacklab {
namespace {

// Documents are read, counted and merged into the common counts in rounds of so many bytes. Rounds, and with them what
// is forgotten, do not depend on the threads.
constexpr std::size_t round_bytes = std::size_t{16} << 20;
constexpr std::size_t part_bytes = std::size_t{128} << 10;

class Counter {
 public:
  Counter(const TokenizerTraining& training, ThreadTeam& team)
      : training_(training),
        team_(team),
        own_(static_cast<std::size_t>(team.threads())),
        shared_(static_cast<std::size_t>(team.threads())) {}

  void add_document(std::string_view document) {
    const std::size_t begin = text_.size();
    text_ += document;
    // A long document is cut where its pieces do not notice, so that threads can share it.
    std::size_t at = 0;
    while (at < document.size()) {
      const std::size_t cut = document.size() - at <= part_bytes
                                  ? document.size()
                                  : std::min(find_safe_cut(document, at + part_bytes), document.size());
      parts_.emplace_back(begin + at, begin + cut);
      at = cut;
    }
    if (text_.size() >= round_bytes) end_round();
  }

  void end_round() {
    std::atomic<std::size_t> next = 0;
    team_.for_each(team_.threads(), [&](std::int64_t t) {
      PieceCounts& counts = own_[static_cast<std::size_t>(t)];
      for (std::size_t i = next++; i < parts_.size(); i = next++) {
        std::string_view part = std::string_view(text_).substr(parts_[i].first, parts_[i].second - parts_[i].first);
        std::string normalised;
        if (training_.nfc) part = normalised = to_nfc(part);
        const char* const end = part.data() + part.size();
        for_each_piece(training_.split, part,
                       [&](const char* piece, std::size_t bytes) { counts.add(piece, bytes, end); });
      }
    });
    team_.for_each(team_.threads(), [&](std::int64_t t) {
      for (const PieceCounts& counts : own_)
        shared_[static_cast<std::size_t>(t)].add_share(counts, static_cast<std::size_t>(t), shared_.size());
    });
    team_.for_each(team_.threads(), [&](std::int64_t t) { own_[static_cast<std::size_t>(t)].clear(); });
    text_.clear();
    parts_.clear();
    forget();
  }

  std::int64_t pieces() const {
    std::size_t all = 0;
    for (const PieceCounts& counts : shared_) all += counts.size();
    return static_cast<std::int64_t>(all);
  }
  std::int64_t forgotten() const { return forgotten_; }
  std::vector<PieceCounts> take() {
    own_.clear();
    text_ = {};
    return std::move(shared_);
  }

 private:
  void forget() {
    std::int64_t left = 0, bound = 0;
    for (const PieceCounts& counts : shared_) left += counts.weight();
    if (left <= training_.max_pieces) return;
    std::map<std::int64_t, std::int64_t> weight_by_count;
    for (const PieceCounts& counts : shared_) {
      counts.for_each([&](std::string_view piece, std::int64_t count) {
        weight_by_count[count] += PieceCounts::weight_of(piece.size());
      });
    }
    for (const auto& [count, weight] : weight_by_count) {
      if (left <= training_.max_pieces / 2) break;
      left -= weight;
      bound = count;
    }
    const std::int64_t before = pieces();
    team_.for_each(team_.threads(), [&](std::int64_t t) { shared_[static_cast<std::size_t>(t)].drop_rare(bound); });
    forgotten_ += before - pieces();
  }

  const TokenizerTraining& training_;
  ThreadTeam& team_;
  std::string text_;
  std::vector<std::pair<std::size_t, std::size_t>> parts_;
  std::vector<PieceCounts> own_, shared_;  // one of each per thread: what it counts, and its share of the whole
  std::int64_t forgotten_ = 0;
};

Status check(const TokenizerTraining& training) {
  std::set<std::string> specials;
  for (const std::string& special : training.specials) {
    if (special.empty() || !specials.insert(special).second)
      return usage_error(fmt::format("the special token \"{}\" is empty or named twice", special));
  }
  const auto least = static_cast<std::int64_t>(256 + training.specials.size());
  if (training.vocabulary_size < least)
    return usage_error(fmt::format("a vocabulary of {} has no room for 256 bytes and {} special tokens",
                                   training.vocabulary_size, training.specials.size()),
                       fmt::format("ask for at least {}", least));
  constexpr std::int64_t most = std::int64_t{1} << 24;
  if (training.vocabulary_size > most)
    return usage_error(fmt::format("a vocabulary of {} is larger than {}", training.vocabulary_size, most));
  return {};
}

}  // namespace

Result<TrainedTokenizer> train_tokenizer(const TokenizerTraining& training, const NextDocument& next, ThreadTeam& team,
                                         const TrainingProgress& progress, std::stop_token stop) {
  if (Status fine = check(training); !fine) return tl::unexpected(fine.error());
  TrainedTokenizer trained;
  Counter counter(training, team);
  std::int64_t shown = 0;
  for (;;) {
    std::string_view document;
    const Result<bool> more = next(document);
    if (!more) return tl::unexpected(more.error());
    if (stop.stop_requested()) return stopped("training of the tokenizer was stopped");
    if (!*more) break;
    counter.add_document(document);
    trained.bytes += static_cast<std::int64_t>(document.size());
    if (trained.bytes - shown >= std::int64_t{1} << 20) progress("counting", shown = trained.bytes, 0);
  }
  counter.end_round();
  trained.pieces = counter.pieces();
  trained.forgotten = counter.forgotten();

  Result<MergeLearner> learner = MergeLearner::create(counter.take());
  if (!learner) return tl::unexpected(learner.error());
  TokenizerModel& model = trained.model;
  model.pattern = pattern_of(training.split);
  model.nfc = training.nfc;
  const std::size_t wanted = static_cast<std::size_t>(training.vocabulary_size) - training.specials.size();
  const auto total = static_cast<std::int64_t>(wanted - 256);
  while (learner->vocabulary().size() < wanted) {
    if (stop.stop_requested()) return stopped("training of the tokenizer was stopped");
    const std::optional<Merge> merge = learner->next(training.min_frequency);
    if (!merge) break;
    model.merges.push_back(*merge);
    if (model.merges.size() % 64 == 0)
      progress("merging", static_cast<std::int64_t>(learner->vocabulary().size() - 256), total);
  }
  model.vocabulary = learner->vocabulary();
  if (learner->tokens() > 0)
    trained.bytes_per_token = static_cast<double>(learner->bytes()) / static_cast<double>(learner->tokens());
  const std::set<std::string_view> learnt(model.vocabulary.begin(), model.vocabulary.end());
  for (const std::string& special : training.specials) {
    if (learnt.contains(special))
      return failed(fmt::format("the special token \"{}\" is also a token of the text", special),
                    "choose one that text is not made of");
  }
  for (const std::string& special : training.specials) {
    model.added.push_back({static_cast<TokenId>(model.vocabulary.size()), special, true, false});
    model.vocabulary.push_back(special);
  }
  return trained;
}

}  // namespace stacklab
