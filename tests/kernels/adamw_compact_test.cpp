// AdamW with moments in bf16 and in 8 bits. What is stored is rounded by a known chance, and rounding with one chance
// never falls as what is rounded grows: so it must lie between the roundings of the exact number less and more what
// floats may be off by.
#include <gtest/gtest.h>

#include "kernels/rounding.h"
#include "tests/kernels/cpu_harness.h"

namespace stacklab::test {
namespace {

TEST(Rounding, NoiseIsTheKnownFunction) {
  EXPECT_EQ(noise_bits(0, 0), 0x16791e00u);
  EXPECT_EQ(noise_bits(1, 0), 0xc895cb1du);
  EXPECT_EQ(noise_bits(123, 456), 0x0771723fu);
}

TEST(Rounding, ByChanceIsRightOnAverage) {
  for (const float x : {1.00490625f, -3.1e-5f, 7.7e20f, 1e-40f, -0.1f}) {
    const auto below = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x) >> 16);
    std::uint32_t ups = 0;
    for (std::uint32_t bits = 0; bits < 65536; ++bits) {
      const std::uint16_t got = rounded_by_chance(x, bits | 0xabcd0000u).bits;
      ASSERT_TRUE(got == below || got == below + 1) << x;
      ups += got != below;
    }
    EXPECT_EQ(ups, std::bit_cast<std::uint32_t>(x) & 0xffffu) << x;
  }
  for (const float x : {0.0f, 1.0f, -0.5f, std::numeric_limits<float>::infinity()})
    for (const std::uint32_t bits : {0u, 1u, 0xffffu}) EXPECT_EQ(static_cast<float>(rounded_by_chance(x, bits)), x);
  EXPECT_TRUE(std::isnan(static_cast<float>(rounded_by_chance(std::nanf(""), 0xffff))));
}

TEST(Rounding, CodesKeepTheirScaleAndSign) {
  for (const std::uint32_t bits : {0u, 0x8000u, 0xffffu}) {
    EXPECT_DOUBLE_EQ(first_moment(first_moment_code(0.3, 0.3, bits), 0.3), 0.3);
    EXPECT_DOUBLE_EQ(first_moment(first_moment_code(-0.3, 0.3, bits), 0.3), -0.3);
    EXPECT_DOUBLE_EQ(second_moment(second_moment_code(0.3, 0.3, bits), 0.3), 0.3);
    EXPECT_EQ(first_moment_code(0, 0, bits), 0);
    EXPECT_EQ(second_moment_code(0, 0, bits), 0);
    EXPECT_EQ(second_moment_code(0, 0.3, bits), 0);
    EXPECT_GT(second_moment_code(1e-30, 0.3, bits), 0) << "a step would be divided by nothing";
  }
  // A code in every place is found again from its own value.
  for (int q = -127; q <= 127; ++q)
    EXPECT_EQ(first_moment_code(first_moment(static_cast<std::int8_t>(q), 2) * (1 + 1e-12), 2, 0), q);
  for (int q = 1; q <= 255; ++q)
    EXPECT_EQ(second_moment_code(second_moment(static_cast<std::uint8_t>(q), 2) * (1 + 1e-12), 2, 0), q);
}

constexpr double beta1 = 0.9, beta2 = 0.95, eps = 1e-8, decay = 0.1, lr = 3e-3, scale = 0.37;
constexpr std::uint64_t tensor = 0x1234567890abcdefu;

struct State {
  bool narrow_w, codes;
  Guarded<float> w, g, m_scales, v_scales;
  Guarded<BFloat16> w16, m16, v16;
  Guarded<std::uint8_t> m8, v8;
  double change = -1;

  State(std::int64_t n, bool bf16_w, bool in_codes)
      : narrow_w(bf16_w),
        codes(in_codes),
        w(random_guarded<float>(n, 1)),
        g(random_guarded<float>(n, 2, 1e-2)),
        m_scales(codes ? (n + moment_block - 1) / moment_block : 0),
        v_scales(m_scales.size()),
        w16(narrow_w ? n : 0),
        m16(codes ? 0 : n),
        v16(codes ? 0 : n),
        m8(codes ? n : 0),
        v8(codes ? n : 0) {
    for (std::size_t i = 0; i < w16.size(); ++i) w16[i] = BFloat16(w[i]);
  }
  std::size_t size() const { return w.size(); }
  double w_at(std::size_t i) const { return narrow_w ? static_cast<double>(static_cast<float>(w16[i])) : w[i]; }
  double m_at(std::size_t i) const {
    return codes ? first_moment(static_cast<std::int8_t>(m8[i]), m_scales[i / moment_block])
                 : static_cast<double>(static_cast<float>(m16[i]));
  }
  double v_at(std::size_t i) const {
    return codes ? second_moment(v8[i], v_scales[i / moment_block]) : static_cast<double>(static_cast<float>(v16[i]));
  }
  std::vector<std::uint8_t> bits() const {
    std::vector<std::uint8_t> all;
    const auto add = [&](const auto& t) {
      const auto* bytes = reinterpret_cast<const std::uint8_t*>(t.data());
      all.insert(all.end(), bytes, bytes + t.size() * sizeof(t[0]));
    };
    add(w), add(w16), add(m16), add(v16), add(m8), add(v8), add(m_scales), add(v_scales);
    return all;
  }

