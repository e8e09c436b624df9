// Norms, AdamW, QK-clip and casts of the CPU backend against the reference, on every instruction set, for any threads
// and order of tasks.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/bf16.h"
#include "tests/kernels/cpu_harness.h"
#include "tests/kernels/op_harness.h"

namespace stacklab::test {
namespace {

const Backend& fast() { return *find_backend("cpu"); }
const Backend& reference() { return *find_backend("reference"); }

// One element, remainders of every vector, several blocks with a remainder.
const std::vector<std::int64_t> sizes = {1, 2, 3, 7, 8, 15, 31, 33, 1000, 4096, 4097, 20011};

TEST(CpuSumSquares, AgreesWithSumsInDouble) {
  for (const std::int64_t n : sizes) {
    Guarded<float> g = random_guarded<float>(n, 3);
    double expected = 0;
    for (std::size_t i = 0; i < g.size(); ++i) expected += static_cast<double>(g[i]) * static_cast<double>(g[i]);
    on_every_path(
        "sum of " + std::to_string(n),
        [&](ParallelFor* parallel) {
          Guarded<double> out(1);
          run_op(fast(), op::SumSquares{.g = view_of(g, {n}), .out = view_of(out, {1})}, nullptr, parallel);
          EXPECT_TRUE(g.intact() && out.intact());
          return out.values();
        },
        [&](const std::string& what, const std::vector<double>& got) {
          expect_close(what, got, std::vector<double>{expected},
                       [&](std::size_t) { return static_cast<double>(n) * 0x1p-53 * expected; });
        });
  }
}

TEST(CpuSumSquares, WhatIsNotFiniteShows) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()})
    for (const std::size_t at : {std::size_t{0}, std::size_t{5000}, std::size_t{20010}}) {
      Guarded<float> g = random_guarded<float>(20011, 3);
      g[at] = bad;
      Guarded<double> out(1);
      run_op(fast(), op::SumSquares{.g = view_of(g, {20011}), .out = view_of(out, {1})});
      EXPECT_FALSE(std::isfinite(out[0])) << at;
    }
}

struct AdamWState {
  Guarded<float> w, g, m, v;
  double change = -1;
  explicit AdamWState(std::int64_t n)
      : w(random_guarded<float>(n, 1)),
        g(random_guarded<float>(n, 2, 1e-2)),
        m(random_guarded<float>(n, 3, 1e-2)),
        v(random_guarded<float>(n, 4, 1e-4)) {
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = std::abs(v[i]);
  }
};

struct AdamWHyper {
  double lr = 3e-3, scale = 0.37, updates = 3, eps = 1e-8, weight_decay = 0.1;
};

void step(const Backend& backend, AdamWState& s, const AdamWHyper& h, ParallelFor* parallel = nullptr) {
  const Shape shape = {static_cast<std::int64_t>(s.w.size())};
  Guarded<double> lr(1, h.lr), scale(1, h.scale), updates(1, h.updates), change(1, -1.0);
  run_op(backend,
         op::AdamW{.w = view_of(s.w, shape),
                   .g = view_of(s.g, shape),
                   .m = view_of(s.m, shape),
                   .v = view_of(s.v, shape),
                   .lr = view_of(lr, {1}),
                   .scale = view_of(scale, {1}),
                   .updates = view_of(updates, {1}),
                   .change = view_of(change, {1}),
                   .beta1 = 0.9,
                   .beta2 = 0.95,
                   .eps = h.eps,
                   .weight_decay = h.weight_decay},
         nullptr, parallel);
  s.change = change[0];
  EXPECT_TRUE(s.w.intact() && s.g.intact() && s.m.intact() && s.v.intact());
  EXPECT_TRUE(lr.intact() && scale.intact() && updates.intact() && change.intact());
}

std::vector<float> all_of(const AdamWState& s) {
  std::vector<float> all;
  for (const Guarded<float>* t : {&s.w, &s.m, &s.v}) all.insert(all.end(), t->data(), t->data() + t->size());
  return all;
}

// One update in double of the same state, and what roundings of floats may make of it. A product or sum of floats, and
// each number of the config, is off by unit32.
struct ExactAdamW {
  std::vector<double> values, allowed;  // of w, m, v
  double change = 0, change_off = 0;    // the latter: the norm of what is off in what is taken from w

