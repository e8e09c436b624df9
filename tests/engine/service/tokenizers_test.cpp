#include "engine/service/tokenizers.h"

#include <gtest/gtest.h>

#include "engine/base/sha256.h"
#include "engine/base/thread_team.h"
#include "tests/temporary_folder.h"

namespace stacklab {
namespace {

// A document of many megabytes is read piece by piece, and what is learnt is what the whole would teach.
TEST(TokenizerFiles, ALongDocumentTeachesAsAWhole) {
  std::string text;
  std::uint64_t state = 1;
  while (text.size() < (std::size_t{11} << 20)) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    text += "word" + std::to_string(state >> 52) + (state >> 40 & 7 ? " " : " \n") + (state >> 41 & 31 ? "" : "end.\n");
  }
  const TemporaryFolder folder;
  put_file(folder / "long.txt", text);
  TokenizerJob job;
  job.training.vocabulary_size = 700;
  job.inputs = {folder / "long.txt"};
  job.threads = 2;
  const auto nothing = [](std::string_view, std::int64_t, std::int64_t) {};
  for (const Split split : {Split::gpt2, Split::llama3}) {
    job.training.split = split;
    job.folder = folder / std::string(to_string(split));
    const Result<TokenizerReport> report = train_tokenizer_from(job, nothing, {});
    ASSERT_TRUE(report) << report.error().message();
    EXPECT_EQ(report->documents, 1);
    ASSERT_EQ(report->texts.size(), 1u);
    EXPECT_EQ(report->texts[0].sha256, sha256_hex(text));
    EXPECT_EQ(report->texts[0].bytes, static_cast<std::int64_t>(text.size()));

    ThreadTeam team(1);
    bool given = false;
    const Result<TrainedTokenizer> whole = train_tokenizer(job.training,
                                                           [&](std::string_view& document) -> Result<bool> {
                                                             document = text;
                                                             return !std::exchange(given, true);
                                                           },
                                                           team, nothing, {});
    ASSERT_TRUE(whole);
    EXPECT_EQ(report->trained.model, whole->model);

    // What training says of the text is what encoding finds.
    const Result<Tokenizer> tokenizer = read_tokenizer(job.folder);
    ASSERT_TRUE(tokenizer) << tokenizer.error().message();
    std::vector<TokenId> ids;
    ASSERT_TRUE(tokenizer->encode(text, Specials::as_text, ids));
    EXPECT_EQ(report->trained.bytes_per_token, static_cast<double>(text.size()) / static_cast<double>(ids.size()));
  }
}

TEST(TokenizerFiles, PackedTextIsUnpackedAndWhatIsNoTextRefused) {
  const TemporaryFolder folder;
  const std::string kept = std::string(STACKLAB_SOURCE_DIR) + "/tests/fuzz/corpus/zstd/small";
  std::string text;
  for (int i = 0; i < 20; ++i) text += "Once upon a time\n";
  put_file(folder / "plain.txt", text);
  put_file(folder / "packed.txt.zst", file_text(kept));
  TokenizerJob job;
  job.training.vocabulary_size = 300;
  const auto learn = [&](const std::string& input) {
    job.inputs = {folder / input};
    job.folder = folder / ("of-" + input);
    return train_tokenizer_from(job, [](std::string_view, std::int64_t, std::int64_t) {}, {});
  };
  const auto plain = learn("plain.txt"), packed = learn("packed.txt.zst");
  ASSERT_TRUE(plain) << plain.error().message();
  ASSERT_TRUE(packed) << packed.error().message();
  EXPECT_EQ(plain->trained.model, packed->trained.model);
  EXPECT_EQ(packed->texts[0].sha256, sha256_hex(file_text(kept)));

  put_file(folder / "cut.txt.zst", file_text(kept).substr(0, 30));
  put_file(folder / "picture.txt", "\x89PNG\r\n");
  put_file(folder / "lines.jsonl", "{\"text\": \"a\"}\n");
  std::filesystem::create_directory(folder / "letters");
  for (const auto& [input, why] : {std::pair("cut.txt.zst", "end too early"),
                                   {"picture.txt", "it is a picture"},
                                   {"lines.jsonl", "corpus add"},
                                   {"letters", "corpus add"},
                                   {"nothing.txt", "there is no file"}}) {
    const auto refused = learn(input);
    ASSERT_FALSE(refused) << input;
    EXPECT_NE(refused.error().message().find(why), std::string::npos) << refused.error().message();
    EXPECT_NE(refused.error().what.find(input), std::string::npos) << refused.error().message();
    EXPECT_FALSE(std::filesystem::exists(job.folder));
  }
}

TEST(TokenizerFiles, StoppedTrainingLeavesNothing) {
  const TemporaryFolder folder;
  put_file(folder / "a.txt", "some text");
  TokenizerJob job;
  job.inputs = {folder / "a.txt"};
  job.folder = folder / "tok";
  std::stop_source stop;
  stop.request_stop();
  const Result<TokenizerReport> report = train_tokenizer_from(
      job, [](std::string_view, std::int64_t, std::int64_t) {}, stop.get_token());
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().kind, Error::Kind::stopped);
  EXPECT_FALSE(std::filesystem::exists(job.folder));
}

}  // namespace
}  // namespace stacklab
