#include <nlohmann/json.hpp>

#include "tests/app/cli/cli_testing.h"

namespace stacklab::cli {
namespace {

TEST(PlanMemory, SaysWhatTrainingAllocates) {
  const Workspace workspace;
  for (const char* cut : {"run.micro_batch=4", "run.micro_batch=1"}) {
    const Answer answer = stacklab({"plan", "memory", workspace.config(), "--gpu", "cpu", "--json", "--set", cut});
    ASSERT_EQ(answer.code, 0) << answer.err;
    const Json plan = answer.json();
    const Workspace other;
    const Answer trained = other({"train", other.config(), "--json", "--max-steps", "1", "--set", cut});
    ASSERT_EQ(trained.code, 0) << trained.err;
    EXPECT_EQ(plan["peak_bytes"], trained.json()["plan_bytes"]) << cut;
    EXPECT_LT(plan["peak_bytes"].get<std::int64_t>(), trained.json()["peak_bytes"].get<std::int64_t>())
        << "the process holds the plan and more";
    EXPECT_EQ(plan["fits"], true);
    EXPECT_EQ(plan["largest_micro_batch"], 4);
    std::int64_t parameters = 0;
    for (const Json& b : plan["buffers"]) {
      for (const char* key : {"name", "class", "dtype", "shape", "bytes", "program", "first_use", "last_use", "offset"})
        EXPECT_TRUE(b.contains(key)) << key;
      if (b["class"] == "parameter") parameters += b["bytes"].get<std::int64_t>();
      EXPECT_EQ(b["program"].is_null(), b["arena"] == "persistent");
    }
    EXPECT_EQ(parameters, 4 * stacklab({"params", workspace.config(), "--json"}).json()["total"].get<std::int64_t>());
  }
}

TEST(PlanMemory, ForPeople) {
  const Workspace workspace;
  const Answer answer = stacklab({"plan", "memory", workspace.config(), "--budget", "2GiB"});
  ASSERT_EQ(answer.code, 0) << answer.err;
  for (const char* part : {"128 tokens a step", "parameter", "peak     at operation", "largest buffers", "budget",
                           "it fits", "has 4 sequences"})
    EXPECT_NE(answer.out.find(part), std::string::npos) << part << " in\n" << answer.out;
  const Answer tight = stacklab({"plan", "memory", workspace.config(), "--budget", "1 kB"});
  EXPECT_EQ(tight.code, 0);
  EXPECT_NE(tight.out.find("does not fit"), std::string::npos) << tight.out;
  EXPECT_NE(tight.out.find("no micro-batch fits"), std::string::npos) << tight.out;
}

// Every config that is kept, whatever data it names: planning needs none.
TEST(PlanMemory, EveryExperiment) {
  for (const auto& entry : std::filesystem::directory_iterator(experiments)) {
    const Answer answer = stacklab({"plan", "memory", entry.path().string(), "--json", "--budget", "1TB"});
    ASSERT_EQ(answer.code, 0) << answer.err;
    EXPECT_GT(answer.json()["peak_bytes"].get<std::int64_t>(), 0);
    EXPECT_GT(answer.json()["largest_micro_batch"].get<std::int64_t>(), 0);
  }
}

TEST(PlanMemory, Refusals) {
  const Workspace workspace;
  const std::tuple<std::vector<std::string>, std::string_view> cases[] = {
      {{"--gpu", "h100"}, "this build plans for: cpu"},
      {{"--budget", "much"}, "\"much\" is not a number of bytes"},
      {{"--budget", "0"}, "--budget"},
      {{"--set", "run.micro_batch=3"}, "run.micro_batch: 3"},
      {{"--device", "abacus"}, "abacus"},
  };
  for (const auto& [more, part] : cases) {
    std::vector<std::string> words = {"plan", "memory", workspace.config()};
    words.insert(words.end(), more.begin(), more.end());
    const Answer answer = stacklab(words);
    EXPECT_EQ(answer.code, 2) << answer.err;
    EXPECT_NE(answer.err.find(part), std::string::npos) << answer.err;
  }
}

}  // namespace
}  // namespace stacklab::cli
