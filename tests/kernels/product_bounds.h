// What the tests of the CPU backend's norms and products share: tensors beside the same numbers in double, and how far
// rounding may take results from those of exact numbers. Errors are followed through each formula to first order; a sum
// of k terms errs like a random walk of k steps, relative to the sum of the sizes of its terms.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/bf16.h"
#include "tests/kernels/cpu_harness.h"
#include "tests/kernels/op_harness.h"

namespace stacklab::test {

// Unit roundoff of bf16.
inline constexpr double unit16 = 0x1p-8;

// The relative error of an operand in f32 of a product whose weights are bf16, on the instruction set in use.
inline double narrowing(bool bf16) { return bf16 && cpu::multiplies_bf16() ? unit16 : 0; }

// What depends on it, computed once for each of its values.
template <class F>
class ByNarrowing {
 public:
  ByNarrowing(bool bf16, F f) : bf16_(bf16), f_(std::move(f)) {}
  const auto& operator()() {
    const double narrowed = narrowing(bf16_);
    auto& value = values_[narrowed != 0];
    if (!value) value.emplace(f_(narrowed));
    return *value;
  }

 private:
  bool bf16_;
  F f_;
  std::optional<std::invoke_result_t<F, double>> values_[2];
};

inline double depth(std::int64_t terms) { return 16 + 2 * std::sqrt(static_cast<double>(terms)); }

struct Matrix {
  std::int64_t rows = 0, cols = 0;
  std::vector<double> v;
  Matrix() = default;
  Matrix(std::int64_t r, std::int64_t c) : rows(r), cols(c), v(static_cast<std::size_t>(r * c)) {}
  template <class F>
  Matrix(std::int64_t r, std::int64_t c, F&& f) : Matrix(r, c) {
    for (std::int64_t i = 0; i < r; ++i)
      for (std::int64_t j = 0; j < c; ++j) (*this)(i, j) = f(i, j);
  }
  double& operator()(std::int64_t r, std::int64_t c) { return v[static_cast<std::size_t>(r * cols + c)]; }
  double operator()(std::int64_t r, std::int64_t c) const { return v[static_cast<std::size_t>(r * cols + c)]; }
  Matrix transposed() const {
    return {cols, rows, [this](std::int64_t i, std::int64_t j) { return (*this)(j, i); }};
  }
};

inline Matrix operator*(const Matrix& a, const Matrix& b) {
  Matrix c(a.rows, b.cols);
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t k = 0; k < a.cols; ++k)
      for (std::int64_t j = 0; j < b.cols; ++j) c(i, j) += a(i, k) * b(k, j);
  return c;
}
inline Matrix operator*(double s, Matrix m) {
  for (double& x : m.v) x *= s;
  return m;
}
inline Matrix operator+(Matrix a, const Matrix& b) {
  for (std::size_t i = 0; i < a.v.size(); ++i) a.v[i] += b.v[i];
  return a;
}

// A tensor in f32 or bf16 between guards, and the same numbers in double.
struct Held {
  Shape shape;
  bool bf16 = false;
  Guarded<float> wide;
  Guarded<BFloat16> narrow;
  Tensor<double> exact;

  Held(Shape s, std::uint32_t seed, bool in_bf16 = false, double deviation = 1)
      : shape(s), bf16(in_bf16), wide(random_guarded<float>(s.size(), seed, deviation)), exact(s) {
    if (bf16) narrow = Guarded<BFloat16>(s.size());
    for (std::size_t i = 0; i < wide.size(); ++i) set(i, wide[i]);
  }
  void set(std::size_t i, float value) {
    if (bf16) narrow[i] = BFloat16(value), value = static_cast<float>(narrow[i]);
    wide[i] = value, exact.data[i] = value;
  }
  TensorView view() { return bf16 ? view_of(narrow, shape) : view_of(wide, shape); }
  TensorView oracle() const { return exact.view(); }
  bool intact() const { return wide.intact() && narrow.intact(); }
  float operator[](std::size_t i) const { return bf16 ? static_cast<float>(narrow[i]) : wide[i]; }
  void append_to(std::vector<float>& values) const {
    for (std::size_t i = 0; i < wide.size(); ++i) values.push_back((*this)[i]);
  }
  Matrix numbers() const {
    const std::int64_t cols = shape.rank > 1 ? shape[1] : shape[0], rows = shape.rank > 1 ? shape[0] : 1;
    return {rows, cols,
            [&](std::int64_t i, std::int64_t j) { return exact.data[static_cast<std::size_t>(i * cols + j)]; }};
  }
  Matrix sizes() const {
    Matrix m = numbers();
    for (double& x : m.v) x = std::abs(x);
    return m;
  }
};

