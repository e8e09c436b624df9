// Rules of English that every text must keep, and the phrases themselves.
#include "engine/data/tinyworld_grammar.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "engine/base/text.h"
#include "engine/data/tinyworld_streams.h"
#include "tests/engine/data/tinyworld_testing.h"

namespace stacklab {
namespace {

TEST(Phrase, ChoicesAndSlots) {
  const auto phrase = Phrase::parse("[a|an old|] {thing}[, [very|not] long]");
  ASSERT_TRUE(phrase);
  EXPECT_EQ(phrase->variants(), 6);
  std::map<std::string, int> seen;
  for (std::uint64_t i = 0; i < 600; ++i) {
    Dice dice(1, 2, i);
    ++seen[phrase->expand(dice, [](std::string_view name) { return "<" + std::string(name) + ">"; })];
  }
  EXPECT_EQ(seen.size(), 6u);
  EXPECT_GT(seen[" <thing>, not long"], 50);
  for (const char* bad : {"[a", "a]", "[a|b", "{", "{}", "{x", "[a|{}]", "a|b]"})
    EXPECT_FALSE(Phrase::parse(bad)) << bad;
  EXPECT_FALSE(Phrase::parse(std::string(1000, '[')));
  EXPECT_EQ(sentence_case("it is so. why? 9 cm. \nnow"), "It is so. Why? 9 cm. \nNow");
}

bool letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

// Words with what stands between them: "Mill, the" -> "Mill" "," "the".
std::vector<std::string> pieces_of(const std::string& text) {
  std::vector<std::string> pieces;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i;
    while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '\'')) ++end;
    if (end == i) ++end;
    if (text[i] != ' ') pieces.push_back(text.substr(i, end - i));
    i = end;
  }
  return pieces;
}

// What is wrong with a text; nothing when all is well.
std::string fault_in(const std::string& text, const std::set<std::string>& names) {
  for (const char* never :
       {"  ", " ,", " .", "..", ",,", ",.", "{", "}", "[", "]", "|", " \n", " ;", " :", "?.", "!.", "'s's", "\n\n\n"}) {
    // Ledgers lead the eye with "...".
    const std::size_t at = text.find(never);
    if (at != std::string::npos && !(std::string(never) == ".." && text.find(" ... ") != std::string::npos) &&
        !(std::string(never) == " ." && text.find(" ... ") != std::string::npos)) {
      return "\"" + std::string(never) + "\"";
    }
  }
  if (text.empty() || text.back() != '\n' || text.front() == '\n') return "the ends";
  // Sentences begin with capitals.
  for (std::size_t i = 0; i + 2 < text.size(); ++i) {
    if ((text[i] == '.' || text[i] == '?' || text[i] == '!') && text[i + 1] == ' ' &&
        std::islower(static_cast<unsigned char>(text[i + 2])))
      return "a sentence begins small: " + text.substr(i, 20);
  }
  const std::vector<std::string> pieces = pieces_of(text);
  static const std::set<std::string> silent_or_not = {"hour", "honest", "heir"};            // an
  static const std::set<std::string> like_you_or_one = {"union", "unit", "one", "useful"};  // a
  for (std::size_t i = 0; i + 1 < pieces.size(); ++i) {
    const std::string word = lower(pieces[i]), next = lower(pieces[i + 1]);
    if ((word == "a" || word == "an") && letter(next[0]) && next.size() > 1) {
      const bool vowel = std::string("aeiou").find(next[0]) != std::string::npos;
      const bool an = (vowel && !like_you_or_one.contains(next)) || silent_or_not.contains(next);
      if (an != (word == "an")) return word + " " + next;
    }
    if (word == next && letter(word[0]) && word != "that" && word != "had") return "twice: " + word;
    if (word == "1") {
      static const std::set<std::string> plurals = {"miles",       "pence",     "acres", "masts",      "people",
                                                    "inhabitants", "residents", "souls", "centimetres"};
      if (plurals.contains(next)) return "1 " + next;
    }
    // Names keep their capital.
    if (pieces[i] == word && names.contains(word)) return "a name begins small: " + word;
  }
  return {};
}

