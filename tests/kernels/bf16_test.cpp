// bf16 as a storage type: rounding, and operations whose operands are kept in it.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "kernels/bf16.h"
#include "tests/kernels/op_harness.h"

namespace stacklab::test {
namespace {

const Backend& reference() { return *find_backend("reference"); }

TEST(BFloat16, RoundsToNearestEvenAndKeepsWhatIsNotANumber) {
  const auto round = [](float x) { return static_cast<float>(BFloat16(x)); };
  EXPECT_EQ(round(1.0f), 1.0f);
  EXPECT_EQ(round(1.0f + 0x1p-8f), 1.0f);               // a tie goes to the even one below
  EXPECT_EQ(round(1.0f + 0x3p-8f), 1.0f + 0x1p-6f);     // and above
  EXPECT_EQ(round(1.0f + 0x1.01p-8f), 1.0f + 0x1p-7f);  // just over a tie
  EXPECT_EQ(round(-0.0f), 0.0f);
  EXPECT_TRUE(std::signbit(round(-0.0f)));
  EXPECT_EQ(round(0x1p-133f), 0x1p-133f);  // the smallest denormal
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(round(inf), inf);
  EXPECT_EQ(round(std::numeric_limits<float>::max()), inf);  // as IEEE rounding does
  EXPECT_TRUE(std::isnan(round(std::bit_cast<float>(0x7f800001u))));
  EXPECT_TRUE(std::isnan(round(std::bit_cast<float>(0xffffffffu))));
}

TEST(BFloat16, CastRoundsAndWidens) {
  const Tensor<float> from = random_tensor<float>({3, 17}, 1);
  Tensor<BFloat16> to(from.shape);
  run_op(reference(), op::Cast{.from = from.view(), .to = to.view()});
  for (std::size_t i = 0; i < from.data.size(); ++i) EXPECT_EQ(to.data[i].bits, BFloat16(from.data[i]).bits);
  Tensor<float> back(from.shape);
  run_op(reference(), op::Cast{.from = to.view(), .to = back.view()});
  for (std::size_t i = 0; i < from.data.size(); ++i) EXPECT_EQ(back.data[i], static_cast<float>(to.data[i]));
}

// The reference computes in f32 on the widened operands and rounds its results once.
TEST(BFloat16, AProductOfStoredOperandsIsTheRoundedProductOfTheirValues) {
  const std::int64_t rows = 5, d = 6, k = 9;
  const auto rounded = [](Tensor<float> t) {
    Tensor<BFloat16> r(t.shape);
    for (std::size_t i = 0; i < t.data.size(); ++i) r.data[i] = BFloat16(t.data[i]);
    return r;
  };
  const auto widened = [](const Tensor<BFloat16>& t) {
    Tensor<float> r(t.shape);
    for (std::size_t i = 0; i < t.data.size(); ++i) r.data[i] = static_cast<float>(t.data[i]);
    return r;
  };
  const Tensor<BFloat16> a = rounded(random_tensor<float>({rows, k}, 1)), w = rounded(random_tensor<float>({d, k}, 2));
  const Tensor<float> x = random_tensor<float>({rows, d}, 3), wide_a = widened(a), wide_w = widened(w);
  Tensor<float> out(x.shape), expected(x.shape);
  run_op(reference(), op::ProjectAdd{.a = a.view(), .w = w.view(), .x = x.view(), .out = out.view()});
  run_op(reference(), op::ProjectAdd{.a = wide_a.view(), .w = wide_w.view(), .x = x.view(), .out = expected.view()});
  EXPECT_EQ(out.data, expected.data);

  Tensor<BFloat16> da({rows, k});
  Tensor<float> wide_da({rows, k}), dw({d, k}, 1.0f), wide_dw({d, k}, 1.0f);
  run_op(reference(), op::ProjectAddBackward{
                          .dout = x.view(), .a = a.view(), .w = w.view(), .da = da.view(), .dw = {dw.view(), true}});
  run_op(reference(), op::ProjectAddBackward{.dout = x.view(),
                                             .a = wide_a.view(),
                                             .w = wide_w.view(),
                                             .da = wide_da.view(),
                                             .dw = {wide_dw.view(), true}});
  EXPECT_EQ(dw.data, wide_dw.data);
  for (std::size_t i = 0; i < da.data.size(); ++i) EXPECT_EQ(da.data[i].bits, BFloat16(wide_da.data[i]).bits);
}

TEST(BFloat16, IsRefusedWhereAnOperandMustBeReal) {
  const Tensor<BFloat16> x({2, 3}), w({2, 3});
  const Tensor<float> gain(Shape{3}), y({2, 2});
  EXPECT_NE(check(Op(op::NormMatmul{.x = x.view(),
                                    .gain = gain.view(),
                                    .w = w.view(),
                                    .y = y.view(),
                                    .saved = {},
                                    .workspace = {},
                                    .eps = 1e-6})),
            nullptr);
  const Tensor<double> wide({2, 3}), wide_gain(Shape{3}), wide_y({2, 2});
  EXPECT_NE(check(Op(op::NormMatmul{.x = wide.view(),
                                    .gain = wide_gain.view(),
                                    .w = w.view(),
                                    .y = wide_y.view(),
                                    .saved = {},
                                    .workspace = {},
                                    .eps = 1e-6})),
            nullptr);
}

}  // namespace
}  // namespace stacklab::test
