#include "engine/data/tinyworld.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <thread>

#include "engine/data/tinyworld_lexicon.h"
#include "tests/engine/data/data_testing.h"

namespace stacklab {
namespace {

using Kind = EntityKind;

const std::filesystem::path words = std::filesystem::path(STACKLAB_SOURCE_DIR) / "resources" / "tinyworld";

TinyWorld make_world(std::uint64_t seed, std::int64_t people) {
  Result<TinyWorld> world = TinyWorld::create(seed, people, words);
  EXPECT_TRUE(world) << world.error().message();
  return std::move(world.value());
}
const TinyWorld& world() {
  static const TinyWorld shared = make_world(1, 2000);
  return shared;
}

std::vector<EntityId> all_entities(const TinyWorld& w) {
  std::vector<EntityId> out;
  for (std::size_t k = 0; k < entity_kinds; ++k) {
    for (std::uint32_t i = 0; i < w.count(static_cast<Kind>(k)); ++i) out.push_back({static_cast<Kind>(k), i});
  }
  return out;
}
constexpr WorldPart all_parts[] = {WorldPart::train, WorldPart::validation, WorldPart::test, WorldPart::library};

std::int64_t number_of(const TinyWorld& w, Attribute a, std::uint32_t i) { return w.value({a, i, 0, 0})->number; }
std::optional<std::uint32_t> link_of(const TinyWorld& w, Attribute a, std::uint32_t i) {
  const auto value = w.value({a, i, 0, 0});
  if (!value) return std::nullopt;
  return value->entity.index;
}
std::string word_of(const TinyWorld& w, Attribute a, std::uint32_t i) { return w.value({a, i, 0, 0})->word; }

TEST(TinyWorld, NamesShareNoWord) {
  std::map<std::string, EntityId> owner;
  std::map<std::string, WorldPart> families;
  for (const EntityId e : all_entities(world())) {
    std::set<std::string> of_name;
    collect_words(world().name(e), of_name);
    of_name.erase("guild"), of_name.erase("farm");
    std::string family;
    if (e.kind == Kind::person) {
      const std::string& name = world().name(e);
      std::set<std::string> last;
      collect_words(name.substr(name.find(' ')), last);
      family = *last.begin();
      EXPECT_EQ(families.emplace(family, world().part(e)).first->second, world().part(e))
          << family << " lives in two parts";
    }
    for (const std::string& word : of_name) {
      EXPECT_FALSE(world().lexicon().words.contains(word)) << word;
      EXPECT_TRUE(word == family || owner.emplace(word, e).second) << word << " is in two names";
    }
  }
  for (const auto& [family, part] : families) EXPECT_FALSE(owner.contains(family)) << family;
}

TEST(TinyWorld, FactsFitTogether) {
  for (const std::uint64_t seed : {1u, 2u, 77u}) {
    const TinyWorld w = make_world(seed, 1000);
    const std::int64_t now = w.present_year();
    std::size_t parents = 0, employed = 0, captains = 0, owners = 0;
    for (std::uint32_t i = 0; i < w.count(Kind::person); ++i) {
      const std::int64_t born = number_of(w, Attribute::person_birth_year, i);
      EXPECT_LE(born, now - 16);
      if (const auto parent = link_of(w, Attribute::person_parent, i)) {
        const std::int64_t older = born - number_of(w, Attribute::person_birth_year, *parent);
        EXPECT_TRUE(older >= 18 && older <= 44) << older;
        const std::string& child_name = w.name({Kind::person, i});
        const std::string& parent_name = w.name({Kind::person, *parent});
        EXPECT_EQ(child_name.substr(child_name.find(' ')), parent_name.substr(parent_name.find(' ')));
        ++parents;
      }
      const auto home = link_of(w, Attribute::person_home, i);
      EXPECT_TRUE(!home || born > number_of(w, Attribute::town_founded, *home));
      if (const auto guild = link_of(w, Attribute::person_employer, i)) {
        EXPECT_EQ(link_of(w, Attribute::guild_seat, *guild), home);
        EXPECT_EQ(word_of(w, Attribute::guild_trade, *guild), word_of(w, Attribute::person_trade, i));
        ++employed;
      }
    }
    for (std::uint32_t i = 0; i < w.count(Kind::ship); ++i) {
      EXPECT_LT(number_of(w, Attribute::ship_built, i), now);
      if (const auto captain = link_of(w, Attribute::ship_captain, i)) {
        EXPECT_EQ(link_of(w, Attribute::person_home, *captain), link_of(w, Attribute::ship_port, i));
        EXPECT_EQ(word_of(w, Attribute::person_trade, *captain), "sailor");
        EXPECT_LE(number_of(w, Attribute::person_birth_year, *captain), now - 25);
        ++captains;
      }
    }
    for (std::uint32_t i = 0; i < w.count(Kind::farm); ++i) {
      if (const auto owner = link_of(w, Attribute::farm_owner, i)) {
        EXPECT_EQ(link_of(w, Attribute::person_home, *owner), link_of(w, Attribute::farm_town, i));
        EXPECT_EQ(word_of(w, Attribute::person_trade, *owner), "farmer");
        ++owners;
      }
    }
    for (std::uint32_t i = 0; i < w.count(Kind::guild); ++i) {
      if (const auto seat = link_of(w, Attribute::guild_seat, i)) {
        EXPECT_GT(number_of(w, Attribute::guild_founded, i), number_of(w, Attribute::town_founded, *seat));
      }
    }
    for (std::uint32_t i = 0; i < w.count(Kind::animal); ++i) {
      EXPECT_LT(number_of(w, Attribute::animal_born, i), now);
      const auto owner = link_of(w, Attribute::animal_owner, i);
      ASSERT_TRUE(owner);
      EXPECT_GT(number_of(w, Attribute::animal_born, i), number_of(w, Attribute::person_birth_year, *owner));
    }
    // Most of what may be missing is there.
    EXPECT_GT(parents, w.count(Kind::person) / 3);
    EXPECT_GT(employed, w.count(Kind::person) / 20);
    EXPECT_GT(captains, w.count(Kind::ship) / 4);
    EXPECT_GT(owners, w.count(Kind::farm) / 4);
  }
}

TEST(TinyWorld, DistancesAreThoseOfAMap) {
  for (const WorldPart part : all_parts) {
    const auto towns = world().members(Kind::town, part);
    const auto miles = [&](std::uint32_t a, std::uint32_t b) {
      return world().value({Attribute::town_distance, std::min(a, b), std::max(a, b), 0})->number;
    };
    for (const std::uint32_t a : towns) {
      for (const std::uint32_t b : towns) {
        if (a >= b) continue;
        EXPECT_GE(miles(a, b), 1);
        for (const std::uint32_t c : towns) {
          if (c == a || c == b) continue;
          EXPECT_LE(miles(a, b), miles(a, c) + miles(c, b) + 1);  // each is rounded
        }
      }
    }
  }
  const std::uint32_t in = world().members(Kind::town, WorldPart::train)[0],
                      out = world().members(Kind::town, WorldPart::library)[0];
  EXPECT_FALSE(world().value({Attribute::town_distance, std::min(in, out), std::max(in, out), 0}));
  EXPECT_FALSE(world().value({Attribute::town_distance, in, in, 0}));
  EXPECT_FALSE(world().value({Attribute::town_price, in, 0, 640}));
  EXPECT_FALSE(world().value({Attribute::town_price, in, 10000, 639}));
  EXPECT_FALSE(world().value({Attribute::town_founded, 1000000, 0, 0}));
  EXPECT_TRUE(world().value({Attribute::town_price, in, 0, 639}));
}

TEST(TinyWorld, PartsAreByHashAndKeepToThemselves) {
  const TinyWorld larger = make_world(1, 4000);
  for (std::size_t k = 0; k < entity_kinds; ++k) {
    const Kind kind = static_cast<Kind>(k);
    const double n = static_cast<double>(world().count(kind));
    constexpr double shares[] = {.7, .1, .1, .1};
    std::size_t sum = 0;
    for (std::size_t p = 0; p < world_parts; ++p) {
      const std::size_t members = world().members(kind, static_cast<WorldPart>(p)).size();
      EXPECT_NEAR(static_cast<double>(members), n * shares[p], 5 * std::sqrt(n * shares[p] * (1 - shares[p])))
          << k << ", " << p;
      sum += members;
    }
    EXPECT_EQ(sum, world().count(kind));
    // The size of the world moves nobody.
    for (std::uint32_t i = 0; i < world().count(kind); ++i) EXPECT_EQ(world().part({kind, i}), larger.part({kind, i}));
  }
  for (const EntityId e : all_entities(world())) {
    for (const FactId& fact : world().facts(e)) {
      const auto value = world().value(fact);
      ASSERT_TRUE(value);
      EXPECT_TRUE(value->kind != FactValue::Kind::entity || world().part(value->entity) == world().part(e));
      EXPECT_TRUE(fact.attribute != Attribute::town_distance ||
                  world().part({Kind::town, fact.other}) == world().part(e));
    }
  }
}

// What is held out occurs nowhere in the documents of another part: no fact, no name, no word of a name.
TEST(TinyWorld, DocumentsNameOnlyTheirOwnPart) {
  std::map<std::string, WorldPart> part_of_word;
  for (const EntityId e : all_entities(world())) {
    std::set<std::string> of_name;
    collect_words(world().name(e), of_name);
    of_name.erase("guild"), of_name.erase("farm");
    for (const std::string& word : of_name) part_of_word.emplace(word, world().part(e));
  }
  for (const WorldPart part : all_parts) {
    std::size_t names = 0;
    for (std::uint64_t i = 0; i < (part == WorldPart::train ? 12000 : 1000); ++i) {
      const WorldDocument document = world().document(part, i);
      for (const Statement& statement : document.statements) {
        ASSERT_EQ(world().part(statement.fact.entity()), part) << document.text;
      }
      std::set<std::string> in_text;
      collect_words(document.text, in_text);
      for (const std::string& word : in_text) {
        const auto at = part_of_word.find(word);
        if (at == part_of_word.end()) continue;
        ASSERT_EQ(at->second, part) << word << " in\n" << document.text;
        ++names;
      }
    }
    EXPECT_GT(names, 1000u);
  }
}

TEST(TinyWorld, IsAPureFunction) {
  const TinyWorld again = make_world(1, 2000), other = make_world(2, 2000);
  for (const EntityId e : all_entities(world())) EXPECT_EQ(world().name(e), again.name(e));
  std::vector<WorldDocument> expected;
  std::size_t same_as_other = 0;
  std::set<std::string> distinct;
  for (std::uint64_t i = 0; i < 400; ++i) {
    expected.push_back(world().document(WorldPart::train, i));
    same_as_other += expected.back() == other.document(WorldPart::train, i);
    distinct.insert(expected.back().text);
  }
  EXPECT_EQ(same_as_other, 0u);
  EXPECT_EQ(distinct.size(), 400u);
  for (std::uint64_t i = 400; i-- > 0;) EXPECT_EQ(again.document(WorldPart::train, i), expected[i]);
  std::vector<std::size_t> wrong(3);
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < wrong.size(); ++t) {
      threads.emplace_back([&, t] {
        for (std::uint64_t i = 0; i < 400; ++i) {
          const std::uint64_t index = (i * 37 + t * 101) % 400;
          wrong[t] += !(world().document(WorldPart::train, index) == expected[index]);
        }
      });
    }
  }
  EXPECT_EQ(wrong, std::vector<std::size_t>(3));
}