  void update(const Backend& backend, double number, double by = scale, ParallelFor* parallel = nullptr) {
    const Shape shape = {static_cast<std::int64_t>(size())}, blocks = {static_cast<std::int64_t>(m_scales.size())};
    Guarded<double> rate(1, lr), clip(1, by), updates(1, number), taken(1, -1.0);
    op::AdamWCompact o{.w = narrow_w ? view_of(w16, shape) : view_of(w, shape),
                       .g = view_of(g, shape),
                       .m = codes ? view_of(m8, shape) : view_of(m16, shape),
                       .v = codes ? view_of(v8, shape) : view_of(v16, shape),
                       .m_scales = {},
                       .v_scales = {},
                       .lr = view_of(rate, {1}),
                       .scale = view_of(clip, {1}),
                       .updates = view_of(updates, {1}),
                       .change = view_of(taken, {1}),
                       .beta1 = beta1,
                       .beta2 = beta2,
                       .eps = eps,
                       .weight_decay = decay,
                       .seed = tensor};
    if (codes) o.m_scales = view_of(m_scales, blocks), o.v_scales = view_of(v_scales, blocks);
    run_op(backend, o, nullptr, parallel);
    change = taken[0];
    for (const bool intact : {w.intact(), g.intact(), m_scales.intact(), v_scales.intact(), w16.intact(), m16.intact(),
                              v16.intact(), m8.intact(), v8.intact()})
      EXPECT_TRUE(intact);
  }
};

double rounded(double x, std::uint32_t bits) {
  return static_cast<double>(static_cast<float>(rounded_by_chance(static_cast<float>(x), bits)));
}

// after: what an update number `number` of before may be.
void expect_update(const std::string& where, const State& before, const State& after, double number) {
  const double c1 = 1 - std::pow(beta1, number), c2 = 1 - std::pow(beta2, number);
  const std::uint32_t seed = noise_seed(tensor, number);
  std::vector<double> m(before.size()), v(before.size()), m_off(before.size()), v_off(before.size());
  double change = 0, change_off = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const double g = before.g[i] * scale, w = before.w_at(i), old_m = before.m_at(i), old_v = before.v_at(i);
    m[i] = beta1 * old_m + (1 - beta1) * g, v[i] = beta2 * old_v + (1 - beta2) * g * g;
    // As AdamW in floats, with three more roundings where codes become m, and twelve where they become v.
    m_off[i] = 10 * unit32 * (beta1 * std::abs(old_m) + (1 - beta1) * std::abs(g)), v_off[i] = 20 * unit32 * v[i];
    const double root = std::sqrt(v[i] / c2) + eps, step = m[i] == 0 ? 0 : m[i] / c1 / root;
    const double step_off =
        m_off[i] / c1 / root + std::abs(step) * ((v[i] > 0 ? v_off[i] / (2 * v[i]) : 0) + 5 * unit32);
    const double taken = lr * (step + decay * w);
    const double taken_off = lr * (step_off + 4 * unit32 * (std::abs(step) + decay * std::abs(w)));
    change += taken * taken, change_off += taken_off * taken_off;
    const double off = taken_off + unit32 * std::abs(w - taken), got = after.w_at(i);
    const std::uint32_t bits = noise_bits(static_cast<std::uint32_t>(i), other_noise(seed));
    // Rounding by chance goes by size, not by sign.
    double least = w - taken - off, most = w - taken + off;
    if (before.narrow_w) {
      const double a = rounded(least, bits), b = rounded(most, bits);
      least = std::min(a, b), most = std::max(a, b);
    }
    ASSERT_LE(least, got) << where << ", w " << i;
    ASSERT_GE(most, got) << where << ", w " << i;
  }
  change_off = std::sqrt(change_off);
  EXPECT_NEAR(after.change, change, 2 * std::sqrt(change) * change_off + change_off * change_off) << where;
  for (std::size_t block = 0; block * moment_block < before.size(); ++block) {
    const std::size_t begin = block * moment_block, end = std::min<std::size_t>(begin + moment_block, before.size());
    double m_scale = 0, v_scale = 0, m_scale_off = 0, v_scale_off = 0;
    for (std::size_t i = begin; i < end; ++i) {
      m_scale = std::max(m_scale, std::abs(m[i])), v_scale = std::max(v_scale, v[i]);
      m_scale_off = std::max(m_scale_off, m_off[i]), v_scale_off = std::max(v_scale_off, v_off[i]);
    }
    if (before.codes) {
      ASSERT_NEAR(after.m_scales[block], m_scale, m_scale_off + unit32 * m_scale) << where;
      ASSERT_NEAR(after.v_scales[block], v_scale, v_scale_off + unit32 * v_scale) << where;
    }
    for (std::size_t i = begin; i < end; ++i) {
      const std::uint32_t bits = noise_bits(static_cast<std::uint32_t>(i), seed);
      if (!before.codes) {
        const double a = rounded(m[i] - m_off[i], bits), b = rounded(m[i] + m_off[i], bits);
        ASSERT_LE(std::min(a, b), after.m_at(i)) << where << ", m " << i;
        ASSERT_GE(std::max(a, b), after.m_at(i)) << where << ", m " << i;
        ASSERT_LE(rounded(v[i] - v_off[i], bits >> 16), after.v_at(i)) << where << ", v " << i;
        ASSERT_GE(rounded(v[i] + v_off[i], bits >> 16), after.v_at(i)) << where << ", v " << i;
        continue;
      }
      // Four roundings on the way to a code, which is a share of the scale as it is stored; the last is of the chance
      // added to it, and counts for more where the code is small.
      const double m_stored = after.m_scales[block], v_stored = after.v_scales[block], codes_off = 32 * unit32;
      const auto first = [&](double x, double sign) {
        return first_moment_code(x + sign * (m_off[i] + codes_off * std::abs(x)), m_stored, bits);
      };
      ASSERT_LE(first(m[i], -1), static_cast<std::int8_t>(after.m8[i])) << where << ", m " << i;
      ASSERT_GE(first(m[i], 1), static_cast<std::int8_t>(after.m8[i])) << where << ", m " << i;
      const auto second = [&](double sign) {
        return second_moment_code(v[i] + sign * (v_off[i] + 2 * codes_off * v[i]), v_stored, bits >> 16);
      };
      ASSERT_LE(second(-1), after.v8[i]) << where << ", v " << i;
      ASSERT_GE(second(1), after.v8[i]) << where << ", v " << i;
    }
  }
}

