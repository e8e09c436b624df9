#include "engine/data/document_reader.h"

#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <random>

#include "engine/base/environment.h"
#include "engine/base/sha256.h"
#include "engine/data/byte_source.h"
#include "engine/data/import.h"
#include "engine/data/parquet.h"
#include "tests/engine/data/data_testing.h"
#include "tests/sanitized.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;

std::string gzip(std::string_view text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string zstd(std::string_view text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
  return packed;
}

class Reading : public testing::Test {
 protected:
  Result<std::vector<std::string>> read(const std::string& name, std::string_view bytes,
                                        const ReadOptions& options = {}) {
    fs::remove(folder_ / name);
    put_file(folder_ / name, bytes);
    std::vector<std::string> documents;
    std::string open;
    const auto take = [&](std::string_view part, bool last) -> Status {
      open += part;
      if (last) documents.push_back(std::exchange(open, {}));
      return {};
    };
    const auto kind = kind_of_name(name);
    EXPECT_TRUE(kind) << name;
    const auto digest = read_documents(folder_ / name, *kind, options, take, [](std::int64_t) {}, {});
    if (!digest) return tl::unexpected(digest.error());
    EXPECT_TRUE(open.empty());
    EXPECT_EQ(digest->sha256, sha256_hex(bytes));
    EXPECT_EQ(digest->bytes, static_cast<std::int64_t>(bytes.size()));
    return documents;
  }
  std::string error(const std::string& name, std::string_view bytes, const ReadOptions& options = {}) {
    const auto documents = read(name, bytes, options);
    EXPECT_FALSE(documents) << name;
    if (documents) return {};
    EXPECT_NE(documents.error().what.find((folder_ / name).string()), std::string::npos) << documents.error().what;
    EXPECT_FALSE(documents.error().remedy.empty()) << documents.error().what;
    return documents.error().what;
  }

  TemporaryFolder folder_;
  using Texts = std::vector<std::string>;
};

TEST_F(Reading, AFileIsADocumentWithEveryByte) {
  std::string odd = "\xEF\xBB\xBF";
  for (int b = 0; b < 256; ++b) odd.push_back(static_cast<char>(b));
  odd += "\r\n\xC3 \xFF\xFF no last line end";
  EXPECT_EQ(*read("a.txt", odd), Texts{odd});
  EXPECT_EQ(*read("a.txt.gz", gzip(odd)), Texts{odd});
  EXPECT_EQ(*read("a.txt.zst", zstd(odd)), Texts{odd});
  EXPECT_EQ(*read("a.txt", gzip(odd)), Texts{odd}) << "told by its bytes";
  EXPECT_EQ(*read("empty.txt", ""), Texts{});
}

TEST_F(Reading, SeparatorsWhereverPiecesEnd) {
  ReadOptions options;
  options.separator = "\n%\n";
  std::string text;
  Texts expected;
  std::mt19937 random(1);
  for (int i = 0; i < 4000; ++i) {
    expected.push_back(std::string(1 + random() % 900, static_cast<char>('a' + i % 26)) + "\n%x");
    text += expected.back() + options.separator;
  }
  EXPECT_EQ(*read("a.txt", text, options), expected);
  EXPECT_EQ(*read("a.txt.gz", gzip(text), options), expected);
  options.separator = std::string(1, '\0');
  EXPECT_EQ(*read("b.txt", std::string("one\0\0two\0three", 14), options), (Texts{"one", "two", "three"}));
}

TEST_F(Reading, BlankLines) {
  ReadOptions options;
  options.blank_lines = true;
  EXPECT_EQ(*read("a.txt", "\n\none\nmore\n\n\n\ntwo\r\n\r\nthree \n \nstill\n\r\r\n", options),
            (Texts{"one\nmore\n", "two\r\n", "three \n \nstill\n\r\r\n"}));
  std::string text;
  Texts expected;
  for (int i = 0; i < 300000; ++i) {
    expected.push_back("line " + std::to_string(i) + "\n");
    text += expected.back() + "\n";
  }
  EXPECT_EQ(*read("b.txt", text, options), expected);
}

TEST_F(Reading, JsonLines) {
  const std::string lines =
      "\xEF\xBB\xBF{\"text\": \"one\"}\r\n\n{\"id\": 3, \"text\": \"tw\\u00f6 \\u0000\\n\"}\n  \n{\"text\": "
      "\"\"}\n{\"text\":\"no end\"}";
  const Texts expected = {"one", std::string("tw\xC3\xB6 \0\n", 7), "no end"};
  EXPECT_EQ(*read("a.jsonl", lines), expected);
  EXPECT_EQ(*read("a.ndjson.zst", zstd(lines)), expected);
  ReadOptions nested;
  nested.field = "a.b";
  EXPECT_EQ(*read("a.json", R"({"a": {"b": "deep", "c": 1}})", nested), Texts{"deep"});
}

TEST_F(Reading, ABadLineIsNamed) {
  const std::string good = "{\"text\": \"one\"}\n";
  EXPECT_NE(error("a.jsonl", good + good + "{\"text\": \"cut").find("line 3"), std::string::npos);
  EXPECT_NE(error("a.jsonl", good + "{\"text\": \"\xFF\"}\n").find("line 2: is not JSON in UTF-8"), std::string::npos);
  EXPECT_NE(
      error("a.jsonl", good + R"({"body": "x", "id": 3})").find("line 2: has no \"text\"; its keys are: body, id"),
      std::string::npos);
  EXPECT_NE(error("a.jsonl", R"({"text": 3})").find("line 1: \"text\" is number"), std::string::npos);
  EXPECT_NE(error("a.jsonl", R"({"text": null})").find("line 1: \"text\" is null"), std::string::npos);
  EXPECT_NE(error("a.jsonl", R"("text")").find("its keys are: none"), std::string::npos);
  EXPECT_NE(error("a.json", "[{\"text\": \"x\"}]").find("one list"), std::string::npos);
  EXPECT_NE(
      error("a.jsonl", good + good.substr(0, 15) + std::string(1, '\0') + "lost\n").find("line 2: has a NUL byte"),
      std::string::npos);
  EXPECT_NE(error("a.jsonl", std::string(200000, '{')).find("line 1"), std::string::npos);
  const std::string deep = std::string(200000, '[') + std::string(200000, ']');
  EXPECT_NE(error("a.jsonl", R"({"text": "a", "x": )" + deep + "}").find("line 1: is nested deeper"),
            std::string::npos);
}

TEST_F(Reading, MembersThatFollowEachOtherAreOneText) {
  EXPECT_EQ(*read("a.txt.gz", gzip("one, ") + gzip("") + gzip("two")), Texts{"one, two"});
  EXPECT_EQ(*read("a.txt.gz", gzip("one") + std::string(1000, '\0')), Texts{"one"}) << "as tapes have it";
  EXPECT_EQ(*read("a.txt.zst", zstd("one, ") + std::string("\x50\x2a\x4d\x18\x02\0\0\0hi", 10) + zstd("two")),
            Texts{"one, two"});
  EXPECT_EQ(*read("a.txt.zst", std::string("\x5f\x2a\x4d\x18\0\0\0\0", 8) + zstd("two")), Texts{"two"});
}

// Wherever packed data end or change, it is an error with a byte, or (in what no checksum covers) the same text.
TEST_F(Reading, PackedDataThatEndTooEarlyAreAnError) {
  std::string text;
  std::mt19937 random(2);
  for (int i = 0; i < 3000; ++i) text += std::to_string(random());
  for (const bool z : {false, true}) {
    const std::string packed = z ? zstd(text) : gzip(text), name = z ? "a.txt.zst" : "a.txt.gz";
    for (std::size_t size = 4; size < packed.size(); size += 1 + size / 9) {
      const std::string why = error(name, std::string_view(packed).substr(0, size));
      EXPECT_NE(why.find("end too early, at byte " + std::to_string(size)), std::string::npos) << why;
    }
    for (int round = 0; round < 100; ++round) {
      std::string changed = packed;
      changed[4 + random() % (changed.size() - 4)] ^= static_cast<char>(1 << random() % 8);
      static_cast<void>(read(name, changed));  // an error, or no checksum: never a crash
    }
    EXPECT_NE(error(name, packed + "rubbish behind it").find("at byte"), std::string::npos);
    EXPECT_NE(error(name, "no packed data").find("not packed as its name says"), std::string::npos);
  }
}

TEST_F(Reading, MemoryIsBounded) {
  std::string text;
  while (text.size() < (96u << 20)) text += "a line of text that packs well and goes on\n";
  put_file(folder_ / "big.txt.gz", gzip(text));
  text = {};
  const std::int64_t before = resident_bytes();
  std::int64_t most = 0, bytes = 0;
  const auto take = [&](std::string_view part, bool) -> Status {
    bytes += static_cast<std::int64_t>(part.size());
    most = std::max(most, resident_bytes() - before);
    return {};
  };
  ASSERT_TRUE(read_documents(folder_ / "big.txt.gz", FileKind::text, {}, take, [](std::int64_t) {}, {}));
  EXPECT_GE(bytes, 96 << 20);
  EXPECT_LT(most, 8 << 20);
}

// What a line may take is known, however it goes on.
TEST_F(Reading, ALongLineOfJsonIsRefusedBeforeItIsHeld) {
  const std::string most(longest_json_line - 12, 'x');
  EXPECT_EQ(read("a.jsonl", R"({"text": ")" + most + "\"}\n")->front().size(), most.size());
  put_file(folder_ / "long.jsonl.gz", gzip("\n{\"text\": \"" + std::string(5 * longest_json_line, 'x') + "\"}\n"));
  const std::int64_t before = resident_bytes();
  std::int64_t most_bytes = 0;
  const auto longer = read_documents(
      folder_ / "long.jsonl.gz", FileKind::json_lines, {}, [](std::string_view, bool) -> Status { return {}; },
      [&](std::int64_t) { most_bytes = std::max(most_bytes, resident_bytes() - before); }, {});
  ASSERT_FALSE(longer);
  EXPECT_NE(longer.error().what.find("line 2: is longer than 32 MiB"), std::string::npos) << longer.error().message();
  if (!sanitized) {
    EXPECT_LT(most_bytes, static_cast<std::int64_t>(3 * longest_json_line));
  }
}

