#include "engine/data/cutting.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include "engine/data/extract.h"
#include "tests/engine/data/data_testing.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> documents_of(const Extracted& text) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < text.documents.size(); ++i) {
    const std::uint64_t begin = text.documents.offsets[i];
    out.push_back(text.documents.bytes.substr(begin, text.documents.offsets[i + 1] - begin));
  }
  return out;
}
using Documents = std::vector<std::string>;

Documents cut(void (*cutter)(std::string_view, Extracted&), std::string_view text) {
  Extracted out;
  cutter(text, out);
  return documents_of(out);
}

TEST(Verses, AChapterIsADocument) {
  const auto text =
      chapters_from_verses("Ge1:1 In the beginning.\nGe1:2 And then:  so. \nGe2:1 Next\n1Sm1:1 A man (one)\n");
  ASSERT_TRUE(text) << text.error().message();
  EXPECT_EQ(text->lines, 4);
  EXPECT_EQ(text->documents.bytes, "In the beginning.\nAnd then:  so. \nNext\nA man (one)\n");
  EXPECT_EQ(text->documents.offsets, (std::vector<std::uint64_t>{0, 34, 39, 51}));
}

TEST(Verses, WhatIsNotVersesIsNamed) {
  for (const char* text :
       {"Ge1:1 a\n\nGe1:2 b\n", "Ge1:1 a\nGe1:3 b\n", "Ge1:1 a\nGe1:1 b\n", "Ge1:2 a\n", "Ge1:1 a\nGe3:1 b\n",
        "Ge1:1 a\nExo1:1 b\nGe2:1 c\n", "Ge1:1\n", "Ge1:1 \n", "1:1 a\n", "Ge:1 a\n", "Ge1: a\n", "Ge1:x a\n",
        "In the beginning\n", "Ge1:99999999999999999999 a\n", "Ge1:1 a\r\n", "Ge1:1 a\tb\n", "Ge0:1 a\n"}) {
    const auto result = chapters_from_verses(text);
    ASSERT_FALSE(result) << text;
    EXPECT_NE(result.error().what.find("line "), std::string::npos) << result.error().what;
  }
  EXPECT_EQ(chapters_from_verses("")->documents.size(), 0u);
}

TEST(Cutting, BlankLinesRoundADocumentGo) {
  EXPECT_EQ(cut(add_whole, "\n  \n  a\n\nb  \n\n"), (Documents{"  a\n\nb\n"}));
  EXPECT_EQ(cut(add_whole, "no end"), (Documents{"no end\n"}));
  EXPECT_EQ(cut(add_whole, " \n\t\n"), Documents{});
  EXPECT_EQ(cut(add_whole, ""), Documents{});
}

TEST(Cutting, FortunesStandBetweenPercentSigns) {
  EXPECT_EQ(cut(add_fortunes, "one\n%\ntwo\n\t-- me\n%\n%\n50 % of\n%%\nit\n"),
            (Documents{"one\n", "two\n\t-- me\n", "50 % of\n%%\nit\n"}));
  EXPECT_EQ(cut(add_fortunes, "_\ba_\bb \xc3\xa9\be\n\b%\n"), (Documents{"ab e\n%\n"}));
}

TEST(Cutting, DictionaryEntriesBeginWithTheirWord) {
  EXPECT_EQ(cut(add_dictionary,
                "Preface\n\n00-info\n   x\n\nA \\A\\, n.\n   One.\nB \\B\\ not here\n\n   Note\n\nB b \\B"
                "\\\n   Two.\n"),
            (Documents{"A \\A\\, n.\n   One.\nB \\B\\ not here\n\n   Note\n", "B b \\B\\\n   Two.\n"}));
}

TEST(Cutting, SectionsBeginWithTheirHeadings) {
  EXPECT_EQ(cut(add_sections,
                "Title\n\nChapter 1. One\n\n1.1. First\n\n  text\n  1.2. no\n1.2. Second\n  more\n1. item\n"
                "Appendix A. End\nA.1. a\n x\n"),
            (Documents{"Title\n", "Chapter 1. One\n\n1.1. First\n\n  text\n  1.2. no\n",
                       "1.2. Second\n  more\n1. item\n", "Appendix A. End\nA.1. a\n x\n"}));
  EXPECT_EQ(cut(add_sections, "Chapter\xc2\xa0\x31.\xc2\xa0One\n x\n2.1.\xc2\xa0Two\n y\nChapters are. long\n"),
            (Documents{"Chapter\xc2\xa0\x31.\xc2\xa0One\n x\n", "2.1.\xc2\xa0Two\n y\nChapters are. long\n"}));
  EXPECT_EQ(cut(add_sections, "   :a: n.\n\n   x\n   : b: y\n   :c d: //\n   z\n   :none\n"),
            (Documents{"   :a: n.\n\n   x\n   : b: y\n", "   :c d: //\n   z\n   :none\n"}));
}

