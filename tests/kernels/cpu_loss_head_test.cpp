// LossHead of the CPU backend against the reference in double, on the same numbers: every instruction set, any threads
// and order of tasks.
#include <gtest/gtest.h>

#include "tests/kernels/product_bounds.h"

namespace stacklab::test {
namespace {

const Backend& fast() { return *find_backend("cpu"); }
const Backend& reference() { return *find_backend("reference"); }

struct Case {
  std::int64_t tokens, vocabulary, d, chunk;
  double soft_cap = 0, z_coef = 0;
  bool norm = true, bf16 = false, gradient = true;
  Wanted dgain = {true, false}, dw = {true, false};
  double logit_deviation = 2;
  int ignored = 3;  // every so many-th row; 1: all, 0: none
  std::string text() const {
    return "loss_head " + std::to_string(tokens) + " x " + std::to_string(vocabulary) + " x " + std::to_string(d) +
           " by " + std::to_string(chunk) + (soft_cap != 0 ? ", capped" : "") + (norm ? "" : ", no norm") +
           (bf16 ? ", bf16" : "") + (gradient ? "" : ", no gradient") + (dw.accumulate ? ", accumulated" : "");
  }
};

struct Head {
  Case c;
  Held x, gain, w, coefficients, dx, dgain, dw;
  Guarded<std::int32_t> targets;
  Guarded<double> sums;

