// The rules of the house, held against this repository.
#include <gtest/gtest.h>

#include "tests/arch/house_rules.h"

namespace stacklab::arch {
namespace {

const Tree& repository() {
  static const Tree tree = read_tree(STACKLAB_SOURCE_DIR);
  return tree;
}

void expect_none(const Violations& violations) { EXPECT_TRUE(violations.empty()) << to_string(violations); }

TEST(Repository, IsRead) {
  EXPECT_TRUE(repository().count("CMakeLists.txt"));
  EXPECT_TRUE(repository().count("engine/base/result.h"));
  EXPECT_FALSE(repository().at("engine/base/result.h").empty());
}

TEST(Repository, IncludesKeepTheOrderOfTheHouse) { expect_none(check_include_order(repository())); }
TEST(Repository, QtStaysInTheWindow) { expect_none(check_qt(repository())); }
TEST(Repository, HeavyHeadersStayInSourceFiles) { expect_none(check_heavy_headers(repository())); }
TEST(Repository, IncludesNameFilesFromTheRoot) { expect_none(check_include_paths(repository())); }
TEST(Repository, LinksKeepTheOrderOfTheHouse) { expect_none(check_links(repository())); }
TEST(Repository, TopLevelNamesAreThoseOfTheHouse) { expect_none(check_top_level(repository())); }
TEST(Repository, FilesAreShort) { expect_none(check_file_length(repository())); }
TEST(Repository, NothingIsLeftOver) { expect_none(check_leftovers(repository())); }
TEST(Repository, HeadersAreGuarded) { expect_none(check_header_guards(repository())); }
TEST(Repository, TheReadmeTellsOfEveryRoomInOrder) { expect_none(check_readme(repository())); }

}  // namespace
}  // namespace stacklab::arch
