#include "engine/data/shards.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "engine/base/environment.h"
#include "engine/base/sha256.h"
#include "engine/tokenizer/trainer.h"
#include "tests/engine/data/data_testing.h"
#include "tests/sanitized.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;

const std::string sample = "It is a truth\nuniversally told, that <|endoftext|> in a text is text.\n";

TokenCoding learnt_coding(std::int64_t vocabulary = 300) {
  TokenizerTraining training;
  training.vocabulary_size = vocabulary;
  bool given = false;
  ThreadTeam team(1);
  const auto next = [&](std::string_view& document) -> Result<bool> {
    document = sample;
    return !std::exchange(given, true);
  };
  auto trained = train_tokenizer(training, next, team, [](std::string_view, std::int64_t, std::int64_t) {}, {});
  EXPECT_TRUE(trained) << trained.error().message();
  return TokenCoding::of(Tokenizer::create(trained->model).value(), "learnt").value();
}

std::vector<TokenId> ids_of(const TokenDocument& document) {
  std::vector<TokenId> ids;
  for (std::size_t i = 0; i < document.size(); ++i) ids.push_back(document[i]);
  return ids;
}

// A corpus on disk and shards of it.
class Shards : public testing::Test {
 protected:
  fs::path corpus(const std::string& name, const std::vector<std::string>& documents) {
    CorpusInfo info = test_info();
    info.name = name;
    EXPECT_TRUE(write_corpus(folder_ / name, info, document_set(documents)));
    return folder_ / name;
  }
  Result<ShardManifest> build(const std::vector<ShardInput>& inputs, const std::string& name = "shards",
                              double held_out = 0, const TokenCoding& coding = TokenCoding::bytes(), int threads = 2,
                              std::int64_t shard_tokens = 1 << 26, std::stop_token stop = {}) {
    ThreadTeam team(threads);
    ShardOptions options;
    options.validation_fraction = held_out;
    options.shard_tokens = shard_tokens;
    return build_shards(folder_ / name, inputs, coding, options, team, {}, std::move(stop));
  }
  Result<Dataset> open(const std::string& name = "shards") {
    return Dataset::open({{folder_ / name, 1}}, team_, {}, {});
  }

  TemporaryFolder folder_;
  ThreadTeam team_{2};
};

TEST_F(Shards, HoldWhatTheTokenizerMakesOfEveryDocument) {
  const TokenCoding coding = learnt_coding();
  const TokenId end = coding.end_of_document().value();
  std::vector<std::string> documents = {sample, "", "x", std::string("\xFF\0\r\n\xEF\xBB\xBF", 7), sample + sample};
  for (int i = 0; i < 50; ++i) documents.push_back("document " + std::to_string(i));
  const auto manifest = build({{corpus("c", documents)}}, "shards", 0.3, coding, 2, 100);
  ASSERT_TRUE(manifest) << manifest.error().message();
  const auto data = open();
  ASSERT_TRUE(data) << data.error().message();
  EXPECT_EQ(data->corpus_hash(), manifest->corpus_hash());
  EXPECT_EQ(manifest->removed, (std::map<std::string, std::int64_t>{{"empty", 1}}));
  EXPECT_GT(manifest->shards.size(), 4u);

  const Corpus text = Corpus::open(folder_ / "c").value();
  const Corpus::Split split = text.split(0.3);
  EXPECT_GT(split.validation.size(), 3u);
  for (const bool held_out : {false, true}) {
    std::vector<std::string> texts;
    for (const std::size_t d : held_out ? split.validation : split.train)
      if (!text.document(d).empty()) texts.push_back(text_of(text.document(d)));
    const DataSource& source = data->sources()[0];
    const TokenDocuments& found = held_out ? source.held_out : source.train;
    ASSERT_EQ(found.size(), texts.size());
    std::int64_t tokens = 0;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const std::vector<std::string_view> one = {texts[i]};
      std::vector<TokenId> expected = std::move(coding.encode(one, team_)->at(0));
      EXPECT_EQ(std::ranges::count(expected, end), 0) << "text is never a control token";
      EXPECT_EQ(data->coding().decode(expected).value(), texts[i]);
      expected.push_back(end);
      EXPECT_EQ(ids_of(found.document(i)), expected) << i;
      tokens += found.document_tokens(i);
    }
    EXPECT_EQ(found.tokens(), tokens);
  }
}