TEST(Cutting, GlossesOfASubjectStandTogether) {
  std::string text = "  1 A licence\n  29 of it | all\n";
  for (int i = 0; i < 70; ++i) text += "0000174" + std::to_string(i % 10) + " 03 n 01 x 0 000 | gloss; \"said\"  \n";
  text += "00001750 04 n 01 x 0 000 | another | bar\n";
  Extracted out;
  ASSERT_TRUE(add_glosses(text, out));
  EXPECT_EQ(out.lines, 71);
  const Documents documents = documents_of(out);
  ASSERT_EQ(documents.size(), 3u);
  EXPECT_EQ(documents[0].size(), 64 * std::string("gloss; \"said\"\n").size());
  EXPECT_EQ(documents[1].size(), 6 * std::string("gloss; \"said\"\n").size());
  EXPECT_EQ(documents[2], "another | bar\n");
  for (const char* bad :
       {"00001740 03 n 01 x\n", "x\n", "00001740 03 n 01 x 0 000 |  \n", "0000174x 03 n | y\n", "\n"}) {
    const Status status = add_glosses(bad, out);
    ASSERT_FALSE(status) << bad;
    EXPECT_NE(status.error().what.find("line 1 "), std::string::npos) << status.error().what;
  }
}

TEST(Extract, PatternsNameFiles) {
  const TemporaryFolder folder;
  for (const char* file : {"a/x.rst", "a/b/y.rst", "a/b/y.dat", "c/z.rst"}) {
    fs::create_directories((folder.path() / file).parent_path());
    put_file(folder.path() / file, "text");
  }
  fs::create_symlink("x.rst", folder.path() / "a/link.rst");
  fs::create_symlink("/etc", folder.path() / "a/elsewhere");
  const auto files = [&](std::vector<std::string> patterns) { return matching_files(folder.path(), patterns).value(); };
  EXPECT_EQ(files({"a/*.rst"}), (Documents{"a/b/y.rst", "a/x.rst"}));
  EXPECT_EQ(files({"a/*", "!*.dat"}), (Documents{"a/b/y.rst", "a/x.rst"}));
  EXPECT_EQ(files({"c/z.rst", "nothing"}), (Documents{"c/z.rst"}));
  EXPECT_FALSE(matching_files(folder.path() / "missing", {"*"}));
}

void put_gzip(const fs::path& file, const std::string& text) {
  const gzFile out = ::gzopen(file.c_str(), "wb");
  ASSERT_EQ(::gzwrite(out, text.data(), static_cast<unsigned>(text.size())), static_cast<int>(text.size()));
  ASSERT_EQ(::gzclose(out), Z_OK);
}

TEST(Extract, GzipIsUndoneWithinBounds) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "t.gz";
  std::string text;
  for (int i = 0; i < 300000; ++i) text += "line " + std::to_string(i) + "\n";
  put_gzip(file, text);
  EXPECT_EQ(read_text(file, 1 << 28).value(), text);
  const std::string packed = file_text(file);
  const auto too_large = read_text(file, 1 << 20);
  ASSERT_FALSE(too_large);
  EXPECT_NE(too_large.error().what.find("more than"), std::string::npos) << too_large.error().what;
  put_file(folder.path() / "plain", "as it is");
  EXPECT_EQ(read_text(folder.path() / "plain", 100).value(), "as it is");
  EXPECT_FALSE(read_text(folder.path() / "missing", 100));
  std::string flipped = packed;
  flipped[packed.size() / 2] = static_cast<char>(flipped[packed.size() / 2] ^ 0x10);
  for (const std::string& bad : {packed.substr(0, packed.size() - 9), packed.substr(0, packed.size() / 2), flipped}) {
    put_file(file, bad);
    const auto broken = read_text(file, 1 << 28);
    ASSERT_FALSE(broken) << bad.size();
    EXPECT_NE(broken.error().what.find("t.gz"), std::string::npos) << broken.error().what;
  }
}

TEST(Extract, FilesBecomeDocuments) {
  const TemporaryFolder folder;
  fs::create_directories(folder.path() / "doc");
  put_gzip(folder.path() / "doc/b.rst.gz", "second\n");
  put_gzip(folder.path() / "doc/a.rst.gz", "\nfirst");
  const auto none = [] { return Status(); };
  const auto text = extract({"files", "", {}, {"doc/*.rst.gz"}}, folder.path(), none, {});
  ASSERT_TRUE(text) << text.error().message();
  EXPECT_EQ(documents_of(*text), (Documents{"first\n", "second\n"}));
  const auto bad = extract({"glosses", "", {}, {"doc/*.rst.gz"}}, folder.path(), none, {});
  ASSERT_FALSE(bad);
  EXPECT_NE(bad.error().what.find("doc/a.rst.gz"), std::string::npos) << bad.error().what;
  EXPECT_FALSE(extract({"files", "", {}, {"doc/*.txt"}}, folder.path(), none, {}));
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(extract({"files", "", {}, {"doc/*"}}, folder.path(), none, stop.get_token()).error().kind,
            Error::Kind::stopped);
}

}  // namespace
}  // namespace stacklab
