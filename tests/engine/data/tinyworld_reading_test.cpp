// Documents read back by somebody who knows the grammar, but not how they were made.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>
#include <set>

#include "engine/base/text.h"
#include "engine/data/tinyworld.h"
#include "tests/engine/data/tinyworld_testing.h"

namespace stacklab {
namespace {

using Kind = EntityKind;

using Captures = std::vector<std::pair<std::string, std::string>>;

// Calls found for every way to read text as these nodes.
void match(const std::vector<Phrase::Node>& nodes, std::size_t n, std::string_view text, Captures& captures,
           const std::function<void(std::string_view rest)>& found) {
  if (n == nodes.size()) return found(text);
  const Phrase::Node& node = nodes[n];
  if (node.kind == Phrase::Node::Kind::text) {
    if (text.starts_with(lower(node.text))) match(nodes, n + 1, text.substr(node.text.size()), captures, found);
  } else if (node.kind == Phrase::Node::Kind::slot) {
    for (std::size_t length = 1; length <= std::min<std::size_t>(text.size(), 60); ++length) {
      captures.emplace_back(node.text, text.substr(0, length));
      match(nodes, n + 1, text.substr(length), captures, found);
      captures.pop_back();
    }
  } else {
    for (const auto& choice : node.choices) {
      match(choice, 0, text, captures, [&](std::string_view rest) { match(nodes, n + 1, rest, captures, found); });
    }
  }
}

class BookReader {
 public:
  explicit BookReader(const TinyWorld& w) : world_(w) {
    const Lexicon& lexicon = w.lexicon();
    for (const auto* list : {&lexicon.trades, &lexicon.colours, &lexicon.water_colours, &lexicon.habits,
                             &lexicon.animal_habits, &lexicon.crops}) {
      words_.insert(list->begin(), list->end());
    }
    for (const auto& goods : lexicon.goods) words_.insert(goods.name), units_.insert(goods.unit);
    for (const auto& species : lexicon.species) words_.insert(species.name);
    for (const EntityId e : all_entities(w)) {
      const std::string name = lower(w.name(e));
      names_[name] = e;
      if (e.kind == Kind::person) given_[name.substr(0, name.find(' '))] = e;
    }
  }

  void open(const WorldDocument& document) {
    last_.reset();
    between_.reset();
    writer_.reset();
    // Signature or title.
    for (const auto& [name, e] : names_) {
      if (e.kind != Kind::person) continue;
      const std::string text = lower(document.text);
      if (document.kind == "letter" && text.ends_with(name + "\n")) writer_ = e;
      if (document.kind == "diary" && text.substr(0, text.find('\n')).find(name) != std::string::npos) writer_ = e;
    }
  }

  // Whether a text could be the value of a fact at all.
  bool could_be(const FactValue& value, const std::string& text) const {
    if (value.kind == FactValue::Kind::number) return !text.empty() && std::all_of(text.begin(), text.end(), ::isdigit);
    if (value.kind == FactValue::Kind::word) return words_.contains(text);
    const auto at = names_.find(text);
    return at != names_.end() && at->second.kind == value.entity.kind;
  }

  // Every fact that the sentence can be read as.
  std::set<std::pair<FactId, std::string>> read(const std::string& sentence) {
    std::set<std::pair<FactId, std::string>> facts;
    std::set<EntityId> subjects;
    const std::string text = lower(sentence.ends_with(".") ? sentence.substr(0, sentence.size() - 1) : sentence);
    std::vector<std::string_view> starts = {text};
    for (const auto& [name, leads] : world_.lexicon().leads) {
      for (const std::string& lead : leads) {
        if (text.starts_with(lead)) starts.push_back(std::string_view(text).substr(lead.size()));
      }
    }
    for (const char* frame : {"news.item", "entry.related", "recipe.note"}) {
      for (const Phrase& phrase : world_.lexicon().frame(frame)) {
        Captures none;
        match(phrase.nodes(), 0, text, none, [&](std::string_view rest) { starts.push_back(rest); });
      }
    }
    for (const std::string_view start : starts) {
      for (std::size_t a = 0; a < attributes; ++a) {
        const AttributePhrases& phrases = world_.lexicon().phrases[a];
        for (const Phrase& phrase : phrases.third)
          read_as(static_cast<Attribute>(a), phrase, start, false, facts, subjects);
        for (const Phrase& phrase : phrases.first)
          read_as(static_cast<Attribute>(a), phrase, start, true, facts, subjects);
      }
    }
    if (subjects.size() == 1) last_ = *subjects.begin();
    between_.reset();
    for (const auto& [fact, value] : facts) {
      if (const auto e = entity(value)) between_ = e;
      if (fact.attribute == Attribute::town_distance) between_ = EntityId{Kind::town, fact.other};
    }
    return facts;
  }