TEST_F(Shards, AreTheSameForAnyNumberOfThreads) {
  std::vector<std::string> documents;
  std::mt19937 random(4);
  for (int i = 0; i < 300; ++i) {
    documents.emplace_back();
    for (unsigned k = random() % 3000; k > 0; --k) documents.back() += "word" + std::to_string(random() % 50) + "\n";
  }
  const fs::path c = corpus("c", documents);
  const TokenCoding coding = learnt_coding();
  std::string hash;
  for (const int threads : {1, 2, 5}) {
    const auto manifest = build({{c}}, std::to_string(threads), 0.1, coding, threads, 40000);
    ASSERT_TRUE(manifest) << manifest.error().message();
    if (hash.empty()) hash = manifest->corpus_hash();
    EXPECT_EQ(manifest->corpus_hash(), hash);
    EXPECT_EQ(file_text(folder_ / std::to_string(threads) / "manifest.json"), file_text(folder_ / "1/manifest.json"));
  }
  // By its definition.
  std::string digests;
  const auto manifest = read_shard_manifest(folder_ / "1");
  for (const ShardRecord& shard : manifest->shards)
    if (shard.role == ShardRole::train) digests += sha256_hex(file_text(folder_ / "1" / shard.path));
  EXPECT_EQ(hash, sha256_hex(digests).substr(0, 16));
}

// One document larger than a batch is cut where its tokens cannot change.
TEST_F(Shards, ADocumentLargerThanABatchIsEncodedAsOne) {
  std::string text;
  std::mt19937 random(5);
  while (text.size() < (17u << 20)) text += sample + std::to_string(random() % 1000) + "\n";
  const TokenCoding coding = learnt_coding();
  ASSERT_TRUE(build({{corpus("c", {"before", text, "after"})}}, "shards", 0, coding));
  const auto data = open();
  ASSERT_TRUE(data) << data.error().message();
  ASSERT_EQ(data->sources()[0].train.size(), 3u);
  const std::vector<std::string_view> one = {text};
  std::vector<TokenId> whole = std::move(coding.encode(one, team_)->at(0));
  whole.push_back(*coding.end_of_document());
  EXPECT_TRUE(ids_of(data->sources()[0].train.document(1)) == whole);
}

TEST_F(Shards, MemoryIsBounded) {
  if (sanitized) GTEST_SKIP() << "sanitizers keep memory that was given back";
  {
    auto writer = CorpusWriter::create(folder_ / "big");
    ASSERT_TRUE(writer);
    std::string part;
    while (part.size() < (1 << 20)) part += sample;
    for (int i = 0; i < 160; ++i) ASSERT_TRUE(writer->append(part));
    ASSERT_TRUE(writer->end_document());
    ASSERT_TRUE(writer->commit(test_info()));
  }
  std::int64_t most = 0;
  const std::int64_t before = resident_bytes();
  const auto look = [&](std::string_view, std::int64_t, std::int64_t) {
    most = std::max(most, resident_bytes() - before);
  };
  ShardOptions options;
  ASSERT_TRUE(build_shards(folder_ / "shards", {{folder_ / "big"}}, TokenCoding::bytes(), options, team_, look, {}));
  // A batch of text, its tokens (4 bytes each, in vectors that may be twice as large) and buffers; not the text.
  EXPECT_LT(most, std::int64_t{16 + 2 * 4 * 16 + 16} << 20);
  const std::int64_t then = resident_bytes();
  const auto data = open();
  ASSERT_TRUE(data) << data.error().message();
  EXPECT_LT(resident_bytes() - then, 16 << 20) << "verified, but not kept";
}