TEST(TinyWorld, SaysThingsInManyWays) {
  for (std::size_t a = 0; a < attributes; ++a) {
    std::int64_t variants = 0;
    for (const Phrase& phrase : world().lexicon().phrases[a].third) variants += phrase.variants();
    EXPECT_GE(variants, 30) << to_string(static_cast<Attribute>(a));
  }
  std::map<std::string, int> kinds;
  std::map<Attribute, int> stated;
  for (std::uint64_t i = 0; i < 3000; ++i) {
    const WorldDocument document = world().document(WorldPart::train, i);
    ++kinds[document.kind];
    for (const Statement& s : document.statements) ++stated[s.fact.attribute];
    EXPECT_FALSE(document.statements.empty());
    EXPECT_GT(document.text.size(), 20u);
  }
  EXPECT_EQ(kinds.size(), 8u);
  for (const auto& [kind, n] : kinds) EXPECT_GT(n, 40) << kind;
  EXPECT_EQ(stated.size(), attributes);
}

TEST(TinyWorld, RefusesSizesThatCannotBe) {
  for (const std::int64_t people : {-1, 0, 199, 8001}) {
    const auto w = TinyWorld::create(1, people, words);
    ASSERT_FALSE(w);
    EXPECT_EQ(w.error().kind, Error::Kind::usage);
  }
  EXPECT_TRUE(TinyWorld::create(5, 200, words));
  EXPECT_TRUE(TinyWorld::create(5, 8000, words));
}