  // A question, and the answer of somebody: "who owns it?", "Bela: Tom Harwick."
  std::set<std::pair<FactId, std::string>> read_dialogue(const std::string& exchange) {
    std::set<std::pair<FactId, std::string>> facts;
    std::set<EntityId> subjects;
    const std::string text = lower(exchange);
    const std::size_t end = text.find('\n'), name = text.find(": ", end);
    EXPECT_NE(name, std::string::npos) << exchange;
    if (name == std::string::npos) return facts;
    const std::string question = text.substr(0, end), answer = text.substr(name + 2, text.size() - name - 3);
    EXPECT_TRUE(exchange.ends_with('.')) << exchange;
    for (const char* bridge : {"", "and ", "tell me, ", "one more thing: ", "then "}) {
      if (!question.starts_with(bridge)) continue;
      const std::string_view asked = std::string_view(question).substr(std::string_view(bridge).size());
      for (std::size_t a = 0; a < attributes; ++a) {
        for (const Phrase& phrase : world_.lexicon().phrases[a].question) {
          Captures captures;
          match(phrase.nodes(), 0, asked, captures, [&](std::string_view rest) {
            Reading reading{{static_cast<Attribute>(a), 0, 0, 0}, {}, {}, {}};
            if (!rest.empty() || !understand(reading, captures, false)) return;
            subjects.insert(*reading.who);
            read_answer(reading, answer, facts);
          });
        }
      }
    }
    if (subjects.size() == 1) last_ = *subjects.begin();
    between_.reset();
    for (const auto& [fact, value] : facts) {
      if (const auto e = entity(value)) between_ = e;
      if (fact.attribute == Attribute::town_distance)
        between_ = EntityId{Kind::town, fact.other == last_->index ? fact.subject : fact.other};
    }
    return facts;
  }

  // The lines of ledgers, timetables and registers, by what a person sees: numbers and names.
  std::set<std::pair<FactId, std::string>> read_table(const WorldDocument& document) {
    std::set<std::pair<FactId, std::string>> facts;
    const std::vector<std::string> lines = split(lower(document.text), '\n');
    std::optional<EntityId> town;
    std::vector<std::uint32_t> title = numbers_in(lines[0]);
    for (const auto& [name, e] : names_) {
      if (e.kind == Kind::town && lines[0].find(name) != std::string::npos) town = e;
    }
    EXPECT_TRUE(town) << document.text;
    if (!town) return facts;
    for (std::size_t i = 1; i < lines.size(); ++i) {
      const std::string& row = lines[i];
      const std::vector<std::uint32_t> numbers = numbers_in(row);
      if (numbers.empty()) continue;
      if (document.kind == "ledger") {
        std::string longest;
        for (const auto& goods : world_.lexicon().goods) {
          if (row.find(goods.name) != std::string::npos && goods.name.size() > longest.size()) longest = goods.name;
        }
        facts.emplace(FactId{Attribute::town_price, town->index, *goods_named(longest), title.at(0)},
                      std::to_string(numbers.back()));
      } else if (document.kind == "timetable") {
        for (const auto& [name, e] : names_) {
          if (e.kind == Kind::town && e != *town && row.find(name) != std::string::npos)
            facts.emplace(
                FactId{Attribute::town_distance, std::min(e.index, town->index), std::max(e.index, town->index), 0},
                std::to_string(numbers.back()));
        }
      } else {
        const std::vector<std::string> cells = split(row, ';');
        const EntityId who = names_.at(cells.at(0));
        const Attribute columns[] = {Attribute::person_trade, Attribute::person_birth_year, Attribute::person_height};
        for (std::size_t c = 0; c < 3; ++c)
          facts.emplace(FactId{columns[c], who.index, 0, 0}, std::string(trim(cells.at(c + 1))));
      }
    }
    return facts;
  }

 private:
  // What a phrase read so far says.
  struct Reading {
    FactId fact;
    std::optional<EntityId> who, other;
    std::string value;
  };

