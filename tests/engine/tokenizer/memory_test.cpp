#include <gtest/gtest.h>

#include "engine/base/environment.h"
#include "engine/base/thread_team.h"
#include "engine/tokenizer/trainer.h"
#include "tests/engine/tokenizer/tokenizer_testing.h"
#include "tests/sanitized.h"

namespace stacklab {
namespace {

// Text without an end of new words, some of them long: what is kept of it must not grow with it.
class EndlessText {
 public:
  explicit EndlessText(std::int64_t bytes) : left_(bytes) {}

  Result<bool> next(std::string_view& document) {
    if (left_ <= 0) return false;
    text_.clear();
    while (text_.size() < (std::size_t{1} << 20)) {
      const int kind = numbers_.below(8);
      text_ += ' ';
      if (kind < 3) {
        add_letters(9);
      } else if (kind == 3 && numbers_.below(20) == 0) {
        add_letters(700);
      } else {
        text_ += "word" + std::string(static_cast<std::size_t>(numbers_.below(30)), 'x');
      }
    }
    left_ -= static_cast<std::int64_t>(text_.size());
    document = text_;
    return true;
  }

 private:
  void add_letters(int count) {
    std::uint64_t bits = 0;
    for (int i = 0; i < count; ++i, bits /= 26) {
      if (i % 6 == 0) bits = numbers_.below(std::uint64_t{1} << 31);
      text_ += static_cast<char>('a' + bits % 26);
    }
  }

  Numbers numbers_{4711};
  std::int64_t left_;
  std::string text_;
};

// The largest memory of this process after training on so much text.
std::int64_t peak_after(std::int64_t text_bytes, std::int64_t max_pieces, std::int64_t& forgotten) {
  ThreadTeam team(2);
  TokenizerTraining training;
  training.vocabulary_size = 1000;
  training.max_pieces = max_pieces;
  EndlessText text(text_bytes);
  const Result<TrainedTokenizer> trained = train_tokenizer(
      training, [&](std::string_view& document) { return text.next(document); }, team,
      [](std::string_view, std::int64_t, std::int64_t) {}, {});
  EXPECT_TRUE(trained);
  if (trained) forgotten = trained->forgotten;
  return peak_resident_bytes();
}

TEST(TrainingMemory, DoesNotGrowWithTheText) {
  if (sanitized) GTEST_SKIP() << "sanitizers keep memory that was given back";
  constexpr std::int64_t mebibyte = std::int64_t{1} << 20, small_text = 48 * mebibyte, large_text = 144 * mebibyte;
  constexpr std::int64_t max_pieces = 20'000;
  std::int64_t forgotten = 0;
  const std::int64_t small = peak_after(small_text, max_pieces, forgotten);
  EXPECT_GT(forgotten, max_pieces);
  const std::int64_t large = peak_after(large_text, max_pieces, forgotten);
  // Kept, the new words of the larger text would take at least their own bytes, half of what it has more.
  EXPECT_LT(large - small, (large_text - small_text) / 4) << small << " -> " << large << " bytes";
}

}  // namespace
}  // namespace stacklab
