// A disk that is full, a folder that may only be read, another locale, two at once: of corpora and shards.
#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "engine/data/import.h"
#include "tests/comma_locale.h"
#include "tests/engine/data/data_testing.h"
#include "tests/in_child.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;

Result<ShardManifest> build(const fs::path& corpus, const fs::path& folder, int threads = 1) {
  ThreadTeam team(threads);
  return build_shards(folder, {{corpus, 0.5}}, TokenCoding::bytes(), {}, team, {}, {});
}

bool says(const Error& error, std::string_view what, const fs::path& where) {
  const bool good = error.what.find(what) != std::string::npos &&
                    error.what.find(where.string()) != std::string::npos && !error.remedy.empty();
  if (!good) std::cerr << error.message() << "\n";
  return good;
}

class DataFaults : public testing::Test {
 protected:
  DataFaults() {
    CorpusInfo info = test_info();
    EXPECT_TRUE(write_corpus(folder_ / "c", info, document_set({std::string(3 << 20, 'x'), "more"})));
    fs::create_directories(folder_ / "small");
  }
  TemporaryFolder folder_;
};

TEST_F(DataFaults, AFullDiskIsSaidAndNothingStays) {
  put_file(folder_ / "letters.txt", std::string(3 << 20, 'y'));
  const int code = in_child([&] {
    const fs::path small = folder_ / "small";
    if (!mount_small(small, "1m")) return skip_code;
    const auto built = build(folder_ / "c", small / "shards");
    if (built || !says(built.error(), "No space left", small)) return 1;
    ImportRequest request;
    request.inputs = {folder_ / "letters.txt"};
    const auto imported = import_corpus(small, request, {}, {});
    if (imported || !says(imported.error(), "No space left", small)) return 2;
    if (fs::exists(small / "shards") || fs::exists(small / "data/letters")) return 3;
    // Nothing takes the room that there is.
    put_file(small / "filler", std::string(900 << 10, 'x'));
    if (fs::file_size(small / "filler") != 900 << 10) return 4;
    fs::remove(small / "filler");
    if (!resize_small(small, "20m")) return skip_code;
    return build(folder_ / "c", small / "shards") && import_corpus(small, request, {}, {}) ? 0 : 5;
  });
  if (code == skip_code) GTEST_SKIP() << "a small file system cannot be mounted here";
  EXPECT_EQ(code, 0);
}

TEST_F(DataFaults, AFolderThatMayOnlyBeReadIsSaid) {
  const int code = in_child([&] {
    const fs::path small = folder_ / "small";
    if (!mount_small(small, "20m")) return skip_code;
    if (!build(folder_ / "c", small / "old")) return 1;
    if (mount(nullptr, small.c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr) != 0) return skip_code;
    const auto built = build(folder_ / "c", small / "shards");
    if (built || !says(built.error(), "Read-only", small)) return 2;
    // What is there is read.
    ThreadTeam team(1);
    return Dataset::open({{small / "old", 1}}, team, {}, {}) ? 0 : 3;
  });
  if (code == skip_code) GTEST_SKIP() << "a file system cannot be made read-only here";
  EXPECT_EQ(code, 0);
}

TEST_F(DataFaults, TheLocaleChangesNothing) {
  ASSERT_TRUE(build(folder_ / "c", folder_ / "plain"));
  std::optional<CommaLocale> locale(std::in_place);
  if (!locale->here()) GTEST_SKIP() << "no locale with a decimal comma can be had";
  const auto built = build(folder_ / "c", folder_ / "comma");
  ThreadTeam team(1);
  const auto data = Dataset::open({{folder_ / "plain", 1}}, team, {}, {});
  locale.reset();
  ASSERT_TRUE(built) << built.error().message();
  ASSERT_TRUE(data) << data.error().message();
  EXPECT_EQ(file_text(folder_ / "comma/manifest.json"), file_text(folder_ / "plain/manifest.json"));
}

TEST_F(DataFaults, TwoAtOnceAreFineAndOneIsKept) {
  std::vector<std::optional<Result<ShardManifest>>> built(4);
  {
    std::vector<std::jthread> threads;
    for (auto& one : built) threads.emplace_back([&] { one = build(folder_ / "c", folder_ / "shards", 2); });
  }
  int made = 0;
  for (const auto& one : built) {
    made += one->has_value();
    if (!*one) {
      EXPECT_NE(one->error().message().find("xist"), std::string::npos) << one->error().message();
    }
  }
  EXPECT_EQ(made, 1);
  ThreadTeam team(1);
  EXPECT_TRUE(Dataset::open({{folder_ / "shards", 1}}, team, {}, {}));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()), 3) << "no temporaries";
}

}  // namespace
}  // namespace stacklab
