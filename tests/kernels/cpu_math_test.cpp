// Elementary functions on vectors against those of the standard library in double, over dense sweeps of floats, on
// every instruction set.
#include <gtest/gtest.h>

#include <bit>

#include "tests/kernels/cpu_harness.h"
#include "tests/kernels/cpu_math_functions.h"

namespace stacklab::test {
namespace {

// Every 499th float of one sign, from the smallest normal number to `end`.
std::vector<float> sweep(float end, bool negative) {
  std::vector<float> all;
  for (auto bits = std::bit_cast<std::uint32_t>(std::numeric_limits<float>::min());
       bits <= std::bit_cast<std::uint32_t>(end); bits += 499)
    all.push_back(negative ? -std::bit_cast<float>(bits) : std::bit_cast<float>(bits));
  all.push_back(negative ? -end : end);
  return all;
}
std::vector<float> both(float end) {
  std::vector<float> all = sweep(end, false);
  const std::vector<float> below = sweep(end, true);
  all.insert(all.end(), below.begin(), below.end());
  all.push_back(0.0f), all.push_back(-0.0f);
  return all;
}

// Distance of neighbours around a number, in floats.
double ulp(double x) {
  const int exponent = std::max(std::ilogb(x), -126);
  return std::ldexp(1.0, exponent - 23);
}

// The largest error, in distances of neighbours around scale(x) where results cancel, around the result otherwise.
template <class Exact, class Scale>
void expect_within(const std::string& name, Function f, const std::vector<float>& x, double ulps, Exact&& exact,
                   Scale&& scale) {
  for (const std::string_view set : cpu::instruction_sets()) {
    const OnInstructionSet on(set);
    std::vector<float> y(x.size());
    apply(f, x.data(), y.data(), static_cast<std::int64_t>(x.size()));
    double worst = 0;
    std::size_t at = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double expected = exact(static_cast<double>(x[i]));
      const double error = std::abs(static_cast<double>(y[i]) - expected) / ulp(scale(static_cast<double>(x[i])));
      if (!(error <= worst)) worst = std::isnan(error) ? std::numeric_limits<double>::infinity() : error, at = i;
    }
    EXPECT_LE(worst, ulps) << name << " on " << set << " at " << x[at] << ": " << y[at] << " instead of "
                           << exact(static_cast<double>(x[at]));
  }
}
template <class Exact>
void expect_within(const std::string& name, Function f, const std::vector<float>& x, double ulps, Exact&& exact) {
  expect_within(name, f, x, ulps, exact, exact);
}

float one(Function f, float x) {
  float y = 0;
  apply(f, &x, &y, 1);
  return y;
}

double exact_sigmoid(double x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }

// exp has a rounding of the reduced argument (times the slope 1), of the last sums of the polynomial, and of its own
// coefficients, below half a neighbour each; what is built from it adds a rounding for each operation.
TEST(CpuMath, Exponential) {
  std::vector<float> x = sweep(88, false);
  // Where results are normal numbers.
  const std::vector<float> below = sweep(87.33f, true);
  x.insert(x.end(), below.begin(), below.end());
  expect_within("exp", Function::exp, x, 1.5, [](double v) { return std::exp(v); });
  for (const std::string_view set : cpu::instruction_sets()) {
    const OnInstructionSet on(set);
    for (const float small : {-87.4f, -88.0f, -1e3f, -1e30f, -std::numeric_limits<float>::infinity()})
      EXPECT_EQ(one(Function::exp, small), 0) << small << " on " << set;
    EXPECT_EQ(one(Function::exp, 0), 1) << set;
  }
}

TEST(CpuMath, Sigmoid) { expect_within("sigmoid", Function::sigmoid, both(87.33f), 3, exact_sigmoid); }

// The slope crosses 0: errors are those of its terms.
TEST(CpuMath, SlopeOfSilu) {
  const auto exact = [](double x) {
    const double s = exact_sigmoid(x);
    return s + x * s * (1 - s);
  };
  expect_within("silu_slope", Function::silu_slope, both(87.33f), 6, exact, [](double x) {
    const double s = exact_sigmoid(x);
    return s + std::abs(x) * s;
  });
}

TEST(CpuMath, Tanh) {
  expect_within("tanh", Function::tanh, both(100), 2, [](double v) { return std::tanh(v); });
}

TEST(CpuMath, Logarithm) {
  expect_within("log", Function::log, sweep(std::numeric_limits<float>::max(), false), 1,
                [](double v) { return std::log(v); });
}

TEST(CpuMath, ValuesAtInfinityAndNaN) {
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::string_view set : cpu::instruction_sets()) {
    const OnInstructionSet on(set);
    for (const Function f : {Function::exp, Function::sigmoid, Function::silu_slope, Function::tanh, Function::log})
      EXPECT_TRUE(std::isnan(one(f, nan))) << static_cast<int>(f) << " on " << set;
    EXPECT_EQ(one(Function::sigmoid, infinity), 1);
    EXPECT_EQ(one(Function::sigmoid, -infinity), 0);
    EXPECT_EQ(one(Function::tanh, infinity), 1);
    EXPECT_EQ(one(Function::tanh, -infinity), -1);
    // Gates far out: 1 and 0, not NaN.
    EXPECT_EQ(one(Function::silu_slope, 1e30f), 1);
    EXPECT_EQ(one(Function::silu_slope, -1e30f), 0);
  }
}

TEST(CpuMath, SineAndCosineInDouble) {
  constexpr std::int64_t n = 1 << 18;
  std::vector<double> x, sine(n), cosine(n);
  for (std::int64_t i = 0; i < n; ++i)
    x.push_back((i % 2 == 0 ? 1 : -1) * 1e6 * static_cast<double>(i) / n +
                (i % 16 == 0 ? 0 : 1e-3 * static_cast<double>(i % 7)));
  for (const std::string_view set : cpu::instruction_sets()) {
    const OnInstructionSet on(set);
    sin_cos(x.data(), sine.data(), cosine.data(), n);
    double worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i)
      worst = std::max({worst, std::abs(sine[i] - std::sin(x[i])), std::abs(cosine[i] - std::cos(x[i]))});
    EXPECT_LT(worst, 1e-10) << set;
  }
}

}  // namespace
}  // namespace stacklab::test
