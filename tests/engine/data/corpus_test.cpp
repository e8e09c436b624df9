#include "engine/data/corpus.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <limits>
#include <map>
#include <random>
#include <set>

#include "engine/base/atomic_file.h"
#include "engine/base/environment.h"
#include "engine/base/sha256.h"
#include "tests/engine/data/data_testing.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;

std::string every_byte() {
  std::string bytes;
  for (int b = 0; b < 256; ++b) bytes.push_back(static_cast<char>(b));
  return bytes;
}

TEST(Corpus, KeepsEveryByteOfEveryDocument) {
  using std::string_literals::operator""s;
  const std::vector<std::string> documents = {
      every_byte(), "a\r\nb\rc\n"s, "\0\0"s, "", "\xEF\xBB\xBFno final newline"s, "\xC2\x85 \xE2\x80\xA8"s};
  const Corpus corpus = corpus_of(documents);
  ASSERT_EQ(corpus.size(), documents.size());
  for (std::size_t i = 0; i < documents.size(); ++i) EXPECT_EQ(text_of(corpus.document(i)), documents[i]) << i;
}

TEST(Corpus, ManifestReadsBack) {
  const TemporaryFolder folder;
  CorpusInfo info = test_info();
  ASSERT_TRUE(write_corpus(folder.path() / "c", info, document_set({"ab", "cde"}), "as you like"));
  const Result<Corpus> corpus = Corpus::open(folder.path() / "c");
  ASSERT_TRUE(corpus) << corpus.error().message();
  info.documents = 2;
  info.bytes = 5;
  info.sha256 = "36bbe50ed96841d10443bcb670d6554f0a34b761be67ec9c4a8ad2c0c44ca42c";  // of "abcde"
  EXPECT_EQ(corpus->info(), info);
  EXPECT_EQ(file_text(folder.path() / "c" / "licence.txt"), "as you like");
}

TEST(Corpus, NothingAtAllIsACorpusToo) {
  EXPECT_EQ(corpus_of({}).size(), 0u);
  EXPECT_EQ(corpus_of({}).info().bytes, 0);
  const Corpus blank = corpus_of({"", ""});
  EXPECT_EQ(blank.size(), 2u);
  EXPECT_TRUE(blank.document(1).empty());
}

TEST(Corpus, RefusesToReplaceAFolder) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_corpus(folder.path() / "c", test_info(), document_set({"first"})));
  const Status again = write_corpus(folder.path() / "c", test_info(), document_set({"second"}));
  ASSERT_FALSE(again);
  EXPECT_NE(again.error().what.find((folder.path() / "c").string()), std::string::npos) << again.error().what;
  EXPECT_EQ(text_of(Corpus::open(folder.path() / "c")->document(0)), "first");
}

TEST(CorpusWriter, WritesInPartsWhatAnybodyWritesWhole) {
  const TemporaryFolder folder;
  {
    Result<CorpusWriter> writer = CorpusWriter::create(folder.path() / "parts");
    ASSERT_TRUE(writer) << writer.error().message();
    ASSERT_TRUE(writer->append("ab") && writer->append("") && writer->append("c") && writer->end_document());
    ASSERT_TRUE(writer->end_document());
    ASSERT_TRUE(writer->add(std::string(3 << 20, 'x')));
    EXPECT_FALSE(fs::exists(folder.path() / "parts"));
    EXPECT_EQ(writer->documents(), 3);
    EXPECT_EQ(writer->bytes(), 3 + (3 << 20));
    ASSERT_TRUE(writer->commit(test_info()));
  }
  ASSERT_TRUE(write_corpus(folder.path() / "whole", test_info(), document_set({"abc", "", std::string(3 << 20, 'x')})));
  for (const char* name : {"documents.bin", "documents.idx", "manifest.json"})
    EXPECT_EQ(file_text(folder.path() / "parts" / name), file_text(folder.path() / "whole" / name)) << name;
  const Result<CorpusInfo> described = Corpus::describe(folder.path() / "parts");
  ASSERT_TRUE(described) << described.error().message();
  EXPECT_EQ(*described, Corpus::open(folder.path() / "parts")->info());
  // Given up, it leaves nothing.
  { ASSERT_TRUE(CorpusWriter::create(folder.path() / "given up")->add("text")); }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 2);
}

