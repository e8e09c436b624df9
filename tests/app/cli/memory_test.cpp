// What a process that trains holds at most, against the plan.
#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/service/planning.h"
#include "tests/app/cli/cli_testing.h"
#include "tests/sanitized.h"

namespace stacklab::cli {
namespace {

struct Measured {
  double plan = 0, peak = 0;
};

// Two steps with an evaluation and a checkpoint, in a process of their own. seed: of another run each time.
Measured train(const Workspace& workspace, int seed, const std::string& width,
               const std::vector<std::string>& settings) {
  std::vector<std::string> words = {"train",  workspace.config(),  "--json", "--quiet", "--threads", "2",
                                    "--seed", std::to_string(seed)};
  for (const std::string& setting :
       {std::string("model.n_layers=3"), std::string("model.n_heads=4"), std::string("model.n_kv_heads=2"),
        std::string("model.head_dim=64"), "model.d_model=" + width, "model.intermediate=" + width,
        std::string("train.tokens=256"), std::string("run.eval_every=1")})
    words.insert(words.end(), {"--set", setting});
  for (const std::string& setting : settings) words.insert(words.end(), {"--set", setting});
  const Answer answer = workspace(words);
  EXPECT_EQ(answer.code, 0) << answer.err;
  if (answer.code != 0) return {};
  return {answer.json()["plan_bytes"].get<double>(), answer.json()["peak_bytes"].get<double>()};
}

// Within 3 % of the plan and the stated overhead; and what a larger model adds is what its plan adds, so that the
// overhead hides nothing that grows with the model.
TEST(MeasuredMemory, IsThePlanAndAStatedOverhead) {
  if (sanitized) GTEST_SKIP() << "a sanitizer's own memory would be measured";
  const double overhead = static_cast<double>(process_overhead_bytes);
  // With recompute a plan is smaller, and the model larger, so that what processes differ by anyway is as small a part.
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"run.micro_batch=4"}, "640"}, {{"run.micro_batch=2", "run.recompute=block"}, "896"}};
  const Workspace workspace;
  int seed = 0;
  // The first run measures the rate of matrix products, in more memory than a small model trains in.
  train(workspace, ++seed, "128", {});
  for (const auto& [settings, width] : cases) {
    const Measured small = train(workspace, ++seed, "128", settings), large = train(workspace, ++seed, width, settings);
    ASSERT_GT(large.plan, 50e6);
    for (const Measured& m : {small, large}) {
      EXPECT_GE(m.peak, 0.97 * m.plan) << settings[0];
      EXPECT_LE(m.peak, 1.03 * m.plan + overhead) << settings[0];
    }
    EXPECT_NEAR(large.peak - small.peak, large.plan - small.plan, 0.03 * large.plan) << settings[0];
  }
}

}  // namespace
}  // namespace stacklab::cli