  static std::vector<std::uint32_t> numbers_in(const std::string& text) {
    std::vector<std::uint32_t> numbers;
    for (std::size_t i = 0; i < text.size();) {
      std::size_t end = i;
      while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end]))) ++end;
      if (end > i) numbers.push_back(static_cast<std::uint32_t>(std::stoul(text.substr(i, end - i))));
      i = std::max(end, i + 1);
    }
    return numbers;
  }

  void read_answer(const Reading& asked, std::string_view answer,
                   std::set<std::pair<FactId, std::string>>& facts) const {
    for (const Phrase& phrase : world_.lexicon().phrases[static_cast<std::size_t>(asked.fact.attribute)].answer) {
      Captures captures;
      match(phrase.nodes(), 0, answer, captures, [&](std::string_view rest) {
        Reading reading = asked;
        if (!rest.empty() || !understand(reading, captures, false)) return;
        if (const auto fact = settle(reading)) facts.insert(*fact);
      });
    }
  }

  std::optional<EntityId> entity(std::string text) const {
    for (const char* article : {"the river ", "the ship ", "the "}) {
      if (text.starts_with(article)) {
        text = text.substr(std::string_view(article).size());
        break;
      }
    }
    if (const auto at = names_.find(text); at != names_.end()) return at->second;
    if (const auto at = given_.find(text); at != given_.end()) return at->second;
    return std::nullopt;
  }

  std::optional<EntityId> subject(const std::string& slot, std::string text, Kind kind) const {
    if (slot == "P" && text.ends_with("'s")) text = text.substr(0, text.size() - 2);
    if (const auto e = entity(text)) return e->kind == kind ? e : std::nullopt;
    if (!last_ || last_->kind != kind) return std::nullopt;
    // After a sentence that named somebody else, a pronoun could mean either; "the town" could mean either of two
    // towns.
    std::set<std::string> stands_for_last;
    if (!between_ || between_->kind != kind) stands_for_last.insert("the " + std::string(to_string(kind)));
    if (!between_ && kind != Kind::person) stands_for_last.insert({"it", "its"});
    if (!between_ && kind == Kind::person && world_.is_she(*last_)) stands_for_last.insert({"she", "her"});
    if (!between_ && kind == Kind::person && !world_.is_she(*last_)) stands_for_last.insert({"he", "him", "his"});
    return stands_for_last.contains(text) ? last_ : std::nullopt;
  }

  // False when it cannot be that.
  bool understand(Reading& reading, const Captures& captures, bool first_person) const {
    for (const auto& [slot, captured] : captures) {
      if (slot == "S" || slot == "O" || slot == "P" || slot == "N") {
        // The second mention is a pronoun of the first.
        if (reading.who && !first_person && !entity(captured)) continue;
        reading.who = subject(slot, captured, subject_kind(reading.fact.attribute));
        if (!reading.who) return false;
      }
      if (slot == "parent" && captured != "mother" && captured != "father") return false;
      if (slot == "child" && captured != "son" && captured != "daughter") return false;
      if (slot == "V") reading.value = captured;
      if (slot == "aV") {
        const std::size_t space = captured.find(' ');
        if (space == std::string::npos || with_article(captured.substr(space + 1)) != captured) return false;
        reading.value = captured.substr(space + 1);
      }
      if (slot == "unit" && !units_.contains(captured)) return false;
      if (slot == "other") {
        reading.other = entity(captured);
        if (!reading.other || reading.other->kind != Kind::town) return false;
      }
      if (slot == "good") {
        const auto good = goods_named(captured);
        if (!good) return false;
        reading.fact.other = *good;
      }
      if (slot == "year") {
        if (captured.size() != 3) return false;
        reading.fact.year = static_cast<std::uint32_t>(std::stoi(captured));
      }
    }
    return reading.who.has_value();
  }
  // The fact and its value in small letters, if there is such a fact and the value could be one.
  std::optional<std::pair<FactId, std::string>> settle(Reading reading) const {
    if (const auto e = entity(reading.value)) reading.value = lower(world_.name(*e));
    reading.fact.subject = reading.who->index;
    if (reading.other) {
      reading.fact.subject = std::min(reading.who->index, reading.other->index);
      reading.fact.other = std::max(reading.who->index, reading.other->index);
    }
    const auto known = world_.value(reading.fact);
    if (!known || !could_be(*known, reading.value)) return std::nullopt;
    return std::pair(reading.fact, reading.value);
  }

  void read_as(Attribute attribute, const Phrase& phrase, std::string_view text, bool first_person,
               std::set<std::pair<FactId, std::string>>& facts, std::set<EntityId>& subjects) {
    Captures captures;
    match(phrase.nodes(), 0, text, captures, [&](std::string_view rest) {
      if (!rest.empty()) return;
      Reading reading{{attribute, 0, 0, 0}, first_person ? writer_ : std::nullopt, std::nullopt, {}};
      if (!understand(reading, captures, first_person)) return;
      const auto fact = settle(reading);
      if (!fact) return;
      facts.insert(*fact);
      if (!first_person) subjects.insert(*reading.who);
    });
  }

  std::optional<std::uint32_t> goods_named(const std::string& text) const {
    const auto& goods = world_.lexicon().goods;
    for (std::uint32_t g = 0; g < goods.size(); ++g) {
      if (goods[g].name == text) return g;
    }
    return std::nullopt;
  }

  const TinyWorld& world_;
  std::map<std::string, EntityId> names_, given_;
  std::set<std::string> words_, units_;
  std::optional<EntityId> last_, between_, writer_;
};