  ExactAdamW(const AdamWState& s, const AdamWHyper& h) {
    const std::size_t n = s.w.size();
    values.resize(3 * n), allowed.resize(3 * n);
    const double c1 = 1 - std::pow(0.9, h.updates), c2 = 1 - std::pow(0.95, h.updates);
    for (std::size_t i = 0; i < n; ++i) {
      const double g = s.g[i] * h.scale, w = s.w[i];
      const double m = 0.9 * s.m[i] + 0.1 * g, v = 0.95 * s.v[i] + 0.05 * g * g;
      const double m_off = 5 * unit32 * (0.9 * std::abs(s.m[i]) + 0.1 * std::abs(g)), v_off = 7 * unit32 * v;
      const double root = std::sqrt(v / c2) + h.eps, step = m / c1 / root;
      const double step_off = m_off / c1 / root + std::abs(step) * (v_off / (2 * v) + 5 * unit32);
      const double taken = h.lr * (step + h.weight_decay * w);
      const double taken_off = h.lr * (step_off + 4 * unit32 * (std::abs(step) + h.weight_decay * std::abs(w)));
      values[i] = w - taken, allowed[i] = taken_off + unit32 * std::abs(w - taken);
      values[n + i] = m, allowed[n + i] = m_off;
      values[2 * n + i] = v, allowed[2 * n + i] = v_off;
      change += taken * taken, change_off += taken_off * taken_off;
    }
    change_off = std::sqrt(change_off);
  }
};

TEST(CpuAdamW, AgreesWithDouble) {
  for (const std::int64_t n : sizes) {
    const AdamWState start(n);
    const AdamWHyper h;
    const ExactAdamW expected(start, h);
    on_every_path(
        "AdamW of " + std::to_string(n),
        [&](ParallelFor* parallel) {
          AdamWState s = start;
          step(fast(), s, h, parallel);
          EXPECT_NEAR(s.change, expected.change,
                      2 * std::sqrt(expected.change) * expected.change_off + expected.change_off * expected.change_off);
          std::vector<double> all;
          for (const float x : all_of(s)) all.push_back(x);
          all.push_back(s.change);
          return all;
        },
        [&](const std::string& what, std::vector<double> got) {
          got.pop_back();
          expect_close(what, got, expected.values, [&](std::size_t i) { return expected.allowed[i]; });
        });
  }
}

// Three updates from nothing, beside the reference: moments start at 0, and corrections of bias matter most.
TEST(CpuAdamW, FollowsTheReferenceFromTheStart) {
  AdamWState s(1000), expected(1000);
  for (AdamWState* state : {&s, &expected})
    for (std::size_t i = 0; i < state->w.size(); ++i) state->m[i] = state->v[i] = 0;
  AdamWHyper h;
  for (h.updates = 1; h.updates <= 3; ++h.updates) {
    const ExactAdamW exact(s, h);
    step(fast(), s, h);
    std::vector<double> got;
    for (const float x : all_of(s)) got.push_back(x);
    expect_close("update", got, exact.values, [&](std::size_t i) { return exact.allowed[i]; });
    step(reference(), expected, h);
  }
  // No step is larger than a few rates.
  expect_close("w", s.w.values(), expected.w.values(),
               [&](std::size_t i) { return 3 * unit32 * (2 * std::abs(expected.w[i]) + 20 * h.lr); });
}

TEST(CpuAdamW, ScaleZeroChangesNothing) {
  AdamWState s(77), before(77);
  AdamWHyper h;
  h.scale = 0;
  s.g[3] = before.g[3] = std::numeric_limits<float>::infinity();
  step(fast(), s, h);
  EXPECT_EQ(all_of(s), all_of(before));
  EXPECT_EQ(s.change, 0);
}

TEST(CpuAdamW, AGradientThatWasAlwaysZeroMovesNothing) {
  for (const double eps : {0.0, 1e-8}) {
    AdamWState s(45);
    for (std::size_t i = 0; i < s.w.size(); ++i) s.g[i] = s.m[i] = s.v[i] = 0;
    const std::vector<float> before = s.w.values();
    AdamWHyper h;
    h.eps = eps, h.weight_decay = 0;
    for (h.updates = 1; h.updates <= 3; ++h.updates) step(fast(), s, h);
    EXPECT_EQ(s.w.values(), before) << eps;
    EXPECT_EQ(s.change, 0) << eps;
  }
}

// The first update of a gradient as large as eps: eps is added after the correction of bias, so half a rate.
TEST(CpuAdamW, EpsIsAddedAfterTheCorrection) {
  AdamWState s(3);
  for (std::size_t i = 0; i < s.w.size(); ++i) s.w[i] = s.m[i] = s.v[i] = 0, s.g[i] = 1e-8f;
  AdamWHyper h;
  h.scale = 1, h.updates = 1, h.weight_decay = 0;
  step(fast(), s, h);
  for (const float w : s.w.values()) EXPECT_NEAR(w / h.lr, -0.5, 1e-6);
}