std::set<std::string> name_words() {
  std::set<std::string> names;
  for (const EntityId e : all_entities(shared_world())) collect_words(shared_world().name(e), names);
  names.erase("guild"), names.erase("farm");
  return names;
}

TEST(TinyWorldGrammar, IsKeptInEveryDocument) {
  const std::set<std::string> names = name_words();
  for (const std::string_view name : {"documents", "library", "test"}) {
    const auto stream = std::move(tinyworld_stream(shared_world(), name).value());
    for (std::uint64_t i = 0; i < (name == "documents" ? 6000 : 1500); ++i) {
      const WorldDocument item = stream->item(i);
      const std::string fault = fault_in(item.text, names);
      ASSERT_EQ(fault, "") << item.kind << " " << i << ":\n" << item.text;
      // Paragraphs and the lines of lists begin with a capital, a digit or a dash.
      for (const std::string& line : split(item.text, '\n')) {
        ASSERT_TRUE(line.empty() || !std::islower(static_cast<unsigned char>(line[0]))) << line << " in\n" << item.text;
      }
    }
  }
}

TEST(TinyWorldGrammar, FaultsAreFound) {
  const std::set<std::string> names = {"bela"};
  EXPECT_EQ(fault_in("Bela is an old hand. She has a unit and an hour.\n", names), "");
  for (const char* bad :
       {"Bela is a old hand.\n", "She is an baker.\n", "It took a hour.\n", "Here is an unit.\n", "Two  blanks.\n",
        "So. she went.\n", "The the end.\n", "It is 1 miles long.\n", "Here is bela.\n", "No end", "A {slot}.\n"}) {
    EXPECT_NE(fault_in(bad, names), "") << bad;
  }
}

// What verbs ask of goods in the plural ("candles", "iron nails") and the singular ("salt"): no phrase makes them a
// subject of a verb that shows number.
TEST(TinyWorldGrammar, NumbersOfTheVerbAreNotAtTheMercyOfTheWord) {
  for (const Attribute a : {Attribute::town_known_for, Attribute::farm_crop, Attribute::goods_kind}) {
    for (const Phrase& phrase : shared_world().lexicon().phrases[static_cast<std::size_t>(a)].third) {
      for (std::uint64_t i = 0; i < 40; ++i) {
        Dice dice(1, 5, i);
        const std::string text =
            phrase.expand(dice, [](std::string_view slot) { return "<" + std::string(slot) + ">"; });
        for (const char* verb : {"<V> is ", "<V> are ", "<V> was ", "<V> were ", "<V> has ", "<V> have "})
          EXPECT_FALSE(text.starts_with(verb)) << text;
      }
    }
  }
}

// Thirty different sentences at least for every attribute, as documents really say them.
TEST(TinyWorldGrammar, EveryAttributeIsSaidInThirtyWays) {
  for (std::size_t a = 0; a < attributes; ++a) {
    std::int64_t variants = 0;
    std::set<std::string> said;
    const auto& phrases = shared_world().lexicon().phrases[a].third;
    for (const Phrase& phrase : phrases) {
      variants += phrase.variants();
      for (std::uint64_t i = 0; i < 300; ++i) {
        Dice dice(1, 6, i);
        said.insert(phrase.expand(dice, [](std::string_view slot) { return "<" + std::string(slot) + ">"; }));
      }
    }
    EXPECT_GE(variants, 30) << to_string(static_cast<Attribute>(a));
    EXPECT_GE(said.size(), 30u) << to_string(static_cast<Attribute>(a));
    EXPECT_GE(phrases.size(), 5u) << to_string(static_cast<Attribute>(a));
  }
}

}  // namespace
}  // namespace stacklab
