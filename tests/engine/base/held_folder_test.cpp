#include "engine/base/held_folder.h"

#include <gtest/gtest.h>

#include "tests/temporary_folder.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;

TEST(HeldFolder, IsKnownWhereverItGoes) {
  const TemporaryFolder folder;
  const fs::path here = folder / "here (deleted)", there = folder / "there";
  EXPECT_FALSE(HeldFolder(here).in_place()) << "it is not there yet";
  fs::create_directory(here);
  const HeldFolder held(here);
  EXPECT_TRUE(held.in_place());
  EXPECT_EQ(held.now_at(), fs::canonical(here));
  fs::rename(here, there);
  EXPECT_FALSE(held.in_place());
  EXPECT_EQ(held.fate(), "was moved to " + fs::canonical(there).string());
  fs::create_directory(here);
  EXPECT_FALSE(held.in_place()) << "another one of its name";
  fs::remove(there);
  EXPECT_EQ(held.fate(), "was replaced");
  EXPECT_TRUE(held.now_at().empty());
  fs::remove(here);
  EXPECT_EQ(held.fate(), "was deleted");
}

}  // namespace
}  // namespace stacklab
