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
  bool a_bf16 = false, b_bf16 = false;
  bool product_bf16 = false;
};

// The same numbers in bf16, to which `data` is rounded.
Guarded<BFloat16> narrowed(Guarded<float>& data) {
  Guarded<BFloat16> narrow(static_cast<std::int64_t>(data.size()), BFloat16());
  for (std::size_t i = 0; i < data.size(); ++i) narrow[i] = BFloat16(data[i]), data[i] = static_cast<float>(narrow[i]);
  return narrow;
}

// A matrix in memory, and the value of each of its elements in double.
struct Factor {
  Guarded<float> data, scale, gain, du;
  Guarded<BFloat16> data16, du16;
  Operand operand;
  Operand::Kind kind;
  std::int64_t rows, cols;  // of the operand as the product sees it: [M, K] or [K, N]
  std::function<double(std::int64_t, std::int64_t)> at;
  // The sum of the sizes of the terms of an element, which its rounding is relative to.
  std::function<double(std::int64_t, std::int64_t)> size;

  Factor(std::int64_t r, std::int64_t c, bool transposed, Operand::Kind k, std::uint32_t seed, bool bf16)
      : kind(k), rows(r), cols(c) {
    const std::int64_t stored_rows = transposed ? c : r, stored_cols = transposed ? r : c, ld = stored_cols + 3;
    std::function<double(std::int64_t, std::int64_t)> stored;
    switch (kind) {
      case Operand::Kind::plain:
        data = random_guarded<float>(stored_rows * ld, seed);
        operand = Operand::plain(data.data(), ld, transposed);
        if (bf16) data16 = narrowed(data), operand.data = data16.data();
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
      case Operand::Kind::block_scaled: {
        const std::int64_t blocks = (stored_cols + cpu::column_step - 1) / cpu::column_step;
        data = random_guarded<float>(stored_rows * ld, seed);
        scale = random_guarded<float>(stored_rows * blocks, seed + 1);
        operand = Operand::block_scaled(data.data(), ld, scale.data(), blocks, transposed);
        stored = [this, ld, blocks](std::int64_t i, std::int64_t j) {
          return static_cast<double>(data[static_cast<std::size_t>(i * ld + j)]) *
                 scale[static_cast<std::size_t>(i * blocks + j / cpu::column_step)];
        };
        break;
      }
    }
    const auto turned = [transposed](auto f) -> std::function<double(std::int64_t, std::int64_t)> {
      if (!transposed) return f;
      return [f](std::int64_t i, std::int64_t j) { return f(j, i); };
    };
    at = turned(stored);
    size = [this](std::int64_t i, std::int64_t j) { return std::abs(at(i, j)); };
  }
  // Where it is rounded to bf16 on the way: a plain element is known to the bit, others within half a step.
  double narrow_at(std::int64_t i, std::int64_t j) const {
    const double value = at(i, j);
    return kind == Operand::Kind::plain ? static_cast<double>(static_cast<float>(BFloat16(static_cast<float>(value))))
                                        : value;
  }
  double narrowing() const { return kind == Operand::Kind::plain ? 0 : 0x1p-8; }
  bool intact() const {
    return data.intact() && scale.intact() && gain.intact() && du.intact() && data16.intact() && du16.intact();
  }
};

class GemmTest : public testing::TestWithParam<Case> {};

