#include <nlohmann/json.hpp>

#include "tests/app/cli/cli_testing.h"

namespace stacklab::cli {
namespace {

TEST(BenchGemm, EveryMergedProduct) {
  const Answer answer = stacklab({"bench", "gemm", "--threads", "1", "--seconds", "0", "--json", "--quiet"});
  ASSERT_EQ(answer.code, 0) << answer.err;
  const Json json = answer.json();
  ASSERT_EQ(json["rows"].size(), 15u);
  EXPECT_EQ(json["threads"], 1);
  for (const Json& row : json["rows"]) {
    EXPECT_GT(row["gflop_per_second"].get<double>(), 0);
    EXPECT_EQ(row["ratio"].is_null(), json["onednn"].is_null());
  }
  EXPECT_EQ(json["rows"][6]["layer"], "gate_up");
  EXPECT_EQ(json["rows"][6]["n"], 2816);
}

TEST(BenchGemm, Refusals) {
  for (const auto& [words, part] :
       std::vector<std::pair<std::vector<std::string>, std::string_view>>{{{"--isa", "abacus"}, "use one of: "},
                                                                          {{"--seconds", "-1"}, "--seconds"},
                                                                          {{"--threads", "0"}, "--threads"}}) {
    std::vector<std::string> all = {"bench", "gemm"};
    all.insert(all.end(), words.begin(), words.end());
    const Answer answer = stacklab(all);
    EXPECT_EQ(answer.code, 2) << answer.err;
    EXPECT_NE(answer.err.find(part), std::string::npos) << answer.err;
  }
}

}  // namespace
}  // namespace stacklab::cli
