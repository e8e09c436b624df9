#include "tests/kernels/cpu_math_functions.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/kernels/cpu_math_functions.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/math-inl.h"
#include "kernels/cpu/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stacklab::cpu::HWY_NAMESPACE {
namespace {

template <class F>
void each(const float* x, float* y, std::int64_t n, F&& f) {
  for_vectors(n, [&](auto d, std::int64_t i) HWY_ATTR { hn::StoreU(f(d, hn::LoadU(d, x + i)), d, y + i); });
}

void apply_all(test::Function f, const float* x, float* y, std::int64_t n) {
  switch (f) {
    case test::Function::exp:
      return each(x, y, n, [](auto d, auto v) HWY_ATTR { return exp_bounded(d, v); });
    case test::Function::sigmoid:
      return each(x, y, n, [](auto d, auto v) HWY_ATTR { return sigmoid(d, v); });
    case test::Function::silu_slope:
      return each(x, y, n, [](auto d, auto v) HWY_ATTR { return silu_slope(d, v, sigmoid(d, v)); });
    case test::Function::tanh:
      return each(x, y, n, [](auto d, auto v) HWY_ATTR { return tanh(d, v); });
    case test::Function::log:
      return each(x, y, n, [](auto d, auto v) HWY_ATTR { return log_positive(d, v); });
  }
}

void sin_cos_all(const double* x, double* sine, double* cosine, std::int64_t n) {
  const hn::ScalableTag<double> d;
  const auto step = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i + step <= n; i += step) {
    hn::Vec<decltype(d)> s, c;
    sin_cos(d, hn::LoadU(d, x + i), s, c);
    hn::StoreU(s, d, sine + i), hn::StoreU(c, d, cosine + i);
  }
}

}  // namespace
}  // namespace stacklab::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stacklab::cpu {

HWY_EXPORT(apply_all);
HWY_EXPORT(sin_cos_all);

}  // namespace stacklab::cpu
namespace stacklab::test {

void apply(Function f, const float* x, float* y, std::int64_t n) {
  using namespace stacklab::cpu;
  HWY_DYNAMIC_DISPATCH(apply_all)(f, x, y, n);
}
void sin_cos(const double* x, double* sine, double* cosine, std::int64_t n) {
  using namespace stacklab::cpu;
  HWY_DYNAMIC_DISPATCH(sin_cos_all)(x, sine, cosine, n);
}

}  // namespace stacklab::test
#endif