TEST_P(GemmTest, AgreesWithSumsInDouble) {
  const Case& c = GetParam();
  Factor a(c.m, c.k, c.a_transposed, c.a_kind, 1, c.a_bf16), b(c.k, c.n, c.b_transposed, c.b_kind, 11, c.b_bf16);
  const std::int64_t ldc = c.n + 5;
  const Guarded<float> before = random_guarded<float>(c.m * ldc, 21), residual = random_guarded<float>(c.m * c.n, 22);

  std::vector<double> expected(before.data(), before.data() + before.size()), allowed(before.size(), 0);
  const auto expect = [&](bool narrow) {
    const double narrowing = narrow ? (1 + a.narrowing()) * (1 + b.narrowing()) - 1 : 0;
    for (std::int64_t i = 0; i < c.m; ++i)
      for (std::int64_t j = 0; j < c.n; ++j) {
        double sum = 0, size = 0;
        for (std::int64_t k = 0; k < c.k; ++k)
          sum += narrow ? a.narrow_at(i, k) * b.narrow_at(k, j) : a.at(i, k) * b.at(k, j),
              size += a.size(i, k) * b.size(k, j);
        const auto at = static_cast<std::size_t>(i * ldc + j);
        const double base = c.base == Case::Base::none         ? 0
                            : c.base == Case::Base::accumulate ? static_cast<double>(before[at])
                                                               : residual[static_cast<std::size_t>(i * c.n + j)];
        expected[at] = base + sum;
        // Rounding adds up like a random walk of k steps; a transformed element has a few roundings of its own.
        allowed[at] =
            (unit32 * (12 + 2 * std::sqrt(static_cast<double>(c.k))) + narrowing) * size + unit32 * std::abs(base);
      }
  };
  expect(false);

  ReversedTasks reversed;
  ThreadTeam two(2), three(3);
  for (const std::string_view set : cpu::instruction_sets()) {
    const OnInstructionSet on(set);
    if (c.product_bf16) expect(cpu::multiplies_bf16());
    std::vector<float> first;
    for (ParallelFor* parallel : {static_cast<ParallelFor*>(nullptr), static_cast<ParallelFor*>(&reversed),
                                  static_cast<ParallelFor*>(&two), static_cast<ParallelFor*>(&three)}) {
      Guarded<float> out = before;
      Guarded<float> workspace(cpu::gemm_workspace(c.n, c.k, c.paired), std::numeric_limits<float>::quiet_NaN());
      // Blocks of finished columns and rows must cover C once, and hold what C holds.
      std::vector<std::atomic<int>> covered(static_cast<std::size_t>(c.m * c.n));
      std::vector<float> seen(before.data(), before.data() + before.size());
      const auto finished = [&](const cpu::Block& block) {
        for (std::int64_t r = block.row0; r < block.row1; ++r)
          for (std::int64_t j = block.col0; j < block.col1; ++j) {
            ++covered[static_cast<std::size_t>(r * c.n + j)];
            seen[static_cast<std::size_t>(r * ldc + j)] = block.row(r)[j - block.col0];
            if (!c.paired) continue;
            ++covered[static_cast<std::size_t>(r * c.n + c.n / 2 + j)];
            seen[static_cast<std::size_t>(r * ldc + c.n / 2 + j)] = block.row(r)[j - block.col0 + block.pair];
          }
      };
      std::vector<std::atomic<int>> done(7);
      const auto before_task = [&](std::int64_t task) { ++done[static_cast<std::size_t>(task)]; };
      Gemm g{.m = c.m, .n = c.n, .k = c.k, .a = a.operand, .b = b.operand, .c = out.data(), .ldc = ldc};
      g.workspace = workspace.data();
      g.paired = c.paired, g.bf16 = c.product_bf16;
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
      EXPECT_EQ(std::memcmp(first.data(), seen.data(), seen.size() * sizeof(float)), 0) << what << ", in blocks";
      // Whole rows at once, and a C that is not kept, are the same numbers.
      for (const bool whole_rows : {true, false}) {
        if (whole_rows ? c.paired || !cpu::gives_whole_rows(c.n, c.k) || c.base == Case::Base::accumulate
                       : !cpu::fits_one_depth(c.k))
          continue;
        std::copy(before.data(), before.data() + before.size(), seen.begin());
        Gemm other = g;
        Guarded<float> c_of_rows(c.m * ldc);
        other.c = whole_rows ? c_of_rows.data() : nullptr, other.whole_rows = whole_rows, other.before = {};
        if (c.base == Case::Base::accumulate) other.base = before.data();
        cpu::gemm(other, context);
        EXPECT_EQ(std::memcmp(first.data(), seen.data(), seen.size() * sizeof(float)), 0) << what << whole_rows;
      }
      for (const auto& n : done) ASSERT_EQ(n, 1) << what << ", tasks before";
    }
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  const auto add_both = [&](auto& self, Case c) -> void {
    c.name = "m" + std::to_string(c.m) + "n" + std::to_string(c.n) + "k" + std::to_string(c.k) +
             (c.a_transposed ? "t" : "n") + (c.b_transposed ? "t" : "n") + "a" +
             std::to_string(static_cast<int>(c.a_kind)) + "b" + std::to_string(static_cast<int>(c.b_kind)) + "base" +
             std::to_string(static_cast<int>(c.base)) + (c.paired ? "paired" : "") + (c.a_bf16 ? "a16" : "") +
             (c.b_bf16 ? "b16" : "") + (c.product_bf16 ? "product16" : "");
    all.push_back(c);
    // The same in bf16, of which a transposed B is kept in it.
    if (c.product_bf16) return;
    c.product_bf16 = true, c.b_bf16 |= c.b_transposed;
    self(self, c);
  };
  const auto add = [&](const Case& c) { add_both(add_both, c); };
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
  for (const std::int64_t f : {1, 9, 64, 300}) add({"", 33, 2 * f, 50, false, true, Kind::normed, {}, {}, true});
  for (const std::int64_t k : {1, 255, 256, 257, 600}) {
    add({"", 33, 37, k, false, false, Kind::block_scaled});
    add({"", k, 37, 33, true, false, Kind::block_scaled, Kind::normed, Case::Base::accumulate});
  }
  for (const std::int64_t f : {7, 41, 300})
    for (const auto& [ta, tb] : {std::pair(false, true), std::pair(false, false), std::pair(true, false)}) {
      add({"", f, 39, 2 * f, ta, tb, {}, {}, {}, false, true, true});
      add({"", f, 40, 19, ta, tb, {}, {}, {}, false, false, true});
    }
  // More than is packed at once: in columns, and in depth.
  add({"", 5, 3000, 700, false, true});
  add({"", 5, 40, 50000, false, false, {}, {}, Case::Base::other});
  add({"", 3, 2 * 1100, 900, false, true, {}, {}, {}, true});
  add({"", 700, 7, 5, false, true});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Shapes, GemmTest, testing::ValuesIn(cases()), [](const auto& i) { return i.param.name; });

// Every bit pattern of bf16 is read as the float that it is.
TEST(GemmTest, ReadsEveryBFloat16) {
  constexpr std::int64_t n = 1 << 16;
  for (const std::string_view set : cpu::instruction_sets()) {
    const OnInstructionSet on(set);
    Guarded<BFloat16> a(n);
    for (std::size_t i = 0; i < n; ++i) a[i].bits = static_cast<std::uint16_t>(i);
    const float one = 1;
    const BFloat16 narrow_one(one);
    Guarded<float> out(n), workspace(cpu::gemm_workspace(1, 1));
    Gemm g{.m = n, .n = 1, .k = 1, .a = Operand::plain(a.data(), 1), .b = Operand::plain(&one, 1), .c = out.data()};
    g.ldc = 1, g.workspace = workspace.data();
    for (const bool product_bf16 : {false, true}) {
      g.bf16 = product_bf16;
      if (product_bf16) g.b = Operand::plain(&narrow_one, 1, true);
      cpu::gemm(g, {});
      for (std::size_t i = 0; i < n; ++i) {
        float expected = static_cast<float>(a[i]);
        // The instruction takes what is below the least normal number for zero.
        if (product_bf16 && cpu::multiplies_bf16() && std::abs(expected) < 0x1p-126f) expected = 0;
        ASSERT_TRUE(std::isnan(expected) ? std::isnan(out[i]) : out[i] == expected) << i << " on " << set;
      }
    }
  }
}

// A NaN in one row of A, or column of B, stays in that row or column of C.
TEST(GemmTest, BrokenElementsStayInTheirRowAndColumn) {
  const std::int64_t m = 20, n = 70, k = 300;
  for (const std::string_view set : cpu::instruction_sets()) {
    const OnInstructionSet on(set);
    Guarded<float> a = random_guarded<float>(m * k, 1), b = random_guarded<float>(n * k, 2), out(m * n);
    a[5 * k + 280] = std::numeric_limits<float>::quiet_NaN();
    b[66 * k + 3] = std::numeric_limits<float>::infinity();
    const Guarded<BFloat16> narrow_b = narrowed(b);
    Guarded<float> workspace(cpu::gemm_workspace(n, k));
    Gemm g{.m = m, .n = n, .k = k, .a = Operand::plain(a.data(), k), .c = out.data(), .ldc = n};
    g.workspace = workspace.data();
    for (const bool product_bf16 : {false, true}) {
      g.b = Operand::plain(b.data(), k, true), g.bf16 = product_bf16;
      if (product_bf16) g.b = Operand::plain(narrow_b.data(), k, true);
      cpu::gemm(g, {});
      for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t j = 0; j < n; ++j)
          ASSERT_EQ(std::isfinite(out[static_cast<std::size_t>(i * n + j)]), i != 5 && j != 66) << i << " " << j;
    }
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

// The lower triangle alone is, to the bit, that of the whole product.
TEST(GemmTest, TheLowerTriangleIsThatOfTheWholeProduct) {
  struct Size {
    std::int64_t m, k;
  };
  for (const Size s : {Size{1, 1}, Size{5, 3}, Size{37, 300}, Size{130, 64}, Size{259, 700}, Size{600, 40}})
    for (const bool transposed : {false, true}) {
      Guarded<float> x = random_guarded<float>(s.m * s.k, 1), y = random_guarded<float>(s.m * s.k, 2);
      const std::int64_t ld = transposed ? s.m : s.k;
      const auto multiply = [&](bool lower, bool keep, ParallelFor* parallel) {
        Guarded<float> c(s.m * s.m), seen(s.m * s.m);
        Guarded<float> workspace(cpu::gemm_workspace(s.m, s.k), std::numeric_limits<float>::quiet_NaN());
        const auto finished = [&](const cpu::Block& b) {
          for (std::int64_t i = b.row0; i < b.row1; ++i)
            for (std::int64_t j = b.col0; j < std::min(b.col1, i + 1); ++j)
              seen[static_cast<std::size_t>(i * s.m + j)] += b.row(i)[j - b.col0];
        };
        Gemm g{.m = s.m, .n = s.m, .k = s.k};
        g.a = Operand::plain(x.data(), ld, transposed), g.b = Operand::plain(y.data(), ld, !transposed);
        if (keep) g.c = c.data(), g.ldc = s.m;
        g.lower = lower, g.finished = cpu::BlockHook(finished), g.workspace = workspace.data();
        KernelContext context;
        context.parallel = parallel;
        cpu::gemm(g, context);
        EXPECT_TRUE(x.intact() && y.intact() && c.intact() && workspace.intact());
        return seen.values();
      };
      for (const bool keep : {true, false}) {
        if (!keep && !cpu::fits_one_depth(s.k)) continue;
        on_every_path(
            "triangle of " + std::to_string(s.m), [&](ParallelFor* parallel) { return multiply(true, keep, parallel); },
            [&](const std::string& what, const std::vector<float>& got) {
              EXPECT_EQ(got, multiply(false, keep, nullptr)) << what;
            });
      }
    }
}

}  // namespace
}  // namespace stacklab::test
