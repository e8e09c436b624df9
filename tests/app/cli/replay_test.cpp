#include <nlohmann/json.hpp>

#include "tests/app/cli/cli_testing.h"

namespace stacklab::cli {
namespace {

TEST(Replay, AFreshRunIsTheSameAndATouchedOneIsNot) {
  const Workspace workspace;
  ASSERT_EQ(workspace({"train", workspace.config(), "--quiet"}).code, 0);
  const Answer same = workspace({"replay", "small"});
  ASSERT_EQ(same.code, 0) << same.err;
  EXPECT_NE(same.out.find("steps 9 to 12"), std::string::npos) << same.out;
  EXPECT_NE(same.out.find("the same, bit by bit"), std::string::npos) << same.out;

  const Json json = workspace({"replay", "small", "--from", "0", "--steps", "3", "--json", "--quiet"}).json();
  EXPECT_EQ(json["identical"], true);
  EXPECT_TRUE(json["first_difference"].is_null());
  EXPECT_EQ(json["from"], 0);
  EXPECT_EQ(json["steps"], 3);
  EXPECT_GE(json["values_compared"], 3 * 7);
  EXPECT_TRUE(json["environment"].empty()) << json["environment"];

  // Another device: said first; the sums are taken in another order, and the bits differ.
  const Answer other = workspace({"replay", "small", "--from", "0", "--steps", "8", "--device", "reference", "--json"});
  const Json differs = other.json();
  EXPECT_EQ(other.code, 1) << other.out;
  EXPECT_EQ(differs["identical"], false);
  EXPECT_GE(differs["first_difference"]["step"], 1);
  EXPECT_NE(differs["first_difference"]["recorded"], differs["first_difference"]["replayed"]);
  bool device = false;
  for (const Json& field : differs["environment"]) device |= field["field"] == "device" && field["now"] == "reference";
  EXPECT_TRUE(device) << differs["environment"];
}

TEST(Replay, WhatCannotBe) {
  const Workspace workspace;
  EXPECT_EQ(workspace({"replay", "small"}).code, 1) << "an empty workspace";
  ASSERT_EQ(workspace({"train", workspace.config(), "--quiet"}).code, 0);
  EXPECT_EQ(workspace({"replay", "smal"}).code, 2);
  EXPECT_EQ(workspace({"replay", "small", "--steps", "0"}).code, 2);
  EXPECT_EQ(workspace({"replay", "small", "--steps", "13"}).code, 2);
  const Answer another = workspace({"replay", "small", "--seed", "5"});
  EXPECT_EQ(another.code, 2);
  EXPECT_NE(another.err.find("another run"), std::string::npos) << another.err;
}

}  // namespace
}  // namespace stacklab::cli