// What a corpus takes does not depend on its size: buffers and the pages in use.
TEST(CorpusWriter, MemoryIsBounded) {
  const TemporaryFolder folder;
  constexpr std::int64_t size = 192 << 20, allowed = 24 << 20;
  std::string document(1 << 20, '.');
  const std::int64_t before = resident_bytes();
  std::int64_t most = 0;
  {
    Result<CorpusWriter> writer = CorpusWriter::create(folder.path() / "c");
    ASSERT_TRUE(writer) << writer.error().message();
    while (writer->bytes() < size) {
      document[static_cast<std::size_t>(writer->documents())] = '!';
      ASSERT_TRUE(writer->add(document));
      most = std::max(most, resident_bytes() - before);
    }
    ASSERT_TRUE(writer->commit(test_info()));
  }
  const Result<Corpus> corpus = Corpus::open(folder.path() / "c");
  ASSERT_TRUE(corpus) << corpus.error().message();
  std::int64_t marks = 0;
  for (std::size_t i = 0; i < corpus->size(); ++i) {
    marks += std::ranges::count(corpus->document(i), '!');
    most = std::max(most, resident_bytes() - before);
    corpus->release(corpus->document(i));
  }
  EXPECT_EQ(marks, size / (1 << 20) * (size / (1 << 20) + 1) / 2);
  EXPECT_LT(most, allowed);
  EXPECT_EQ(text_of(corpus->document(0).first(3)), "!..") << "what was released can be read again";
}

class CorruptCorpus : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = folder_.path() / "c";
    ASSERT_TRUE(write_corpus(dir_, test_info(), document_set({"one", "", "three\n"}), "free"));
    for (const char* name : {"manifest.json", "documents.bin", "documents.idx", "licence.txt"})
      good_[name] = file_text(dir_ / name);
  }

  // The error must name the file and say how to go on.
  void expect_error(const std::string& file, const std::string& because) {
    const Result<Corpus> corpus = Corpus::open(dir_);
    ASSERT_FALSE(corpus) << because;
    EXPECT_NE(corpus.error().what.find((dir_ / file).string()), std::string::npos)
        << because << ": " << corpus.error().what;
    EXPECT_NE(corpus.error().what.find(because), std::string::npos) << corpus.error().what;
    EXPECT_FALSE(corpus.error().remedy.empty()) << corpus.error().what;
    restore();
  }
  // Removed first: some file systems wait for the disk when a file is cut and written again.
  void put(const std::string& name, std::string_view bytes) {
    fs::remove(dir_ / name);
    put_file(dir_ / name, bytes);
    changed_.insert(name);
  }
  void restore() {
    const std::set<std::string> changed = changed_;
    for (const std::string& name : changed) put(name, good_[name]);
    changed_.clear();
  }
  void replace_in_manifest(const std::string& from, const std::string& to) {
    std::string text = good_["manifest.json"];
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    put("manifest.json", text.replace(at, from.size(), to));
  }
  // An index that its record in the manifest agrees with, so that only its own checks can refuse it.
  void forge_index(const std::string& index) {
    std::string text = good_["manifest.json"];
    const std::size_t record = text.find("\"documents.idx\"");
    const std::size_t size = text.find(": ", text.find("\"bytes\"", record)) + 2;
    text.replace(size, text.find(',', size) - size, std::to_string(index.size()));
    const std::size_t hash = text.find("\"sha256\": \"", record) + 11;
    text.replace(hash, 64, sha256_hex(index));
    put("manifest.json", text);
    put("documents.idx", index);
  }

  TemporaryFolder folder_;
  fs::path dir_;
  std::map<std::string, std::string> good_;
  std::set<std::string> changed_;
};

TEST_F(CorruptCorpus, MissingFiles) {
  for (const char* name : {"manifest.json", "documents.bin", "documents.idx", "licence.txt"}) {
    fs::remove(dir_ / name);
    changed_.insert(name);
    expect_error(name, "No such file");
  }
  fs::remove_all(dir_);
  EXPECT_FALSE(Corpus::open(dir_));
}

TEST_F(CorruptCorpus, CutLengthenedAndChangedFiles) {
  for (const char* name : {"documents.bin", "documents.idx", "licence.txt"}) {
    const std::string good = good_[name];
    put(name, good.substr(0, good.size() - 1));
    expect_error(name, "the manifest says");
    put(name, good + "x");
    expect_error(name, "the manifest says");
    put(name, "");
    expect_error(name, "the manifest says");
    for (std::size_t i = 0; i < good.size(); ++i) {
      std::string changed = good;
      changed[i] ^= 1;
      put(name, changed);
      expect_error(name, "SHA-256");
    }
  }
}

