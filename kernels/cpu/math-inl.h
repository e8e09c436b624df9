// Elementary functions on vectors, as precise as fp32 training wants them. Included once for each instruction set.
// Errors are in distances of neighbouring floats.
// Polynomials: S. L. Moshier, Methods and Programs for Mathematical Functions (1989), the single precision ones.
#if defined(STACKLAB_KERNELS_CPU_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STACKLAB_KERNELS_CPU_MATH_INL_H_
#undef STACKLAB_KERNELS_CPU_MATH_INL_H_
#else
#define STACKLAB_KERNELS_CPU_MATH_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace stacklab::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// exp(x) for x <= 88; 0 below -87.3, where results would be denormal; NaN stays. Error < 1.5.
template <class D>
HWY_INLINE hn::Vec<D> exp_bounded(D d, hn::Vec<D> x) {
  const hn::RebindToSigned<D> di;
  const auto low = hn::Set(d, -87.33654f);
  // The second operand of Max survives where one is NaN.
  const auto clamped = hn::Max(low, x);
  const auto n = hn::NearestInt(hn::Mul(clamped, hn::Set(d, 1.44269504f)));
  const auto nf = hn::ConvertTo(d, n);
  // ln 2 in two parts: the product with the first is exact.
  auto r = hn::NegMulAdd(nf, hn::Set(d, 0.693359375f), clamped);
  r = hn::NegMulAdd(nf, hn::Set(d, -2.12194440e-4f), r);
  auto p = hn::MulAdd(hn::Set(d, 1.9875691500e-4f), r, hn::Set(d, 1.3981999507e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 8.3334519073e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 4.1665795894e-2f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.6666665459e-1f));
  p = hn::MulAdd(p, r, hn::Set(d, 5.0000001201e-1f));
  p = hn::MulAdd(p, hn::Mul(r, r), hn::Add(r, hn::Set(d, 1.0f)));
  const auto power = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(n, hn::Set(di, 127))));
  return hn::IfThenZeroElse(hn::Lt(x, low), hn::Mul(p, power));
}

// 1 / (1 + exp(-x)). Error < 3.
template <class D>
HWY_INLINE hn::Vec<D> sigmoid(D d, hn::Vec<D> x) {
  const auto one = hn::Set(d, 1.0f);
  const auto e = exp_bounded(d, hn::Neg(hn::Abs(x)));
  const auto s = hn::Div(one, hn::Add(one, e));
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(e, s), s);
}

// Of x sigmoid(x), with s = sigmoid(x): s + x s (1 - s)
template <class D>
HWY_INLINE hn::Vec<D> silu_slope(D d, hn::Vec<D> x, hn::Vec<D> s) {
  return hn::MulAdd(hn::Mul(x, s), hn::Sub(hn::Set(d, 1.0f), s), s);
}

// Error < 2.
template <class D>
HWY_INLINE hn::Vec<D> tanh(D d, hn::Vec<D> x) {
  const auto z = hn::Mul(x, x);
  auto p = hn::MulAdd(hn::Set(d, -5.70498872745e-3f), z, hn::Set(d, 2.06390887954e-2f));
  p = hn::MulAdd(p, z, hn::Set(d, -5.37397155531e-2f));
  p = hn::MulAdd(p, z, hn::Set(d, 1.33314422036e-1f));
  p = hn::MulAdd(p, z, hn::Set(d, -3.33332819422e-1f));
  const auto small = hn::MulAdd(hn::Mul(p, z), x, x);
  const auto one = hn::Set(d, 1.0f);
  const auto e = exp_bounded(d, hn::Mul(hn::Set(d, -2.0f), hn::Abs(x)));
  const auto large = hn::CopySign(hn::Div(hn::Sub(one, e), hn::Add(one, e)), x);
  return hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Set(d, 0.625f)), small, large);
}