const std::vector<std::int64_t> sizes = {1, 7, 255, 256, 257, 1000, 9000};

TEST(AdamWCompact, IsAdamWRoundedByChance) {
  for (const std::int64_t n : sizes)
    for (const bool narrow_w : {false, true})
      for (const bool codes : {false, true}) {
        const std::string what = std::to_string(n) + (narrow_w ? ", bf16" : ", f32") + (codes ? ", codes" : ", bf16");
        // From nothing, and from what an update left.
        State start(n, narrow_w, codes);
        for (double number = 1; number <= 3; ++number) {
          State oracle = start;
          oracle.update(*find_backend("reference"), number);
          expect_update("reference " + what, start, oracle, number);
          on_every_path(
              what,
              [&](ParallelFor* parallel) {
                State mine = start;
                mine.update(*find_backend("cpu"), number, scale, parallel);
                expect_update("cpu " + what, start, mine, number);
                return mine.bits();
              },
              [](const std::string&, const std::vector<std::uint8_t>&) {});
          start = oracle;
        }
      }
}

TEST(AdamWCompact, ScaleZeroChangesNothingAndNoGradientMovesNothing) {
  for (const char* backend : {"reference", "cpu"})
    for (const bool codes : {false, true}) {
      State s(300, true, codes);
      s.update(*find_backend(backend), 1);
      const std::vector<std::uint8_t> before = s.bits();
      s.g[3] = std::numeric_limits<float>::infinity();
      s.update(*find_backend(backend), 2, 0);
      EXPECT_EQ(s.bits(), before);
      EXPECT_EQ(s.change, 0);
      State still(300, false, codes);
      for (std::size_t i = 0; i < still.size(); ++i) still.g[i] = still.w[i] = 0;
      const std::vector<std::uint8_t> nothing = still.bits();
      for (double number = 1; number <= 3; ++number) still.update(*find_backend(backend), number);
      EXPECT_EQ(still.bits(), nothing) << backend;
    }
}

// Steps far smaller than a bf16 holds add up, as they would not by rounding to nearest.
TEST(AdamWCompact, SmallStepsAreNotLost) {
  for (const char* backend : {"reference", "cpu"}) {
    State s(4096, true, false);
    for (std::size_t i = 0; i < s.size(); ++i) s.w16[i] = BFloat16(8.0f), s.g[i] = 1;
    const int updates = 20;
    double expected = 8;
    for (int number = 1; number <= updates; ++number) {
      s.update(*find_backend(backend), number);
      expected -= lr * (1 + decay * expected);
    }
    double mean = 0;
    for (std::size_t i = 0; i < s.size(); ++i) mean += s.w_at(i) / static_cast<double>(s.size());
    // Below 8 a step of bf16 is 1/32. Each update errs by half of it at most, all of them independently of one another:
    // five deviations of the mean, and half a percent of the way for moments in bf16.
    EXPECT_NEAR(mean, expected, 5 * std::sqrt(updates / static_cast<double>(s.size())) / 64 + 5e-3 * (8 - expected))
        << backend;
  }
}

}  // namespace
}  // namespace stacklab::test