TEST(TinyWorld, BrokenWordsAreNamed) {
  const TemporaryFolder folder;
  for (const char* file : {"names.json", "world.json", "phrases.json", "documents.json"}) {
    std::filesystem::remove_all(folder.path() / "w");
    std::filesystem::copy(words, folder.path() / "w");
    const std::string good = file_text(words / file);
    for (const std::string& bad :
         {std::string(), good.substr(0, good.size() / 2), std::string("{}"), std::string("[]")}) {
      put_file(folder.path() / "w" / file, bad);
      const auto w = TinyWorld::create(1, 2000, folder.path() / "w");
      ASSERT_FALSE(w) << file << ": " << bad.size();
      EXPECT_NE(w.error().what.find(file), std::string::npos) << w.error().what;
    }
    std::filesystem::remove(folder.path() / "w" / file);
    EXPECT_FALSE(TinyWorld::create(1, 2000, folder.path() / "w"));
  }
  std::filesystem::remove_all(folder.path() / "w");
  std::filesystem::copy(words, folder.path() / "w");
  std::string phrases = file_text(words / "phrases.json");
  const std::string phrase = "{S} is {V} miles long";
  phrases.replace(phrases.find(phrase), phrase.size(), "{S} is long");
  put_file(folder.path() / "w" / "phrases.json", phrases);
  EXPECT_NE(TinyWorld::create(1, 2000, folder.path() / "w").error().what.find("river.length"), std::string::npos);
}

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