// Natural logarithm of a normal positive number; NaN stays. Error < 1.
template <class D>
HWY_INLINE hn::Vec<D> log_positive(D d, hn::Vec<D> x) {
  const hn::RebindToSigned<D> di;
  // x = m 2^e with m in [sqrt(1/2), sqrt(2)): the exponent field of x / sqrt(1/2).
  const auto bits = hn::BitCast(di, x);
  const auto e = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(di, 0x3f3504f3)));
  const auto m = hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<23>(e)));
  const auto ef = hn::ConvertTo(d, e);
  const auto r = hn::Sub(m, hn::Set(d, 1.0f));
  const auto z = hn::Mul(r, r);
  auto p = hn::MulAdd(hn::Set(d, 7.0376836292e-2f), r, hn::Set(d, -1.1514610310e-1f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.1676998740e-1f));
  p = hn::MulAdd(p, r, hn::Set(d, -1.2420140846e-1f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.4249322787e-1f));
  p = hn::MulAdd(p, r, hn::Set(d, -1.6668057665e-1f));
  p = hn::MulAdd(p, r, hn::Set(d, 2.0000714765e-1f));
  p = hn::MulAdd(p, r, hn::Set(d, -2.4999993993e-1f));
  p = hn::MulAdd(p, r, hn::Set(d, 3.3333331174e-1f));
  auto y = hn::Mul(hn::Mul(p, r), z);
  y = hn::MulAdd(ef, hn::Set(d, -2.12194440e-4f), y);
  y = hn::NegMulAdd(hn::Set(d, 0.5f), z, y);
  y = hn::MulAdd(ef, hn::Set(d, 0.693359375f), hn::Add(r, y));
  return hn::IfThenElse(hn::Eq(x, x), y, x);
}

// Sine and cosine in double, for results in float: |error| < 1e-10 up to 1e6, where no angle of rotary positions goes.
template <class D>
HWY_INLINE void sin_cos(D d, hn::Vec<D> x, hn::Vec<D>& sine, hn::Vec<D>& cosine) {
  const auto n = hn::Round(hn::Mul(x, hn::Set(d, 0.63661977236758134308)));
  auto r = hn::NegMulAdd(n, hn::Set(d, 1.57079632679489655800), x);
  r = hn::NegMulAdd(n, hn::Set(d, 6.12323399573676603587e-17), r);
  const auto z = hn::Mul(r, r);
  // Taylor: |r| <= pi / 4
  auto s = hn::MulAdd(hn::Set(d, -1.0 / 39916800), z, hn::Set(d, 1.0 / 362880));
  s = hn::MulAdd(s, z, hn::Set(d, -1.0 / 5040));
  s = hn::MulAdd(s, z, hn::Set(d, 1.0 / 120));
  s = hn::MulAdd(s, z, hn::Set(d, -1.0 / 6));
  s = hn::MulAdd(hn::Mul(s, z), r, r);
  auto c = hn::MulAdd(hn::Set(d, 1.0 / 479001600), z, hn::Set(d, -1.0 / 3628800));
  c = hn::MulAdd(c, z, hn::Set(d, 1.0 / 40320));
  c = hn::MulAdd(c, z, hn::Set(d, -1.0 / 720));
  c = hn::MulAdd(c, z, hn::Set(d, 1.0 / 24));
  c = hn::MulAdd(c, z, hn::Set(d, -0.5));
  c = hn::MulAdd(c, z, hn::Set(d, 1.0));
  // The quarter turn, 0 .. 3, in double.
  const auto quarter = hn::NegMulAdd(hn::Set(d, 4.0), hn::Floor(hn::Mul(n, hn::Set(d, 0.25))), n);
  const auto is1 = hn::Eq(quarter, hn::Set(d, 1.0)), is3 = hn::Eq(quarter, hn::Set(d, 3.0));
  const auto odd = hn::Or(is1, is3);
  const auto from_s = hn::IfThenElse(odd, c, s), from_c = hn::IfThenElse(odd, s, c);
  sine = hn::IfThenElse(hn::Ge(quarter, hn::Set(d, 2.0)), hn::Neg(from_s), from_s);
  cosine = hn::IfThenElse(hn::Or(is1, hn::Eq(quarter, hn::Set(d, 2.0))), hn::Neg(from_c), from_c);
}

}  // namespace stacklab::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
