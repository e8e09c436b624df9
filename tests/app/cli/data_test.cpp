// One's own files and token shards on the command line.
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "tests/app/cli/cli_testing.h"

namespace stacklab::cli {
namespace {

namespace fs = std::filesystem;

TEST(CorpusAdd, OneCommandForOnesOwnFile) {
  const Workspace workspace;
  put_file(workspace / "my letters.txt", "one\n\ntwo\n\nthree\n");
  const Answer added = workspace({"corpus", "add", (workspace / "my letters.txt").string(), "--separator", "blank-line",
                                  "--name", "letters", "--licence", "mine", "--json"});
  ASSERT_EQ(added.code, 0) << added.err;
  const Json json = added.json();
  EXPECT_EQ(json["name"], "letters");
  EXPECT_EQ(json["documents"], 3);
  EXPECT_EQ(json["bytes"], 14);
  EXPECT_EQ(json["sha256"].get<std::string>().size(), 64u);
  EXPECT_EQ(json["licence"], "mine");
  const Answer again = workspace({"corpus", "add", (workspace / "my letters.txt").string(), "--name", "letters"});
  EXPECT_EQ(again.code, 1);
  EXPECT_NE(again.err.find("corpus remove letters"), std::string::npos) << again.err;
  EXPECT_EQ(workspace({"corpus", "add", "x.txt", "--separator", "\\q"}).code, 2);
  put_file(workspace / "bad.jsonl", "{\"text\": \"x\"}\nno json\n");
  const Answer bad = workspace({"corpus", "add", (workspace / "bad.jsonl").string()});
  EXPECT_EQ(bad.code, 1);
  EXPECT_NE(bad.err.find("bad.jsonl, line 2"), std::string::npos) << bad.err;
}

// What is wrong is named before anything is made, and what it may have been.
TEST(CorpusAdd, OddNamesAndOddFiles) {
  const Workspace workspace;
  const std::string one = (workspace / "one.txt").string();
  put_file(one, "one");
  ASSERT_EQ(mkfifo((workspace / "pipe").c_str(), 0600), 0);
  fs::create_symlink("gone", workspace / "link");
  fs::create_directory(workspace / "data/bare");
  put_file(workspace / "empty.txt", "");
  const struct {
    std::vector<std::string> words;
    int code;
    std::string says;
  } cases[] = {{{"corpus", "add", one, "--name", "-x"}, 2, "-x"},
               {{"corpus", "add", one, "--name=-x"}, 2, "\"-x\" is not the name of a corpus"},
               {{"corpus", "add", one, "--name", "kjv/"}, 2, "\"kjv/\" is not the name of a corpus"},
               {{"corpus", "add", one, "--name", ""}, 2, "--name is empty"},
               {{"corpus", "get", ""}, 2, "NAME is empty"},
               {{"corpus", "add", (workspace / "on.txt").string()}, 1, "did you mean \"" + one},
               {{"data", "build", (workspace / "on.txt").string(), "--out", "out"}, 2, "did you mean \"" + one},
               {{"corpus", "add", (workspace / "pipe").string()}, 1, "it is a pipe"},
               {{"corpus", "add", (workspace / "link").string()}, 1, "is a link to gone"},
               {{"corpus", "get", "bare"}, 1, "corpus add"},
               {{"tokenizer", "train", "--input", (workspace / "empty.txt").string(), "--vocab", "300", "--out", "out"},
                1,
                "there is no text in"},
               {{"params", workspace.config(), "--set", "model=3"},
                2,
                "\"model\" is a section, not a key (name one of its keys: "},
               {{"params", workspace.config(), "--set", "optim.schedule="}, 2, "optim.schedule.kind"}};
  for (const auto& c : cases) {
    const Answer answer = workspace(c.words);
    EXPECT_EQ(answer.code, c.code) << c.says << ": " << answer.err;
    EXPECT_NE(answer.err.find(c.says), std::string::npos) << c.says << ": " << answer.err;
  }
  EXPECT_NE(workspace({"corpus", "add", one}).out.find("one: 1 document, 3 B, from a file"), std::string::npos);
  const Answer two = workspace({"corpus", "add", one, "--name", "two", "--separator", "n"});
  EXPECT_NE(two.out.find("two: 2 documents, 2 B"), std::string::npos) << two.out;
}

TEST(Data, IsBuiltAndInspected) {
  const Workspace workspace;
  const std::string out = (workspace / "out").string();
  const Answer built = workspace({"data", "build", "sample", "--out", out, "--validation-fraction", "0.2", "--json"});
  ASSERT_EQ(built.code, 0) << built.err;
  const Json json = built.json();
  EXPECT_EQ(json["documents"], 40);
  EXPECT_EQ(json["tokens"], json["train_tokens"].get<std::int64_t>() + json["held_out_tokens"].get<std::int64_t>());
  EXPECT_TRUE(json["removed"].is_object());
  EXPECT_EQ(json["sha256"].get<std::string>().substr(0, 16), json["corpus_hash"]);

  const Answer seen = workspace({"data", "inspect", out, "--json"});
  ASSERT_EQ(seen.code, 0) << seen.err;
  EXPECT_EQ(seen.json()["ok"], true);
  EXPECT_EQ(seen.json()["tokens"], json["tokens"]);
  EXPECT_EQ(seen.json()["shards"].size(), 2u);
  EXPECT_EQ(seen.json()["samples"].size(), 4u);
  EXPECT_NE(workspace({"data", "inspect", out}).out.find("every file is as the manifest says"), std::string::npos);

  EXPECT_EQ(workspace({"data", "build", "sample", "--out", out}).code, 1) << "it exists";
  EXPECT_EQ(workspace({"data", "build", "sample"}).code, 2);
  EXPECT_EQ(workspace({"data", "build", "nothing here", "--out", out + "2"}).code, 2);
  fs::resize_file(fs::path(out) / "train-00000.bin", 80);
  const Answer damaged = workspace({"data", "inspect", out, "--json"});
  EXPECT_EQ(damaged.code, 1);
  EXPECT_EQ(damaged.json()["ok"], false);
  EXPECT_NE(damaged.json()["error"].get<std::string>().find("train-00000.bin"), std::string::npos);
}

// The whole way of somebody with a text file: learn a tokenizer, train, continue.
TEST(Data, ATextFileATokenizerAndARun) {
  const Workspace workspace;
  std::string text;
  for (int i = 0; i < 400; ++i) text += "The letter number " + std::to_string(i) + " is much like the others.\n\n";
  put_file(workspace / "letters.txt", text);
  ASSERT_EQ(workspace({"corpus", "add", (workspace / "letters.txt").string(), "--separator", "blank-line"}).code, 0);
  const std::string folder = (workspace / "tokenizers/small").string();
  ASSERT_EQ(workspace({"tokenizer", "train", "--input", (workspace / "data/letters").string(), "--vocab", "300",
                       "--out", folder})
                .code,
            0);
  const Answer refused =
      workspace({"train", workspace.config(), "--set", "data.corpus=letters", "--set", "data.tokenizer=small"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("does not cover the"), std::string::npos) << refused.err;
  const std::vector<std::string> words = {"train", workspace.config(),     "--set", "data.mixture=letters:3,sample",
                                          "--set", "data.tokenizer=small", "--set", "model.vocab_size=300",
                                          "--json"};
  const Answer trained = workspace(words);
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_GT(trained.json()["val_bpb"].get<double>(), 0);
  EXPECT_LT(trained.json()["loss"].get<double>(), trained.json()["first_loss"].get<double>());
  const Answer shown = workspace({"runs", "show", "small", "--json"});
  EXPECT_NE(shown.out.find("epochs"), std::string::npos) << "how often the texts are read is said";
}

}  // namespace
}  // namespace stacklab::cli
