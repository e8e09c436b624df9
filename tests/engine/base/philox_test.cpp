#include "engine/base/philox.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace stacklab {
namespace {

// Known answers published with the generator's paper (Random123, kat_vectors, philox4x32 10).
TEST(Philox, GivesThePublishedAnswers) {
  EXPECT_EQ(philox4x32_10({0, 0, 0, 0}, {0, 0}), (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32_10({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, PlacesElementTensorStepAndSeed) {
  const Philox p(0xfedcba9876543210u, 7, 9);
  EXPECT_EQ(p.block(0x1122334455667788u), philox4x32_10({0x55667788, 0x11223344, 7, 9}, {0x76543210, 0xfedcba98}));
  EXPECT_NE(p.bits(1), Philox(0xfedcba9876543210u, 8, 9).bits(1));
  EXPECT_NE(p.bits(1), Philox(0xfedcba9876543210u, 7, 10).bits(1));
  EXPECT_NE(p.bits(1), Philox(1, 7, 9).bits(1));
  EXPECT_NE(p.bits(1), p.bits(std::uint64_t{1} << 32 | 1));
}

TEST(Philox, MomentsOfUniformAndNormal) {
  const Philox p(42, 1);
  constexpr int n = 200'000;
  double u1 = 0, u2 = 0, g1 = 0, g2 = 0, g3 = 0, g4 = 0;
  for (int i = 0; i < n; ++i) {
    const double u = p.uniform(static_cast<std::uint64_t>(i)), g = p.normal(static_cast<std::uint64_t>(i));
    ASSERT_GT(u, 0.0);
    ASSERT_LT(u, 1.0);
    ASSERT_TRUE(std::isfinite(g));
    u1 += u;
    u2 += u * u;
    g1 += g;
    g2 += g * g;
    g3 += g * g * g;
    g4 += g * g * g * g;
  }
  // Five standard errors of each mean.
  const double se = 5 / std::sqrt(double(n));
  EXPECT_NEAR(u1 / n, 0.5, se * std::sqrt(1.0 / 12));
  EXPECT_NEAR(u2 / n, 1.0 / 3, se * std::sqrt(4.0 / 45));
  EXPECT_NEAR(g1 / n, 0, se);
  EXPECT_NEAR(g2 / n, 1, se * std::sqrt(2.0));
  EXPECT_NEAR(g3 / n, 0, se * std::sqrt(15.0));
  EXPECT_NEAR(g4 / n, 3, se * std::sqrt(96.0));
}

TEST(Philox, BelowStaysBelowAndReachesAll) {
  const Philox p(3, 0);
  int seen[7] = {};
  for (std::uint64_t i = 0; i < 7000; ++i) {
    const std::uint64_t v = p.below(i, 7);
    ASSERT_LT(v, 7u);
    ++seen[v];
  }
  for (const int count : seen) EXPECT_NEAR(count, 1000, 5 * std::sqrt(1000.0));
  EXPECT_EQ(p.below(5, 1), 0u);
  EXPECT_LT(p.below(5, std::numeric_limits<std::uint64_t>::max()), std::numeric_limits<std::uint64_t>::max());
}

}  // namespace
}  // namespace stacklab