// --- documents read back by somebody who knows the grammar, but not how they were made

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

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
    for (const auto& goods : lexicon.goods) words_.insert(goods.name);
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
    for (const std::string& lead : world_.lexicon().leads) {
      if (text.starts_with(lead)) starts.push_back(std::string_view(text).substr(lead.size()));
    }
    for (const char* frame : {"news.item", "entry.related"}) {
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

 private:
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

  void read_as(Attribute attribute, const Phrase& phrase, std::string_view text, bool first_person,
               std::set<std::pair<FactId, std::string>>& facts, std::set<EntityId>& subjects) {
    Captures captures;
    match(phrase.nodes(), 0, text, captures, [&](std::string_view rest) {
      if (!rest.empty()) return;
      FactId fact{attribute, 0, 0, 0};
      std::optional<EntityId> who = first_person ? writer_ : std::nullopt;
      std::string value;
      std::optional<EntityId> other;
      for (const auto& [slot, captured] : captures) {
        if (slot == "S" || slot == "O" || slot == "P" || slot == "N") {
          // The second mention in a sentence is a pronoun of the first.
          if (who && !first_person && !entity(captured)) continue;
          who = subject(slot, captured, subject_kind(attribute));
          if (!who) return;
        }
        if (slot == "parent" && captured != "mother" && captured != "father") return;
        if (slot == "child" && captured != "son" && captured != "daughter") return;
        if (slot == "V") value = captured;
        if (slot == "aV") {
          const std::size_t space = captured.find(' ');
          if (space == std::string::npos || with_article(captured.substr(space + 1)) != captured) return;
          value = captured.substr(space + 1);
        }
        if (slot == "other") {
          other = entity(captured);
          if (!other || other->kind != Kind::town) return;
        }
        if (slot == "good") {
          fact.other = 0xffff;
          for (std::uint32_t g = 0; g < world_.lexicon().goods.size(); ++g) {
            if (world_.lexicon().goods[g].name == captured) fact.other = g;
          }
          if (fact.other == 0xffff) return;
        }
        if (slot == "year") {
          if (captured.size() != 3) return;
          fact.year = static_cast<std::uint32_t>(std::stoi(captured));
        }
      }
      if (!who) return;
      if (const auto e = entity(value)) value = lower(world_.name(*e));
      fact.subject = who->index;
      if (other) {
        fact.subject = std::min(who->index, other->index);
        fact.other = std::max(who->index, other->index);
      }
      const auto known = world_.value(fact);
      if (!known || !could_be(*known, value)) return;
      facts.emplace(fact, value);
      if (!first_person) subjects.insert(*who);
    });
  }

  const TinyWorld& world_;
  std::map<std::string, EntityId> names_, given_;
  std::set<std::string> words_;
  std::optional<EntityId> last_, between_, writer_;
};

