#include "engine/data/tinyworld_drills.h"

#include <algorithm>
#include <functional>

namespace stacklab {
namespace {

constexpr std::uint32_t drill_stream = 0x7477'2000;

std::string joined(const std::vector<std::string>& items, std::string_view between) {
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "" : std::string(between)) + item;
  return text;
}

std::vector<std::string> letters_of(std::string_view word) {
  std::vector<std::string> letters;
  for (const char c : word) letters.emplace_back(1, c);
  return letters;
}

class Sheet {
 public:
  Sheet(const Lexicon& lexicon, std::uint64_t seed, std::uint64_t index)
      : lexicon_(lexicon), dice_(seed, drill_stream, index) {}

  WorldDocument write() {
    std::size_t total = 0;
    for (const auto& [kind, weight] : lexicon_.drill_weights) total += weight;
    std::size_t ticket = dice_.below(std::max<std::size_t>(total, 1));
    for (const auto& [kind, weight] : lexicon_.drill_weights) {
      sheet_.kind = kind;
      if (ticket < weight) break;
      ticket -= weight;
    }
    const std::string title = dice_.pick(lexicon_.frame("drills.titles")).expand(dice_);
    if (!title.empty()) sheet_.text += sentence_case(title) + "\n\n";
    const std::function<void()> exercise = chosen();
    for (std::size_t n = 3 + dice_.below(5); n > 0; --n) exercise();
    return std::move(sheet_);
  }

 private:
  using Slots = std::vector<std::pair<std::string_view, std::string>>;

  // One style for the whole sheet.
  std::function<void()> chosen() {
    const std::size_t style = dice_.below(3);
    if (sheet_.kind == "copy") return [this, style] { copy(style); };
    if (sheet_.kind == "count") return [this, style] { count(style); };
    if (sheet_.kind == "sort") return [this, style] { sort(style); };
    if (sheet_.kind == "sum") return [this, style] { sum(style); };
    if (sheet_.kind == "steps") return [this, style] { steps(style); };
    if (sheet_.kind == "compare") return [this, style] { compare(style); };
    return [this, style] { spell(style); };
  }

