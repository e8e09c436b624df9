// Every backward operation against finite differences of its forward, in double, on odd shapes.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "tests/kernels/op_harness.h"

namespace stacklab::test {
namespace {

using T64 = Tensor<double>;
const Backend& reference() { return *find_backend("reference"); }

double weighted_sum(const T64& out, const T64& weights) {
  double sum = 0;
  for (std::size_t i = 0; i < out.data.size(); ++i) sum += out.data[i] * weights.data[i];
  return sum;
}

// loss(): the scalar, recomputed from the current contents of x. gradient: what backward says of x.
// Five-point stencil: error h^4 f'''''/30 plus rounding eps |f| / h, of which |f| is bounded by magnitude.
void expect_gradient(const std::string& what, T64& x, const T64& gradient, double magnitude,
                     const std::function<double()>& loss) {
  const double h = 1e-3;
  double largest = 0;
  for (double g : gradient.data) largest = std::max(largest, std::abs(g));
  const double tolerance =
      50 * (std::numeric_limits<double>::epsilon() * magnitude / h + h * h * h * h * (1 + largest + magnitude));
  for (std::size_t i = 0; i < x.data.size(); ++i) {
    const double at = x.data[i];
    const auto f = [&](double offset) {
      x.data[i] = at + offset;
      return loss();
    };
    const double slope = (8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h);
    x.data[i] = at;
    ASSERT_NEAR(slope, gradient.data[i], tolerance) << what << " element " << i;
  }
}

// One entry for each operation, so that a new one cannot be forgotten here. logits shares its product with norm_matmul;
// from sum_squares on they have no gradient and are tested by their formulas (reference_test.cpp) and by golden values.
constexpr std::array tested = {"norm_matmul",
                               "norm_matmul_backward",
                               "project_add",
                               "project_add_backward",
                               "norm_swiglu",
                               "norm_swiglu_backward",
                               "swiglu_project_backward",
                               "attention",
                               "attention_backward",
                               "loss_head",
                               "embedding",
                               "embedding_backward",
                               "logits",
                               "rmsnorm",
                               "rmsnorm_backward",
                               "rope",
                               "swiglu",
                               "swiglu_backward",
                               "ragged_attention",
                               "ragged_attention_backward",
                               "sum_squares",
                               "clip_scale",
                               "adamw",
                               "adamw_compact",
                               "muon",
                               "qk_clip_heads",
                               "qk_clip_gains",
                               "cast",
                               "newton_schulz"};
static_assert(tested.size() == std::variant_size_v<Op>, "an operation has no test here");

TEST(Gradients, NormMatmul) {
  const std::int64_t rows = 19, n = 7, d = 21;  // more than one block of rows
  T64 x = random_tensor<double>({rows, d}, 1), gain = random_tensor<double>({d}, 2),
      w = random_tensor<double>({n, d}, 3);
  const T64 dy = random_tensor<double>({rows, n}, 4);
  T64 y(Shape{rows, n});
  const auto loss = [&] {
    run_op(reference(), op::NormMatmul{.x = x.view(),
                                       .gain = gain.view(),
                                       .w = w.view(),
                                       .y = y.view(),
                                       .saved = {},
                                       .workspace = {},
                                       .eps = 1e-2});
    return weighted_sum(y, dy);
  };
  loss();
  T64 dx(x.shape), dgain(gain.shape), dw(w.shape);
  run_op(reference(), op::NormMatmulBackward{.dy = dy.view(),
                                             .x = x.view(),
                                             .gain = gain.view(),
                                             .w = w.view(),
                                             .saved = {},
                                             .dx = {dx.view(), false},
                                             .dgain = {dgain.view(), false},
                                             .dw = {dw.view(), false},
                                             .workspace = {},
                                             .eps = 1e-2});
  expect_gradient("x", x, dx, 1e3, loss);
  expect_gradient("gain", gain, dgain, 1e3, loss);
  expect_gradient("w", w, dw, 1e3, loss);
}

TEST(Gradients, ProjectAdd) {
  const std::int64_t rows = 5, k = 9, d = 3;
  T64 a = random_tensor<double>({rows, k}, 1), w = random_tensor<double>({d, k}, 2),
      x = random_tensor<double>({rows, d}, 3);
  const T64 dout = random_tensor<double>({rows, d}, 4);
  T64 out(x.shape);
  const auto loss = [&] {
    run_op(reference(), op::ProjectAdd{.a = a.view(), .w = w.view(), .x = x.view(), .out = out.view()});
    return weighted_sum(out, dout);
  };
  T64 da(a.shape), dw(w.shape);
  run_op(reference(),
         op::ProjectAddBackward{
             .dout = dout.view(), .a = a.view(), .w = w.view(), .da = da.view(), .dw = {dw.view(), false}});
  expect_gradient("a", a, da, 1e3, loss);
  expect_gradient("w", w, dw, 1e3, loss);
  expect_gradient("x", x, dout, 1e3, loss);
}

// Through out = x + u wd^T, whether u was kept or is made again.
TEST(Gradients, NormSwiglu) {
  const std::int64_t rows = 18, f = 5, d = 7;
  T64 x = random_tensor<double>({rows, d}, 1), gain = random_tensor<double>({d}, 2),
      w = random_tensor<double>({2 * f, d}, 3), wd = random_tensor<double>({d, f}, 4);
  const T64 dout = random_tensor<double>({rows, d}, 5);
  T64 u(Shape{rows, f}), out(Shape{rows, d});
  std::vector<std::uint8_t> saved;
  const auto loss = [&] {
    run_op(reference(),
           op::NormSwiglu{.x = x.view(),
                          .gain = gain.view(),
                          .w_gate_up = w.view(),
                          .u = u.view(),
                          .saved = {},
                          .workspace = {},
                          .eps = 1e-5},
           &saved);
    run_op(reference(), op::ProjectAdd{.a = u.view(), .w = wd.view(), .x = x.view(), .out = out.view()});
    return weighted_sum(out, dout);
  };
  for (const bool again : {false, true}) {
    loss();
    T64 dx = dout, dgain(gain.shape), dw(w.shape), dwd(wd.shape);  // x passes by as well
    std::vector<std::uint8_t> kept = saved;
    run_op(reference(),
           op::SwigluProjectBackward{.dout = dout.view(),
                                     .w = wd.view(),
                                     .u = again ? TensorView{} : u.view(),
                                     .saved = {},
                                     .dw = {dwd.view(), false},
                                     .workspace = {},
                                     .u_type = DType::f64},
           &kept);
    run_op(reference(),
           op::NormSwigluBackward{.x = x.view(),
                                  .gain = gain.view(),
                                  .w_gate_up = w.view(),
                                  .saved = {},
                                  .dx = {dx.view(), true},
                                  .dgain = {dgain.view(), false},
                                  .dw = {dw.view(), false},
                                  .workspace = {},
                                  .eps = 1e-5},
           &kept);
    expect_gradient("wd", wd, dwd, 1e3, loss);
    expect_gradient("x", x, dx, 1e3, loss);
    expect_gradient("gain", gain, dgain, 1e3, loss);
    expect_gradient("w", w, dw, 1e3, loss);
  }
}

struct AttentionCase {
  const char* name;
  AttentionShape shape;
  bool qk_norm;
  std::vector<std::int32_t> cu_seqlens;
};

class AttentionGradients : public testing::TestWithParam<AttentionCase> {};

TEST_P(AttentionGradients, AgreeWithFiniteDifferences) {
  const AttentionCase& c = GetParam();
  const AttentionShape& s = c.shape;
  const std::int64_t tokens = c.cu_seqlens.back();
  T64 qkv = random_tensor<double>({tokens, s.qkv_width()}, 1);
  T64 q_gain = random_tensor<double>({s.head_dim}, 2), k_gain = random_tensor<double>({s.head_dim}, 3);
  Tensor<std::int32_t> positions(Shape{tokens});
  for (std::int64_t t = 0; t < tokens; ++t)
    positions.data[static_cast<std::size_t>(t)] = static_cast<std::int32_t>(3 * t + 1);
  const Tensor<std::int32_t> cu(Shape{static_cast<std::int64_t>(c.cu_seqlens.size())}, c.cu_seqlens);
  const T64 dout = random_tensor<double>({tokens, s.n_heads * s.head_dim}, 4);
  T64 out(dout.shape), lse(Shape{tokens, s.n_heads}), max_logit(Shape{s.n_heads});
  const TensorView no_gain;
  const auto loss = [&] {
    run_op(reference(), op::Attention{.qkv = qkv.view(),
                                      .q_gain = c.qk_norm ? q_gain.view() : no_gain,
                                      .k_gain = c.qk_norm ? k_gain.view() : no_gain,
                                      .positions = positions.view(),
                                      .cu_seqlens = cu.view(),
                                      .out = out.view(),
                                      .lse = lse.view(),
                                      .max_logit = max_logit.view(),
                                      .saved = {},
                                      .workspace = {},
                                      .shape = s});
    return weighted_sum(out, dout);
  };
  loss();
  T64 dqkv(qkv.shape), dq_gain(q_gain.shape), dk_gain(k_gain.shape);
  const auto gradient = [&](T64& g) { return c.qk_norm ? GradView{g.view(), false} : GradView{}; };
  run_op(reference(), op::AttentionBackward{.dout = dout.view(),
                                            .qkv = qkv.view(),
                                            .q_gain = c.qk_norm ? q_gain.view() : no_gain,
                                            .k_gain = c.qk_norm ? k_gain.view() : no_gain,
                                            .positions = positions.view(),
                                            .cu_seqlens = cu.view(),
                                            .out = T64(out).view(),
                                            .lse = lse.view(),
                                            .saved = {},
                                            .dqkv = dqkv.view(),
                                            .dq_gain = gradient(dq_gain),
                                            .dk_gain = gradient(dk_gain),
                                            .workspace = {},
                                            .shape = s});
  expect_gradient("qkv", qkv, dqkv, 1e3, loss);
  if (!c.qk_norm) return;
  expect_gradient("q_gain", q_gain, dq_gain, 1e3, loss);
  expect_gradient("k_gain", k_gain, dk_gain, 1e3, loss);
}

AttentionShape heads(std::int64_t q, std::int64_t kv, std::int64_t width, bool rope, double cap) {
  AttentionShape s;
  s.n_heads = q, s.n_kv_heads = kv, s.head_dim = width, s.rope = rope, s.soft_cap = cap;
  s.scale = 1 / std::sqrt(static_cast<double>(width));
  s.norm_eps = 1e-5, s.rope_theta = 100, s.max_len = 9;
  return s;
}

INSTANTIATE_TEST_SUITE_P(Shapes, AttentionGradients,
                         testing::Values(AttentionCase{"gqa", heads(4, 2, 6, true, 0), true, {0, 5, 5, 6, 11}},
                                         AttentionCase{"mqa_capped", heads(3, 1, 2, true, 1.5), true, {0, 7}},
                                         AttentionCase{"mha_plain", heads(2, 2, 3, false, 0), false, {0, 1, 6, 6}},
                                         AttentionCase{"nope_capped", heads(2, 1, 5, false, 3), false, {0, 9}}),
                         [](const auto& i) { return std::string(i.param.name); });

struct HeadCase {
  const char* name;
  std::int64_t chunk;
  double soft_cap, z_coef;
};

class HeadGradients : public testing::TestWithParam<HeadCase> {};

TEST_P(HeadGradients, AgreeWithFiniteDifferences) {
  const HeadCase& c = GetParam();
  const std::int64_t rows = 7, d = 5, vocabulary = 11;
  T64 x = random_tensor<double>({rows, d}, 1), gain = random_tensor<double>({d}, 2),
      w = random_tensor<double>({vocabulary, d}, 3);
  const Tensor<std::int32_t> targets(Shape{rows}, {3, -100, 0, 10, 7, -100, 3});
  // Coefficients of either sign, as preference losses have them.
  const T64 coefficients(Shape{rows}, {-0.25, 0, 0.5, -0.125, -0.75, 0, -1});
  T64 sums(Shape{2});
  op::LossHead head{.x = x.view(),
                    .gain = gain.view(),
                    .w = w.view(),
                    .targets = targets.view(),
                    .coefficients = coefficients.view(),
                    .sums = sums.view(),
                    .dx = {},
                    .dgain = {},
                    .dw = {},
                    .workspace = {},
                    .chunk = c.chunk,
                    .eps = 1e-3,
                    .soft_cap = c.soft_cap,
                    .z_coef = c.z_coef};
  const auto loss = [&] {
    head.x = x.view(), head.gain = gain.view(), head.w = w.view();
    run_op(reference(), head);
    return sums.data[0] + sums.data[1];
  };
  T64 dx(x.shape), dgain(gain.shape), dw(w.shape);
  op::LossHead backward = head;
  backward.dx = dx.view();
  backward.dgain = {dgain.view(), false};
  backward.dw = {dw.view(), false};
  run_op(reference(), backward);
  const double with_gradients = sums.data[0] + sums.data[1];
  EXPECT_EQ(with_gradients, loss());
  expect_gradient("x", x, dx, 1e2, loss);
  expect_gradient("gain", gain, dgain, 1e2, loss);
  expect_gradient("w", w, dw, 1e2, loss);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(dx.data[5 + i], 0) << "an ignored row has a gradient";
}

INSTANTIATE_TEST_SUITE_P(Shapes, HeadGradients,
                         testing::Values(HeadCase{"whole", 64, 0, 0}, HeadCase{"chunked", 3, 0, 0.3},
                                         HeadCase{"capped", 2, 2.0, 0.1}),
                         [](const auto& i) { return std::string(i.param.name); });

TEST(Gradients, Embedding) {
  T64 table = random_tensor<double>({6, 3}, 1), x(Shape{5, 3});
  const Tensor<std::int32_t> ids(Shape{5}, {2, 0, 2, 5, 2});
  const T64 dx = random_tensor<double>({5, 3}, 2);
  const auto loss = [&] {
    run_op(reference(), op::Embedding{.ids = ids.view(), .table = table.view(), .x = x.view()});
    return weighted_sum(x, dx);
  };
  T64 dtable(table.shape, 99.0);
  run_op(reference(), op::EmbeddingBackward{.ids = ids.view(), .dx = dx.view(), .dtable = {dtable.view(), false}});
  expect_gradient("table", table, dtable, 1e2, loss);
  // Unused rows are exactly 0, and accumulation adds.
  EXPECT_EQ(dtable.data[3], 0);
  T64 twice = dtable;
  run_op(reference(), op::EmbeddingBackward{.ids = ids.view(), .dx = dx.view(), .dtable = {twice.view(), true}});
  for (std::size_t i = 0; i < twice.data.size(); ++i) EXPECT_NEAR(twice.data[i], 2 * dtable.data[i], 1e-15 * 8);
}

TEST(Gradients, RmsNorm) {
  T64 x = random_tensor<double>({5, 7}, 1), gain = random_tensor<double>({7}, 2), y(x.shape);
  const T64 dy = random_tensor<double>({5, 7}, 3);
  const auto loss = [&] {
    run_op(reference(), op::RmsNorm{.x = x.view(), .gain = gain.view(), .y = y.view(), .eps = 1e-2});
    return weighted_sum(y, dy);
  };
  T64 dx(x.shape), dgain(gain.shape);
  run_op(reference(), op::RmsNormBackward{.dy = dy.view(),
                                          .x = x.view(),
                                          .gain = gain.view(),
                                          .dx = {dx.view(), false},
                                          .dgain = {dgain.view(), false},
                                          .workspace = {},
                                          .eps = 1e-2});
  expect_gradient("x", x, dx, 1e2, loss);
  expect_gradient("gain", gain, dgain, 1e2, loss);
}

TEST(Gradients, RopeTurnsBack) {
  T64 x = random_tensor<double>({4, 3, 6}, 1), y(x.shape), dx(x.shape);
  const T64 dy = random_tensor<double>({4, 3, 6}, 2);
  const Tensor<std::int32_t> positions(Shape{4}, {0, 5, 2, 31});
  const auto loss = [&] {
    run_op(reference(), op::Rope{.x = x.view(),
                                 .positions = positions.view(),
                                 .y = y.view(),
                                 .workspace = {},
                                 .theta = 50,
                                 .inverse = false});
    return weighted_sum(y, dy);
  };
  run_op(reference(), op::Rope{.x = dy.view(),
                               .positions = positions.view(),
                               .y = dx.view(),
                               .workspace = {},
                               .theta = 50,
                               .inverse = true});
  expect_gradient("x", x, dx, 1e2, loss);
  // Position 0 is the identity.
  for (std::size_t i = 0; i < 18; ++i) EXPECT_EQ(y.data[i], x.data[i]);
}

TEST(Gradients, Swiglu) {
  T64 gate = random_tensor<double>({3, 5}, 1, 2), up = random_tensor<double>({3, 5}, 2), u(gate.shape);
  const T64 du = random_tensor<double>({3, 5}, 3);
  const auto loss = [&] {
    run_op(reference(), op::Swiglu{.gate = gate.view(), .up = up.view(), .u = u.view()});
    return weighted_sum(u, du);
  };
  T64 dgate(gate.shape), dup(up.shape);
  run_op(reference(),
         op::SwigluBackward{
             .du = du.view(), .gate = gate.view(), .up = up.view(), .dgate = dgate.view(), .dup = dup.view()});
  expect_gradient("gate", gate, dgate, 1e2, loss);
  expect_gradient("up", up, dup, 1e2, loss);
}

struct RaggedCase {
  const char* name;
  std::vector<std::int32_t> cu_q, cu_k;
  std::int64_t window;
  double cap;
};

class RaggedGradients : public testing::TestWithParam<RaggedCase> {};

TEST_P(RaggedGradients, AgreeWithFiniteDifferences) {
  const RaggedCase& c = GetParam();
  const std::int64_t queries = c.cu_q.back(), keys = c.cu_k.back(),
                     documents = static_cast<std::int64_t>(c.cu_q.size());
  T64 q = random_tensor<double>({queries, 4, 6}, 1), k = random_tensor<double>({keys, 2, 6}, 2),
      v = random_tensor<double>({keys, 2, 3}, 3);
  const T64 dout = random_tensor<double>({queries, 4, 3}, 4);
  const Tensor<std::int32_t> cu_q(Shape{documents}, c.cu_q), cu_k(Shape{documents}, c.cu_k);
  T64 out(dout.shape), lse(Shape{queries, 4}), max_logit(Shape{4});
  const RaggedShape shape{.scale = 0.4, .soft_cap = c.cap, .window = c.window, .max_len = 0};
  const auto loss = [&] {
    run_op(reference(), op::RaggedAttention{.q = q.view(),
                                            .k = k.view(),
                                            .v = v.view(),
                                            .cu_q = cu_q.view(),
                                            .cu_k = cu_k.view(),
                                            .out = out.view(),
                                            .lse = lse.view(),
                                            .max_logit = max_logit.view(),
                                            .workspace = {},
                                            .shape = shape});
    return weighted_sum(out, dout);
  };
  loss();
  T64 dq(q.shape), dk(k.shape), dv(v.shape);
  run_op(reference(), op::RaggedAttentionBackward{.dout = dout.view(),
                                                  .q = q.view(),
                                                  .k = k.view(),
                                                  .v = v.view(),
                                                  .cu_q = cu_q.view(),
                                                  .cu_k = cu_k.view(),
                                                  .out = out.view(),
                                                  .lse = lse.view(),
                                                  .dq = dq.view(),
                                                  .dk = dk.view(),
                                                  .dv = dv.view(),
                                                  .shape = shape});
  expect_gradient("q", q, dq, 1e2, loss);
  expect_gradient("k", k, dk, 1e2, loss);
  expect_gradient("v", v, dv, 1e2, loss);
}

INSTANTIATE_TEST_SUITE_P(Shapes, RaggedGradients,
                         testing::Values(RaggedCase{"whole", {0, 4, 4, 7}, {0, 4, 4, 7}, 0, 0},
                                         RaggedCase{"earlier_keys", {0, 2, 3}, {0, 5, 9}, 0, 2.0},
                                         RaggedCase{"window", {0, 6}, {0, 8}, 3, 0}),
                         [](const auto& i) { return std::string(i.param.name); });

}  // namespace
}  // namespace stacklab::test