TEST_F(Reading, Parquet) {
  if (const Status can = parquet_available(); !can) {
    EXPECT_NE(error("a.parquet", "PAR1").find("Parquet"), std::string::npos);
    GTEST_SKIP() << "SKIPPED: " << can.error().message();
  }
  const fs::path files = fs::path(STACKLAB_SOURCE_DIR) / "tests/engine/data/parquet";
  const auto read_file = [&](const char* name, const char* field) {
    ReadOptions options;
    options.field = field;
    return read(name, file_text(files / name), options);
  };
  const Texts expected = {"one", "tw\xC3\xB6\n", "three"};
  for (const char* name : {"plain.parquet", "dictionary.parquet", "large.parquet"}) {
    const auto documents = read_file(name, "text");
    ASSERT_TRUE(documents) << documents.error().message();
    EXPECT_EQ(*documents, expected) << name;
  }
  EXPECT_EQ(*read_file("nested.parquet", "body.en"), expected);
  EXPECT_EQ(*read_file("empty.parquet", "text"), Texts{});
  EXPECT_NE(read_file("plain.parquet", "body").error().what.find("its columns are: id, text"), std::string::npos);
  EXPECT_NE(read_file("plain.parquet", "id").error().what.find("not text"), std::string::npos);
  EXPECT_NE(read_file("null.parquet", "text").error().what.find("row 1 has no \"text\""), std::string::npos);
  const std::string good = file_text(files / "plain.parquet");
  std::mt19937 random(3);
  for (int round = 0; round < 100; ++round) {
    EXPECT_NE(error("cut.parquet", std::string_view(good).substr(0, random() % good.size())), "");
    std::string changed = good;
    changed[random() % changed.size()] ^= static_cast<char>(1 << random() % 8);
    static_cast<void>(read("changed.parquet", changed));  // an error, or other text: never a crash
  }
}

