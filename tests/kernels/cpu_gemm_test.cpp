// Products of the CPU backend against sums in double, on every instruction set, for any threads and order of tasks.
#include <gtest/gtest.h>

#include <functional>

#include "kernels/cpu/gemm.h"
#include "tests/kernels/cpu_harness.h"
#include "tests/kernels/op_harness.h"

namespace stacklab::test {
namespace {

using cpu::Gemm;
using cpu::Operand;

struct Case {
  std::string name;
  std::int64_t m, n, k;
  bool a_transposed = false, b_transposed = false;
  Operand::Kind a_kind = Operand::Kind::plain, b_kind = Operand::Kind::plain;
  enum class Base { none, accumulate, other } base = Base::none;
  bool paired = false;
};

// A matrix in memory, and the value of each of its elements in double.
struct Factor {
  Guarded<float> data, scale, gain, du;
  Operand operand;
  std::int64_t rows, cols;  // of the operand as the product sees it: [M, K] or [K, N]
  std::function<double(std::int64_t, std::int64_t)> at;
  // The sum of the sizes of the terms of an element, which its rounding is relative to.
  std::function<double(std::int64_t, std::int64_t)> size;

  Factor(std::int64_t r, std::int64_t c, bool transposed, Operand::Kind kind, std::uint32_t seed) : rows(r), cols(c) {
    const std::int64_t stored_rows = transposed ? c : r, stored_cols = transposed ? r : c, ld = stored_cols + 3;
    std::function<double(std::int64_t, std::int64_t)> stored, stored_size;
    switch (kind) {
      case Operand::Kind::plain:
        data = random_guarded<float>(stored_rows * ld, seed);
        operand = Operand::plain(data.data(), ld, transposed);
        stored = [this, ld](std::int64_t i, std::int64_t j) { return data[static_cast<std::size_t>(i * ld + j)]; };
        break;
      case Operand::Kind::normed:
        data = random_guarded<float>(stored_rows * ld, seed);
        scale = random_guarded<float>(stored_rows, seed + 1);
        gain = random_guarded<float>(stored_cols, seed + 2);
        operand = Operand::normed(data.data(), ld, scale.data(), gain.data());
        stored = [this, ld](std::int64_t i, std::int64_t j) {
          return static_cast<double>(data[static_cast<std::size_t>(i * ld + j)]) * scale[static_cast<std::size_t>(i)] *
                 gain[static_cast<std::size_t>(j)];
        };
        break;
      case Operand::Kind::swiglu_grad: {
        const std::int64_t f = stored_cols / 2;
        data = random_guarded<float>(stored_rows * 2 * f, seed, 3);
        du = random_guarded<float>(stored_rows * f, seed + 1);
        operand = Operand::swiglu_grad(data.data(), f, du.data(), transposed);
        stored = [this, f](std::int64_t i, std::int64_t j) {
          const double gate = data[static_cast<std::size_t>(i * 2 * f + j % f)],
                       up = data[static_cast<std::size_t>(i * 2 * f + f + j % f)];
          const double g = du[static_cast<std::size_t>(i * f + j % f)], s = 1 / (1 + std::exp(-gate));
          return j < f ? g * up * (s + gate * s * (1 - s)) : g * gate * s;
        };
        stored_size = [this, f](std::int64_t i, std::int64_t j) {
          const double gate = std::abs(data[static_cast<std::size_t>(i * 2 * f + j % f)]),
                       up = data[static_cast<std::size_t>(i * 2 * f + f + j % f)];
          const double g = du[static_cast<std::size_t>(i * f + j % f)];
          return j < f ? std::abs(g * up) * (1 + gate / 4) : std::abs(g * gate);
        };
        break;
      }
    }
    if (!stored_size) stored_size = [stored](std::int64_t i, std::int64_t j) { return std::abs(stored(i, j)); };
    const auto turned = [transposed](auto f) -> std::function<double(std::int64_t, std::int64_t)> {
      if (!transposed) return f;
      return [f](std::int64_t i, std::int64_t j) { return f(j, i); };
    };
    at = turned(stored), size = turned(stored_size);
    //(std::int64_t i, std::int64_t j) { return stored(j, i); } : stored;
  }
  bool intact() const { return data.intact() && scale.intact() && gain.intact() && du.intact(); }
};

class GemmTest : public testing::TestWithParam<Case> {};

TEST_P(GemmTest, AgreesWithSumsInDouble) {
  const Case& c = GetParam();
  Factor a(c.m, c.k, c.a_transposed, c.a_kind, 1), b(c.k, c.n, c.b_transposed, c.b_kind, 11);
  const std::int64_t ldc = c.n + 5;
  const Guarded<float> before = random_guarded<float>(c.m * ldc, 21), residual = random_guarded<float>(c.m * c.n, 22);

  std::vector<double> expected(before.data(), before.data() + before.size()), allowed(before.size(), 0);
  for (std::int64_t i = 0; i < c.m; ++i)
    for (std::int64_t j = 0; j < c.n; ++j) {
      double sum = 0, size = 0;
      for (std::int64_t k = 0; k < c.k; ++k) sum += a.at(i, k) * b.at(k, j), size += a.size(i, k) * b.size(k, j);
      const auto at = static_cast<std::size_t>(i * ldc + j);
      const double base = c.base == Case::Base::none         ? 0
                          : c.base == Case::Base::accumulate ? static_cast<double>(before[at])
                                                             : residual[static_cast<std::size_t>(i * c.n + j)];
      expected[at] = base + sum;
      // Rounding adds up like a random walk of k steps; a transformed element has a few roundings of its own.
      allowed[at] = unit32 * ((12 + 2 * std::sqrt(static_cast<double>(c.k))) * size + std::abs(base));
    }

  ReversedTasks reversed;
  TeamTasks two(2), three(3);
  for (const std::string_view set : cpu::instruction_sets()) {
    const OnInstructionSet on(set);
    std::vector<float> first;
    for (ParallelFor* parallel : {static_cast<ParallelFor*>(nullptr), static_cast<ParallelFor*>(&reversed),
                                  static_cast<ParallelFor*>(&two), static_cast<ParallelFor*>(&three)}) {
      Guarded<float> out = before;
      Guarded<float> workspace(cpu::gemm_workspace(c.n, c.k, c.paired), std::numeric_limits<float>::quiet_NaN());
      // Blocks of finished columns and rows must cover C once.
      std::vector<std::atomic<int>> covered(static_cast<std::size_t>(c.m * c.n));
      const auto finished = [&](std::int64_t r0, std::int64_t r1, std::int64_t c0, std::int64_t c1) {
        for (std::int64_t r = r0; r < r1; ++r)
          for (std::int64_t j = c0; j < c1; ++j) {
            ++covered[static_cast<std::size_t>(r * c.n + j)];
            if (c.paired) ++covered[static_cast<std::size_t>(r * c.n + c.n / 2 + j)];
          }
      };
      std::vector<std::atomic<int>> done(7);
      const auto before_task = [&](std::int64_t task) { ++done[static_cast<std::size_t>(task)]; };
      Gemm g{.m = c.m, .n = c.n, .k = c.k, .a = a.operand, .b = b.operand, .c = out.data(), .ldc = ldc};
      g.workspace = workspace.data();
      g.paired = c.paired;
      g.finished = cpu::BlockHook(finished);
      g.before = cpu::Tasks(7, before_task);
      if (c.base == Case::Base::accumulate) g.base = out.data(), g.ld_base = ldc;
      if (c.base == Case::Base::other) g.base = residual.data(), g.ld_base = c.n;
      KernelContext context;
      context.parallel = parallel;
      cpu::gemm(g, context);
      const std::vector<float> got = out.values();
      const std::string what = c.name + " on " + std::string(set);
      if (first.empty())
        expect_close(what, got, expected, [&](std::size_t i) { return allowed[i]; }), first = got;
      else
        EXPECT_EQ(std::memcmp(first.data(), got.data(), got.size() * sizeof(float)), 0) << what << ", bits";
      EXPECT_TRUE(out.intact() && workspace.intact() && residual.intact() && a.intact() && b.intact()) << what;
      for (const auto& n : covered) ASSERT_EQ(n, 1) << what << ", finished blocks";
      for (const auto& n : done) ASSERT_EQ(n, 1) << what << ", tasks before";
    }
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  const auto add = [&](Case c) {
    c.name = "m" + std::to_string(c.m) + "n" + std::to_string(c.n) + "k" + std::to_string(c.k) +
             (c.a_transposed ? "t" : "n") + (c.b_transposed ? "t" : "n") + "a" +
             std::to_string(static_cast<int>(c.a_kind)) + "b" + std::to_string(static_cast<int>(c.b_kind)) + "base" +
             std::to_string(static_cast<int>(c.base)) + (c.paired ? "paired" : "");
    all.push_back(c);
  };
  struct Size {
    std::int64_t m, n, k;
  };
  // One row, primes, exact tiles, edges on either side of a tile, several depth blocks, several groups of columns.
  for (const Size s : {Size{1, 1, 1}, Size{1, 40, 7}, Size{3, 2, 5}, Size{17, 31, 29}, Size{28, 64, 256},
                       Size{97, 33, 257}, Size{64, 16, 600}, Size{13, 700, 31}, Size{211, 35, 13}})
    for (const auto& [ta, tb] : {std::pair(false, true), std::pair(false, false), std::pair(true, false)})
      add({"", s.m, s.n, s.k, ta, tb});
  for (const Case::Base base : {Case::Base::accumulate, Case::Base::other}) {
    add({"", 37, 45, 300, false, true, {}, {}, base});
    add({"", 19, 530, 23, true, false, {}, {}, base});
  }
  using Kind = Operand::Kind;
  add({"", 23, 39, 41, false, true, Kind::normed, Kind::plain});
  add({"", 23, 39, 41, true, false, Kind::plain, Kind::normed});
  add({"", 150, 20, 270, false, true, Kind::normed, Kind::plain});
  for (const std::int64_t f : {1, 7, 32, 141}) {
    add({"", 21, 19, 2 * f, false, false, Kind::swiglu_grad, Kind::plain});
    add({"", 2 * f, 19, 31, true, false, Kind::swiglu_grad, Kind::normed});
  }
  for (const std::int64_t f : {1, 9, 64, 300}) add({"", 33, 2 * f, 50, false, true, Kind::normed, {}, {}, true});
  // More than is packed at once: in columns, and in depth.
  add({"", 5, 3000, 700, false, true});
  add({"", 5, 40, 50000, false, false, {}, {}, Case::Base::other});
  add({"", 3, 2 * 1100, 900, false, true, {}, {}, {}, true});
  add({"", 700, 7, 5, false, true});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Shapes, GemmTest, testing::ValuesIn(cases()), [](const auto& i) { return i.param.name; });

// A NaN in one row of A, or column of B, stays in that row or column of C.
TEST(GemmTest, BrokenElementsStayInTheirRowAndColumn) {
  const std::int64_t m = 20, n = 70, k = 300;
  for (const std::string_view set : cpu::instruction_sets()) {
    const OnInstructionSet on(set);
    Guarded<float> a = random_guarded<float>(m * k, 1), b = random_guarded<float>(n * k, 2), out(m * n);
    a[5 * k + 280] = std::numeric_limits<float>::quiet_NaN();
    b[66 * k + 3] = std::numeric_limits<float>::infinity();
    Guarded<float> workspace(cpu::gemm_workspace(n, k));
    Gemm g{.m = m,
           .n = n,
           .k = k,
           .a = Operand::plain(a.data(), k),
           .b = Operand::plain(b.data(), k, true),
           .c = out.data(),
           .ldc = n};
    g.workspace = workspace.data();
    cpu::gemm(g, {});
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j)
        ASSERT_EQ(std::isfinite(out[static_cast<std::size_t>(i * n + j)]), i != 5 && j != 66) << i << " " << j;
  }
}

// B that is packed already is used as it lies.
TEST(GemmTest, PackedBServesAgain) {
  const std::int64_t m = 9, n = 50, k = 280;
  Guarded<float> a = random_guarded<float>(m * k, 1), b = random_guarded<float>(k * n, 2), one(m * n), two(m * n);
  Guarded<float> workspace(cpu::gemm_workspace(n, k));
  Gemm g{.m = m,
         .n = n,
         .k = k,
         .a = Operand::plain(a.data(), k),
         .b = Operand::plain(b.data(), n),
         .c = one.data(),
         .ldc = n};
  g.workspace = workspace.data();
  cpu::gemm(g, {});
  std::fill(b.data(), b.data() + b.size(), 0.0f);
  g.c = two.data();
  g.b_is_packed = true;
  cpu::gemm(g, {});
  EXPECT_EQ(one.values(), two.values());
}

}  // namespace
}  // namespace stacklab::test