// Each sentence, read by its grammar alone, says the fact that the document claims for it; and whatever else it can be
// read as is true.
TEST(TinyWorld, DocumentsCanBeReadBack) {
  BookReader reader(world());
  std::size_t sentences = 0;
  for (const WorldPart part : {WorldPart::train, WorldPart::library}) {
    for (std::uint64_t i = 0; i < 200; ++i) {
      const WorldDocument document = world().document(part, i);
      if (document.kind != "entry" && document.kind != "letter" && document.kind != "diary" && document.kind != "news")
        continue;
      reader.open(document);
      for (const Statement& statement : document.statements) {
        const std::string sentence = document.text.substr(statement.begin, statement.end - statement.begin);
        const auto facts = reader.read(sentence);
        const std::string value = lower(world().text(*world().value(statement.fact)));
        EXPECT_TRUE(facts.contains({statement.fact, value}))
            << to_string(statement.fact.attribute) << " = " << value << " is not read from \"" << sentence << "\" in\n"
            << document.text;
        for (const auto& [fact, read] : facts) {
          EXPECT_EQ(lower(world().text(*world().value(fact))), read)
              << "\"" << sentence << "\" can be read as " << to_string(fact.attribute);
        }
        ++sentences;
      }
    }
  }
  EXPECT_GT(sentences, 1000u);
}

// In every kind of document: the value stands where the document says, as a whole word, and every number or name
// outside of statements belongs to a frame (titles, greetings, dates).
TEST(TinyWorld, StatementsAreWhereTheySay) {
  std::map<std::string, EntityId> name_words;
  for (const EntityId e : all_entities(world())) {
    std::set<std::string> of_name;
    collect_words(world().name(e), of_name);
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
    const WorldDocument document = world().document(WorldPart::train, i);
    std::string outside = document.text;
    for (const Statement& s : document.statements) {
      ASSERT_LT(s.begin, s.end);
      ASSERT_LE(s.end, document.text.size());
      const std::string span = lower(document.text.substr(s.begin, s.end - s.begin));
      const std::string value = lower(world().text(*world().value(s.fact)));
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
      EXPECT_EQ(digits, std::to_string(world().present_year())) << document.text;
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
