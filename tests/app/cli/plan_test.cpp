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

TEST(PlanMemory, LeversAndEstimate) {
  const Workspace workspace;
  const Answer tight = stacklab({"plan", "memory", workspace.config(), "--budget", "1 kB", "--json"});
  ASSERT_EQ(tight.code, 0) << tight.err;
  const Json levers = tight.json()["levers"];
  EXPECT_EQ(levers["peak_bytes"], tight.json()["peak_bytes"]);
  EXPECT_EQ(levers["enough"].size(), 0u);
  std::int64_t most = levers["peak_bytes"];
  for (const Json& lever : levers["levers"]) {
    EXPECT_FALSE(lever["fits"]);
    EXPECT_LE(lever["peak_bytes_with_those_before"].get<std::int64_t>(), most);
    most = lever["peak_bytes_with_those_before"];
  }
  ASSERT_LT(most, levers["peak_bytes"].get<std::int64_t>());
  // With what the levers leave, they are enough; and the plan of their settings says so.
  const Answer enough = stacklab({"plan", "memory", workspace.config(), "--budget", std::to_string(most), "--json"});
  std::vector<std::string> words = {"plan", "memory", workspace.config(), "--budget", std::to_string(most), "--json"};
  const Json settings = enough.json()["levers"]["enough"];
  for (const Json& setting : settings) words.insert(words.end(), {"--set", setting.get<std::string>()});
  ASSERT_GT(words.size(), 6u);
  EXPECT_EQ(stacklab(words).json()["fits"], true);
  const Json estimate = tight.json()["estimate"];
  EXPECT_GT(estimate["most_bytes"].get<double>(), estimate["least_bytes"].get<double>());
  const std::string shown = stacklab({"plan", "memory", workspace.config(), "--budget", std::to_string(most)}).out;
  for (const char* part : {"saves alone", "it fits with --set run.", "sharding", "estimate", "list of tensors"})
    EXPECT_NE(shown.find(part), std::string::npos) << part << " in\n" << shown;
}

// Far beyond any computer: refused with its levers.
TEST(PlanMemory, ARefusedRunSaysItsLevers) {
  const Workspace workspace;
  std::vector<std::string> words = {"train", workspace.config(), "--json"};
  for (const char* setting : {"model.n_layers=200", "model.d_model=256", "model.intermediate=1024",
                              "model.max_seq_len=4096", "train.seq_len=4096", "train.batch_tokens=524288",
                              "train.tokens=524288", "run.micro_batch=128", "run.disk_guard=false"})
    words.insert(words.end(), {"--set", setting});
  const Answer answer = workspace(words);
  EXPECT_EQ(answer.code, 3) << answer.err;
  const Json said = answer.json();
  EXPECT_NE(said["remedy"].get<std::string>().find("run.micro_batch="), std::string::npos) << said["remedy"];
  EXPECT_NE(said["remedy"].get<std::string>().find("run.memory_guard=false"), std::string::npos);
  EXPECT_GE(said["levers"]["levers"].size(), 4u);
  EXPECT_GT(said["levers"]["peak_bytes"], said["levers"]["budget_bytes"]);
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