TEST_F(Shards, StoppedTheyLeaveNothing) {
  const fs::path c = corpus("c", {"some text"});
  std::stop_source stop;
  stop.request_stop();
  const auto stopped = build({{c}}, "shards", 0, TokenCoding::bytes(), 2, 1, stop.get_token());
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().kind, Error::Kind::stopped);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()), 1) << "the corpus alone";
  ASSERT_TRUE(build({{c}}));
  const auto again = build({{c}});
  ASSERT_FALSE(again);
  EXPECT_NE(again.error().what.find("exists"), std::string::npos);
}

TEST_F(Shards, OddNamesAreNames) {
  const fs::path c = corpus("c", {"some text"});
  for (const char* name : {"with space", "größe", "line\nbreak", "quote\"'"}) {
    ASSERT_TRUE(build({{c}}, name)) << name;
    EXPECT_TRUE(open(name)) << name;
  }
}

TEST_F(Shards, AHeldOutDocumentAmongTheTrainingDocumentsIsNamed) {
  const fs::path all = corpus("all", {"zero", "one", "the exam", "three"}), exam = corpus("exam", {"", "the exam"});
  const auto refused = build({{all}, {exam, 1, true}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Error::Kind::refused);
  EXPECT_EQ(refused.error().what, "document 2 of all is a training document, and held out as document 1 of exam");
  // Built apart, it is found when they are read together.
  ASSERT_TRUE(build({{all}}, "a") && build({{exam, 1, true}}, "e"));
  const auto together = Dataset::open({{folder_ / "a", 1}, {folder_ / "e", 1}}, team_, {}, {});
  ASSERT_FALSE(together);
  EXPECT_EQ(together.error().kind, Error::Kind::refused);
  for (const std::string& named : {"document 2 of " + (folder_ / "a/train-00000.bin").string(),
                                   "document 0 of " + (folder_ / "e/held-out-00000.bin").string()})
    EXPECT_NE(together.error().what.find(named), std::string::npos) << together.error().what;
  EXPECT_TRUE(Dataset::open({{folder_ / "a", 1}}, team_, {}, {}));
}

// An exam that was saved with another line end is still the exam.
TEST_F(Shards, AnExamIsKnownWhateverItsWhiteSpace) {
  const std::string words = "Who wrote it?\n  Nobody\tknows.";
  const fs::path exam = corpus("exam", {"  \n", words + "\n"});
  int n = 0;
  for (const std::string& same : {words, words + " ", "\xEF\xBB\xBF" + words, "\n\n" + words + "\r\n",
                                  std::string("Who wrote it?\r\n Nobody knows.")}) {
    const std::string name = "all" + std::to_string(n++);
    const auto refused = build({{corpus(name, {"zero", same})}, {exam, 1, true}}, name + "-shards");
    ASSERT_FALSE(refused) << same;
    EXPECT_EQ(refused.error().kind, Error::Kind::refused);
    EXPECT_EQ(refused.error().what, "document 1 of " + name +
                                        " is a training document, and held out as document 1 of exam, but for its "
                                        "white space");
  }
  // Other words, and what has none, are no exam; nor is what is held out itself.
  EXPECT_TRUE(build(
      {{corpus("other", {"\n", "Who wroteit?\n  Nobody\tknows.", "who wrote it? Nobody knows."})}, {exam, 1, true}},
      "fine"));
  EXPECT_TRUE(build({{corpus("held", {words})}, {exam, 1, true}}, "held-shards", 1));
  // A document that is read in many parts.
  std::string large, spaced;
  for (int i = 0; large.size() < (std::size_t{40} << 20); ++i) {
    const std::string word = "w" + std::to_string(i % 9973);
    large += word + " ";
    spaced += word + (i % 7 ? " " : " \n");
  }
  const auto refused =
      build({{corpus("large", {"zero", large})}, {corpus("large-exam", {spaced}), 1, true}}, "large-shards");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what.find("document 1 of large is"), std::string::npos) << refused.error().what;
}

TEST_F(Shards, OfTwoTokenizersAreNotMixed) {
  const fs::path c = corpus("c", {"some text"});
  ASSERT_TRUE(build({{c}}, "a") && build({{c}}, "b", 0, learnt_coding()));
  const auto mixed = Dataset::open({{folder_ / "a", 1}, {folder_ / "b", 1}}, team_, {}, {});
  ASSERT_FALSE(mixed);
  EXPECT_NE(mixed.error().what.find("of the tokenizer bytes"), std::string::npos) << mixed.error().what;
}

