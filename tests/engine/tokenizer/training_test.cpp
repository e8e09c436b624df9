#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <map>

#include "engine/base/atomic_file.h"
#include "engine/base/thread_team.h"
#include "engine/tokenizer/byte_alphabet.h"
#include "engine/tokenizer/trainer.h"
#include "tests/engine/tokenizer/tokenizer_testing.h"

namespace stacklab {
namespace {

using Names = std::vector<std::vector<std::string>>;

Names merge_names(const TokenizerModel& model) {
  Names names;
  for (const Merge& m : model.merges) {
    names.push_back({spell_bytes(model.vocabulary[static_cast<std::size_t>(m.left)]),
                     spell_bytes(model.vocabulary[static_cast<std::size_t>(m.right)])});
  }
  return names;
}

TokenizerModel train(TokenizerTraining training, std::vector<std::string> documents, int threads = 1) {
  ThreadTeam team(threads);
  Result<TrainedTokenizer> trained = train_tokenizer(training, documents_of(std::move(documents)), team,
                                                     [](std::string_view, std::int64_t, std::int64_t) {}, {});
  if (!trained) throw std::runtime_error(trained.error().message());
  return std::move(trained->model);
}

TokenizerTraining plain(std::int64_t size) {
  TokenizerTraining training;
  training.vocabulary_size = size;
  training.split = Split::qwen2;
  training.specials.clear();
  return training;
}

TEST(Training, MergesEqualTheReference) {
  const nlohmann::json golden = golden_json("merges.json");
  const std::string text = *read_file(golden_folder() / "tokenizer/training_text.txt");
  for (const int threads : {1, 3}) {
    const TokenizerModel model = train(plain(golden["vocab_size"]), {text}, threads);
    EXPECT_EQ(merge_names(model), golden["merges"].get<Names>());
    std::vector<std::string> spelled;
    for (const std::string& bytes : model.vocabulary) spelled.push_back(spell_bytes(bytes));
    EXPECT_EQ(spelled, golden["vocab"].get<std::vector<std::string>>());
  }
}

TEST(Training, TinyTextsEqualTheReference) {
  const nlohmann::json golden = golden_json("tiny_training.json");
  EXPECT_GT(golden["cases"].size(), 30u);
  for (const nlohmann::json& c : golden["cases"]) {
    EXPECT_EQ(merge_names(train(plain(c["vocab_size"]), c["texts"])), c["merges"].get<Names>()) << c.dump();
  }
}

// The definition, with every pair counted anew for every merge.
Names train_plainly(std::int64_t size, const std::vector<std::string>& documents) {
  std::map<std::vector<TokenId>, std::int64_t> pieces;
  std::vector<std::string> vocabulary;
  for (int r = 0; r < 256; ++r) vocabulary.push_back(std::string(1, static_cast<char>(byte_of_rank(r))));
  for (const std::string& document : documents) {
    for (const std::string& piece : pieces_of(Split::qwen2, document)) {
      std::vector<TokenId> ids;
      for (const char byte : piece) ids.push_back(byte_rank(static_cast<std::uint8_t>(byte)));
      ++pieces[ids];
    }
  }
  Names names;
  while (static_cast<std::int64_t>(vocabulary.size()) < size) {
    std::map<std::pair<TokenId, TokenId>, std::int64_t> counts;
    for (const auto& [ids, count] : pieces) {
      for (std::size_t i = 0; i + 1 < ids.size(); ++i) counts[{ids[i], ids[i + 1]}] += count;
    }
    if (counts.empty()) break;
    const auto best = std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) {
                        return a.second < b.second;
                      })->first;
    const std::string& left = vocabulary[static_cast<std::size_t>(best.first)];
    const std::string& right = vocabulary[static_cast<std::size_t>(best.second)];
    names.push_back({spell_bytes(left), spell_bytes(right)});
    const std::string bytes = left + right;
    const auto old = std::find(vocabulary.begin(), vocabulary.end(), bytes);
    const auto result = static_cast<TokenId>(old - vocabulary.begin());
    if (old == vocabulary.end()) vocabulary.push_back(bytes);
    std::map<std::vector<TokenId>, std::int64_t> merged;
    for (const auto& [ids, count] : pieces) {
      std::vector<TokenId> next;
      for (std::size_t i = 0; i < ids.size(); ++i) {
        if (i + 1 < ids.size() && ids[i] == best.first && ids[i + 1] == best.second) {
          next.push_back(result);
          ++i;
        } else {
          next.push_back(ids[i]);
        }
      }
      merged[next] += count;
    }
    pieces = std::move(merged);
  }
  return names;
}