TEST_F(CorruptCorpus, Manifest) {
  const std::string good = good_["manifest.json"];
  for (std::size_t n : {std::size_t{0}, std::size_t{1}, good.size() / 2, good.size() - 3}) {
    put("manifest.json", good.substr(0, n));
    expect_error("manifest.json", "not JSON");
  }
  put("manifest.json", std::string(300000, '['));
  expect_error("manifest.json", "nested deeper");
  replace_in_manifest("stacklab-corpus", "other");
  expect_error("manifest.json", "not the manifest of a corpus");
  replace_in_manifest("\"version\": 1,", "\"version\": 2,");
  expect_error("manifest.json", "version 2");
  replace_in_manifest("\"documents\": 3", "\"documents\": -3");
  expect_error("manifest.json", "\"documents\"");
  replace_in_manifest("\"documents\": 3", "\"documents\": 3.5");
  expect_error("manifest.json", "\"documents\"");
  replace_in_manifest("\"documents\": 3", "\"documents\": 4");
  expect_error("documents.idx", "the manifest 4");
  replace_in_manifest("\"bytes\": 9", "\"bytes\": 9007199254740993");
  expect_error("manifest.json", "\"bytes\"");
  replace_in_manifest("\"title\": \"A sample\"", "\"title\": 7");
  expect_error("manifest.json", "\"title\"");
  replace_in_manifest("\"documents.bin\": {", "\"documents.exe\": {");
  expect_error("manifest.json", "files.documents.bin");
  replace_in_manifest("\"sources\": [", "\"sauces\": [");
  expect_error("manifest.json", "\"sources\"");
}

TEST_F(CorruptCorpus, IndexWhoseHashAgrees) {
  const std::string good = good_["documents.idx"];
  const auto with = [&](std::size_t at, const std::string& bytes) {
    return std::string(good).replace(at, bytes.size(), bytes);
  };
  const std::string huge(8, '\xff');
  forge_index("");
  expect_error("documents.idx", "not an index");
  forge_index(good.substr(0, 31));
  expect_error("documents.idx", "not an index");
  forge_index(with(0, "X"));
  expect_error("documents.idx", "not an index");
  forge_index(with(8, "\x02"));
  expect_error("documents.idx", "version 2");
  forge_index(good.substr(0, 32));
  expect_error("documents.idx", "32 bytes long");
  forge_index(good.substr(0, good.size() - 3));
  expect_error("documents.idx", "bytes long");
  forge_index(with(16, huge));
  expect_error("documents.idx", "bytes long");
  forge_index(with(24, huge));
  expect_error("documents.idx", "the manifest 3 and 9");
  forge_index(with(32, "\x01"));
  expect_error("documents.idx", "begins at 1");
  forge_index(with(40, huge));
  expect_error("documents.idx", "ends before it begins");
  forge_index(with(56, "\x08"));
  expect_error("documents.idx", "the last document ends at 8");
}

// Whatever the bytes, open answers: with the corpus as it was, or with an error. Run under the sanitizers this is the
// reader's fuzz test.
TEST_F(CorruptCorpus, RandomMutations) {
  std::mt19937 random(7);
  int refused = 0;
  for (int round = 0; round < 2000; ++round) {
    const auto& [name, good] = *std::next(good_.begin(), static_cast<long>(random() % good_.size()));
    std::string bytes = good;
    for (std::size_t edits = 1 + random() % 4; edits > 0; --edits) {
      const std::size_t at = bytes.empty() ? 0 : random() % bytes.size();
      switch (random() % 5) {
        case 0:
          bytes.erase(at, random() % 40);
          break;
        case 1:
          bytes.insert(at, std::string(random() % 20, static_cast<char>(random())));
          break;
        case 2:
          bytes.insert(at, bytes.substr(at / 2, random() % 60));
          break;
        default:
          if (!bytes.empty())
            bytes[at] = static_cast<char>(random() % 3 ? "0123456789-{}[]\",:"[random() % 18] : random());
      }
    }
    if (name == "documents.idx" && random() % 2) {
      forge_index(bytes);
    } else {
      put(name, bytes);
    }
    const Result<Corpus> corpus = Corpus::open(dir_);
    if (corpus) {
      ASSERT_EQ(corpus->info().bytes, 9);
      std::string all;
      for (std::size_t i = 0; i < corpus->size(); ++i) all += text_of(corpus->document(i));
      ASSERT_EQ(all, "onethree\n");
    } else {
      ++refused;
      ASSERT_NE(corpus.error().what.find(dir_.string()), std::string::npos) << corpus.error().what;
    }
    restore();
  }
  EXPECT_GT(refused, 1000);
}