// Every byte of every file counts: whatever is changed or cut is found, and the file named.
TEST_F(Shards, DamageIsFoundAndNamed) {
  ASSERT_TRUE(build({{corpus("c", {"zero", "one", "a third one", "four"})}}, "shards", 0.4, learnt_coding()));
  std::map<std::string, std::string> good;
  for (const auto& entry : fs::directory_iterator(folder_ / "shards"))
    good[entry.path().filename().string()] = file_text(entry.path());
  ASSERT_EQ(good.size(), 4u);
  std::mt19937 random(6);
  int harmless = 0;
  for (const auto& [name, bytes] : good) {
    const fs::path file = folder_ / "shards" / name;
    const auto expect_found = [&](const std::string& how) {
      const auto data = open();
      if (data && name == "manifest.json") return void(++harmless);  // a space, or a number that nothing depends on
      ASSERT_FALSE(data) << name << ", " << how;
      EXPECT_NE(data.error().what.find((folder_ / "shards").string()), std::string::npos) << data.error().what;
      if (name.ends_with(".bin")) {
        EXPECT_NE(data.error().what.find(name), std::string::npos) << data.error().what;
      }
      EXPECT_FALSE(data.error().remedy.empty()) << data.error().what;
    };
    for (int round = 0; round < 150; ++round) {
      std::string changed = bytes;
      changed[random() % changed.size()] ^= static_cast<char>(1 << random() % 8);
      fs::remove(file);
      put_file(file, changed);
      expect_found("a bit");
      fs::remove(file);
      put_file(file, std::string_view(bytes).substr(0, random() % bytes.size()));
      expect_found("cut");
    }
    fs::remove(file);
    put_file(file, bytes + "x");
    expect_found("longer");
    fs::remove(file);
    expect_found("missing");
    put_file(file, bytes);
    ASSERT_TRUE(open());
  }
  EXPECT_LT(harmless, 60);
}

// What a hash cannot tell: a manifest that agrees with a shard that lies.
TEST_F(Shards, LiesThatAgreeAreFound) {
  ASSERT_TRUE(build({{corpus("c", {"zero", "one"})}}));
  const fs::path dir = folder_ / "shards";
  const std::string good = file_text(dir / "train-00000.bin");
  const ShardManifest manifest = read_shard_manifest(dir).value();
  const auto expect_refused = [&](const char* because, const auto& change) {
    std::string bytes = good;
    ShardManifest lying = manifest;
    change(bytes, lying.shards[0]);
    lying.shards[0].bytes = static_cast<std::int64_t>(bytes.size());
    lying.shards[0].sha256 = sha256_hex(bytes);
    fs::remove(dir / "train-00000.bin");
    put_file(dir / "train-00000.bin", bytes);
    ASSERT_TRUE(write_shard_manifest(dir, lying));
    const auto data = open();
    ASSERT_FALSE(data) << because;
    EXPECT_NE(data.error().what.find(because), std::string::npos) << data.error().what;
  };
  const auto put = [](std::string& bytes, std::size_t at, std::uint64_t value, int size) {
    for (int i = 0; i < size; ++i) bytes[at + static_cast<std::size_t>(i)] = static_cast<char>(value >> (8 * i));
  };
  // The header has 64 bytes, then come 7 tokens and padding, 16 bytes; the ends, and the hashes.
  expect_refused("has a token 256, but the vocabulary has 256",
                 [&](std::string& b, ShardRecord&) { put(b, 64 + 2 * 3, 256, 2); });
  expect_refused("ends before it begins", [&](std::string& b, ShardRecord&) { put(b, 64 + 16, 0, 8); });
  expect_refused("ends before it begins", [&](std::string& b, ShardRecord&) { put(b, 64 + 16, ~0ull, 8); });
  expect_refused("do not hold all", [&](std::string& b, ShardRecord&) { put(b, 64 + 24, 6, 8); });
  expect_refused("is no token shard", [&](std::string& b, ShardRecord&) { b[0] = 'X'; });
  expect_refused("is of version 9", [&](std::string& b, ShardRecord&) { b[8] = 9; });
  expect_refused("tokens of 4 bytes", [&](std::string& b, ShardRecord&) { b[12] = 4; });
  for (const std::uint64_t many : {std::uint64_t{13}, std::uint64_t{1} << 53, std::uint64_t{1} << 50}) {
    expect_refused("does not fit", [&](std::string& b, ShardRecord& r) {
      put(b, 24, many, 8);
      r.tokens = static_cast<std::int64_t>(many);
    });
    expect_refused("does not fit", [&](std::string& b, ShardRecord& r) {
      put(b, 16, many, 8);
      r.documents = static_cast<std::int64_t>(many);
    });
  }
  expect_refused("does not fit", [&](std::string& b, ShardRecord&) { b.resize(b.size() - 8); });
}

