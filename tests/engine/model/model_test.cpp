// The whole tiny model against finite differences, and what its plan and parameters must be.
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "engine/program/checker.h"
#include "tests/engine/model/model_harness.h"

namespace stacklab::test {
namespace {

ModelConfig tiny() {
  ModelConfig c;
  c.vocab_size = 13, c.d_model = 6, c.n_layers = 2, c.n_heads = 4, c.n_kv_heads = 2, c.head_dim = 4, c.intermediate = 7;
  c.max_seq_len = 16, c.nope_every = 2, c.norm_eps = 1e-3, c.z_loss_coef = 0.05;
  return c;
}

PackedTokens tiny_batch() {
  return {{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5},
          {1, 4, 1, -100, 9, 2, 6, 5, 3, 5, -100},
          {0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 6},
          {0, 4, 4, 11}};
}

void randomise(ModelOnBatch& m) {
  initialise(m.model().parameters(), 7, m.executor());
  // Larger than a real start, so that every path of the gradient counts.
  for (std::size_t i = 0; i < m.model().parameters().parameters.size(); ++i) {
    std::vector<double> w = m.parameter(i);
    const bool gain = m.model().parameters().parameters[i].kind == ParameterKind::gain;
    for (std::size_t k = 0; k < w.size(); ++k)
      w[k] = gain ? 1 + 0.1 * std::sin(static_cast<double>(3 * i + k)) : 20 * w[k];
    m.set_parameter(i, w);
  }
}

class FiniteDifferences : public testing::TestWithParam<std::tuple<bool, bool, double>> {};

TEST_P(FiniteDifferences, EveryParameterOfTheTinyModel) {
  ModelConfig config = tiny();
  std::tie(config.tie_embeddings, config.qk_norm, config.logit_soft_cap) = GetParam();
  config.attn_soft_cap = config.logit_soft_cap / 2;
  ModelOnBatch m(config, DType::f64, 11, 4, 3);
  randomise(m);
  m.set_batch(tiny_batch());
  m.run();
  const std::size_t count = m.model().parameters().parameters.size();
  std::vector<std::vector<double>> gradients;
  double steepest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    gradients.push_back(m.gradient(i));
    for (const double g : gradients.back()) steepest = std::max(steepest, std::abs(g));
  }
  EXPECT_GT(steepest, 0);
  // Five-point stencil: rounding eps |loss| / h, some hundred operations deep; truncation (h / scale)^4 slope, with the
  // scale on which the loss bends: an embedding's rms, about 0.3, since the norm divides by it.
  const double h = 2e-4, scale = 0.3, f = std::abs(m.loss());
  const double tolerance =
      100 * std::numeric_limits<double>::epsilon() * f / h + 30 * std::pow(h / scale, 4) * (1 + steepest);
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<double> w = m.parameter(i);
    for (std::size_t k = 0; k < w.size(); ++k) {
      const double at = w[k];
      const auto loss = [&](double offset) {
        w[k] = at + offset;
        m.set_parameter(i, w);
        m.run();
        return m.loss();
      };
      const double slope = (8 * (loss(h) - loss(-h)) - (loss(2 * h) - loss(-2 * h))) / (12 * h);
      w[k] = at;
      m.set_parameter(i, w);
      ASSERT_NEAR(slope, gradients[i][k], tolerance) << m.model().parameters().parameters[i].name << " element " << k;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Variants, FiniteDifferences,
                         testing::Values(std::tuple(true, true, 0.0), std::tuple(false, true, 3.0),
                                         std::tuple(true, false, 0.0)));

TEST(StackModel, TheProofHoldsAndThePlanIsTight) {
  for (const bool tied : {true, false}) {
    ModelConfig config = tiny();
    config.tie_embeddings = tied;
    const ModelOnBatch m(config, DType::f32, 11, 4, 3);
    EXPECT_EQ(check_program(m.set(), 0), std::vector<std::string>{});
    EXPECT_EQ(check_plan(m.set(), m.executor().plan()), std::vector<std::string>{});
    EXPECT_EQ(m.executor().allocated_bytes(), m.executor().plan().total());
    // Sharing may waste a little beside what is alive at once, not much.
    const ProgramMemory& memory = m.executor().plan().programs[0];
    EXPECT_LE(static_cast<double>(memory.arena_bytes), 1.25 * static_cast<double>(memory.live_bytes));
  }
}

TEST(StackModel, InitialParametersFollowTheRecipe) {
  ModelConfig config = tiny();
  config.vocab_size = 256, config.d_model = 64, config.intermediate = 128;
  const ModelOnBatch m(config, DType::f32, 4, 1, 4);
  initialise(m.model().parameters(), 1337, m.executor());
  std::set<double> firsts;
  for (std::size_t i = 0; i < m.model().parameters().parameters.size(); ++i) {
    const Parameter& p = m.model().parameters().parameters[i];
    const std::vector<double> w = m.parameter(i);
    if (p.kind == ParameterKind::gain) {
      for (const double x : w) EXPECT_EQ(x, 1);
      continue;
    }
    const bool residual = p.name.ends_with("wo.weight") || p.name.ends_with("down.weight");
    EXPECT_DOUBLE_EQ(p.init_std, residual ? 0.02 / std::sqrt(4.0) : 0.02) << p.name;
    double mean = 0, square = 0;
    for (const double x : w) mean += x, square += x * x;
    const double n = static_cast<double>(w.size());
    // Five standard errors of the mean and of the deviation.
    EXPECT_LT(std::abs(mean / n), 5 * p.init_std / std::sqrt(n)) << p.name;
    EXPECT_NEAR(std::sqrt(square / n), p.init_std, 5 * p.init_std / std::sqrt(2 * n)) << p.name;
    EXPECT_TRUE(firsts.insert(w[0]).second) << p.name << " starts like another tensor";
  }
}

TEST(StackModel, TiedHeadIsOneParameter) {
  ModelConfig config = tiny();
  const ModelOnBatch tied(config, DType::f32, 4, 1, 4);
  config.tie_embeddings = false;
  const ModelOnBatch untied(config, DType::f32, 4, 1, 4);
  EXPECT_EQ(untied.model().parameters().count() - tied.model().parameters().count(),
            config.vocab_size * config.d_model);
}

}  // namespace
}  // namespace stacklab::test