TEST(CorpusSplit, IsByHashOfTheDocument) {
  std::vector<std::string> documents;
  for (int i = 0; i < 20000; ++i) documents.push_back("document number " + std::to_string(i));
  const Corpus corpus = corpus_of(documents);
  const Corpus::Split split = corpus.split(0.1);
  EXPECT_EQ(split.train.size() + split.validation.size(), documents.size());
  EXPECT_TRUE(std::is_sorted(split.train.begin(), split.train.end()));
  EXPECT_TRUE(std::is_sorted(split.validation.begin(), split.validation.end()));
  // Binomial: 20000 * .1 has a standard deviation of 42.
  EXPECT_NEAR(static_cast<double>(split.validation.size()), 2000, 5 * 42.4);

  // Other company and other places change nothing.
  std::set<std::string> held_out;
  for (const std::size_t i : split.validation) held_out.insert(documents[i]);
  std::vector<std::string> fewer(documents.rbegin(), documents.rbegin() + 700);
  const Corpus other = corpus_of(fewer);
  for (const std::size_t i : other.split(0.1).validation) EXPECT_TRUE(held_out.contains(fewer[i]));
  for (const std::size_t i : other.split(0.1).train) EXPECT_FALSE(held_out.contains(fewer[i]));
  // A larger share keeps what was held out before.
  const Corpus::Split more = corpus.split(0.3);
  EXPECT_TRUE(
      std::includes(more.validation.begin(), more.validation.end(), split.validation.begin(), split.validation.end()));
}

TEST(CorpusSplit, Edges) {
  const Corpus corpus = corpus_of({"a", "b", "b", "c"});
  EXPECT_TRUE(corpus.split(0).validation.empty());
  EXPECT_EQ(corpus.split(0).train.size(), 4u);
  EXPECT_TRUE(corpus.split(1).train.empty());
  EXPECT_TRUE(corpus.split(-1).validation.empty());
  EXPECT_TRUE(corpus.split(std::numeric_limits<double>::quiet_NaN()).validation.empty());
  EXPECT_TRUE(corpus_of({}).split(0.5).train.empty());
  for (double fraction = 0; fraction < 1; fraction += 0.05) {
    const Corpus::Split split = corpus.split(fraction);
    const auto held_out = [&](std::size_t i) {
      return std::count(split.validation.begin(), split.validation.end(), i);
    };
    EXPECT_EQ(held_out(1), held_out(2)) << "equal documents, fraction " << fraction;
  }
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

TEST(CorpusWriting, DISABLED_Child) {
  const char* dir = std::getenv("CORPUS_DIR");
  ASSERT_NE(dir, nullptr);
  EXPECT_TRUE(write_corpus(dir, test_info(), document_set(std::vector<std::string>(64, std::string(100000, 'x')))));
}

TEST(CorpusWriting, KilledAtAnyTimeItIsWholeOrAbsent) {
  const TemporaryFolder folder;
  std::mt19937 random(3);
  int whole = 0;
  for (int round = 0; round < 40; ++round) {
    const fs::path dir = folder.path() / std::to_string(round);
    const pid_t child = start_child("CorpusWriting.DISABLED_Child", {"CORPUS_DIR=" + dir.string()});
    ASSERT_GT(child, 0);
    ::usleep(static_cast<useconds_t>(random() % 60000));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    if (!fs::exists(dir)) continue;
    const Result<Corpus> corpus = Corpus::open(dir);
    ASSERT_TRUE(corpus) << corpus.error().message();
    ++whole;
  }
  RecordProperty("whole", whole);
  // What the killed left is swept by whoever comes next.
  remove_stale_temporaries(folder.path());
  EXPECT_EQ(static_cast<int>(names_in(folder.path()).size()), whole);
}

TEST(CorpusWriting, AFullDiskLeavesNothing) {
  const TemporaryFolder folder;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{4096, 4096};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const Status status = write_corpus(folder.path() / "c", test_info(), document_set({std::string(100000, 'x')}));
    ::_exit(!status && status.error().what.find("documents.bin") != std::string::npos ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << "no error, or one that does not name the file";
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{});
}

}  // namespace
}  // namespace stacklab