  explicit Head(const Case& k)
      : c(k),
        x({k.tokens, k.d}, 1),
        gain({k.d}, 2),
        w({k.vocabulary, k.d}, 3, k.bf16, k.logit_deviation / std::sqrt(static_cast<double>(k.d))),
        coefficients({k.tokens}, 4),
        dx({k.tokens, k.d}, 5),
        dgain({k.d}, 6),
        dw({k.vocabulary, k.d}, 7),
        targets(k.tokens),
        sums(2, -1) {
    std::mt19937 engine(9);
    for (std::size_t t = 0; t < targets.size(); ++t) {
      targets[t] = static_cast<std::int32_t>(engine() % static_cast<std::uint32_t>(k.vocabulary));
      if (t == 0) targets[t] = static_cast<std::int32_t>(k.vocabulary - 1);
      if (k.ignored > 0 && t % static_cast<std::size_t>(k.ignored) == 0) targets[t] = -1;
    }
  }
  void run(const Backend& backend, bool oracle, Guarded<double>& to, ParallelFor* parallel = nullptr) {
    const auto v = [oracle](Held& h) { return oracle ? h.oracle() : h.view(); };
    run_op(backend,
           op::LossHead{.x = v(x),
                        .gain = c.norm ? v(gain) : TensorView{},
                        .w = v(w),
                        .targets = view_of(targets, {c.tokens}),
                        .coefficients = v(coefficients),
                        .sums = view_of(to, {2}),
                        .dx = c.gradient ? v(dx) : TensorView{},
                        .dgain = c.gradient && c.norm ? c.dgain.of(v(dgain)) : GradView{},
                        .dw = c.gradient ? c.dw.of(v(dw)) : GradView{},
                        .workspace = {},
                        .chunk = c.chunk,
                        .eps = 1e-5,
                        .soft_cap = c.soft_cap,
                        .z_coef = c.z_coef},
           nullptr, parallel);
    EXPECT_TRUE(x.intact() && gain.intact() && w.intact() && coefficients.intact() && dx.intact() && dgain.intact());
    EXPECT_TRUE(dw.intact() && targets.intact() && to.intact());
  }
  // Both sums as halves of floats, so that bits can be compared, then the gradients.
  std::vector<float> values() const {
    std::vector<float> all(4);
    std::memcpy(all.data(), sums.data(), 2 * sizeof(double));
    if (!c.gradient) return all;
    dx.append_to(all);
    if (c.norm && c.dgain.present) dgain.append_to(all);
    if (c.dw.present) dw.append_to(all);
    return all;
  }
};

// Errors of both sums, and the gradient of the logits, from exact numbers.
struct LossErrors {
  double sums[2] = {0, 0};
  Gradient dlogits;
  LossErrors(Head& h, const NormSizes& norm) {
    const Case& c = h.c;
    Tensor<double> logits(Shape{c.tokens, c.vocabulary});
    run_op(reference(), op::Logits{.x = h.x.oracle(),
                                   .gain = c.norm ? h.gain.oracle() : TensorView{},
                                   .w = h.w.oracle(),
                                   .logits = logits.view(),
                                   .workspace = {},
                                   .eps = 1e-5,
                                   .soft_cap = c.soft_cap});
    const double narrowed = narrowing(c.bf16);
    const Matrix e = norm.product_error(h.w.sizes(), narrowed);
    dlogits = {Matrix(c.tokens, c.vocabulary), Matrix(c.tokens, c.vocabulary)};
    for (std::int64_t t = 0; t < c.tokens; ++t) {
      const std::int32_t target = h.targets[static_cast<std::size_t>(t)];
      if (target < 0) continue;
      const double* l = logits.data.data() + t * c.vocabulary;
      const double largest = *std::max_element(l, l + c.vocabulary);
      double sum = 0, off = 0;
      // Of a logit after the cap, whose slope is at most 1.
      const auto off_of = [&](std::int64_t v) { return e(t, v) + 8 * unit32 * std::abs(l[v]); };
      for (std::int64_t v = 0; v < c.vocabulary; ++v) sum += std::exp(l[v] - largest);
      // The log-sum-exp is off by what logits are on average, and by roundings of the exponentials and their sum.
      for (std::int64_t v = 0; v < c.vocabulary; ++v) off += std::exp(l[v] - largest) / sum * off_of(v);
      const double lse = largest + std::log(sum), lse_off = off + unit32 * depth(256);
      const double coefficient = h.coefficients.exact.data[static_cast<std::size_t>(t)], weight = std::abs(coefficient);
      sums[0] += weight * (off_of(target) + lse_off);
      sums[1] += c.z_coef * weight * (2 * std::abs(lse) + lse_off) * lse_off;
      const double of_p = 2 * c.z_coef * weight * lse - coefficient;
      for (std::int64_t v = 0; v < c.vocabulary; ++v) {
        const double p = std::exp(l[v] - lse), own = v == target ? coefficient : 0, ratio = l[v] / c.soft_cap;
        const double slope = c.soft_cap == 0 ? 1 : 1 - ratio * ratio;
        const double cap_off = c.soft_cap == 0 ? 0 : off_of(v) / c.soft_cap;
        const double slope_off = c.soft_cap == 0 ? 0 : (2 * std::abs(ratio) + cap_off) * cap_off + 4 * unit32;
        // Exponentials below the smallest normal number may be 0.
        const double p_off =
            p * (std::expm1(off_of(v) + lse_off) + unit32 * (16 + std::abs(l[v] - largest))) + 0x1p-126;
        const double before_cap = std::abs(of_p * p + own);
        dlogits.size(t, v) = before_cap * slope;
        const double before_cap_off = std::abs(of_p) * p_off + 2 * c.z_coef * weight * lse_off * (p + p_off);
        dlogits.error(t, v) =
            slope * before_cap_off + slope_off * (before_cap + before_cap_off) + 8 * unit32 * before_cap;
      }
    }
    dlogits = dlogits.rounded(narrowed);
  }
};

std::vector<Case> cases() {
  const Wanted more{true, true}, no{false, false};
  std::vector<Case> all = {
      {1, 1, 1, 1},
      {1, 7, 5, 4},
      {40, 300, 64, 16},
      {37, 513, 33, 10},
      {64, 256, 64, 64, 0, 1e-2},
      {33, 700, 530, 33},
      {23, 1030, 17, 7, 5, 1e-2},
      {23, 255, 600, 7, 5, 1e-2},
      {23, 257, 40, 8, 0, 1e-2, false},
      {23, 257, 40, 8, 5, 0, false, false, true, no, more},
      {29, 300, 40, 11, 0, 1e-3, true, false, true, more, more},
      {29, 300, 40, 11, 0, 1e-3, true, false, true, no, no},
      {29, 300, 40, 11, 0, 1e-3, true, false, true, more, no},
      {29, 300, 40, 11, 0, 1e-3, true, false, true, no, more},
      {31, 600, 48, 12, 0, 1e-2, true, true},
      {31, 600, 560, 12, 3, 1e-2, true, true, true, more, more},
      {31, 600, 48, 12, 0, 1e-2, true, false, false},
      {31, 600, 560, 12, 4, 1e-2, true, true, false},
      {31, 600, 48, 12, 0, 1e-2, true, false, true, {true, false}, {true, false}, 100},
      {600, 70, 16, 600},
      {3, 9000, 8, 2, 0, 1e-2},
      // Weights that are packed in parts.
      {5, 4100, 200, 3, 0, 1e-2},
  };
  for (const int ignored : {0, 1, 2}) {
    Case c{26, 300, 24, 9, 0, 1e-2};
    c.ignored = ignored;
    all.push_back(c);
  }
  return all;
}

TEST(CpuLossHead, AgreesWithTheReferenceInDouble) {
  for (const Case& c : cases()) {
    Head exact(c);
    const Head before(c);
    exact.run(reference(), true, exact.sums);
    const NormSizes norm(exact.x, c.norm ? &exact.gain : nullptr, 1e-5);
    const auto expect = [&](const LossErrors& loss) {
      std::vector<Expected> expected;
      if (!c.gradient) return expected;
      const ProductErrors errors(norm, exact.w.sizes(), loss.dlogits, narrowing(c.bf16));
      expected.emplace_back("dx", exact.dx, errors.dx);
      // Chunks and blocks of rows are added one after another, each a token at least.
      const auto summed = [&](const char* name, const Wanted& wanted, const Held& from, const Held& got,
                              const Matrix& error) {
        Matrix sum_of_parts = error + unit32 * depth(c.tokens) * got.sizes();
        if (wanted.present) expected.emplace_back(name, got, wanted.error(from, sum_of_parts, c.tokens));
      };
      if (c.norm) summed("dgain", c.dgain, before.dgain, exact.dgain, errors.dgain);
      summed("dw", c.dw, before.dw, exact.dw, errors.dw);
      return expected;
    };
    on_every_path(
        c.text(),
        [&](ParallelFor* parallel) {
          Head mine(c);
          mine.run(fast(), false, mine.sums, parallel);
          return mine.values();
        },
        [&](const std::string& where, const std::vector<float>& got) {
          const LossErrors loss(exact, norm);
          double sums[2];
          std::memcpy(sums, got.data(), sizeof sums);
          for (const int i : {0, 1})
            EXPECT_LE(std::abs(sums[i] - exact.sums[static_cast<std::size_t>(i)]), loss.sums[i])
                << where << ", sum " << i << ": " << sums[i] << " instead of "
                << exact.sums[static_cast<std::size_t>(i)];
          expect_all(where, {got.begin() + 4, got.end()}, expect(loss));
        });
  }
}

TEST(CpuLossHead, IgnoredRowsGiveExactlyNothing) {
  for (const std::string_view set : cpu::instruction_sets()) {
    const OnInstructionSet on(set);
    for (const int ignored : {1, 2}) {
      Case c{30, 700, 40, 8, 0, 1e-2};
      c.ignored = ignored;
      Head h(c);
      h.run(fast(), false, h.sums);
      for (std::size_t i = 0; i < h.dx.wide.size(); ++i)
        ASSERT_EQ(h.dx[i] == 0, h.targets[i / 40] < 0) << "element " << i << " on " << set;
      if (ignored != 1) continue;
      EXPECT_EQ(h.sums[0], 0);
      EXPECT_EQ(h.sums[1], 0);
      for (std::size_t i = 0; i < h.dgain.wide.size(); ++i) ASSERT_EQ(h.dgain[i], 0);
      for (std::size_t i = 0; i < h.dw.wide.size(); ++i) ASSERT_EQ(h.dw[i], 0);
    }
  }
}

// Logits up to 1e6: the loss is as large, and gradients are those of a hard choice.
TEST(CpuLossHead, HugeLogitsStayFinite) {
  for (const std::string_view set : cpu::instruction_sets()) {
    const OnInstructionSet on(set);
    for (const double cap : {0.0, 30.0}) {
      Case c{12, 600, 16, 5, cap, 1e-4};
      c.logit_deviation = 1e6;
      Head h(c), exact(c);
      h.run(fast(), false, h.sums), exact.run(reference(), true, exact.sums);
      // Products err by 1e6 roundings; a cap leaves signs alone.
      const double relative = cap == 0 ? unit32 * depth(16) * 16 : 1e-2;
      EXPECT_NEAR(h.sums[0], exact.sums[0], relative * std::abs(exact.sums[0])) << set;
      for (const Held* g : {&h.dx, &h.dgain, &h.dw})
        for (std::size_t i = 0; i < g->wide.size(); ++i) ASSERT_TRUE(std::isfinite((*g)[i])) << set;
    }
  }
}

TEST(CpuLossHead, NaNStaysVisible) {
  for (const std::string_view set : cpu::instruction_sets()) {
    const OnInstructionSet on(set);
    for (const double cap : {0.0, 5.0}) {
      Case c{20, 600, 33, 7, cap};
      c.ignored = 0;
      Head h(c);
      h.x.set(9 * 33 + 4, std::numeric_limits<float>::quiet_NaN());
      h.run(fast(), false, h.sums);
      EXPECT_TRUE(std::isnan(h.sums[0])) << set;
      for (std::size_t i = 0; i < h.dx.wide.size(); ++i) ASSERT_EQ(std::isnan(h.dx[i]), i / 33 == 9) << i;
      for (std::size_t i = 0; i < h.dw.wide.size(); ++i) ASSERT_TRUE(std::isnan(h.dw[i])) << i;
    }
  }
}

// The logits of a chunk are all of the head that grows with chunk x vocabulary; evaluation holds none.
TEST(CpuLossHead, HoldsOneChunkOfLogits) {
  const auto workspace = [](std::int64_t chunk, bool gradient) {
    Case c{64, 5000, 8, chunk};
    c.gradient = gradient;
    Head h(c);
    return fast()
        .needs(op::LossHead{.x = h.x.view(),
                            .gain = h.gain.view(),
                            .w = h.w.view(),
                            .targets = view_of(h.targets, {64}),
                            .coefficients = h.coefficients.view(),
                            .sums = view_of(h.sums, {2}),
                            .dx = gradient ? h.dx.view() : TensorView{},
                            .dgain = {},
                            .dw = {},
                            .workspace = {},
                            .chunk = chunk})
        .workspace;
  };
  const auto logits = [](std::int64_t rows) { return static_cast<double>(rows) * 5000 * sizeof(float); };
  EXPECT_NEAR(static_cast<double>(workspace(32, true) - workspace(16, true)), logits(16), 0.05 * logits(16));
  EXPECT_EQ(workspace(1000, true), workspace(64, true));
  EXPECT_LT(static_cast<double>(workspace(32, false) - workspace(16, false)), 0.05 * logits(16));
}

}  // namespace
}  // namespace stacklab::test
