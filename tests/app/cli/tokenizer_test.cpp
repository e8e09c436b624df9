#include <nlohmann/json.hpp>

#include "tests/app/cli/cli_testing.h"

namespace stacklab::cli {
namespace {

TEST(Tokenizers, LearnLookEncodeDecode) {
  const Workspace workspace;
  const std::string tok = (workspace / "tok").string();
  const std::string corpus = (workspace / "data/sample").string();
  const std::string text = (workspace / "more.txt").string();
  put_file(text, "one document\r\n" + std::string(1, '\0') + "another word7 and word7");
  const Answer trained = workspace(
      {"tokenizer", "train", "--input", corpus, text, "--vocab", "280", "--out", tok, "--threads", "2", "--json"});
  ASSERT_EQ(trained.code, 0) << trained.err;
  const Json report = trained.json();
  EXPECT_EQ(report["vocab_size"], 280);
  EXPECT_EQ(report["merges"], 21);
  EXPECT_EQ(report["documents"], 42);
  EXPECT_GT(report["bytes_per_token"].get<double>(), 1.5);
  EXPECT_GE(report["seconds"].get<double>(), 0);
  const Json manifest = Json::parse(file_text(tok + "/manifest.json"));
  EXPECT_EQ(manifest["trained_on"].size(), 2u);
  EXPECT_EQ(manifest["trained_on"][0]["name"], "sample");
  EXPECT_EQ(manifest["trained_on"][1]["bytes"], 38);

  const Json model = workspace({"tokenizer", "inspect", tok, "--json"}).json();
  EXPECT_EQ(model["vocab_size"], 280);
  EXPECT_EQ(model["split"], "llama3");
  EXPECT_EQ(model["added_tokens"].size(), 3u);

  const std::string hard = "word7 and \xC3\xA9 <|endoftext|>";
  const Json as_text = workspace({"tokenizer", "encode", tok, "--text", hard, "--json"}).json();
  const Json control = workspace({"tokenizer", "encode", tok, "--text", hard, "--specials", "--json"}).json();
  const auto ids = control["ids"].get<std::vector<int>>();
  EXPECT_EQ(ids.back(), 277);
  EXPECT_EQ(as_text["tokens"], as_text["ids"].size());
  const auto text_ids = as_text["ids"].get<std::vector<int>>();
  EXPECT_LT(*std::max_element(text_ids.begin(), text_ids.end()), 277);

  std::vector<std::string> words = {"tokenizer", "decode", tok, "--json", "--ids"};
  for (const int id : text_ids) words.push_back(std::to_string(id));
  EXPECT_EQ(workspace(words).json()["text"], hard);
  // By files, byte for byte.
  const std::string back = (workspace / "back.txt").string();
  put_file(workspace / "ids.txt", workspace({"tokenizer", "encode", tok, "--input", text}).out);
  ASSERT_EQ(workspace({"tokenizer", "decode", tok, "--input", (workspace / "ids.txt").string(), "--out", back}).code,
            0);
  EXPECT_EQ(file_text(back), file_text(text));
}

TEST(Tokenizers, AreImportedWithTheirIds) {
  const Workspace workspace;
  const std::string theirs = std::string(STACKLAB_SOURCE_DIR) + "/tests/golden/tokenizer/tokenizer_llama3.json";
  const std::string tok = (workspace / "tok").string();
  ASSERT_EQ(workspace({"tokenizer", "import", theirs, "--out", tok}).code, 0);
  const std::vector<std::string> text = {"--text", "I'm here, 12345 \xE2\x80\x94 don't!"};
  const Answer there = workspace({"tokenizer", "encode", theirs, text[0], text[1]});
  const Answer here = workspace({"tokenizer", "encode", tok, text[0], text[1]});
  EXPECT_EQ(here.code, 0) << here.err;
  EXPECT_EQ(here.out, there.out);
  const Answer again = workspace({"tokenizer", "import", theirs, "--out", tok});
  EXPECT_EQ(again.code, 3);
  EXPECT_NE(again.err.find("--yes"), std::string::npos) << again.err;
  EXPECT_EQ(workspace({"tokenizer", "import", theirs, "--out", tok, "--yes"}).code, 0);
}

// --yes gives leave to replace a tokenizer: never its own input, and never what is none.
TEST(Tokenizers, ReplaceNothingElse) {
  const Workspace workspace;
  const std::string theirs = std::string(STACKLAB_SOURCE_DIR) + "/tests/golden/tokenizer/tokenizer_llama3.json";
  const std::string tok = (workspace / "tok").string(), text = (workspace / "texts/a.txt").string();
  put_file(text, "aaaa bbbb");
  ASSERT_EQ(workspace({"tokenizer", "import", theirs, "--out", tok}).code, 0);
  put_file(workspace / "tok2/tokenizer.json", file_text(theirs));
  const std::vector<std::string> train = {"tokenizer", "train", "--vocab", "300", "--yes", "--input", text, "--out"};
  const auto by_training = [&](const std::string& out) {
    std::vector<std::string> words = train;
    words.push_back(out);
    return workspace(words);
  };
  const auto by_import = [&](const std::string& from, const std::string& out) {
    return workspace({"tokenizer", "import", from, "--out", out, "--yes"});
  };
  const std::string before = file_text(tok + "/tokenizer.json"), texts = (workspace / "texts").string();
  const struct {
    Answer answer;
    std::string says;
  } refused[] = {{by_training(texts), "a.txt is to be read"},
                 {by_training(texts + "/"), "a.txt is to be read"},
                 {by_training(text), "a.txt is to be read"},
                 {by_training(workspace.path().string()), "a.txt is to be read"},
                 {by_training((workspace / "data").string()), "sample"},
                 {by_training((workspace / "small.json").string()), "a file"},
                 {by_import(tok, tok), "is to be read"},
                 {by_import(tok + "/tokenizer.json", tok), "is to be read"},
                 {by_import(theirs, (workspace / "tok2").string()), "not a tokenizer that"},
                 {by_import(theirs, (workspace / "data/sample").string()), "documents."}};
  for (const auto& [answer, says] : refused) {
    EXPECT_EQ(answer.code, 3) << says << answer.err;
    EXPECT_NE(answer.err.find(says), std::string::npos) << says << ": " << answer.err;
  }
  EXPECT_EQ(file_text(text), "aaaa bbbb");
  EXPECT_EQ(file_text(tok + "/tokenizer.json"), before);
  EXPECT_EQ(file_text(workspace / "tok2/tokenizer.json"), file_text(theirs));
  // In the folder that one is in, too.
  const Answer inside = shell("cd " + tok + " && " + program + " tokenizer import " + theirs + " --out . --yes");
  EXPECT_EQ(inside.code, 3) << inside.err;
  EXPECT_EQ(by_training(tok).code, 0);
  EXPECT_NE(file_text(tok + "/tokenizer.json"), before);
}

TEST(Tokenizers, DecodeAsksBeforeItReplacesAFile) {
  const Workspace workspace;
  const std::string theirs = std::string(STACKLAB_SOURCE_DIR) + "/tests/golden/tokenizer/tokenizer_llama3.json";
  const std::string out = (workspace / "out.txt").string();
  put_file(out, "thesis");
  const Answer asked = workspace({"tokenizer", "decode", theirs, "--ids", "1", "--out", out});
  EXPECT_EQ(asked.code, 3) << asked.err;
  EXPECT_NE(asked.err.find("--yes"), std::string::npos) << asked.err;
  EXPECT_EQ(file_text(out), "thesis");
  EXPECT_EQ(workspace({"tokenizer", "decode", theirs, "--ids", "1", "--out", out, "--yes"}).code, 0);
  EXPECT_NE(file_text(out), "thesis");
}

TEST(Tokenizers, SayWhatCannotBe) {
  const Workspace workspace;
  const std::string corpus = (workspace / "data/sample").string(), tok = (workspace / "tok").string();
  const struct {
    std::vector<std::string> words;
    int code;
    std::string says;
  } cases[] = {
      {{"train", "--input", corpus, "--out", tok}, 2, "--vocab"},
      {{"train", "--input", corpus, "--vocab", "258", "--out", tok}, 2, "259"},
      {{"train", "--input", corpus, "--vocab", "300", "--split", "qwen", "--out", tok}, 2, "qwen2"},
      {{"train", "--input", corpus + "x", "--vocab", "300", "--out", tok}, 1, "samplex"},
      {{"encode", tok, "--text", "a"}, 1, "tok"},
      {{"encode", tok}, 2, "--text"},
      {{"decode", tok, "--ids", "1", "x"}, 2, "\"x\""},
      {{"inspect", workspace.config()}, 1, "small.json"},
  };
  for (const auto& c : cases) {
    std::vector<std::string> words = c.words;
    words.insert(words.begin(), "tokenizer");
    const Answer answer = workspace(words);
    EXPECT_EQ(answer.code, c.code) << c.says << ": " << answer.err;
    EXPECT_NE(answer.err.find(c.says), std::string::npos) << answer.err;
    EXPECT_FALSE(std::filesystem::exists(tok)) << c.says;
  }
}

TEST(Tokenizers, ASmallTextSaysTheRealSize) {
  const Workspace workspace;
  const std::string text = (workspace / "a.txt").string(), tok = (workspace / "tok").string();
  put_file(text, "aaaa");
  const Answer answer = workspace({"tokenizer", "train", "--input", text, "--vocab", "1000", "--out", tok, "--json"});
  ASSERT_EQ(answer.code, 0) << answer.err;
  EXPECT_EQ(answer.json()["vocab_size"], 261);
  EXPECT_NE(answer.err.find("261"), std::string::npos) << answer.err;
}

}  // namespace
}  // namespace stacklab::cli
