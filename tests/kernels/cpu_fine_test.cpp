// RMSNorm and SwiGLU of the CPU backend against sums in double, on every instruction set, for any threads and order of
// tasks.
#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <limits>

#include "tests/kernels/cpu_harness.h"

namespace stacklab::test {
namespace {

const Backend& fast() { return *find_backend("cpu"); }

constexpr double eps = 1e-5;

struct Size {
  std::int64_t rows, d;
};
const std::vector<Size> sizes = {{1, 1}, {5, 3}, {33, 17}, {7, 64}, {70, 133}, {301, 520}};

std::string name_of(const char* what, const Size& s) {
  return std::string(what) + " of " + std::to_string(s.rows) + " by " + std::to_string(s.d);
}

// The norm in double: xn = x r.
struct Norm {
  std::vector<double> xn, r;
  Norm(const Guarded<float>& x, const Size& s) {
    for (std::int64_t t = 0; t < s.rows; ++t) {
      double squares = 0;
      const float* row = x.data() + t * s.d;
      for (std::int64_t i = 0; i < s.d; ++i) squares += static_cast<double>(row[i]) * row[i];
      r.push_back(1 / std::sqrt(squares / static_cast<double>(s.d) + eps));
      for (std::int64_t i = 0; i < s.d; ++i) xn.push_back(row[i] * r.back());
    }
  }
};

// Roundings of a sum of n terms add up like a random walk; each term has a few of its own.
double depth(std::int64_t n) { return 8 + 2 * std::sqrt(static_cast<double>(n)); }

TEST(CpuRmsNorm, AgreesWithDouble) {
  for (const Size& s : sizes) {
    Guarded<float> x = random_guarded<float>(s.rows * s.d, 1), gain = random_guarded<float>(s.d, 2);
    const Norm norm(x, s);
    std::vector<double> expected;
    for (std::size_t i = 0; i < norm.xn.size(); ++i)
      expected.push_back(norm.xn[i] * gain[i % static_cast<std::size_t>(s.d)]);
    on_every_path(
        name_of("norm", s),
        [&](ParallelFor* parallel) {
          Guarded<float> y(s.rows * s.d);
          run_op(fast(),
                 op::RmsNorm{.x = view_of(x, {s.rows, s.d}),
                             .gain = view_of(gain, {s.d}),
                             .y = view_of(y, {s.rows, s.d}),
                             .eps = eps},
                 nullptr, parallel);
          EXPECT_TRUE(x.intact() && gain.intact() && y.intact());
          return y.values();
        },
        [&](const std::string& what, const std::vector<float>& got) {
          expect_close(what, got, expected, [&](std::size_t i) { return unit32 * depth(s.d) * std::abs(expected[i]); });
        });
  }
}

TEST(CpuRmsNorm, GradientsAgreeWithDouble) {
  enum class Want { nothing, assign, add };
  for (const Size& s : sizes)
    for (const auto& [want_dx, want_dgain] :
         {std::pair(Want::assign, Want::assign), std::pair(Want::add, Want::add),
          std::pair(Want::nothing, Want::assign), std::pair(Want::assign, Want::nothing)}) {
      Guarded<float> x = random_guarded<float>(s.rows * s.d, 1), gain = random_guarded<float>(s.d, 2),
                     dy = random_guarded<float>(s.rows * s.d, 3);
      const Guarded<float> dx0 = random_guarded<float>(s.rows * s.d, 4), dgain0 = random_guarded<float>(s.d, 5);
      const Norm norm(x, s);
      const auto d = static_cast<std::size_t>(s.d), rows = static_cast<std::size_t>(s.rows);
      // dx, then dgain, as what is there before where nothing is wanted.
      std::vector<double> expected, allowed;
      for (const Guarded<float>* before : {&dx0, &dgain0}) {
        const Want want = before == &dx0 ? want_dx : want_dgain;
        for (std::size_t i = 0; i < before->size(); ++i) {
          expected.push_back(want == Want::assign ? 0 : (*before)[i]);
          allowed.push_back(unit32 * std::abs(expected.back()));
        }
      }
      for (std::size_t t = 0; t < rows; ++t) {
        double mean = 0, size = 0;
        for (std::size_t i = t * d; i < (t + 1) * d; ++i) {
          const double term = dy[i] * static_cast<double>(gain[i % d]) * norm.xn[i];
          mean += term / static_cast<double>(d), size += std::abs(term) / static_cast<double>(d);
        }
        for (std::size_t i = t * d; i < (t + 1) * d; ++i) {
          const double along = dy[i] * static_cast<double>(gain[i % d]);
          if (want_dx != Want::nothing) {
            expected[i] += norm.r[t] * (along - norm.xn[i] * mean);
            allowed[i] += unit32 * depth(s.d) * norm.r[t] * (std::abs(along) + std::abs(norm.xn[i]) * size);
          }
          if (want_dgain != Want::nothing) {
            expected[rows * d + i % d] += dy[i] * norm.xn[i];
            allowed[rows * d + i % d] += unit32 * (depth(s.d) + depth(s.rows)) * std::abs(dy[i] * norm.xn[i]);
          }
        }
      }
      on_every_path(
          name_of("gradient", s),
          [&](ParallelFor* parallel) {
            Guarded<float> dx = dx0, dgain = dgain0;
            op::RmsNormBackward o{.dy = view_of(dy, {s.rows, s.d}),
                                  .x = view_of(x, {s.rows, s.d}),
                                  .gain = view_of(gain, {s.d}),
                                  .dx = {},
                                  .dgain = {},
                                  .workspace = {},
                                  .eps = eps};
            if (want_dx != Want::nothing) o.dx = {view_of(dx, {s.rows, s.d}), want_dx == Want::add};
            if (want_dgain != Want::nothing) o.dgain = {view_of(dgain, {s.d}), want_dgain == Want::add};
            run_guarded(fast(), o, parallel);
            EXPECT_TRUE(x.intact() && gain.intact() && dy.intact() && dx.intact() && dgain.intact());
            std::vector<float> all = dx.values();
            all.insert(all.end(), dgain.data(), dgain.data() + dgain.size());
            return all;
          },
          [&](const std::string& what, const std::vector<float>& got) {
            expect_close(what, got, expected, [&](std::size_t i) { return allowed[i]; });
          });
    }
}

// Gates from far below to far above where the sigmoid bends.
Guarded<float> gates(std::int64_t n) {
  Guarded<float> gate = random_guarded<float>(n, 1, 4);
  const std::vector<float> special = {0, -0.0f, 100, -100, 1e30f, -1e30f, -88, 17};
  for (std::size_t i = 0; i < special.size() && i < gate.size(); ++i) gate[i] = special[i];
  return gate;
}

TEST(CpuSwiglu, AgreesWithDouble) {
  for (const std::int64_t n : {1, 2, 7, 16, 33, 5000, 9001}) {
    Guarded<float> gate = gates(n), up = random_guarded<float>(n, 2);
    std::vector<double> expected, allowed;
    for (std::size_t i = 0; i < gate.size(); ++i) {
      const double g = gate[i], s = 1 / (1 + std::exp(-g));
      expected.push_back(g * s * up[i]);
      // Below the smallest normal number the sigmoid is 0.
      allowed.push_back(8 * unit32 * std::abs(expected.back()) + FLT_MIN * std::abs(g * up[i]));
    }
    on_every_path(
        "swiglu of " + std::to_string(n),
        [&](ParallelFor* parallel) {
          Guarded<float> u(n);
          run_op(fast(), op::Swiglu{.gate = view_of(gate, {1, n}), .up = view_of(up, {1, n}), .u = view_of(u, {1, n})},
                 nullptr, parallel);
          EXPECT_TRUE(gate.intact() && up.intact() && u.intact());
          return u.values();
        },
        [&](const std::string& what, const std::vector<float>& got) {
          expect_close(what, got, expected, [&](std::size_t i) { return allowed[i]; });
        });
  }
}

TEST(CpuSwiglu, GradientsAgreeWithDouble) {
  for (const std::int64_t n : {1, 2, 7, 16, 33, 5000, 9001}) {
    Guarded<float> gate = gates(n), up = random_guarded<float>(n, 2), du = random_guarded<float>(n, 3);
    std::vector<double> expected, allowed;
    for (std::size_t i = 0; i < gate.size(); ++i) {
      const double g = gate[i], s = 1 / (1 + std::exp(-g)), rest = 1 / (1 + std::exp(g));
      expected.push_back(du[i] * static_cast<double>(up[i]) * (s + g * s * rest));
      // 1 - s is off by a rounding of 1, which is nothing where s is 1 itself.
      const double off = s + std::abs(g) * s * rest + (std::abs(g) < 20 ? std::abs(g) * s / 8 : 0);
      allowed.push_back(std::abs(du[i] * static_cast<double>(up[i])) * (8 * unit32 * off + FLT_MIN * std::abs(g)));
    }
    for (std::size_t i = 0; i < gate.size(); ++i) {
      const double g = gate[i], s = 1 / (1 + std::exp(-g));
      expected.push_back(du[i] * g * s);
      allowed.push_back(8 * unit32 * std::abs(expected.back()) + FLT_MIN * std::abs(g * du[i]));
    }
    on_every_path(
        "gradient of swiglu of " + std::to_string(n),
        [&](ParallelFor* parallel) {
          Guarded<float> dgate(n), dup(n);
          run_op(fast(),
                 op::SwigluBackward{.du = view_of(du, {1, n}),
                                    .gate = view_of(gate, {1, n}),
                                    .up = view_of(up, {1, n}),
                                    .dgate = view_of(dgate, {1, n}),
                                    .dup = view_of(dup, {1, n})},
                 nullptr, parallel);
          EXPECT_TRUE(gate.intact() && up.intact() && du.intact() && dgate.intact() && dup.intact());
          std::vector<float> all = dgate.values();
          all.insert(all.end(), dup.data(), dup.data() + dup.size());
          return all;
        },
        [&](const std::string& what, const std::vector<float>& got) {
          expect_close(what, got, expected, [&](std::size_t i) { return allowed[i]; });
        });
  }
}

TEST(CpuFine, WhatIsNotANumberStaysInItsRow) {
  const std::int64_t rows = 6, d = 37;
  Guarded<float> x = random_guarded<float>(rows * d, 1), gain = random_guarded<float>(d, 2), y(rows * d), u(rows * d);
  x[2 * 37 + 5] = std::numeric_limits<float>::quiet_NaN();
  run_op(fast(),
         op::RmsNorm{.x = view_of(x, {rows, d}), .gain = view_of(gain, {d}), .y = view_of(y, {rows, d}), .eps = eps});
  Guarded<float> up = random_guarded<float>(rows * d, 3);
  run_op(fast(), op::Swiglu{.gate = view_of(x, {rows, d}), .up = view_of(up, {rows, d}), .u = view_of(u, {rows, d})});
  for (std::size_t i = 0; i < y.size(); ++i) {
    EXPECT_EQ(std::isnan(y[i]), i / 37 == 2) << i;
    EXPECT_EQ(std::isnan(u[i]), i == 2 * 37 + 5) << i;
  }
}

}  // namespace
}  // namespace stacklab::test
