// Every kept input of every fuzz target, and the inputs that once broke one.
#include <gtest/gtest.h>

#include "tests/fuzz/targets.h"
#include "tests/temporary_folder.h"

namespace stacklab::fuzz {
namespace {

namespace fs = std::filesystem;

class Kept : public testing::TestWithParam<Target> {};

TEST_P(Kept, NothingBreaks) {
  if (!GetParam().missing.empty()) GTEST_SKIP() << GetParam().missing;
  const fs::path tests = fs::path(STACKLAB_SOURCE_DIR) / "tests";
  std::vector<fs::path> folders = {tests / "fuzz/corpus" / GetParam().name,
                                   tests / "regressions/fuzz" / GetParam().name};
  for (const std::string& seeds : GetParam().seeds) folders.push_back(tests / seeds);
  std::size_t files = 0, accepted = 0;
  for (const fs::path& folder : folders) {
    if (!fs::exists(folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (!entry.is_regular_file()) continue;
      SCOPED_TRACE(entry.path());
      accepted += GetParam().run(file_text(entry.path())) ? 1 : 0;
      ++files;
    }
  }
  EXPECT_GE(files, 3u) << "each target keeps some inputs";
  EXPECT_GE(accepted, 1u) << "one at least is read to its end";
  static_cast<void>(GetParam().run(""));
}

// Each kept input with single bytes changed and cut short: what a fuzzer tries first.
TEST_P(Kept, NorWithSmallDamage) {
  if (!GetParam().missing.empty()) GTEST_SKIP() << GetParam().missing;
  const fs::path folder = fs::path(STACKLAB_SOURCE_DIR) / "tests/fuzz/corpus" / GetParam().name;
  if (!fs::exists(folder)) GTEST_SKIP() << "its inputs are seeds of other tests";
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string whole = file_text(entry.path());
    SCOPED_TRACE(entry.path());
    const std::size_t stride = 1 + whole.size() / 100;
    for (std::size_t i = 0; i < whole.size(); i += stride) {
      static_cast<void>(GetParam().run(std::string_view(whole).substr(0, i)));
      for (const int change : {1, 0x80, 0xff}) {
        std::string damaged = whole;
        damaged[i] = static_cast<char>(damaged[i] ^ change);
        static_cast<void>(GetParam().run(damaged));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Kept, testing::ValuesIn(targets()), [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace stacklab::fuzz