// Expected values of one result and what each may be off by.
struct Expected {
  std::string name;
  std::vector<double> values;
  Matrix allowed;
  Expected(std::string what, const Held& h, Matrix error) : name(std::move(what)), values(h.exact.data) {
    allowed = std::move(error);
    // Kept in bf16: rounded once.
    for (std::size_t i = 0; h.bf16 && i < values.size(); ++i)
      allowed.v[i] = (1 + unit16) * allowed.v[i] + unit16 * std::abs(values[i]);
  }
};

inline void expect_all(const std::string& where, const std::vector<float>& got, const std::vector<Expected>& expected) {
  std::size_t at = 0;
  for (const Expected& e : expected) {
    ASSERT_LE(at + e.values.size(), got.size()) << where;
    const std::vector<float> part(got.begin() + static_cast<std::ptrdiff_t>(at),
                                  got.begin() + static_cast<std::ptrdiff_t>(at + e.values.size()));
    expect_close(where + ", " + e.name, part, e.values, [&](std::size_t i) { return e.allowed.v[i]; });
    at += e.values.size();
  }
  EXPECT_EQ(at, got.size()) << where;
}

// |x| / rms and |x gain| / rms
struct NormSizes {
  Matrix xn, n, gain;
  std::vector<double> r;
  bool norm;
  NormSizes(const Held& x, const Held* g, double eps) : norm(g != nullptr) {
    xn = n = x.sizes();
    if (!norm) return;
    gain = g->sizes();
    for (std::int64_t t = 0; t < n.rows; ++t) {
      double sum = 0;
      for (std::int64_t i = 0; i < n.cols; ++i) sum += xn(t, i) * xn(t, i);
      r.push_back(1 / std::sqrt(sum / static_cast<double>(n.cols) + eps));
      for (std::int64_t i = 0; i < n.cols; ++i) xn(t, i) *= r.back(), n(t, i) = xn(t, i) * gain(0, i);
    }
  }
  // y = n w^T, where n is rounded on the way
  Matrix product_error(const Matrix& w, double narrowed) const {
    return (narrowed + unit32 * depth(n.cols)) * (n * w.transposed());
  }
};

// The size of dy, and how far off it is already.
struct Gradient {
  Matrix size, error;
  Gradient rounded(double narrowed) const { return {size, error + narrowed * (size + error)}; }
};

// Errors of the gradients of y = n w^T, without what they are added to; n is rounded on the way.
struct ProductErrors {
  Matrix dx, dgain, dw;
  ProductErrors(const NormSizes& s, const Matrix& w, const Gradient& dy, double narrowed) {
    const std::int64_t rows = s.n.rows, d = s.n.cols;
    const Matrix size = dy.size * w, error = dy.error * w + unit32 * depth(w.rows) * size;
    dw = dy.error.transposed() * s.n + unit32 * (depth(rows) + depth(d)) * (dy.size.transposed() * s.n);
    if (narrowed != 0) dw = dw + narrowed * ((dy.size + dy.error).transposed() * s.n);
    dx = error;
    if (!s.norm) return;
    // dx = r (gain dn - xn mean(gain dn xn)), dgain = sum of dn xn
    const auto through_norm = [&](const Matrix& dn) {
      Matrix out(rows, d);
      for (std::int64_t t = 0; t < rows; ++t) {
        double mean = 0;
        for (std::int64_t i = 0; i < d; ++i) mean += s.gain(0, i) * dn(t, i) * s.xn(t, i) / static_cast<double>(d);
        for (std::int64_t i = 0; i < d; ++i)
          out(t, i) = s.r[static_cast<std::size_t>(t)] * (s.gain(0, i) * dn(t, i) + s.xn(t, i) * mean);
      }
      return out;
    };
    const auto of_gain = [&](const Matrix& dn) {
      Matrix out(1, d);
      for (std::int64_t t = 0; t < rows; ++t)
        for (std::int64_t i = 0; i < d; ++i) out(0, i) += dn(t, i) * s.xn(t, i);
      return out;
    };
    dx = through_norm(error) + unit32 * depth(d) * through_norm(size);
    dgain = of_gain(error) + unit32 * (depth(rows) + depth(d)) * of_gain(size);
  }
};

// A gradient that starts as something, as a backend and as the oracle see it.
struct Wanted {
  bool present = true, accumulate = false;
  GradView of(const TensorView& v) const { return present ? GradView{v, accumulate} : GradView{}; }
  // Rounding of what it is added to, once for each of a few parts.
  Matrix error(const Held& before, const Matrix& own, std::int64_t parts) const {
    return accumulate ? own + unit32 * depth(parts) * before.sizes() : own;
  }
};

}  // namespace stacklab::test
