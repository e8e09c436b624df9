#include "engine/model/counts.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/config/config_io.h"

namespace stacklab {
namespace {

ModelConfig stack_100m() {
  const auto config = load_config(std::filesystem::path(STACKLAB_SOURCE_DIR) / "experiments/stack-100m.json");
  return config.value().model;
}

TEST(Counts, StackParameters) {
  const ModelCounts c = count_parameters(stack_100m());
  EXPECT_EQ(c.attention_per_layer, 655'360);
  EXPECT_EQ(c.ffn_per_layer, 2'162'688);
  EXPECT_EQ(c.layer, 2'819'200);
  EXPECT_EQ(c.body, 84'576'512);
  EXPECT_EQ(c.embedding, 16'777'216);
  EXPECT_EQ(c.head, 0);
  EXPECT_EQ(c.total, 101'353'728);
  EXPECT_EQ(c.hidden_matrices, 84'541'440);
  EXPECT_EQ(c.total - c.hidden_matrices, 16'812'288);
  EXPECT_NEAR(100.0 * double(c.body) / double(c.total), 83.45, 0.005);
  // Bytes of files and optimiser states follow from the split.
  EXPECT_EQ(2 * c.total, 202'707'456);
  EXPECT_EQ(4 * c.total, 405'414'912);
  EXPECT_EQ(12 * c.hidden_matrices + 16 * (c.total - c.hidden_matrices), 1'283'493'888);
  EXPECT_EQ(8 * c.hidden_matrices + 12 * (c.total - c.hidden_matrices), 878'078'976);
  EXPECT_EQ(10 * c.hidden_matrices + 14 * (c.total - c.hidden_matrices), 1'080'786'432);
}

TEST(Counts, UntiedHead) {
  ModelConfig untied = stack_100m();
  untied.tie_embeddings = false;
  const ModelCounts c = count_parameters(untied);
  EXPECT_EQ(c.total, 118'130'944);
  EXPECT_EQ(2 * c.head, 33'554'432);
  EXPECT_EQ(c.hidden_matrices, 84'541'440) << "neither embedding nor head is Muon's";
  EXPECT_EQ(flops_per_token(untied, 2048).total(), flops_per_token(stack_100m(), 2048).total());
}

TEST(Counts, TyingChangesParametersOnly) {
  ModelConfig m;
  m.d_model = 64;
  m.vocab_size = 1000;
  ModelConfig untied = m;
  untied.tie_embeddings = false;
  EXPECT_EQ(count_parameters(untied).total - count_parameters(m).total, 64'000);
  EXPECT_EQ(flops_per_token(untied, 512).total(), flops_per_token(m, 512).total());
}

TEST(Counts, MoreKeyValueHeads) {
  ModelConfig mha = stack_100m();
  mha.n_kv_heads = 8;
  const ModelCounts gqa = count_parameters(stack_100m()), all = count_parameters(mha);
  const std::int64_t extra = all.attention_per_layer - gqa.attention_per_layer;
  EXPECT_EQ(extra, 393'216);
  EXPECT_EQ(30 * extra, 11'796'480);
  EXPECT_NEAR(double(30 * extra) / double(gqa.layer), 4.18, 0.005);
  const double d2 = 512.0 * 512.0;
  const double kappa = double(gqa.attention_per_layer + gqa.ffn_per_layer) / d2,
               kappa_all = double(all.attention_per_layer + all.ffn_per_layer) / d2;
  EXPECT_EQ(kappa, 10.75);
  EXPECT_EQ(kappa_all, 12.25);
  EXPECT_NEAR(2048 / (kappa * 512), 0.3721, 5e-5);
  EXPECT_NEAR(2048 / (kappa_all * 512), 0.3265, 5e-5);
  EXPECT_EQ(flops_per_token(mha, 2048).attention, flops_per_token(stack_100m(), 2048).attention);
}

TEST(Counts, FlopsOfAToken) {
  const TokenFlops short_window = flops_per_token(stack_100m(), 2048),
                   long_window = flops_per_token(stack_100m(), 8192);
  EXPECT_EQ(short_window.body, 507'459'072);
  EXPECT_EQ(short_window.attention, 188'743'680);
  EXPECT_EQ(short_window.head, 100'663'296);
  EXPECT_EQ(short_window.total(), 796'866'048);
  EXPECT_EQ(long_window.attention, 754'974'720);
  EXPECT_EQ(long_window.total(), 1'363'097'088);
  EXPECT_NEAR(double(long_window.total()) / double(short_window.total()), 1.7106, 5e-5);
  EXPECT_NEAR(double(long_window.attention) / double(long_window.body), 1.4878, 5e-5);
  const double run = 20e9 * double(short_window.total()),
               six_n_d = 6.0 * 20e9 * double(count_parameters(stack_100m()).total);
  EXPECT_NEAR(run, 1.5937e19, 5e14);
  EXPECT_NEAR(six_n_d, 1.2162e19, 5e14);
  EXPECT_NEAR(run / six_n_d, 1.3104, 5e-5);
}

TEST(Counts, KeyValueCache) {
  ModelConfig mha = stack_100m();
  mha.n_kv_heads = 8;
  EXPECT_EQ(kv_bytes_per_token(stack_100m()), 15'360);
  EXPECT_EQ(kv_bytes_per_token(mha), 61'440);
  EXPECT_EQ(2048 * kv_bytes_per_token(stack_100m()), 31'457'280);
  EXPECT_EQ(8192 * kv_bytes_per_token(stack_100m()), 125'829'120);
  EXPECT_EQ(8192 * kv_bytes_per_token(mha), 503'316'480);
  EXPECT_EQ(kv_bytes_per_token(stack_100m(), 4), 30'720);
}

TEST(Counts, LayersWithoutRotaryPositions) {
  EXPECT_EQ(nope_layers(stack_100m()), (std::vector<std::int64_t>{3, 7, 11, 15, 19, 23, 27}));
  ModelConfig m = stack_100m();
  m.nope_every = 0;
  EXPECT_TRUE(nope_layers(m).empty());
  m.nope_every = 1;
  EXPECT_EQ(nope_layers(m).size(), 30u);
  m.nope_every = 31;
  EXPECT_TRUE(nope_layers(m).empty());
}

TEST(Counts, WithoutQueryAndKeyNorms) {
  ModelConfig m = stack_100m();
  m.qk_norm = false;
  EXPECT_EQ(count_parameters(stack_100m()).total - count_parameters(m).total, 30 * 2 * 64);
}

TEST(Counts, LadderRungs) {
  const std::pair<const char*, std::int64_t> rungs[] = {
      {"ladder-3.9m", 3'937'472}, {"ladder-8.8m", 8'855'296}, {"ladder-19m", 18'814'016}, {"ladder-44m", 44'065'664}};
  for (const auto& [name, body] : rungs) {
    const auto config =
        load_config(std::filesystem::path(STACKLAB_SOURCE_DIR) / "experiments" / (std::string(name) + ".json"));
    ASSERT_TRUE(config) << name;
    EXPECT_EQ(count_parameters(config->model).body, body) << name;
    EXPECT_EQ(config->train.tokens, 20 * body) << name;
  }
}

}  // namespace
}  // namespace stacklab
