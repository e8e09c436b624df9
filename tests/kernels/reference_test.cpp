// Values of the reference that are known from formulas, and properties that must hold bit for bit.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/reference/matmul.h"
#include "tests/kernels/op_harness.h"

namespace stacklab::test {
namespace {

const Backend& reference() { return *find_backend("reference"); }

struct AdamState {
  Tensor<double> w, g, m, v, lr{Shape{1}}, scale{Shape{1}, 1.0}, updates{Shape{1}, 1.0}, change{Shape{1}, 9.0};
  explicit AdamState(const std::vector<double>& gradient, double rate)
      : w(Shape{static_cast<std::int64_t>(gradient.size())}, 1.0), g(w.shape, gradient), m(w.shape), v(w.shape) {
    lr.data[0] = rate;
  }
  void step(double eps, double decay = 0) {
    run_op(reference(), op::AdamW{.w = w.view(),
                                  .g = g.view(),
                                  .m = m.view(),
                                  .v = v.view(),
                                  .lr = lr.view(),
                                  .scale = scale.view(),
                                  .updates = updates.view(),
                                  .change = change.view(),
                                  .beta1 = 0.9,
                                  .beta2 = 0.95,
                                  .eps = eps,
                                  .weight_decay = decay});
  }
};

TEST(AdamW, EpsilonIsAddedAfterBiasCorrection) {
  // g = eps: m^ = g, sqrt(v^) = g, so the first update is lr / 2.
  AdamState s({1e-8}, 1.0);
  s.step(1e-8);
  EXPECT_NEAR(1 - s.w.data[0], 0.5, 1e-12);
}

TEST(AdamW, ZeroGradientMovesNothingEvenWithoutEpsilon) {
  for (const double eps : {1e-8, 0.0}) {
    AdamState s({0.0, 1.0}, 0.1);
    for (int i = 1; i <= 3; ++i) {
      s.updates.data[0] = i;
      s.step(eps);
    }
    EXPECT_EQ(s.w.data[0], 1.0);
    EXPECT_TRUE(std::isfinite(s.w.data[1]));
  }
}

TEST(AdamW, DecayUsesTheRawRate) {
  AdamState s({0.0}, 0.01);
  s.step(1e-8, 0.1);
  EXPECT_DOUBLE_EQ(s.w.data[0], 1 - 0.001);
}

TEST(AdamW, ChangeIsWhatWasTaken) {
  AdamState s({1.0, -2.0}, 0.01);
  s.step(1e-8, 0.1);
  double squares = 0;
  for (const double w : s.w.data) squares += (1 - w) * (1 - w);
  EXPECT_NEAR(s.change.data[0], squares, 1e-12 * squares + 1e-18);
}

TEST(AdamW, ScaleZeroChangesNothing) {
  AdamState s({std::numeric_limits<double>::quiet_NaN()}, 0.1);
  s.scale.data[0] = 0;
  s.step(1e-8, 0.1);
  EXPECT_EQ(s.w.data[0], 1.0);
  EXPECT_EQ(s.m.data[0], 0.0);
  EXPECT_EQ(s.change.data[0], 0.0);
}

struct Clip {
  double norm, scale, updates;
};
Clip clip(const std::vector<double>& squares, double max_norm) {
  Tensor<double> partials(Shape{static_cast<std::int64_t>(squares.size())}, squares), norm(Shape{1}), scale(Shape{1}),
      updates(Shape{1}, 4.0);
  run_op(reference(), op::ClipScale{.partials = partials.view(),
                                    .norm = norm.view(),
                                    .scale = scale.view(),
                                    .updates = updates.view(),
                                    .max_norm = max_norm});
  return {norm.data[0], scale.data[0], updates.data[0]};
}

TEST(ClipScale, FollowsTheFormula) {
  const Clip c = clip({9, 16}, 1.0);
  EXPECT_DOUBLE_EQ(c.norm, 5);
  EXPECT_DOUBLE_EQ(c.scale, 1 / (5 + 1e-6));
  EXPECT_EQ(c.updates, 5);
  EXPECT_EQ(clip({0.01}, 1.0).scale, 1);
  EXPECT_EQ(clip({1e6}, 0).scale, 1) << "a maximum of 0 means no clipping";
  EXPECT_EQ(clip({0}, 1.0).scale, 1);
}

TEST(ClipScale, ANormThatIsNotFiniteSkipsTheUpdate) {
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    const Clip c = clip({1, bad}, 1.0);
    EXPECT_EQ(c.scale, 0);
    EXPECT_EQ(c.updates, 4);
  }
}

// cross-entropy of rows of logits through a head whose norm and matrix do nothing: x is chosen so that w picks its
// entries.
TEST(LossHead, KnownValues) {
  // d = 2, gain 1, eps 0: rmsnorm([1, 1]) = [1, 1], so the logits are the row sums of w.
  Tensor<double> x(Shape{1, 2}, {1, 1}), gain(Shape{2}, 1.0), sums(Shape{2});
  Tensor<double> w(Shape{3, 2}, {0.5, 0.5, 1, 1, 2, 1});  // logits 1, 2, 3
  Tensor<std::int32_t> target(Shape{1}, {1});
  Tensor<double> coefficient(Shape{1}, -1.0);
  run_op(reference(), op::LossHead{.x = x.view(),
                                   .gain = gain.view(),
                                   .w = w.view(),
                                   .targets = target.view(),
                                   .coefficients = coefficient.view(),
                                   .sums = sums.view(),
                                   .dx = {},
                                   .dgain = {},
                                   .dw = {},
                                   .workspace = {},
                                   .chunk = 1,
                                   .eps = 0,
                                   .soft_cap = 0,
                                   .z_coef = 0.5});
  const double lse = std::log(std::exp(1.0) + std::exp(2.0) + std::exp(3.0));
  EXPECT_NEAR(sums.data[0], lse - 2, 1e-12);
  EXPECT_NEAR(sums.data[1], 0.5 * lse * lse, 1e-12);
}

TEST(LossHead, HugeLogitsStayFinite) {
  Tensor<float> x(Shape{1, 2}, {1, 1}), gain(Shape{2}, 1.0f), coefficient(Shape{1}, -1.0f), dx(x.shape);
  Tensor<float> w(Shape{3, 2}, {3.5e4f, 3.5e4f, 0, 0, -3.5e4f, -3.5e4f});
  Tensor<std::int32_t> target(Shape{1}, {0});
  Tensor<double> sums(Shape{2});
  run_op(reference(), op::LossHead{.x = x.view(),
                                   .gain = gain.view(),
                                   .w = w.view(),
                                   .targets = target.view(),
                                   .coefficients = coefficient.view(),
                                   .sums = sums.view(),
                                   .dx = dx.view(),
                                   .dgain = {},
                                   .dw = {},
                                   .workspace = {},
                                   .chunk = 1,
                                   .eps = 0,
                                   .soft_cap = 0,
                                   .z_coef = 0});
  EXPECT_EQ(sums.data[0], 0);
  for (float g : dx.data) EXPECT_TRUE(std::isfinite(g));
}

TEST(LossHead, AllIgnoredIsZero) {
  Tensor<float> x = random_tensor<float>({3, 4}, 1), gain(Shape{4}, 1.0f), w = random_tensor<float>({5, 4}, 2),
                coefficients(Shape{3});
  Tensor<float> dx(x.shape, 9.0f), dw(w.shape, 9.0f), dgain(gain.shape, 9.0f);
  Tensor<std::int32_t> targets(Shape{3}, -100);
  Tensor<double> sums(Shape{2}, 5.0);
  run_op(reference(), op::LossHead{.x = x.view(),
                                   .gain = gain.view(),
                                   .w = w.view(),
                                   .targets = targets.view(),
                                   .coefficients = coefficients.view(),
                                   .sums = sums.view(),
                                   .dx = dx.view(),
                                   .dgain = {dgain.view(), false},
                                   .dw = {dw.view(), false},
                                   .workspace = {},
                                   .chunk = 2,
                                   .eps = 1e-5,
                                   .soft_cap = 0,
                                   .z_coef = 1e-4});
  EXPECT_EQ(sums.data, (std::vector<double>{0, 0}));
  for (const auto* t : {&dx, &dw, &dgain})
    for (float g : t->data) EXPECT_EQ(g, 0);
}

struct AttentionRun {
  Tensor<float> out, lse, max_logit, dqkv;
};

AttentionRun attend(const Tensor<float>& qkv, std::int64_t q_heads, std::int64_t kv_heads, std::int64_t width,
                    std::vector<std::int32_t> cu_seqlens, const Tensor<float>& dout, ParallelFor* parallel = nullptr) {
  AttentionShape s;
  s.n_heads = q_heads, s.n_kv_heads = kv_heads, s.head_dim = width, s.scale = 0.4, s.norm_eps = 1e-5, s.max_len = 8;
  const std::int64_t tokens = qkv.shape[0];
  Tensor<std::int32_t> positions(Shape{tokens});
  for (std::size_t e = 0; e + 1 < cu_seqlens.size(); ++e)
    for (std::int32_t t = cu_seqlens[e]; t < cu_seqlens[e + 1]; ++t)
      positions.data[static_cast<std::size_t>(t)] = t - cu_seqlens[e];
  const Tensor<std::int32_t> cu(Shape{static_cast<std::int64_t>(cu_seqlens.size())}, cu_seqlens);
  AttentionRun r{Tensor<float>(dout.shape), Tensor<float>(Shape{tokens, q_heads}), Tensor<float>(Shape{q_heads}),
                 Tensor<float>(qkv.shape)};
  run_op(reference(),
         op::Attention{.qkv = qkv.view(),
                       .q_gain = {},
                       .k_gain = {},
                       .positions = positions.view(),
                       .cu_seqlens = cu.view(),
                       .out = r.out.view(),
                       .lse = r.lse.view(),
                       .max_logit = r.max_logit.view(),
                       .saved = {},
                       .workspace = {},
                       .shape = s},
         nullptr, parallel);
  run_op(reference(),
         op::AttentionBackward{.dout = dout.view(),
                               .qkv = qkv.view(),
                               .q_gain = {},
                               .k_gain = {},
                               .positions = positions.view(),
                               .cu_seqlens = cu.view(),
                               .out = r.out.view(),
                               .lse = r.lse.view(),
                               .saved = {},
                               .dqkv = r.dqkv.view(),
                               .dq_gain = {},
                               .dk_gain = {},
                               .workspace = {},
                               .shape = s},
         nullptr, parallel);
  return r;
}

TEST(Attention, GqaIsMhaOnRepeatedKeysAndValues) {
  const std::int64_t tokens = 9, width = 4;
  const Tensor<float> grouped = random_tensor<float>({tokens, (4 + 2 * 2) * width}, 1),
                      dout = random_tensor<float>({tokens, 4 * width}, 2);
  Tensor<float> repeated(Shape{tokens, (4 + 2 * 4) * width});
  for (std::int64_t t = 0; t < tokens; ++t)
    for (std::int64_t head = 0; head < 12; ++head) {
      const std::int64_t from = head < 4 ? head : head < 8 ? 4 + (head - 4) / 2 : 6 + (head - 8) / 2;
      for (std::int64_t i = 0; i < width; ++i)
        repeated.data[static_cast<std::size_t>((t * 12 + head) * width + i)] =
            grouped.data[static_cast<std::size_t>((t * 8 + from) * width + i)];
    }
  const AttentionRun gqa = attend(grouped, 4, 2, width, {0, 4, 9}, dout),
                     mha = attend(repeated, 4, 4, width, {0, 4, 9}, dout);
  EXPECT_EQ(gqa.out.data, mha.out.data);
  EXPECT_EQ(gqa.lse.data, mha.lse.data);
  for (std::int64_t t = 0; t < tokens; ++t)
    EXPECT_EQ(std::memcmp(&gqa.dqkv.data[static_cast<std::size_t>(t * 8 * width)],
                          &mha.dqkv.data[static_cast<std::size_t>(t * 12 * width)], sizeof(float) * 4 * width),
              0)
        << "dq of token " << t;
}

TEST(Attention, DocumentsNeverSeeEachOther) {
  const std::int64_t width = 4;
  Tensor<float> qkv = random_tensor<float>({7, 4 * width}, 1);
  const Tensor<float> dout = random_tensor<float>({7, 2 * width}, 2);
  const AttentionRun together = attend(qkv, 2, 1, width, {0, 3, 7}, dout);
  Tensor<float> second(Shape{4, 4 * width}, {qkv.data.begin() + 3 * 4 * width, qkv.data.end()});
  const Tensor<float> dsecond(Shape{4, 2 * width}, {dout.data.begin() + 3 * 2 * width, dout.data.end()});
  const AttentionRun alone = attend(second, 2, 1, width, {0, 4}, dsecond);
  EXPECT_TRUE(std::equal(alone.out.data.begin(), alone.out.data.end(), together.out.data.begin() + 3 * 2 * width));
  EXPECT_TRUE(std::equal(alone.dqkv.data.begin(), alone.dqkv.data.end(), together.dqkv.data.begin() + 3 * 4 * width));
  // Poison in the first document stays there.
  for (std::size_t i = 0; i < 3 * 4 * width; ++i) qkv.data[i] = std::numeric_limits<float>::quiet_NaN();
  const AttentionRun poisoned = attend(qkv, 2, 1, width, {0, 3, 7}, dout);
  EXPECT_TRUE(std::equal(alone.out.data.begin(), alone.out.data.end(), poisoned.out.data.begin() + 3 * 2 * width));
  EXPECT_TRUE(std::isnan(poisoned.max_logit.data[0])) << "a broken logit must show";
}

TEST(Attention, OrderOfTasksDoesNotMatter) {
  const Tensor<float> qkv = random_tensor<float>({40, 8 * 6}, 1), dout = random_tensor<float>({40, 4 * 6}, 2);
  ReversedTasks reversed;
  const AttentionRun a = attend(qkv, 4, 2, 6, {0, 17, 40}, dout),
                     b = attend(qkv, 4, 2, 6, {0, 17, 40}, dout, &reversed);
  EXPECT_EQ(a.out.data, b.out.data);
  EXPECT_EQ(a.dqkv.data, b.dqkv.data);
}

TEST(Matmul, DotSumsEveryElementAtEveryLength) {
  for (std::int64_t n = 0; n < 70; ++n) {
    std::vector<double> x(static_cast<std::size_t>(n)), ones(x.size(), 1.0);
    double expected = 0;
    for (std::size_t i = 0; i < x.size(); ++i) expected += x[i] = static_cast<double>(i + 1);
    EXPECT_EQ(reference::dot(x.data(), ones.data(), n), expected) << n;
  }
}

TEST(Checks, NameWhatDoesNotFit) {
  Tensor<float> a(Shape{2, 3}), w(Shape{4, 3}), x(Shape{2, 4}), out(Shape{2, 5});
  const Op bad = op::ProjectAdd{.a = a.view(), .w = w.view(), .x = x.view(), .out = out.view()};
  ASSERT_NE(check(bad), nullptr);
  EXPECT_STREQ(check(bad), "out is not [T, d]");
}

}  // namespace
}  // namespace stacklab::test
