#include <fmt/core.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/base/atomic_file.h"
#include "engine/base/sha256.h"
#include "engine/tokenizer/tokenizer_json.h"
#include "tests/engine/tokenizer/tokenizer_testing.h"
#include "tests/temporary_folder.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;

TEST(TokenizerFile, DamagedFilesAreRefusedAndOddOnesRead) {
  const fs::path folder = golden_folder() / "malformed/tokenizer";
  const Result<std::string> expected = read_file(folder / "expected.json");
  ASSERT_TRUE(expected);
  const nlohmann::json cases = nlohmann::json::parse(*expected)["cases"];
  EXPECT_GT(cases.size(), 40u);
  for (const nlohmann::json& c : cases) {
    const std::string name = c["file"];
    const Result<Tokenizer> tokenizer = read_tokenizer(folder / name);
    EXPECT_EQ(tokenizer.has_value(), c["outcome"] == "accepted")
        << name << ": " << c["why"] << (tokenizer ? "" : ", but: " + tokenizer.error().message());
    if (tokenizer) continue;
    EXPECT_NE(tokenizer.error().message().find(name), std::string::npos) << tokenizer.error().message();
    EXPECT_LT(tokenizer.error().message().size(), 1000u) << name;
  }
}

TEST(TokenizerFile, APatternOfItsOwnIsReadButEncodesNothing) {
  const Result<Tokenizer> tokenizer =
      read_tokenizer(golden_folder() / "malformed/tokenizer/33_regex_catastrophic.json");
  ASSERT_TRUE(tokenizer);
  std::vector<TokenId> ids;
  const Status encoded = tokenizer->encode(std::string(40, 'a') + "b", Specials::as_text, ids);
  ASSERT_FALSE(encoded);
  EXPECT_NE(encoded.error().message().find("llama3"), std::string::npos) << encoded.error().message();
  EXPECT_TRUE(ids.empty());
}

// Spaces inside tokens, byte fallback, bytes under two names: read as if it were byte-level, each would lose text.
TEST(TokenizerFile, WhatIsNotByteLevelIsRefusedByName) {
  const Result<std::string> valid = read_file(golden_folder() / "malformed/tokenizer/00_valid.json");
  ASSERT_TRUE(valid);
  const auto refusal = [&](auto&& change) {
    nlohmann::json file = nlohmann::json::parse(*valid);
    change(file);
    const Result<Tokenizer> tokenizer = parse_tokenizer(file.dump(), "odd.json");
    return tokenizer ? "accepted" : tokenizer.error().message();
  };
  const auto add_tokens = [](nlohmann::json& file, const std::vector<std::string>& tokens) {
    file["added_tokens"] = nlohmann::json::array();
    for (const std::string& token : tokens) file["model"]["vocab"][token] = file["model"]["vocab"].size();
  };
  for (const bool as_pair : {false, true}) {
    const std::string error = refusal([&](nlohmann::json& file) {
      add_tokens(file, {"b c", "a b c"});
      file["model"]["merges"] = nlohmann::json::array();
      file["model"]["merges"].push_back(as_pair ? nlohmann::json{"a", "b c"} : nlohmann::json("a b c"));
    });
    EXPECT_NE(error.find("b c"), std::string::npos) << error;
    EXPECT_NE(error.find("bytes"), std::string::npos) << error;
  }
  const std::string fallback = refusal([](nlohmann::json& file) {
    nlohmann::json vocabulary = {{"\u2581", 0}, {"a", 1}};
    for (int byte = 0; byte < 256; ++byte) vocabulary[fmt::format("<0x{:02X}>", byte)] = byte + 2;
    file["model"]["vocab"] = vocabulary;
    file["model"]["merges"] = nlohmann::json::array();
    file["model"]["byte_fallback"] = true;
    file["added_tokens"] = nlohmann::json::array();
    file["pre_tokenizer"] = nullptr;
  });
  EXPECT_NE(fallback.find("byte-level"), std::string::npos) << fallback;
  // In a byte-level vocabulary this is a token of six characters, not another name of "a".
  nlohmann::json file = nlohmann::json::parse(*valid);
  add_tokens(file, {"<0x61>"});
  const Result<Tokenizer> tokenizer = parse_tokenizer(file.dump(), "odd.json");
  ASSERT_TRUE(tokenizer) << tokenizer.error().message();
  const std::vector<TokenId> ids = ids_of(*tokenizer, "a<0x61>a", Specials::as_text);
  EXPECT_EQ(ids.size(), 8u);
  EXPECT_EQ(*tokenizer->decode(ids), "a<0x61>a");
}

