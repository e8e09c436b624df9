// Newton-Schulz and Muon of the CPU backend against the reference in double, on every instruction set, for any threads
// and order of tasks.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/kernels/cpu_harness.h"

namespace stacklab::test {
namespace {

const Backend& fast() { return *find_backend("cpu"); }
const Backend& reference() { return *find_backend("reference"); }

// A rounding of the first step, u times the largest singular value, grows by at most the slope at 0 in each step;
// results have singular values of at most 1.21, and no element is larger than an error's norm.
double allowed_error(std::int64_t steps) { return unit32 * 1.21 * std::pow(3.4445, static_cast<double>(steps)); }

template <class T>
std::vector<T> newton_schulz(const Backend& backend, const std::vector<T>& x, std::int64_t rows, std::int64_t cols,
                             std::int64_t steps = 5, ParallelFor* parallel = nullptr) {
  Guarded<T> in(rows * cols), out(rows * cols);
  std::copy(x.begin(), x.end(), in.data());
  run_guarded(backend,
              op::NewtonSchulz{
                  .x = view_of(in, {rows, cols}), .y = view_of(out, {rows, cols}), .workspace = {}, .steps = steps},
              parallel);
  EXPECT_TRUE(in.intact() && out.intact());
  EXPECT_EQ(in.values(), x);
  return out.values();
}

std::vector<double> widened(const std::vector<float>& v) { return {v.begin(), v.end()}; }

struct Size {
  std::int64_t rows, cols;
};

enum class Spectrum { normal, falling, rank_two };

// Sums of rows of products: singular values that fall, or only two of them, mixed by random directions.
std::vector<float> matrix(const Size& s, Spectrum spectrum) {
  std::vector<float> x = random_guarded<float>(s.rows * s.cols, 1).values();
  if (spectrum == Spectrum::normal) return x;
  const std::int64_t rank = spectrum == Spectrum::rank_two ? 2 : std::min(s.rows, s.cols);
  const std::vector<float> left = random_guarded<float>(s.rows * rank, 2).values(),
                           right = random_guarded<float>(rank * s.cols, 3).values();
  for (std::int64_t i = 0; i < s.rows; ++i)
    for (std::int64_t j = 0; j < s.cols; ++j) {
      double sum = 0;
      for (std::int64_t k = 0; k < rank; ++k)
        sum += static_cast<double>(left[static_cast<std::size_t>(i * rank + k)]) *
               right[static_cast<std::size_t>(k * s.cols + j)] * std::pow(static_cast<double>(k + 1), -2.0);
      x[static_cast<std::size_t>(i * s.cols + j)] = static_cast<float>(sum);
    }
  return x;
}

TEST(CpuNewtonSchulz, AgreesWithDouble) {
  // Both orientations; square; one row and one column; more than a block of rows, of columns and of depth.
  for (const Size s : {Size{1, 1}, Size{1, 9}, Size{9, 1}, Size{2, 3}, Size{16, 16}, Size{33, 65}, Size{65, 33},
                       Size{61, 67}, Size{97, 300}, Size{300, 97}, Size{130, 531}, Size{290, 270}})
    for (const Spectrum spectrum : {Spectrum::normal, Spectrum::falling, Spectrum::rank_two}) {
      const std::vector<float> x = matrix(s, spectrum);
      const std::vector<double> expected = newton_schulz(reference(), widened(x), s.rows, s.cols);
      on_every_path(
          std::to_string(s.rows) + " by " + std::to_string(s.cols) + ", spectrum " +
              std::to_string(static_cast<int>(spectrum)),
          [&](ParallelFor* parallel) { return newton_schulz(fast(), x, s.rows, s.cols, 5, parallel); },
          [&](const std::string& what, const std::vector<float>& got) {
            expect_close(what, got, expected, [](std::size_t) { return allowed_error(5); });
          });
    }
}

TEST(CpuNewtonSchulz, AnyNumberOfStepsAgreesWithDouble) {
  for (const Size s : {Size{23, 71}, Size{71, 23}, Size{40, 40}})
    for (std::int64_t steps = 0; steps <= 8; ++steps) {
      const std::vector<float> x = matrix(s, Spectrum::normal);
      expect_close(std::to_string(steps) + " steps", newton_schulz(fast(), x, s.rows, s.cols, steps),
                   newton_schulz(reference(), widened(x), s.rows, s.cols, steps),
                   [&](std::size_t) { return allowed_error(steps); });
    }
}

// Small matrices that are more than one block of depth themselves.
TEST(CpuNewtonSchulz, LargeMatricesAgreeWithDouble) {
  const Size s = {530, 700};
  const std::vector<float> x = matrix(s, Spectrum::normal);
  const std::vector<double> expected = newton_schulz(reference(), widened(x), s.rows, s.cols, 2);
  for (const std::string_view set : cpu::instruction_sets()) {
    const OnInstructionSet on(set);
    expect_close(std::string(set), newton_schulz(fast(), x, s.rows, s.cols, 2), expected,
                 [](std::size_t) { return allowed_error(2); });
  }
}

// Singular values are mapped one by one: those of a diagonal matrix are its elements.
TEST(CpuNewtonSchulz, SingularValuesGoWhereTheQuinticSendsThem) {
  const std::vector<std::pair<double, double>> known = {{1e-3, 0.47054395}, {3e-3, 1.11035732}, {0.01, 0.69891706},
                                                        {0.03, 1.12233203}, {0.1, 0.71212008},  {0.3, 1.07959229},
                                                        {0.5, 0.76543853},  {0.7, 1.12032263}};
  double squares = 0;
  for (const auto& [x, y] : known) squares += x * x;
  for (const std::int64_t cols : {9, 30}) {
    std::vector<float> x(static_cast<std::size_t>(9 * cols), 0.0f);
    for (std::size_t i = 0; i < known.size(); ++i)
      x[i * static_cast<std::size_t>(cols) + i] = static_cast<float>(known[i].first);
    // The norm is 1, so that nothing is scaled.
    x[static_cast<std::size_t>(8 * cols + 8)] = static_cast<float>(std::sqrt(1 - squares));
    const std::vector<float> y = newton_schulz(fast(), x, 9, cols);
    for (std::size_t i = 0; i < known.size(); ++i)
      EXPECT_NEAR(y[i * static_cast<std::size_t>(cols) + i], known[i].second, allowed_error(5)) << known[i].first;
  }
  EXPECT_NEAR(newton_schulz(fast(), std::vector<float>{-3.5f}, 1, 1)[0], -0.69643641, allowed_error(5));
}

TEST(CpuNewtonSchulz, AKnownMatrix) {
  const std::vector<double> expected = {-0.56829011, 0.05774194, 0.683774, 0.5633547, 0.40561283, 0.24787096};
  expect_close("known matrix", newton_schulz(fast(), std::vector<float>{1, 2, 3, 4, 5, 6}, 2, 3), expected,
               [](std::size_t) { return allowed_error(5); });
}

// Eigenvalues of a symmetric matrix, by Jacobi's rotations.
std::vector<double> eigenvalues(std::vector<double> a, std::size_t n) {
  for (int sweep = 0; sweep < 30; ++sweep)
    for (std::size_t p = 0; p < n; ++p)
      for (std::size_t q = p + 1; q < n; ++q) {
        const double angle = 0.5 * std::atan2(2 * a[p * n + q], a[q * n + q] - a[p * n + p]);
        const double c = std::cos(angle), s = std::sin(angle);
        for (std::size_t k = 0; k < n; ++k) {
          const double x = a[p * n + k], y = a[q * n + k];
          a[p * n + k] = c * x - s * y, a[q * n + k] = s * x + c * y;
        }
        for (std::size_t k = 0; k < n; ++k) {
          const double x = a[k * n + p], y = a[k * n + q];
          a[k * n + p] = c * x - s * y, a[k * n + q] = s * x + c * y;
        }
      }
  std::vector<double> values;
  for (std::size_t i = 0; i < n; ++i) values.push_back(a[i * n + i]);
  return values;
}

// Five steps bring every singular value of at least a hundredth of the norm into this band.
TEST(CpuNewtonSchulz, SingularValuesComeNearOne) {
  const std::size_t m = 24, n = 60;
  const std::vector<float> y = newton_schulz(fast(), matrix({24, 60}, Spectrum::normal), 24, 60);
  std::vector<double> gram(m * m);
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j < m; ++j)
      for (std::size_t k = 0; k < n; ++k) gram[i * m + j] += static_cast<double>(y[i * n + k]) * y[j * n + k];
  for (const double square : eigenvalues(gram, m)) {
    EXPECT_GT(std::sqrt(square), 0.68183 - allowed_error(5));
    EXPECT_LT(std::sqrt(square), 1.13436 + allowed_error(5));
  }
}

TEST(CpuNewtonSchulz, TinyAndHugeMatricesAreNormalisedFirst) {
  const Size s = {20, 50};
  for (const float factor : {1e-25f, 1e25f}) {
    std::vector<float> x = matrix(s, Spectrum::normal);
    for (float& v : x) v *= factor;
    expect_close("times " + std::to_string(factor), newton_schulz(fast(), x, s.rows, s.cols),
                 newton_schulz(reference(), widened(x), s.rows, s.cols), [](std::size_t) { return allowed_error(5); });
  }
}

struct MuonState {
  Guarded<float> w, g, m;
  Size size;
  double change = -1;
  explicit MuonState(const Size& s)
      : w(random_guarded<float>(s.rows * s.cols, 1)),
        g(random_guarded<float>(s.rows * s.cols, 2, 1e-2)),
        m(random_guarded<float>(s.rows * s.cols, 3, 1e-2)),
        size(s) {}
};

struct MuonHyper {
  double lr = 0.02, scale = 0.37, momentum = 0.95, weight_decay = 0.1;
  double factor(const Size& s) const { return 0.2 * std::sqrt(static_cast<double>(std::max(s.rows, s.cols))); }
};

template <class T>
op::Muon muon(Guarded<T>& w, Guarded<T>& g, Guarded<T>& m, Guarded<double>& scalars, const Size& s,
              const MuonHyper& h) {
  const auto scalar = [&](std::size_t i) {
    TensorView v = view_of(scalars, {1});
    v.data += i * sizeof(double);
    return v;
  };
  scalars[0] = h.lr, scalars[1] = h.scale;
  return {.w = view_of(w, {s.rows, s.cols}),
          .g = view_of(g, {s.rows, s.cols}),
          .m = view_of(m, {s.rows, s.cols}),
          .lr = scalar(0),
          .scale = scalar(1),
          .change = scalar(2),
          .workspace = {},
          .momentum = h.momentum,
          .weight_decay = h.weight_decay,
          .factor = h.factor(s)};
}

void step(MuonState& s, const MuonHyper& h, ParallelFor* parallel = nullptr) {
  Guarded<double> scalars(3, -1.0);
  run_guarded(fast(), muon(s.w, s.g, s.m, scalars, s.size, h), parallel);
  s.change = scalars[2];
  EXPECT_TRUE(s.w.intact() && s.g.intact() && s.m.intact() && scalars.intact());
}

TEST(CpuMuon, AgreesWithDouble) {
  const MuonHyper h;
  for (const Size s : {Size{1, 40}, Size{40, 1}, Size{37, 37}, Size{25, 170}, Size{170, 25}}) {
    const MuonState start(s);
    const auto wide = [&](const Guarded<float>& from) {
      Guarded<double> to(s.rows * s.cols);
      std::copy(from.data(), from.data() + from.size(), to.data());
      return to;
    };
    Guarded<double> w = wide(start.w), g = wide(start.g), m = wide(start.m), scalars(3);
    double change = 0;
    for (int i = 0; i < 2; ++i) run_guarded(reference(), muon(w, g, m, scalars, s, h)), change = scalars[2];
    on_every_path(
        "Muon on " + std::to_string(s.rows) + " by " + std::to_string(s.cols),
        [&](ParallelFor* parallel) {
          MuonState state = start;
          step(state, h, parallel);
          step(state, h, parallel);
          std::vector<double> all = widened(state.w.values());
          for (const float x : state.m.values()) all.push_back(x);
          all.push_back(state.change);
          return all;
        },
        [&](const std::string& what, const std::vector<double>& got) {
          const std::size_t n = w.size();
          const double step_error = h.lr * h.factor(s) * allowed_error(5);
          // Each step rounds w once and takes what is off by as much as its direction.
          expect_close(what + ", w", std::vector<double>(got.begin(), got.begin() + static_cast<std::ptrdiff_t>(n)),
                       w.values(), [&](std::size_t i) { return 2 * (step_error + unit32 * (1 + std::abs(w[i]))); });
          expect_close(what + ", m", std::vector<double>(got.begin() + static_cast<std::ptrdiff_t>(n), got.end() - 1),
                       m.values(), [&](std::size_t i) { return 2 * unit32 * (std::abs(m[i]) + std::abs(start.m[i])); });
          // |x|^2 of x that is off by d is off by at most 2 |x| |d| + |d|^2.
          const double off = 2 * std::sqrt(static_cast<double>(n)) * step_error;
          EXPECT_NEAR(got.back(), change, 2 * std::sqrt(change) * off + off * off) << what;
        });
  }
}

TEST(CpuMuon, AZeroGradientMovesNothing) {
  for (const Size s : {Size{5, 7}, Size{7, 5}, Size{1, 6}, Size{6, 1}, Size{20, 60}}) {
    MuonState state(s);
    for (std::size_t i = 0; i < state.g.size(); ++i) state.g[i] = state.m[i] = 0;
    MuonHyper h;
    h.weight_decay = 0;
    const std::vector<float> before = state.w.values();
    step(state, h);
    EXPECT_EQ(state.w.values(), before);
    EXPECT_EQ(state.change, 0);
  }
}

TEST(CpuMuon, ScaleZeroChangesNothing) {
  MuonState state({9, 31});
  state.g[4] = std::numeric_limits<float>::infinity();
  const MuonState before = state;
  MuonHyper h;
  h.scale = 0;
  step(state, h);
  EXPECT_EQ(state.w.values(), before.w.values());
  EXPECT_EQ(state.m.values(), before.m.values());
  EXPECT_EQ(state.change, 0);
}

TEST(CpuMuon, WhatIsNotANumberShows) {
  for (const Size s : {Size{9, 31}, Size{31, 9}, Size{20, 20}}) {
    MuonState state(s);
    state.g[17] = std::numeric_limits<float>::quiet_NaN();
    step(state, {});
    for (const float w : state.w.values()) ASSERT_TRUE(std::isnan(w));
    EXPECT_TRUE(std::isnan(state.change));
    MuonState broken(s);
    broken.w[5] = std::numeric_limits<float>::quiet_NaN();
    step(broken, {});
    for (std::size_t i = 0; i < broken.w.size(); ++i) ASSERT_EQ(std::isnan(broken.w[i]), i == 5);
  }
}

// Row ranges of a merged matrix are updated as matrices of their own.
TEST(CpuMuon, MergedAndSplitMatricesTakeTheSameStep) {
  const std::int64_t d = 37;
  const std::vector<std::int64_t> heights = {50, 13, 13};
  MuonState merged({76, d});
  std::vector<float> w, m;
  std::int64_t row = 0;
  for (const std::int64_t rows : heights) {
    MuonState part({rows, d});
    for (auto [from, to] :
         {std::pair(&merged.w, &part.w), std::pair(&merged.g, &part.g), std::pair(&merged.m, &part.m)})
      std::copy(from->data() + row * d, from->data() + (row + rows) * d, to->data());
    step(part, {});
    w.insert(w.end(), part.w.data(), part.w.data() + part.w.size());
    m.insert(m.end(), part.m.data(), part.m.data() + part.m.size());
    row += rows;
  }
  row = 0;
  for (const std::int64_t rows : heights) {
    Guarded<double> scalars(3);
    op::Muon o = muon(merged.w, merged.g, merged.m, scalars, {rows, d}, {});
    for (TensorView* v : {&o.w, &o.g, &o.m}) v->data += row * d * size_of(DType::f32);
    run_guarded(fast(), o);
    row += rows;
  }
  EXPECT_EQ(merged.w.values(), w);
  EXPECT_EQ(merged.m.values(), m);
}

}  // namespace
}  // namespace stacklab::test