// Each statement, read by its grammar alone, says the fact that the document claims for it; and whatever else it can
// be read as is true.
TEST(TinyWorld, DocumentsCanBeReadBack) {
  BookReader reader(shared_world());
  std::map<std::string, std::size_t> read;
  std::set<Attribute> seen;
  for (const WorldPart part : {WorldPart::train, WorldPart::library}) {
    for (std::uint64_t i = 0; i < 300; ++i) {
      const WorldDocument document = document_of(part, i);
      reader.open(document);
      std::set<std::pair<FactId, std::string>> claimed;
      for (const Statement& s : document.statements)
        claimed.emplace(s.fact, lower(shared_world().text(*shared_world().value(s.fact))));
      if (document.kind == "ledger" || document.kind == "timetable" || document.kind == "register") {
        EXPECT_EQ(reader.read_table(document), claimed) << document.text;
        read[document.kind] += claimed.size();
        continue;
      }
      for (const Statement& statement : document.statements) {
        const std::string words = document.text.substr(statement.begin, statement.end - statement.begin);
        const auto facts = document.kind == "dialogue" ? reader.read_dialogue(words) : reader.read(words);
        const std::string value = lower(shared_world().text(*shared_world().value(statement.fact)));
        EXPECT_TRUE(facts.contains({statement.fact, value}))
            << to_string(statement.fact.attribute) << " = " << value << " is not read from \"" << words << "\" in\n"
            << document.text;
        for (const auto& [fact, found] : facts) {
          EXPECT_EQ(lower(shared_world().text(*shared_world().value(fact))), found)
              << "\"" << words << "\" can be read as " << to_string(fact.attribute);
        }
        ++read[document.kind];
        seen.insert(statement.fact.attribute);
      }
    }
  }
  EXPECT_EQ(read.size(), 10u);
  for (const auto& [kind, n] : read) EXPECT_GT(n, 20u) << kind;
  EXPECT_EQ(seen.size(), attributes);
}

// In every kind of document: the value stands where the document says, as a whole word, and every number or name
// outside of statements belongs to a frame (titles, greetings, dates).
TEST(TinyWorld, StatementsAreWhereTheySay) {
  std::map<std::string, EntityId> name_words;
  for (const EntityId e : all_entities(shared_world())) {
    std::set<std::string> of_name;
    collect_words(shared_world().name(e), of_name);
    of_name.erase("guild"), of_name.erase("farm");
    for (const std::string& word : of_name) name_words[word] = e;
  }
  const auto is_word = [](const std::string& text, std::size_t at, std::size_t size) {
    const auto letter = [&](std::size_t i) {
      return i < text.size() && std::isalnum(static_cast<unsigned char>(text[i]));
    };
    return !(at > 0 && letter(at - 1)) && !letter(at + size);
  };
  for (std::uint64_t i = 0; i < 3000; ++i) {
    const WorldDocument document = document_of(WorldPart::train, i);
    std::string outside = document.text;
    for (const Statement& s : document.statements) {
      ASSERT_LT(s.begin, s.end);
      ASSERT_LE(s.end, document.text.size());
      const std::string span = lower(document.text.substr(s.begin, s.end - s.begin));
      const std::string value = lower(shared_world().text(*shared_world().value(s.fact)));
      bool found = false;
      for (std::size_t at = span.find(value); at != std::string::npos; at = span.find(value, at + 1))
        found |= is_word(span, at, value.size());
      EXPECT_TRUE(found) << value << " in \"" << span << "\"";
      outside.replace(s.begin, s.end - s.begin, s.end - s.begin, ' ');
    }
    // Digits outside: the date of a letter, the year of a ledger.
    std::string digits;
    for (const char c : outside) {
      if (std::isdigit(static_cast<unsigned char>(c))) digits.push_back(c);
    }
    if (document.kind == "letter") {
      EXPECT_EQ(digits, std::to_string(shared_world().present_year())) << document.text;
    } else if (document.kind == "ledger") {
      EXPECT_EQ(digits, std::to_string(document.statements[0].fact.year)) << document.text;
    } else {
      EXPECT_EQ(digits, "") << document.text;
    }
    if (document.kind != "letter" && document.kind != "dialogue") {
      std::set<std::string> left;
      collect_words(outside, left);
      std::set<EntityId> named;
      for (const std::string& word : left) {
        if (name_words.contains(word) && name_words[word].kind != Kind::person) named.insert(name_words[word]);
      }
      EXPECT_LE(named.size(), 1u) << document.text;
    }
  }
}

}  // namespace
}  // namespace stacklab
