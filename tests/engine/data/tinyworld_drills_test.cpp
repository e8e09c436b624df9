// Drills, answered by somebody who only reads what stands there.
#include "engine/data/tinyworld_drills.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "engine/base/text.h"
#include "tests/engine/data/tinyworld_testing.h"

namespace stacklab {
namespace {

using Words = std::vector<std::string>;

Words words_of(const std::string& text) {
  std::istringstream in(text);
  Words words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

std::string without(std::string text, const std::string& characters) {
  std::erase_if(text, [&](char c) { return characters.find(c) != std::string::npos; });
  return text;
}

std::string after(const std::string& text, const std::string& mark) {
  const std::size_t at = text.rfind(mark);
  return at == std::string::npos ? std::string() : text.substr(at + mark.size());
}

std::vector<std::int64_t> numbers_in(const std::string& text) {
  std::string spaced = text;
  for (char& c : spaced) {
    if (c < '0' || c > '9') c = ' ';
  }
  std::vector<std::int64_t> numbers;
  for (const std::string& word : words_of(spaced)) numbers.push_back(std::stoll(word));
  return numbers;
}

std::int64_t calculate(std::int64_t a, char sign, std::int64_t b) {
  return sign == '+' ? a + b : sign == '-' ? a - b : a * b;
}

// "7 + 8 + 1 = 16, write 6, carry 1": the left side from left to right; what follows "=" as a number.
void check_equation(const std::string& line) {
  const Words words = words_of(without(line, ","));
  ASSERT_GE(words.size(), 5u) << line;
  std::int64_t value = std::stoll(words[0]);
  std::size_t i = 1;
  for (; i + 1 < words.size() && words[i] != "="; i += 2)
    value = calculate(value, words[i][0], std::stoll(words[i + 1]));
  ASSERT_LT(i + 1, words.size()) << line;
  EXPECT_EQ(std::stoll(words[i + 1]), value) << line;
}

class Marker {
 public:
  // Every line of the sheet; how many exercises there were.
  int mark(const WorldDocument& sheet) {
    lines_ = split(sheet.text.substr(0, sheet.text.size() - 1), '\n');
    at_ = 0;
    if (lines_.size() > 1 && lines_[1].empty()) at_ = 2;  // a title
    int exercises = 0;
    for (; at_ < lines_.size(); ++exercises) {
      const std::string line = next();
      if (sheet.kind == "copy") {
        EXPECT_EQ(next(), after(line, ": ")) << line;
      } else if (sheet.kind == "count") {
        count(line);
      } else if (sheet.kind == "sort") {
        sort(line);
      } else if (sheet.kind == "sum") {
        sum(line);
      } else if (sheet.kind == "steps") {
        steps(line);
      } else if (sheet.kind == "compare") {
        compare(line);
      } else {
        spell(line);
      }
    }
    return exercises;
  }

 private:
  std::string next() { return at_ < lines_.size() ? lines_[at_++] : std::string(); }

  void count(const std::string& line) {
    const std::int64_t answer = std::stoll(next());
    if (line.find(" letter ") != std::string::npos) {
      const Words words = words_of(without(after(line, " letter "), "?."));
      EXPECT_EQ(std::count(words.back().begin(), words.back().end(), words[0][0]), answer) << line;
    } else if (line.find(" how often ") != std::string::npos || line.starts_with("How often ")) {
      const Words words = words_of(after(line, "often "));
      const std::string what = words[0] == "does" ? words[1] : words[0];
      const Words items = words_of(after(line, line.find('?') != std::string::npos ? "? " : ": "));
      EXPECT_EQ(std::count(items.begin(), items.end(), what), answer) << line;
    } else {
      const Words items = words_of(after(line, line.find('?') != std::string::npos ? "? " : ": "));
      EXPECT_EQ(static_cast<std::int64_t>(items.size()), answer) << line;
    }
  }
  void sort(const std::string& line) {
    Words items = words_of(after(line, ": "));
    if (line.find("alphabet") != std::string::npos) {
      std::sort(items.begin(), items.end());
    } else {
      const bool down = line.find("large to small") != std::string::npos || line.starts_with("Largest");
      std::sort(items.begin(), items.end(), [down](const std::string& a, const std::string& b) {
        return down ? std::stoll(a) > std::stoll(b) : std::stoll(a) < std::stoll(b);
      });
    }
    EXPECT_EQ(words_of(next()), items) << line;
  }
  void sum(const std::string& line) {
    const std::vector<std::int64_t> n = numbers_in(line);
    ASSERT_EQ(n.size(), 3u) << line;
    const auto has = [&](const char* sign) { return line.find(sign) != std::string::npos; };
    const char sign = has(" + ") || has("plus") ? '+' : has(" - ") || has("minus") ? '-' : '*';
    EXPECT_TRUE(sign != '*' || has(" * ") || has("times")) << line;
    // "85 is 47 plus 38" and "47 plus 38 is 85".
    const bool answer_first = line.find(" is ") == std::to_string(n[0]).size();
    if (answer_first) {
      EXPECT_EQ(calculate(n[1], sign, n[2]), n[0]) << line;
    } else {
      EXPECT_EQ(calculate(n[0], sign, n[1]), n[2]) << line;
    }
    for (const std::int64_t number : n) EXPECT_GE(number, 0);
  }
  void steps(const std::string& line) {
    const std::vector<std::int64_t> n = numbers_in(line);
    ASSERT_EQ(n.size(), 2u) << line;
    const char sign = line.find(" + ") != std::string::npos ? '+' : line.find(" - ") != std::string::npos ? '-' : '*';
    std::string written;  // digits from the right, as the steps write them
    std::int64_t carried = 0;
    for (;;) {
      const std::string step = next();
      if (step.starts_with("answer: ")) {
        EXPECT_EQ(std::stoll(step.substr(8)), calculate(n[0], sign, n[1])) << line;
        if (sign != '*') {
          if (carried > 0) written += std::to_string(carried);
          std::reverse(written.begin(), written.end());
          EXPECT_EQ(std::stoll(written), std::stoll(step.substr(8))) << line;
        }
        return;
      }
      ASSERT_FALSE(step.empty()) << line;
      check_equation(step);
      if (sign != '*') {
        written += words_of(without(after(step, "write "), ",")).at(0);
        carried = sign == '+' && step.find("carry 1") != std::string::npos;
      }
    }
  }
  void compare(const std::string& line) {
    const std::vector<std::int64_t> n = numbers_in(line);
    ASSERT_GE(n.size(), 2u) << line;
    EXPECT_NE(n[0], n[1]);
    const bool smaller = lower(line).find("smaller") != std::string::npos;
    const std::string last = words_of(line).back();
    if (last == "yes" || last == "no") {
      EXPECT_EQ(last == "yes", n[0] > n[1]) << line;
    } else if (n.size() == 2) {
      EXPECT_EQ(line.find('>') != std::string::npos, n[0] > n[1]) << line;
      EXPECT_EQ(line.find('<') != std::string::npos, n[0] < n[1]) << line;
    } else {
      EXPECT_EQ(n[2], smaller ? std::min(n[0], n[1]) : std::max(n[0], n[1])) << line;
    }
  }
  void spell(const std::string& line) {
    const Words words = words_of(without(line, ":"));
    std::string word, spelt;
    if (line.find(" letters: ") != std::string::npos) {
      word = words[0];
      spelt = without(after(line, ": "), ", ");
      EXPECT_EQ(std::stoull(words[2]), word.size()) << line;
    } else {
      for (const std::string& w : words) {
        if (w.find('-') != std::string::npos) spelt = without(w, "-");
      }
      word = words[0] == "Spell" ? words[1] : words[1] == "spells" ? words[2] : words[0];
    }
    if (line.find("backwards") != std::string::npos || line.find("from the end") != std::string::npos)
      std::reverse(spelt.begin(), spelt.end());
    EXPECT_EQ(spelt, word) << line;
  }

  std::vector<std::string> lines_;
  std::size_t at_ = 0;
};

TEST(TinyWorldDrills, AreRight) {
  std::map<std::string, int> sheets;
  std::set<std::string> distinct;
  Marker marker;
  for (std::uint64_t i = 0; i < 4000; ++i) {
    const WorldDocument sheet = tinyworld_drill(shared_world().lexicon(), 1, i);
    EXPECT_TRUE(sheet.statements.empty());
    EXPECT_EQ(sheet.text.back(), '\n');
    const int exercises = marker.mark(sheet);
    EXPECT_TRUE(exercises >= 3 && exercises <= 7) << exercises << " in\n" << sheet.text;
    ++sheets[sheet.kind];
    distinct.insert(sheet.text);
  }
  EXPECT_EQ(sheets.size(), 7u);
  for (const auto& [kind, n] : sheets) EXPECT_GT(n, 200) << kind;
  EXPECT_GT(distinct.size(), 3990u);
  EXPECT_EQ(tinyworld_drill(shared_world().lexicon(), 1, 77), tinyworld_drill(shared_world().lexicon(), 1, 77));
  EXPECT_NE(tinyworld_drill(shared_world().lexicon(), 2, 77), tinyworld_drill(shared_world().lexicon(), 1, 77));
}

}  // namespace
}  // namespace stacklab