class Importing : public testing::Test {
 protected:
  Result<ImportReport> import(std::vector<fs::path> inputs, const std::string& name = {}, std::stop_token stop = {}) {
    ImportRequest request;
    request.inputs = std::move(inputs);
    request.name = name;
    return import_corpus(folder_ / "workspace", request, {}, std::move(stop));
  }
  TemporaryFolder folder_;
};

TEST_F(Importing, AFileIsOneCommand) {
  put_file(folder_ / "My letters (1).txt.gz", gzip("Dear all,\n"));
  const auto report = import({folder_ / "My letters (1).txt.gz"});
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(report->info.name, "My-letters--1-");
  const Corpus corpus = Corpus::open(folder_ / "workspace/data/My-letters--1-").value();
  ASSERT_EQ(corpus.size(), 1u);
  EXPECT_EQ(text_of(corpus.document(0)), "Dear all,\n");
  EXPECT_EQ(corpus.info().sources[0].name, "My letters (1).txt.gz") << "no path";
  const auto again = import({folder_ / "My letters (1).txt.gz"});
  ASSERT_FALSE(again);
  EXPECT_NE(again.error().remedy.find("--name"), std::string::npos);
  EXPECT_TRUE(import({folder_ / "My letters (1).txt.gz"}, "other"));
}