TEST(TokenizerFile, BothSpellingsOfMergesMeanTheSame) {
  const fs::path folder = golden_folder() / "tokenizer";
  const Result<Tokenizer> pairs = read_tokenizer(folder / "tokenizer_trained_qwen2.json");
  const Result<Tokenizer> texts = read_tokenizer(folder / "tokenizer_trained_qwen2_string_merges.json");
  ASSERT_TRUE(pairs && texts);
  EXPECT_EQ(pairs->model(), texts->model());
  EXPECT_EQ(pairs->model().merges.size(), 512u);
}

TEST(TokenizerFile, WhatIsWrittenReadsBack) {
  for (const std::string name : {"gpt2", "llama3", "qwen2_nfc", "trained_qwen2"}) {
    const Result<Tokenizer> tokenizer = read_tokenizer(golden_folder() / "tokenizer" / ("tokenizer_" + name + ".json"));
    ASSERT_TRUE(tokenizer);
    const Result<Tokenizer> again = parse_tokenizer(tokenizer_json(tokenizer->model()), name);
    ASSERT_TRUE(again) << again.error().message();
    EXPECT_EQ(again->model(), tokenizer->model());
    // The same JSON, but for a post-processor's place and the order of keys.
    nlohmann::json ours = nlohmann::json::parse(tokenizer_json(tokenizer->model()));
    EXPECT_EQ(ours, golden_json("tokenizer_" + name + ".json")) << name;
  }
}

TEST(TokenizerFile, AFolderNamesWhatItWasTrainedOn) {
  const TemporaryFolder temporary;
  const Result<Tokenizer> tokenizer = read_tokenizer(golden_folder() / "tokenizer/tokenizer_gpt2.json");
  ASSERT_TRUE(tokenizer);
  const fs::path folder = temporary.path() / "a/tok";
  ASSERT_TRUE(write_tokenizer(folder, tokenizer->model(), {{"text.txt", 3, sha256_hex("abc")}}));
  const Result<Tokenizer> again = read_tokenizer(folder);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->model(), tokenizer->model());
  const nlohmann::json manifest = nlohmann::json::parse(*read_file(folder / "manifest.json"));
  EXPECT_EQ(manifest["trained_on"][0]["sha256"], sha256_hex("abc"));
  EXPECT_EQ(manifest["tokenizer_sha256"], sha256_hex(*read_file(folder / "tokenizer.json")));
  EXPECT_TRUE(nlohmann::json::accept(*read_file(folder / "tokenizer_config.json")));
  EXPECT_FALSE(write_tokenizer(folder, tokenizer->model(), {}));
  EXPECT_TRUE(write_tokenizer(folder, tokenizer->model(), {}, true));
}