  void line(std::string_view frame, const Slots& slots) {
    const Phrase& phrase = dice_.pick(lexicon_.frame("drills." + std::string(frame)));
    std::string text = phrase.expand(dice_, [&](std::string_view name) -> std::string {
      for (const auto& [key, value] : slots) {
        if (key == name) return value;
      }
      return {};
    });
    // Only the first letter: what follows a question mark are the words of the exercise.
    if (!starts_with_slot(phrase) && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
    sheet_.text += text + "\n";
  }
  // What is spelt or compared keeps its small letter.
  static bool starts_with_slot(const Phrase& phrase) {
    return !phrase.nodes().empty() && phrase.nodes().front().kind == Phrase::Node::Kind::slot;
  }

  const std::string& word() { return dice_.pick(lexicon_.drill_words); }
  std::vector<std::string> different_words(std::size_t n) {
    std::vector<std::string> words;
    while (words.size() < n) {
      const std::string& w = word();
      if (std::find(words.begin(), words.end(), w) == words.end()) words.push_back(w);
    }
    return words;
  }
  // Of one to three digits; of two or three.
  std::int64_t number() { return dice_.percent(50) ? dice_.between(0, 99) : dice_.between(100, 999); }
  std::int64_t long_number() { return dice_.percent(50) ? dice_.between(10, 99) : dice_.between(100, 999); }
  std::vector<std::int64_t> different_numbers(std::size_t n) {
    std::vector<std::int64_t> numbers;
    while (numbers.size() < n) {
      const std::int64_t next = number();
      if (std::find(numbers.begin(), numbers.end(), next) == numbers.end()) numbers.push_back(next);
    }
    return numbers;
  }
  static std::vector<std::string> texts(const std::vector<std::int64_t>& numbers) {
    std::vector<std::string> out;
    for (const std::int64_t n : numbers) out.push_back(std::to_string(n));
    return out;
  }

  void copy(std::size_t style) {
    std::vector<std::string> items;
    for (std::size_t n = 2 + dice_.below(7); n > 0; --n)
      items.push_back(style == 0          ? word()
                      : style == 1        ? std::to_string(number())
                      : dice_.percent(50) ? word()
                                          : std::to_string(number()));
    line("copy.line", {{"items", joined(items, " ")}});
    sheet_.text += joined(items, " ") + "\n";
  }

  void count(std::size_t style) {
    std::int64_t answer = 0;
    if (style == 0) {
      std::vector<std::string> items;
      for (std::size_t n = 1 + dice_.below(9); n > 0; --n) items.push_back(word());
      answer = static_cast<std::int64_t>(items.size());
      line("count.words", {{"items", joined(items, " ")}});
    } else if (style == 1) {
      const std::vector<std::string> few = different_words(3);
      std::vector<std::string> items;
      for (std::size_t n = 3 + dice_.below(8); n > 0; --n) items.push_back(dice_.pick(few));
      answer = std::count(items.begin(), items.end(), few[0]);
      line("count.times", {{"word", few[0]}, {"items", joined(items, " ")}});
    } else {
      const std::string& in = word();
      const char letter = dice_.percent(80) ? dice_.pick(in) : static_cast<char>('a' + dice_.between(0, 25));
      answer = std::count(in.begin(), in.end(), letter);
      line("count.letters", {{"letter", std::string(1, letter)}, {"word", in}});
    }
    sheet_.text += std::to_string(answer) + "\n";
  }

  void sort(std::size_t style) {
    const std::size_t n = 3 + dice_.below(5);
    std::vector<std::string> items, sorted;
    if (style == 2) {
      items = sorted = different_words(n);
      std::sort(sorted.begin(), sorted.end());
    } else {
      std::vector<std::int64_t> numbers = different_numbers(n);
      items = texts(numbers);
      std::sort(numbers.begin(), numbers.end());
      if (style == 1) std::reverse(numbers.begin(), numbers.end());
      sorted = texts(numbers);
    }
    line(style == 0 ? "sort.up" : style == 1 ? "sort.down" : "sort.alphabet", {{"items", joined(items, " ")}});
    sheet_.text += joined(sorted, " ") + "\n";
  }

  void sum(std::size_t style) {
    std::int64_t a = long_number(), b = long_number(), answer = a + b;
    std::string sign = "+", name = "plus";
    if (style == 1) {
      if (a < b) std::swap(a, b);
      answer = a - b, sign = "-", name = "minus";
    } else if (style == 2) {
      b = dice_.between(2, 9);
      answer = a * b, sign = "*", name = "times";
    }
    line("sum.line", {{"a", std::to_string(a)},
                      {"b", std::to_string(b)},
                      {"sign", sign},
                      {"word", name},
                      {"answer", std::to_string(answer)}});
  }

  std::string word_of(std::string_view frame) {
    return dice_.pick(lexicon_.frame("drills.steps." + std::string(frame))).expand(dice_);
  }

  void steps(std::size_t style) {
    std::int64_t a = long_number(), b = style == 2 ? dice_.between(2, 9) : long_number();
    if (style == 1 && a < b) std::swap(a, b);
    line("steps.line", {{"a", std::to_string(a)},
                        {"b", std::to_string(b)},
                        {"sign", style == 0   ? "+"
                                 : style == 1 ? "-"
                                              : "*"}});
    std::int64_t answer = 0;
    if (style == 2) {
      answer = multiply(a, b);
    } else {
      answer = style == 0 ? add(a, b) : subtract(a, b);
    }
    sheet_.text += word_of("answer") + std::to_string(answer) + "\n";
  }

  // By columns from the right: "7 + 8 + 1 = 16, write 6, carry 1".
  std::int64_t add(std::int64_t a, std::int64_t b) {
    const std::int64_t answer = a + b;
    for (std::int64_t carry = 0; a > 0 || b > 0; a /= 10, b /= 10) {
      const std::int64_t column = a % 10 + b % 10 + carry;
      sheet_.text += std::to_string(a % 10) + " + " + std::to_string(b % 10) + (carry ? " + 1" : "") + " = " +
                     std::to_string(column) + ", " + word_of("write") + " " + std::to_string(column % 10);
      carry = column / 10;
      if (carry) sheet_.text += ", " + word_of("carry") + " 1";
      sheet_.text += "\n";
    }
    return answer;
  }
  // "12 - 8 - 1 = 3, write 3, borrow 1".
  std::int64_t subtract(std::int64_t a, std::int64_t b) {
    const std::int64_t answer = a - b;
    for (std::int64_t borrowed = 0; a > 0 || b > 0; a /= 10, b /= 10) {
      const std::int64_t borrow = a % 10 < b % 10 + borrowed ? 1 : 0;
      const std::int64_t top = a % 10 + 10 * borrow, column = top - b % 10 - borrowed;
      sheet_.text += std::to_string(top) + " - " + std::to_string(b % 10) + (borrowed ? " - 1" : "") + " = " +
                     std::to_string(column) + ", " + word_of("write") + " " + std::to_string(column);
      if (borrow) sheet_.text += ", " + word_of("borrow") + " 1";
      sheet_.text += "\n";
      borrowed = borrow;
    }
    return answer;
  }
  // "300 * 7 = 2100", "40 * 7 = 280", "6 * 7 = 42", then their sum.
  std::int64_t multiply(std::int64_t a, std::int64_t b) {
    std::vector<std::string> parts;
    for (std::int64_t place = 100; place > 0; place /= 10) {
      const std::int64_t part = a / place % 10 * place;
      if (part == 0) continue;
      sheet_.text += std::to_string(part) + " * " + std::to_string(b) + " = " + std::to_string(part * b) + "\n";
      parts.push_back(std::to_string(part * b));
    }
    if (parts.size() > 1) sheet_.text += joined(parts, " + ") + " = " + std::to_string(a * b) + "\n";
    return a * b;
  }

  void compare(std::size_t style) {
    std::vector<std::int64_t> two = different_numbers(2);
    // Numbers that differ in one digit are the hard ones.
    if (dice_.percent(30)) two[1] = two[0] % 10 == 9 ? two[0] - 1 : two[0] + 1;
    const std::int64_t a = two[0], b = two[1];
    const bool yes_no = style == 2 && dice_.percent(50);
    const char* frame = style == 0   ? "compare.larger"
                        : style == 1 ? "compare.smaller"
                        : yes_no     ? "compare.yes"
                                     : "compare.sign";
    const std::string answer = style == 0   ? std::to_string(std::max(a, b))
                               : style == 1 ? std::to_string(std::min(a, b))
                               : yes_no     ? a > b ? "yes" : "no"
                               : a > b      ? ">"
                                            : "<";
    line(frame, {{"a", std::to_string(a)}, {"b", std::to_string(b)}, {"answer", answer}});
  }

  void spell(std::size_t style) {
    const std::string& of = word();
    std::vector<std::string> letters = letters_of(of);
    if (style == 1) std::reverse(letters.begin(), letters.end());
    line(style == 0   ? "spell.line"
         : style == 1 ? "spell.backwards"
                      : "spell.length",
         {{"word", of}, {"letters", joined(letters, style == 2 ? ", " : "-")}, {"n", std::to_string(of.size())}});
  }

  const Lexicon& lexicon_;
  Dice dice_;
  WorldDocument sheet_;
};

}  // namespace

WorldDocument tinyworld_drill(const Lexicon& lexicon, std::uint64_t seed, std::uint64_t index) {
  return Sheet(lexicon, seed, index).write();
}

}  // namespace stacklab
