#include "engine/tokenizer/pretokenizer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/engine/tokenizer/tokenizer_testing.h"

namespace stacklab {
namespace {

TEST(Pretokenizer, CutsAsTheReferenceDoes) {
  const nlohmann::json golden = golden_json("pretokens.json");
  std::size_t compared = 0;
  for (const auto& [name, pattern] : golden["patterns"].items()) {
    const std::optional<Split> split = split_from_string(name);
    ASSERT_TRUE(split) << name;
    if (name == "cl100k") {
      // The reference has tiktoken's own spelling, which not everybody reads as tiktoken does.
      EXPECT_TRUE(is_older_cl100k(pattern.get<std::string>()));
    } else {
      EXPECT_EQ(pattern_of(*split), pattern.get<std::string>());
    }
    EXPECT_EQ(split_of_pattern(pattern.get<std::string>()), split);
    for (const nlohmann::json& c : golden["cases"]) {
      EXPECT_EQ(pieces_of(*split, c["text"].get<std::string>()), c[name].get<std::vector<std::string>>())
          << name << ": " << c["text"];
      ++compared;
    }
  }
  EXPECT_GE(compared, 5u * 200u);
}

// Of what follows a counted repetition, engines differ.
TEST(Pretokenizer, WritesNoCountedRepetitionWithASignBehind) {
  for (const std::string& name : split_names()) {
    const std::string pattern(pattern_of(*split_from_string(name)));
    for (const char* counted : {"1}+", "2}+", "3}+"}) EXPECT_EQ(pattern.find(counted), std::string::npos) << name;
    EXPECT_EQ(split_of_pattern(pattern), split_from_string(name));
  }
  EXPECT_EQ(pieces_of(Split::cl100k, "1111 12345678"), (std::vector<std::string>{"111", "1", " ", "123", "456", "78"}));
}

TEST(Pretokenizer, LosesNothingOfAnyBytes) {
  Numbers numbers(1);
  for (int n = 0; n < 500; ++n) {
    std::string bytes;
    for (std::uint64_t i = numbers.below(60); i > 0; --i) bytes += static_cast<char>(numbers.below(256));
    for (const std::string& name : split_names()) {
      std::string together;
      for (const std::string& piece : pieces_of(*split_from_string(name), bytes)) {
        EXPECT_FALSE(piece.empty());
        together += piece;
      }
      EXPECT_EQ(together, bytes) << name;
    }
  }
}

TEST(Pretokenizer, ASafeCutChangesNoPiece) {
  Numbers numbers(2);
  int cuts = 0;
  for (int n = 0; n < 3000; ++n) {
    const std::string text = odd_text(numbers, 20) + "x\ny" + odd_text(numbers, 20);
    const std::size_t cut = find_safe_cut(text, numbers.below(text.size()));
    if (cut == std::string::npos) continue;
    ++cuts;
    for (const std::string& name : split_names()) {
      const Split split = *split_from_string(name);
      std::vector<std::string> parts = pieces_of(split, text.substr(0, cut));
      for (std::string& piece : pieces_of(split, text.substr(cut))) parts.push_back(std::move(piece));
      EXPECT_EQ(parts, pieces_of(split, text)) << name << " at " << cut;
    }
  }
  EXPECT_GT(cuts, 1000);
}

TEST(Pretokenizer, TellsARegularExpressionFromBrokenOnes) {
  for (const std::string& name : split_names())
    EXPECT_TRUE(check_pattern(pattern_of(*split_from_string(name)))) << name;
  EXPECT_TRUE(check_pattern("(a+)+$|[\\s\\S]"));
  EXPECT_TRUE(check_pattern("[]a]|[^]]|\\)"));
  for (const char* broken : {"(?i:'s|", "a)", "[a", "*", "a|+", "(", "x\\", "(?"})
    EXPECT_FALSE(check_pattern(broken)) << broken;
}

TEST(Characters, ComposeButNeverAcrossBytesThatAreNoText) {
  EXPECT_EQ(to_nfc("e\u0301"), "\u00E9");
  EXPECT_EQ(to_nfc("a\u0323\u0307"), to_nfc("a\u0307\u0323"));
  EXPECT_EQ(to_nfc(std::string("e\xFF\u0301")), std::string("e\xFF\u0301"));
  EXPECT_EQ(to_nfc("\u1100\u1161\u11A8"), "\uAC01");
  EXPECT_EQ(to_nfc(std::string("\0a", 2)), std::string("\0a", 2));
}

}  // namespace
}  // namespace stacklab