TEST_F(Shards, ManifestsThatLeadElsewhereAreRefused) {
  ASSERT_TRUE(build({{corpus("c", {"zero", "one"})}}));
  const fs::path dir = folder_ / "shards", file = dir / "manifest.json";
  const std::string good = file_text(file);
  const auto expect_refused = [&](const std::string& from, const std::string& to) {
    std::string bytes = good;
    const std::size_t at = bytes.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    bytes.replace(at, from.size(), to);
    put_file(file, bytes);
    const auto data = open();
    ASSERT_FALSE(data) << to;
    EXPECT_NE(data.error().what.find(file.string()), std::string::npos) << data.error().what;
  };
  for (const char* path : {"../train-00000.bin", "/etc/passwd", "", ".", "..", "a/b"})
    expect_refused("\"path\": \"train-00000.bin\"", "\"path\": \"" + std::string(path) + "\"");
  expect_refused("\"role\": \"train\"", "\"role\": \"test\"");
  expect_refused("\"source\": 0", "\"source\": 1");
  expect_refused("\"source\": 0", "\"source\": -1");
  expect_refused("\"vocab_size\": 256", "\"vocab_size\": 0");
  expect_refused("\"vocab_size\": 256", "\"vocab_size\": 1e30");
  expect_refused("\"corpus_hash\": \"", "\"corpus_hash\": \"0");
  expect_refused("\"recipe\": {}", "\"recipe\": {\"a\": 1}");
  expect_refused("\"weight\": 1.0", "\"weight\": -1.0");
  expect_refused("stacklab-shards", "stacklab-corpus");
  expect_refused("\"version\": 1", "\"version\": 2");
  put_file(file, std::string(100000, '['));
  EXPECT_FALSE(open());
}

TEST_F(Shards, WideTokensAreReadAsTheyAreWritten) {
  fs::create_directories(folder_ / "w");
  auto writer = ShardWriter::create(folder_ / "w/train-00000.bin", true);
  ASSERT_TRUE(writer);
  const std::vector<TokenId> first = {0, 65535, 65536, 99999}, second = {7};
  ASSERT_TRUE(writer->add(first));
  writer->end_document(1);
  ASSERT_TRUE(writer->add(second));
  writer->end_document(2);
  ASSERT_TRUE(writer->finish());
  const std::string bytes = file_text(folder_ / "w/train-00000.bin");
  ShardRecord record{"train-00000.bin", ShardRole::train, 0, 2, 5, static_cast<std::int64_t>(bytes.size()),
                     sha256_hex(bytes)};
  const auto shard = Shard::open(folder_ / "w", record, 100000, {});
  ASSERT_TRUE(shard) << shard.error().message();
  EXPECT_EQ(ids_of(shard->document(0)), first);
  EXPECT_EQ(ids_of(shard->document(1)), second);
  EXPECT_EQ(shard->hash(1), 2u);
  EXPECT_FALSE(Shard::open(folder_ / "w", record, 99999, {})) << "99,999 is the last token";
  EXPECT_FALSE(Shard::open(folder_ / "w", record, 60000, {})) << "two bytes a token would do";
}

}  // namespace
}  // namespace stacklab
