#include "engine/data/tinyworld_streams.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "engine/data/catalogue.h"
#include "engine/data/tinyworld_corpus.h"
#include "tests/engine/data/data_testing.h"
#include "tests/engine/data/tinyworld_testing.h"

namespace stacklab {
namespace {

using Kind = EntityKind;

std::unique_ptr<TinyWorldStream> stream(std::string_view name) {
  auto made = tinyworld_stream(shared_world(), name);
  EXPECT_TRUE(made) << made.error().message();
  return std::move(made.value());
}

// No fact, no name and no word of a name of one part in the streams of another; none at all in drills.
TEST(TinyWorldStreams, LeakNothing) {
  std::map<std::string, WorldPart> part_of_word;
  for (const EntityId e : all_entities(shared_world())) {
    std::set<std::string> of_name;
    collect_words(shared_world().name(e), of_name);
    of_name.erase("guild"), of_name.erase("farm");
    for (const std::string& word : of_name) part_of_word.emplace(word, shared_world().part(e));
  }
  const std::map<std::string_view, std::optional<WorldPart>> parts = {{"documents", WorldPart::train},
                                                                      {"validation", WorldPart::validation},
                                                                      {"test", WorldPart::test},
                                                                      {"library", WorldPart::library},
                                                                      {"drills", std::nullopt}};
  for (const std::string_view name : tinyworld_stream_names()) {
    const auto part = parts.at(name);
    const auto items = stream(name);
    std::size_t names = 0;
    for (std::uint64_t i = 0; i < (name == "documents" ? 8000 : 2500); ++i) {
      const WorldDocument item = items->item(i);
      for (const Statement& statement : item.statements) {
        ASSERT_TRUE(part);
        ASSERT_EQ(shared_world().part(statement.fact.entity()), *part) << item.text;
      }
      std::set<std::string> in_text;
      collect_words(item.text, in_text);
      for (const std::string& word : in_text) {
        const auto at = part_of_word.find(word);
        if (at == part_of_word.end()) continue;
        ASSERT_TRUE(part) << word << " in\n" << item.text;
        ASSERT_EQ(at->second, *part) << word << " in\n" << item.text;
        ++names;
      }
    }
    EXPECT_EQ(names > 1000, part.has_value()) << name;
  }
}

TEST(TinyWorldStreams, TheLibraryStatesAllThatCanBeSearchedFor) {
  std::set<FactId> all, stated;
  for (const EntityId e : all_entities(shared_world())) {
    if (shared_world().part(e) != WorldPart::library) continue;
    for (const FactId& fact : shared_world().facts(e)) all.insert(fact);
  }
  const auto items = stream("library");
  for (std::uint64_t i = 0; i < search_corpus_items(shared_world()); ++i) {
    for (const Statement& statement : items->item(i).statements) stated.insert(statement.fact);
  }
  EXPECT_GT(all.size(), 3000u);
  EXPECT_EQ(stated, all);
  EXPECT_NE(items->item(search_corpus_items(shared_world())).text, "");
}

TEST(TinyWorldStreams, TakeTurnsByTheirWeights) {
  const std::vector<StreamWeight> weights = parse_streams(" documents:7, drills:2,test").value();
  EXPECT_EQ(to_string(weights), "documents:7,drills:2,test:1");
  const auto make = [&] { return std::move(TinyWorldMixture::create(shared_world(), weights).value()); };
  TinyWorldMixture one = make(), other = make();
  const std::vector<WorldDocument> all = one.next(400, 1);
  // The same whatever the threads and the pieces.
  std::vector<WorldDocument> pieces;
  for (const auto& [n, threads] : {std::pair(1, 3), std::pair(150, 4), std::pair(0, 2), std::pair(249, 2)}) {
    for (WorldDocument& item : other.next(static_cast<std::size_t>(n), threads)) pieces.push_back(std::move(item));
  }
  EXPECT_EQ(pieces, all);
  const auto documents = stream("documents"), drills = stream("drills"), test = stream("test");
  std::uint64_t d = 0, r = 0, t = 0;
  for (std::size_t k = 0; k < all.size(); ++k) {
    if (all[k] == documents->item(d)) {
      ++d;
    } else if (all[k] == drills->item(r)) {
      ++r;
    } else {
      ASSERT_EQ(all[k], test->item(t)) << k;
      ++t;
    }
    // Never a whole turn off.
    EXPECT_LT(std::abs(static_cast<double>(d) - .7 * static_cast<double>(k + 1)), 1.0) << k;
  }
  EXPECT_EQ(d, 280u);
  EXPECT_EQ(r, 80u);
  EXPECT_EQ(t, 40u);
}

TEST(TinyWorldStreams, WrongNamesAreSaid) {
  const auto unknown = tinyworld_stream(shared_world(), "dokuments");
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().remedy.find("documents"), std::string::npos);
  for (const char* bad : {"", "documents:", "documents:x", "documents:0", "documents:-1", ":3", "documents,documents",
                          "documents,,drills", "documents:9999999"}) {
    const auto parsed = parse_streams(bad);
    ASSERT_FALSE(parsed) << bad;
    EXPECT_EQ(parsed.error().kind, Error::Kind::usage);
  }
}

TEST(TinyWorldCorpus, SettingsMakeIt) {
  const TemporaryFolder workspace;
  TinyWorldSettings settings;
  settings.people = 300;
  settings.items = 500;
  settings.streams = "documents:4,drills:1";
  settings.threads = 3;
  const auto made = make_tinyworld(settings, "mine", workspace.path(), false, {}, {});
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_EQ(made->size(), 500u);
  EXPECT_NE(made->info().origin.find("drills"), std::string::npos);
  settings.threads = 1;
  EXPECT_EQ(make_tinyworld(settings, "again", workspace.path(), false, {}, {})->info().sha256, made->info().sha256);
  // The same settings again: there it is. Others: not without being told.
  EXPECT_TRUE(make_tinyworld(settings, "mine", workspace.path(), false, {}, {}));
  settings.seed = 2;
  const auto refused = make_tinyworld(settings, "mine", workspace.path(), false, {}, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Error::Kind::refused);
  const auto replaced = make_tinyworld(settings, "mine", workspace.path(), true, {}, {});
  ASSERT_TRUE(replaced) << replaced.error().message();
  EXPECT_NE(replaced->info().sha256, made->info().sha256);

  settings.kinds = "letter:1,diary:2";
  settings.streams = "documents";
  const auto letters = make_tinyworld(settings, "letters", workspace.path(), false, {}, {});
  ASSERT_TRUE(letters) << letters.error().message();
  std::size_t dear = 0, diary = 0;
  for (std::size_t i = 0; i < letters->size(); ++i) {
    const std::string text = text_of(letters->document(i));
    dear += text.find("ear ") != std::string::npos && text.find(",\n") != std::string::npos;
    diary += lower(text.substr(0, text.find('\n'))).find("diary") != std::string::npos;
  }
  EXPECT_GT(dear, 100u);
  EXPECT_GT(diary, 250u);
  EXPECT_GE(dear + diary, 490u);  // who has no home writes no letters

  TinyWorldSettings bad = settings;
  bad.kinds = "leter:1";
  EXPECT_NE(make_tinyworld(bad, "bad", workspace.path(), false, {}, {}).error().remedy.find("letter"),
            std::string::npos);
  bad.kinds = "x:y";
  EXPECT_FALSE(make_tinyworld(bad, "bad", workspace.path(), false, {}, {}));
  bad = settings, bad.items = 0;
  EXPECT_FALSE(make_tinyworld(bad, "bad", workspace.path(), false, {}, {}));
  bad = settings, bad.people = 3;
  EXPECT_FALSE(make_tinyworld(bad, "bad", workspace.path(), false, {}, {}));
  EXPECT_FALSE(make_tinyworld(settings, "../bad", workspace.path(), false, {}, {}));
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(make_tinyworld(settings, "bad", workspace.path(), false, {}, stop.get_token()).error().kind,
            Error::Kind::stopped);
  EXPECT_FALSE(std::filesystem::exists(workspace.path() / "data/bad"));
  settings.people = 2000;
  EXPECT_GT(tinyworld_search_items(settings).value(), 300);
}

}  // namespace
}  // namespace stacklab