// Few letters in long words: runs, overlaps, and tokens that two merges make.
TEST(Training, FollowsTheDefinition) {
  Numbers numbers(8);
  for (int n = 0; n < 60; ++n) {
    std::vector<std::string> documents;
    for (int d = 0; d < 4; ++d) {
      std::string text;
      for (int i = 0; i < 60; ++i) text += numbers.below(9) == 0 ? ' ' : "abc"[numbers.below(n % 2 ? 2 : 3)];
      documents.push_back(std::move(text));
    }
    EXPECT_EQ(merge_names(train(plain(330), documents)), train_plainly(330, documents));
  }
}

TEST(Training, DoesNotDependOnThreads) {
  Numbers numbers(9);
  std::vector<std::string> documents;
  for (int n = 0; n < 300; ++n) documents.push_back(odd_text(numbers, numbers.below(3000)));
  std::string lines;
  for (int n = 0; n < 20000; ++n) lines += "line " + std::to_string(numbers.below(5000)) + " of a long document\n";
  documents.push_back(std::move(lines));
  TokenizerTraining training = plain(1500);
  const TokenizerModel one = train(training, documents, 1);
  EXPECT_EQ(train(training, documents, 2), one);
  EXPECT_EQ(train(training, documents, 7), one);
  // Nor when memory is short and rare pieces are forgotten.
  training.max_pieces = 500;
  const TokenizerModel bounded = train(training, documents, 1);
  EXPECT_NE(bounded, one);
  EXPECT_EQ(train(training, documents, 5), bounded);
}

TEST(Training, OnePieceOfAMebibyteEnds) {
  Numbers numbers(10);
  std::string letters;
  while (letters.size() < (1u << 20)) letters += static_cast<char>('a' + numbers.below(26));
  EXPECT_EQ(train(plain(3000), {letters}).vocabulary.size(), 3000u);
  for (const std::string& unit : {std::string("a"), std::string("\u4E2D"), std::string("\0", 1)}) {
    std::string text;
    while (text.size() < (1u << 20)) text += unit;
    EXPECT_GT(train(plain(400), {text}).merges.size(), 15u);
  }
}

TEST(Training, SaysWhatCannotBe) {
  ThreadTeam team(1);
  const auto nothing = [](std::string_view, std::int64_t, std::int64_t) {};
  TokenizerTraining training;
  training.vocabulary_size = 258;
  const auto too_small = train_tokenizer(training, documents_of({"abc"}), team, nothing, {});
  ASSERT_FALSE(too_small);
  EXPECT_NE(too_small.error().message().find("259"), std::string::npos) << too_small.error().message();

  std::stop_source stop;
  stop.request_stop();
  training.vocabulary_size = 400;
  const auto stopped_run = train_tokenizer(training, documents_of({"abc"}), team, nothing, stop.get_token());
  ASSERT_FALSE(stopped_run);
  EXPECT_EQ(stopped_run.error().kind, Error::Kind::stopped);

  const auto broken = train_tokenizer(
      training, [](std::string_view&) -> Result<bool> { return failed("no such file"); }, team, nothing, {});
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().what, "no such file");

  training.specials = {"ab"};
  EXPECT_FALSE(train_tokenizer(training, documents_of({"ab ab ab"}), team, nothing, {}));
}

TEST(Training, SmallTextsMakeSmallTokenizers) {
  for (const char* text : {"", "   ", "\xEF\xBB\xBF", "a", "aaaa"}) {
    TokenizerTraining training;
    training.vocabulary_size = 1000;
    const TokenizerModel model = train(training, {text});
    EXPECT_EQ(model.vocabulary.size(), 256 + model.merges.size() + 3) << text;
    const Result<Tokenizer> tokenizer = Tokenizer::create(model);
    ASSERT_TRUE(tokenizer) << tokenizer.error().message();
    EXPECT_EQ(*tokenizer->decode(ids_of(*tokenizer, text, Specials::as_text)), text);
  }
}

}  // namespace
}  // namespace stacklab