TEST(CpuAdamW, WhatIsNotANumberShows) {
  AdamWState s(20);
  s.w[4] = s.g[9] = s.m[17] = std::numeric_limits<float>::quiet_NaN();
  step(fast(), s, {});
  for (std::size_t i = 0; i < s.w.size(); ++i) EXPECT_EQ(std::isnan(s.w[i]), i == 4 || i == 9 || i == 17) << i;
  EXPECT_TRUE(std::isnan(s.change));
}

TEST(CpuQkClip, HeadsAboveTheThresholdAreScaledInTheirGroup) {
  const std::int64_t heads = 6, kv_heads = 3, dh = 5, d = 211;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> logits = {90, 200, 100, 30, nan, 99};
  std::vector<float> expected;
  for (const Backend* backend : {&reference(), &fast()}) {
    on_every_path(
        "QK-clip",
        [&](ParallelFor* parallel) {
          Guarded<float> wq = random_guarded<float>(heads * dh * d, 1),
                         wk = random_guarded<float>(kv_heads * dh * d, 2), max_logit(heads);
          std::copy(logits.begin(), logits.end(), max_logit.data());
          run_op(*backend,
                 op::QkClipHeads{.wq = view_of(wq, {heads * dh, d}),
                                 .wk = view_of(wk, {kv_heads * dh, d}),
                                 .max_logit = view_of(max_logit, {heads}),
                                 .n_heads = heads,
                                 .n_kv_heads = kv_heads,
                                 .threshold = 100},
                 nullptr, parallel);
          EXPECT_TRUE(wq.intact() && wk.intact() && max_logit.intact());
          std::vector<float> all = wq.values();
          all.insert(all.end(), wk.data(), wk.data() + wk.size());
          return all;
        },
        [&](const std::string& what, const std::vector<float>& got) {
          if (expected.empty()) expected = got;
          EXPECT_EQ(got, expected) << what;
        });
  }
  // The group of 200: both its query heads and its key head, by the root of a half.
  const std::vector<float> before = random_guarded<float>(heads * dh * d, 1).values();
  for (std::size_t i = 0; i < before.size(); ++i)
    ASSERT_EQ(expected[i], i < static_cast<std::size_t>(2 * dh * d)
                               ? static_cast<float>(static_cast<double>(before[i]) * std::sqrt(0.5))
                               : before[i])
        << i;
}

TEST(CpuCast, RoundsAndWidensAsTheReference) {
  for (const std::int64_t n : sizes) {
    Guarded<float> from = random_guarded<float>(n, 5);
    const std::vector<float> special = {std::numeric_limits<float>::quiet_NaN(),
                                        -std::numeric_limits<float>::infinity(),
                                        std::numeric_limits<float>::max(),
                                        -0.0f,
                                        0x1p-133f,
                                        1.0f + 0x1p-8f,
                                        1.0f + 0x3p-8f,
                                        std::bit_cast<float>(0x7f800001u),
                                        std::bit_cast<float>(0xffffffffu)};
    for (std::size_t i = 0; i < special.size() && i < from.size(); ++i) from[(i * 7) % from.size()] = special[i];
    on_every_path(
        "cast of " + std::to_string(n),
        [&](ParallelFor* parallel) {
          Guarded<BFloat16> narrow(n, BFloat16(0));
          run_op(fast(), op::Cast{.from = view_of(from, {n}), .to = view_of(narrow, {n})}, nullptr, parallel);
          Guarded<float> wide(n), copy(n);
          run_op(fast(), op::Cast{.from = view_of(narrow, {n}), .to = view_of(wide, {n})}, nullptr, parallel);
          run_op(fast(), op::Cast{.from = view_of(from, {n}), .to = view_of(copy, {n})}, nullptr, parallel);
          EXPECT_TRUE(from.intact() && narrow.intact() && wide.intact() && copy.intact());
          EXPECT_EQ(std::memcmp(copy.data(), from.data(), from.size() * sizeof(float)), 0);
          std::vector<std::uint32_t> bits;
          for (std::size_t i = 0; i < from.size(); ++i) {
            EXPECT_EQ(std::bit_cast<std::uint32_t>(wide[i]), std::uint32_t{narrow[i].bits} << 16);
            bits.push_back(narrow[i].bits);
          }
          return bits;
        },
        [&](const std::string& what, const std::vector<std::uint32_t>& got) {
          for (std::size_t i = 0; i < from.size(); ++i) ASSERT_EQ(got[i], BFloat16(from[i]).bits) << what << " " << i;
        });
  }
}

}  // namespace
}  // namespace stacklab::test