// Only a tokenizer that this program made may be replaced: whatever else has the folder's name stays.
TEST(TokenizerFile, ReplacesNothingButATokenizerOfItsOwn) {
  const TemporaryFolder temporary;
  const Result<Tokenizer> tokenizer = read_tokenizer(golden_folder() / "tokenizer/tokenizer_gpt2.json");
  ASSERT_TRUE(tokenizer);
  const auto replace = [&](const fs::path& folder) { return write_tokenizer(folder, tokenizer->model(), {}, true); };
  fs::create_directory(temporary / "empty");
  EXPECT_TRUE(replace(temporary / "empty"));

  put_file(temporary / "file", "thesis");
  put_file(temporary / "folder/thesis.txt", "thesis");
  put_file(temporary / "theirs/tokenizer.json", "{}");
  put_file(temporary / "liar/manifest.json", R"({"format": "stacklab-corpus"})");
  ASSERT_TRUE(replace(temporary / "more/tok"));
  put_file(temporary / "more/tok/notes.txt", "mine");
  ASSERT_TRUE(replace(temporary / "nested/tok"));
  put_file(temporary / "nested/tok/manifest.json.d/a", "mine");
  fs::create_directory_symlink(temporary / "empty", temporary / "link");
  const std::pair<std::string, std::string> all[] = {{"file", "a file"},
                                                     {"folder", "thesis.txt"},
                                                     {"theirs", "not a tokenizer that"},
                                                     {"more/tok", "notes.txt"},
                                                     {"nested/tok", "manifest.json.d"},
                                                     {"liar", "not a tokenizer that"},
                                                     {"link", "a link"},
                                                     {"more", "tok"}};
  for (const auto& [name, why] : all) {
    for (const std::string& spelled : {name, name + "/"}) {
      if (name == "file" && spelled != name) continue;
      const Status refused = replace(temporary / spelled);
      ASSERT_FALSE(refused) << spelled;
      EXPECT_EQ(refused.error().kind, Error::Kind::refused);
      EXPECT_NE(refused.error().what.find(why), std::string::npos) << refused.error().message();
      EXPECT_FALSE(refused.error().remedy.empty());
    }
  }
  EXPECT_EQ(file_text(temporary / "file"), "thesis");
  EXPECT_EQ(file_text(temporary / "folder/thesis.txt"), "thesis");
  EXPECT_EQ(file_text(temporary / "more/tok/notes.txt"), "mine");
  EXPECT_TRUE(fs::is_symlink(temporary / "link"));
}

// {1,3}+ is three digits in what this program wrote once, and of nobody else can it be known.
TEST(TokenizerFile, ACountedRepetitionThatReadersTakeDifferentlyIsRefused) {
  const TemporaryFolder temporary;
  const Result<Tokenizer> known = read_tokenizer(golden_folder() / "tokenizer/tokenizer_llama3.json");
  ASSERT_TRUE(known);
  TokenizerModel model = known->model();
  model.pattern = golden_json("pretokens.json")["patterns"]["cl100k"].get<std::string>();
  ASSERT_TRUE(is_older_cl100k(model.pattern));
  ASSERT_TRUE(write_tokenizer(temporary / "older", model, {}));
  const Result<Tokenizer> older = read_tokenizer(temporary / "older");
  ASSERT_TRUE(older) << older.error().message();
  EXPECT_EQ(older->split(), Split::cl100k);
  EXPECT_EQ(older->model(), model);
  const Result<Tokenizer> theirs = read_tokenizer(temporary / "older/tokenizer.json");
  ASSERT_FALSE(theirs);
  EXPECT_NE(theirs.error().what.find("{1,3}+"), std::string::npos) << theirs.error().message();
  put_file(temporary / "older/tokenizer.json", file_text(temporary / "older/tokenizer.json") + " ");
  EXPECT_FALSE(read_tokenizer(temporary / "older"));
}

TEST(TokenizerFile, ADamagedByteNeverCrashes) {
  const Result<std::string> whole = read_file(golden_folder() / "malformed/tokenizer/00_valid.json");
  ASSERT_TRUE(whole);
  Numbers numbers(7);
  for (int n = 0; n < 400; ++n) {
    std::string damaged = *whole;
    for (int i = 0; i < 1 + n % 3; ++i) damaged[numbers.below(damaged.size())] = static_cast<char>(numbers.below(256));
    if (n % 5 == 0) damaged.resize(numbers.below(damaged.size()));
    const Result<Tokenizer> tokenizer = parse_tokenizer(damaged, "damaged.json");
    if (!tokenizer) {
      EXPECT_NE(tokenizer.error().message().find("damaged.json"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace stacklab
