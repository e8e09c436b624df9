// The splits beside a regular expression engine. Its tables are of an older Unicode than ours may be, so text is made
// of characters that have been assigned for long.
#define PCRE2_CODE_UNIT_WIDTH 8
#include <gtest/gtest.h>

#include <pcre2.h>
#include <nlohmann/json.hpp>

#include "engine/tokenizer/pretokenizer.h"
#include "tests/engine/tokenizer/tokenizer_testing.h"

namespace stacklab {
namespace {

class Expression {
 public:
  explicit Expression(std::string_view pattern) {
    int error = 0;
    PCRE2_SIZE at = 0;
    code_ = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                          PCRE2_UTF | PCRE2_UCP | PCRE2_DOLLAR_ENDONLY, &error, &at, nullptr);
    if (code_ != nullptr) match_ = pcre2_match_data_create_from_pattern(code_, nullptr);
  }
  ~Expression() {
    pcre2_match_data_free(match_);
    pcre2_code_free(code_);
  }
  Expression(const Expression&) = delete;
  Expression& operator=(const Expression&) = delete;

  explicit operator bool() const { return code_ != nullptr; }

  std::vector<std::string> pieces(const std::string& text) const {
    std::vector<std::string> all;
    PCRE2_SIZE at = 0;
    while (at < text.size() &&
           pcre2_match(code_, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at, 0, match_, nullptr) > 0) {
      const PCRE2_SIZE* range = pcre2_get_ovector_pointer(match_);
      all.push_back(text.substr(range[0], range[1] - range[0]));
      at = range[1];
    }
    return all;
  }

 private:
  pcre2_code* code_ = nullptr;
  pcre2_match_data* match_ = nullptr;
};

TEST(Pcre2, CutsRandomTextTheSameWay) {
  for (const std::string& name : split_names()) {
    const Split split = *split_from_string(name);
    const Expression expression(pattern_of(split));
    ASSERT_TRUE(expression) << name;
    Numbers numbers(3);
    for (int n = 0; n < 4000; ++n) {
      const std::string text = odd_text(numbers, 1 + numbers.below(40));
      ASSERT_EQ(pieces_of(split, text), expression.pieces(text))
          << name << ": " << nlohmann::json(text).dump(-1, ' ', true);
    }
  }
}

TEST(Pcre2, PutsEveryAssignedCharacterInTheSameClass) {
  const Expression assigned(R"(\P{Cn})"), letter(R"(\p{L})"), number(R"(\p{N})"), space(R"(\s)");
  int compared = 0;
  for (std::uint32_t c = 1; c < 0x110000; c = c == 0xD7FF ? 0xE000 : c + 1) {
    std::string text;
    if (c < 0x80) {
      text = {static_cast<char>(c)};
    } else if (c < 0x800) {
      text = {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 63))};
    } else if (c < 0x10000) {
      text = {static_cast<char>(0xE0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 63)),
              static_cast<char>(0x80 | (c & 63))};
    } else {
      text = {static_cast<char>(0xF0 | c >> 18), static_cast<char>(0x80 | (c >> 12 & 63)),
              static_cast<char>(0x80 | (c >> 6 & 63)), static_cast<char>(0x80 | (c & 63))};
    }
    // U+180E was white space once, and for PCRE2 still is.
    if (assigned.pieces(text).empty() || c == 0x180E) continue;
    const std::uint8_t ours = char_classes()[c];
    ASSERT_EQ(ours == char_class::letter, !letter.pieces(text).empty()) << c;
    ASSERT_EQ(ours == char_class::number, !number.pieces(text).empty()) << c;
    ASSERT_EQ((ours & char_class::space) != 0, !space.pieces(text).empty()) << c;
    const Char read = read_char(char_classes(), text.data(), text.data() + text.size());
    ASSERT_EQ(read.char_class, ours) << c;
    ASSERT_EQ(read.bytes, text.size()) << c;
    ++compared;
  }
  EXPECT_GT(compared, 250000);
}

}  // namespace
}  // namespace stacklab
