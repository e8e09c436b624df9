#include "engine/data/tinyworld.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <thread>

#include "tests/engine/data/data_testing.h"
#include "tests/engine/data/tinyworld_testing.h"

namespace stacklab {
namespace {

using Kind = EntityKind;

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
  for (const EntityId e : all_entities(shared_world())) {
    std::set<std::string> of_name;
    collect_words(shared_world().name(e), of_name);
    of_name.erase("guild"), of_name.erase("farm");
    std::string family;
    if (e.kind == Kind::person) {
      const std::string& name = shared_world().name(e);
      std::set<std::string> last;
      collect_words(name.substr(name.find(' ')), last);
      family = *last.begin();
      EXPECT_EQ(families.emplace(family, shared_world().part(e)).first->second, shared_world().part(e))
          << family << " lives in two parts";
    }
    for (const std::string& word : of_name) {
      EXPECT_FALSE(shared_world().lexicon().words.contains(word)) << word;
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
    for (std::uint32_t i = 0; i < w.count(Kind::goods); ++i) {
      const auto town = link_of(w, Attribute::goods_town, i);
      ASSERT_TRUE(town);
      EXPECT_GT(number_of(w, Attribute::goods_first_made, i), number_of(w, Attribute::town_founded, *town));
      EXPECT_LT(number_of(w, Attribute::goods_first_made, i), now);
      EXPECT_GE(number_of(w, Attribute::goods_price, i), 2);
      EXPECT_GE(number_of(w, Attribute::goods_carriage, i), 2);
      const auto products = w.products({Kind::town, *town});
      EXPECT_EQ(std::count(products.begin(), products.end(), i), 1);
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
    const auto towns = shared_world().members(Kind::town, part);
    const auto miles = [&](std::uint32_t a, std::uint32_t b) {
      return shared_world().value({Attribute::town_distance, std::min(a, b), std::max(a, b), 0})->number;
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
  const std::uint32_t in = shared_world().members(Kind::town, WorldPart::train)[0],
                      out = shared_world().members(Kind::town, WorldPart::library)[0];
  EXPECT_FALSE(shared_world().value({Attribute::town_distance, std::min(in, out), std::max(in, out), 0}));
  EXPECT_FALSE(shared_world().value({Attribute::town_distance, in, in, 0}));
  EXPECT_FALSE(shared_world().value({Attribute::town_price, in, 0, 640}));
  EXPECT_FALSE(shared_world().value({Attribute::town_price, in, 10000, 639}));
  EXPECT_FALSE(shared_world().value({Attribute::town_founded, 1000000, 0, 0}));
  EXPECT_TRUE(shared_world().value({Attribute::town_price, in, 0, 639}));
}

TEST(TinyWorld, PartsAreByHashAndKeepToThemselves) {
  const TinyWorld larger = make_world(1, 4000);
  for (std::size_t k = 0; k < entity_kinds; ++k) {
    const Kind kind = static_cast<Kind>(k);
    const double n = static_cast<double>(shared_world().count(kind));
    constexpr double shares[] = {.7, .1, .1, .1};
    std::size_t sum = 0;
    for (std::size_t p = 0; p < world_parts; ++p) {
      const std::size_t members = shared_world().members(kind, static_cast<WorldPart>(p)).size();
      EXPECT_NEAR(static_cast<double>(members), n * shares[p], 5 * std::sqrt(n * shares[p] * (1 - shares[p])))
          << k << ", " << p;
      sum += members;
    }
    EXPECT_EQ(sum, shared_world().count(kind));
    // The size of the world moves nobody.
    for (std::uint32_t i = 0; i < shared_world().count(kind); ++i)
      EXPECT_EQ(shared_world().part({kind, i}), larger.part({kind, i}));
  }
  for (const EntityId e : all_entities(shared_world())) {
    for (const FactId& fact : shared_world().facts(e)) {
      const auto value = shared_world().value(fact);
      ASSERT_TRUE(value);
      EXPECT_TRUE(value->kind != FactValue::Kind::entity ||
                  shared_world().part(value->entity) == shared_world().part(e));
      EXPECT_TRUE(fact.attribute != Attribute::town_distance ||
                  shared_world().part({Kind::town, fact.other}) == shared_world().part(e));
    }
  }
}

// What is held out occurs nowhere in the documents of another part: no fact, no name, no word of a name.
TEST(TinyWorld, DocumentsNameOnlyTheirOwnPart) {
  std::map<std::string, WorldPart> part_of_word;
  for (const EntityId e : all_entities(shared_world())) {
    std::set<std::string> of_name;
    collect_words(shared_world().name(e), of_name);
    of_name.erase("guild"), of_name.erase("farm");
    for (const std::string& word : of_name) part_of_word.emplace(word, shared_world().part(e));
  }
  for (const WorldPart part : all_parts) {
    std::size_t names = 0;
    for (std::uint64_t i = 0; i < (part == WorldPart::train ? 12000 : 1000); ++i) {
      const WorldDocument document = document_of(part, i);
      for (const Statement& statement : document.statements) {
        ASSERT_EQ(shared_world().part(statement.fact.entity()), part) << document.text;
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
  for (const EntityId e : all_entities(shared_world())) EXPECT_EQ(shared_world().name(e), again.name(e));
  std::vector<WorldDocument> expected;
  std::size_t same_as_other = 0;
  std::set<std::string> distinct;
  for (std::uint64_t i = 0; i < 400; ++i) {
    expected.push_back(document_of(WorldPart::train, i));
    same_as_other += expected.back() == tinyworld_document(other, WorldPart::train, i);
    distinct.insert(expected.back().text);
  }
  EXPECT_EQ(same_as_other, 0u);
  EXPECT_EQ(distinct.size(), 400u);
  for (std::uint64_t i = 400; i-- > 0;) EXPECT_EQ(tinyworld_document(again, WorldPart::train, i), expected[i]);
  std::vector<std::size_t> wrong(3);
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < wrong.size(); ++t) {
      threads.emplace_back([&, t] {
        for (std::uint64_t i = 0; i < 400; ++i) {
          const std::uint64_t index = (i * 37 + t * 101) % 400;
          wrong[t] += !(document_of(WorldPart::train, index) == expected[index]);
        }
      });
    }
  }
  EXPECT_EQ(wrong, std::vector<std::size_t>(3));
}

TEST(TinyWorld, SaysThingsInManyWays) {
  for (std::size_t a = 0; a < attributes; ++a) {
    std::int64_t variants = 0;
    for (const Phrase& phrase : shared_world().lexicon().phrases[a].third) variants += phrase.variants();
    EXPECT_GE(variants, 30) << to_string(static_cast<Attribute>(a));
  }
  std::map<std::string, int> kinds;
  std::map<Attribute, int> stated;
  for (std::uint64_t i = 0; i < 3000; ++i) {
    const WorldDocument document = document_of(WorldPart::train, i);
    ++kinds[document.kind];
    for (const Statement& s : document.statements) ++stated[s.fact.attribute];
    EXPECT_FALSE(document.statements.empty());
    EXPECT_GT(document.text.size(), 20u);
  }
  EXPECT_EQ(kinds.size(), 10u);
  for (const auto& [kind, n] : kinds) EXPECT_GT(n, 40) << kind;
  EXPECT_EQ(stated.size(), attributes);
}

TEST(TinyWorld, RefusesSizesThatCannotBe) {
  for (const std::int64_t people : {-1, 0, 199, 8001}) {
    const auto w = TinyWorld::create(1, people, tinyworld_words);
    ASSERT_FALSE(w);
    EXPECT_EQ(w.error().kind, Error::Kind::usage);
  }
  EXPECT_TRUE(TinyWorld::create(5, 200, tinyworld_words));
  EXPECT_TRUE(TinyWorld::create(5, 8000, tinyworld_words));
}

TEST(TinyWorld, BrokenWordsAreNamed) {
  const TemporaryFolder folder;
  for (const char* file : {"names.json", "world.json", "phrases.json", "documents.json", "drills.json"}) {
    std::filesystem::remove_all(folder.path() / "w");
    std::filesystem::copy(tinyworld_words, folder.path() / "w");
    const std::string good = file_text(tinyworld_words / file);
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
  std::filesystem::copy(tinyworld_words, folder.path() / "w");
  std::string phrases = file_text(tinyworld_words / "phrases.json");
  const std::string phrase = "{S} is {V} miles long";
  phrases.replace(phrases.find(phrase), phrase.size(), "{S} is long");
  put_file(folder.path() / "w" / "phrases.json", phrases);
  EXPECT_NE(TinyWorld::create(1, 2000, folder.path() / "w").error().what.find("river.length"), std::string::npos);
}

}  // namespace
}  // namespace stacklab
