#include "engine/service/own_text.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <set>

#include "engine/config/config_io.h"
#include "engine/data/corpus.h"
#include "tests/story.h"
#include "tests/temporary_folder.h"

namespace stacklab {
namespace {

std::string lines(int sentences) {
  return story(sentences, [](int) { return "\n"; });
}

// Configs of every length of text are ones that can be trained.
TEST(OwnText, EveryLengthHasItsConfig) {
  for (const std::int64_t bytes : {1LL, 5000LL, 99'999LL, 4'400'000LL, 60'000'000LL, 5'000'000'000LL})
    for (const OwnTextSize size : {OwnTextSize::small, OwnTextSize::medium, OwnTextSize::large}) {
      RunConfig config = own_text_config("/home/me/Mein Buch.txt", bytes, size);
      config.data.corpus = "mein-buch";
      EXPECT_TRUE(validate(config)) << bytes << ": " << validate(config).error().message();
      EXPECT_GT(config.steps(), 100);
    }
  EXPECT_LT(own_text_config("a", 4'400'000, OwnTextSize::small).model.d_model,
            own_text_config("a", 4'400'000, OwnTextSize::large).model.d_model);
  EXPECT_EQ(usual_size(1000), OwnTextSize::small);
  EXPECT_EQ(usual_size(4'400'000), OwnTextSize::medium);
}

TEST(OwnText, IsPreparedOnceAndStopsWhenAsked) {
  const TemporaryFolder folder;
  const std::string text = lines(3000);
  put_file(folder / "my story.txt", text);
  const auto bytes = static_cast<std::int64_t>(text.size());
  const RunConfig wanted = own_text_config(folder / "my story.txt", bytes, OwnTextSize::small);
  ASSERT_GT(wanted.model.vocab_size, 256);
  // Stopped in the middle of learning, it leaves no half of anything.
  std::stop_source stop;
  const auto stopped_run = prepare_own_text(
      folder / "my story.txt", wanted, folder / "w",
      [&](const Progress& p) {
        if (p.phase == "tokenizer") stop.request_stop();
      },
      stop.get_token());
  ASSERT_FALSE(stopped_run);
  EXPECT_EQ(stopped_run.error().kind, Error::Kind::stopped);
  std::error_code none;
  EXPECT_TRUE(!std::filesystem::exists(folder / "w/tokenizers", none) ||
              std::filesystem::is_empty(folder / "w/tokenizers"));

  std::set<std::string> phases;
  int learning = 0;
  const auto told = [&](const Progress& p) {
    phases.insert(p.phase);
    learning += p.phase == "tokenizer" && p.total > 0;
  };
  const auto config = prepare_own_text(folder / "my story.txt", wanted, folder / "w", told, {});
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(phases, (std::set<std::string>{"text", "tokenizer", "shards"}));
  EXPECT_GT(learning, 0);
  EXPECT_TRUE(std::filesystem::exists(folder / "w/tokenizers" / config->data.tokenizer / "tokenizer.json"));
  EXPECT_TRUE(validate(*config));
  // The same text again, from elsewhere: nothing is made anew.
  learning = 0;
  std::filesystem::rename(folder / "my story.txt", folder / "copy.txt");
  std::filesystem::create_directory(folder / "b");
  std::filesystem::rename(folder / "copy.txt", folder / "b/my story.txt");
  const auto again = prepare_own_text(folder / "b/my story.txt", wanted, folder / "w", told, {});
  ASSERT_TRUE(again);
  EXPECT_EQ(learning, 0);
  EXPECT_EQ(config_hash(*again), config_hash(*config));
}

// A packed book is cut where it is cut unpacked, not where its packed bytes happen to look like paragraphs.
TEST(OwnText, APackedTextIsReadAsItsText) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 60; ++i) text += "Paragraph " + std::to_string(i) + ",\nof two lines.\n\n";
  put_file(folder / "book.txt", text);
  gzFile packed = gzopen((folder / "packed.txt.gz").c_str(), "wb");
  ASSERT_EQ(gzwrite(packed, text.data(), static_cast<unsigned>(text.size())), static_cast<int>(text.size()));
  gzclose(packed);
  for (const char* name : {"book.txt", "packed.txt.gz"}) {
    RunConfig wanted = own_text_config(folder / name, static_cast<std::int64_t>(text.size()), OwnTextSize::small);
    wanted.train.seq_len = wanted.model.max_seq_len = 32;
    wanted.train.batch_tokens = 64;
    const auto config = prepare_own_text(folder / name, wanted, folder / "w", [](const Progress&) {}, {});
    ASSERT_TRUE(config) << config.error().message();
    const auto info = Corpus::describe(folder / "w/data" / config->data.corpus);
    ASSERT_TRUE(info);
    EXPECT_EQ(info->documents, 60) << name;
  }
}

TEST(OwnText, TooLittleTextIsAnErrorThatSaysSo) {
  const TemporaryFolder folder;
  put_file(folder / "short.txt", "Hm.");
  const auto nothing = [](const Progress&) {};
  const auto short_one = prepare_own_text(folder / "short.txt", own_text_config("short", 3, OwnTextSize::small),
                                          folder / "w", nothing, {});
  ASSERT_FALSE(short_one);
  EXPECT_FALSE(short_one.error().message().empty());
  const auto missing =
      prepare_own_text(folder / "none.txt", own_text_config("none", 3, OwnTextSize::small), folder / "w", nothing, {});
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message().find("none.txt"), std::string::npos);
}

}  // namespace
}  // namespace stacklab