TEST_F(Importing, AFolderWithAllThatIsInItInOrder) {
  put_file(folder_ / "f/b.txt", "second");
  put_file(folder_ / "f/a/x.jsonl", "{\"text\": \"first\"}\n");
  put_file(folder_ / "f/c.bin", "what is this");
  put_file(folder_ / "f/.hidden/a.txt", "not this");
  put_file(folder_ / "f/größe\nhere.md", "third");
  const auto report = import({folder_ / "f"});
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(report->left_out, std::vector<std::string>{"c.bin"});
  const Corpus corpus = Corpus::open(folder_ / "workspace/data/f").value();
  ASSERT_EQ(corpus.size(), 3u);
  EXPECT_EQ(text_of(corpus.document(0)), "first");
  EXPECT_EQ(text_of(corpus.document(1)), "second");
  EXPECT_EQ(text_of(corpus.document(2)), "third");
  EXPECT_EQ(import_sha256({folder_ / "f"}, {}, {}).value(), import_sha256({folder_ / "f/"}, {}, {}).value());
}

TEST_F(Importing, WhatIsNoTextIsRefusedByName) {
  put_file(folder_ / "a.pdf", "%PDF-1.7 and so on");
  put_file(folder_ / "a.xz", std::string_view("\xFD"
                                              "7zXZ\0\0",
                                              7));
  put_file(folder_ / "only/a.png", "x");
  fs::create_directories(folder_ / "none");
  put_file(folder_ / "empty.txt", "");
  for (const auto& [file, because] : std::map<std::string, std::string>{{"a.pdf", "a PDF file"},
                                                                        {"a.xz", "packed by xz"},
                                                                        {"only", "a.png"},
                                                                        {"none", "no text"},
                                                                        {"missing.txt", "there is no file"},
                                                                        {"empty.txt", "there is no text"}}) {
    const auto report = import({folder_ / file});
    ASSERT_FALSE(report) << file;
    EXPECT_NE(report.error().what.find(because), std::string::npos) << report.error().what;
    EXPECT_FALSE(report.error().remedy.empty());
  }
  EXPECT_FALSE(fs::exists(folder_ / "workspace/data/empty"));
}

TEST_F(Importing, StoppedOrFailedItLeavesNothing) {
  put_file(folder_ / "a.jsonl", "{\"text\": \"one\"}\nno json\n");
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(import({folder_ / "a.jsonl"}, {}, stop.get_token()).error().kind, Error::Kind::stopped);
  EXPECT_NE(import({folder_ / "a.jsonl"}).error().what.find("line 2"), std::string::npos);
  EXPECT_EQ(fs::directory_iterator(folder_ / "workspace/data"), fs::directory_iterator());
}

}  // namespace
}  // namespace stacklab
