#include "engine/base/safetensors_shards.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/temporary_folder.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;

const fs::path malformed = fs::path(STACKLAB_SOURCE_DIR) / "tests/golden/malformed/shards";

TEST(SafetensorsShards, VerdictsOnOddAndMalformedFolders) {
  const nlohmann::json expected = nlohmann::json::parse(file_text(malformed / "expected.json"));
  int cases = 0;
  for (const nlohmann::json& one : expected["cases"]) {
    const fs::path index = malformed / one["directory"].get<std::string>() / "model.safetensors.index.json";
    const auto read = SafetensorsShards::open(index);
    EXPECT_EQ(read.has_value(), one["outcome"] == "accepted")
        << index << ": " << one["why"] << (read ? "" : "\n" + read.error().message());
    if (!read) {
      EXPECT_NE(read.error().what.find(index.string()), std::string::npos) << read.error().message();
    }
    ++cases;
  }
  EXPECT_EQ(cases, 8);
}

TEST(SafetensorsShards, TensorsAreFoundWhereTheIndexSays) {
  const auto read = SafetensorsShards::open(malformed / "ok/model.safetensors.index.json");
  ASSERT_TRUE(read);
  ASSERT_EQ(read->names().size(), 2u);
  for (const std::string& name : read->names()) {
    ASSERT_NE(read->find(name), nullptr);
    EXPECT_EQ(read->find(name)->name, name);
  }
  EXPECT_EQ(read->find("nothing"), nullptr);
}

}  // namespace
}  // namespace stacklab
