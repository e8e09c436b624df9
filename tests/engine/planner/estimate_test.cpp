// The closed forms, to the numbers that they are known by.
#include "engine/planner/estimate.h"

#include <gtest/gtest.h>

#include "engine/config/config_io.h"
#include "engine/model/counts.h"

namespace stacklab::test {
namespace {

constexpr double gigabyte = 1e9;

RunConfig flagship() {
  return *load_config(std::filesystem::path(STACKLAB_SOURCE_DIR) / "experiments/stack-100m.json");
}

// As the number is printed: to two decimals.
void expect_gb(double bytes, double printed, const char* what) {
  EXPECT_NEAR(bytes / gigabyte, printed, 0.005 + 1e-9) << what;
}

TEST(Estimate, StateOfTheOptimisers) {
  EXPECT_EQ(state_bytes_per_parameter("adamw"), 16);
  EXPECT_EQ(state_bytes_per_parameter("muon"), 12);
  EXPECT_EQ(state_bytes_per_parameter("adamw8bit"), 10);
  EXPECT_EQ(state_bytes_per_parameter("adamw_bf16"), 8);
  EXPECT_EQ(estimate_memory(flagship(), 2048, 0).state, 1'283'493'888);
  // Nine tenths by Muon.
  for (const auto& [billions, gb] : {std::pair(1.0, 12.4), std::pair(7.0, 86.8), std::pair(70.0, 868.0)})
    EXPECT_NEAR(billions * (0.9 * 12 + 0.1 * 16), gb, 1e-9);
}

TEST(Estimate, TrunkAndHeadOfTheFlagship) {
  const TrunkShape trunk{30, 512, 8};
  const std::int64_t tokens = 32 * 2048, vocabulary = 32768;
  expect_gb(trunk_bytes(trunk, tokens, 20), 20.13, "at 20");
  expect_gb(trunk_bytes(trunk, tokens, 34), 34.23, "at 34");
  expect_gb(trunk_bytes_with_scores(trunk, tokens, 2048, 20), 181.19, "scores kept");
  expect_gb(trunk_bytes_recomputed(trunk, tokens), 2.01, "recomputed");
  expect_gb(head_bytes(tokens, vocabulary), 30.06, "head");
  expect_gb(head_bytes_chunked(4096, vocabulary), 1.07, "head in chunks");
  expect_gb(head_bytes(16 * 2048, vocabulary), 15.03, "head of 1B at 16");
  RunConfig c = flagship();
  c.run.recompute = "none";
  expect_gb(estimate_memory(c, tokens, 4096).least(), 22.49, "as shipped");
  expect_gb(estimate_memory(c, tokens, 0).least(), 51.48, "head at once");
}

TEST(Estimate, TheLargerModel) {
  const TrunkShape trunk{24, 2048, 16};
  const double state = 12.4 * gigabyte, head = head_bytes_chunked(4096, 32768);
  const std::tuple<int, double, double> rows[] = {
      {4, 21.5, 27.2}, {8, 29.6, 40.9}, {16, 45.7, 68.2}, {32, 77.9, 123.0}};
  for (const auto& [micro, least, most] : rows) {
    EXPECT_NEAR((state + head + trunk_bytes(trunk, micro * 2048, 20)) / gigabyte, least, 0.05 + 1e-9) << micro;
    EXPECT_NEAR((state + head + trunk_bytes(trunk, micro * 2048, 34)) / gigabyte, most, 0.05 + 1e-9) << micro;
  }
  EXPECT_EQ(largest_estimated_micro_batch(trunk, 2048, 20, state, head, 80 * gigabyte), 33);
  EXPECT_EQ(largest_estimated_micro_batch(trunk, 2048, 34, state, head, 80 * gigabyte), 19);
  EXPECT_EQ(largest_estimated_micro_batch(trunk, 2048, 34, state, head, state), 0);
}

TEST(Estimate, TheListOfKeptTensors) {
  const ModelConfig model = flagship().model;
  EXPECT_EQ(kept_elements_per_layer(model), 11'264);
  EXPECT_EQ(kept_elements_per_layer(model) * 2 * model.n_layers, 675'840);
  EXPECT_EQ(kept_elements_per_layer(model, true), 8'448);
  EXPECT_EQ(kept_elements_per_layer(model, true) * 2 * model.n_layers, 506'880);
  EXPECT_EQ(2 * model.d_model * model.n_layers, 30 << 10);
  // Peaks: all logits and activations; logits in chunks of 8192; blocks recomputed; both.
  const std::tuple<int, double, double, double, double> cards[] = {
      {2, 5.39, 4.59, 2.84, 2.04}, {8, 17.73, 13.43, 7.52, 3.23}, {16, 34.17, 24.50, 13.77, 4.10}};
  for (const auto& [micro, naive, chunked, recomputed, both] : cards) {
    const std::int64_t tokens = micro * 2048;
    RunConfig c = flagship();
    c.run.recompute = "none";
    expect_gb(estimate_memory(c, tokens, 0).listed(), naive, "naive");
    expect_gb(estimate_memory(c, tokens, 8192).listed(), chunked, "chunked");
    c.run.recompute = "block";
    expect_gb(estimate_memory(c, tokens, 0).listed(), recomputed, "recomputed");
    expect_gb(estimate_memory(c, tokens, 8192).listed(), both, "both");
  }
}

}  // namespace
}  // namespace stacklab::test
