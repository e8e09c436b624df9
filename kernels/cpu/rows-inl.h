// Loops over the elements of a row. Included once for each instruction set.
#if defined(STACKLAB_KERNELS_CPU_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STACKLAB_KERNELS_CPU_ROWS_INL_H_
#undef STACKLAB_KERNELS_CPU_ROWS_INL_H_
#else
#define STACKLAB_KERNELS_CPU_ROWS_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "kernels/cpu/math-inl.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/storage-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stacklab::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// f(tag, i) for whole vectors, then for single elements.
template <class F>
HWY_INLINE void for_vectors(std::int64_t n, F&& f) {
  const hn::ScalableTag<float> d;
  const auto step = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + step <= n; i += step) f(d, i);
  for (; i < n; ++i) f(One(), i);
}

// From bf16, by its bits.
inline void widen(const std::uint16_t* from, float* to, std::int64_t n) {
  for_vectors(n, [&](auto d, std::int64_t i) HWY_ATTR { hn::StoreU(load_as_float(d, from + i), d, to + i); });
}

// The sum of term(tag, i) over a row, in an order that depends on n alone.
template <class Term>
HWY_INLINE float sum_of(std::int64_t n, Term&& term) {
  const hn::ScalableTag<float> d;
  const auto step = static_cast<std::int64_t>(hn::Lanes(d));
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  std::int64_t i = 0;
  for (; i + 4 * step <= n; i += 4 * step) {
    s0 = hn::Add(s0, term(d, i)), s1 = hn::Add(s1, term(d, i + step));
    s2 = hn::Add(s2, term(d, i + 2 * step)), s3 = hn::Add(s3, term(d, i + 3 * step));
  }
  for (; i + step <= n; i += step) s0 = hn::Add(s0, term(d, i));
  auto rest = hn::Zero(One());
  for (; i < n; ++i) rest = hn::Add(rest, term(One(), i));
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)))) + hn::GetLane(rest);
}

template <class D>
HWY_INLINE void store_kept(D d, hn::Vec<D> v, const Kept& to, std::int64_t i) {
  if (to.bf16)
    store_rounded(d, v, static_cast<std::uint16_t*>(to.data) + i);
  else
    hn::StoreU(v, d, static_cast<float*>(to.data) + i);
}

template <class D>
HWY_INLINE hn::Vec<D> load_kept(D d, const Kept& from, std::int64_t i) {
  return from.bf16 ? load_as_float(d, static_cast<const std::uint16_t*>(from.data) + i)
                   : load_as_float(d, static_cast<const float*>(from.data) + i);
}

// cap tanh(v / cap)
template <class D>
HWY_INLINE hn::Vec<D> soft_capped(D d, hn::Vec<D> v, float cap) {
  return hn::Mul(hn::Set(d, cap), tanh(d, hn::Div(v, hn::Set(d, cap))));
}

}  // namespace stacklab::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
