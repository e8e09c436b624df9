// f32 elements computed with in double, where conversions are not what the time goes into. Included once for each
// instruction set.
#if defined(STACKLAB_KERNELS_CPU_WIDE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STACKLAB_KERNELS_CPU_WIDE_INL_H_
#undef STACKLAB_KERNELS_CPU_WIDE_INL_H_
#else
#define STACKLAB_KERNELS_CPU_WIDE_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace stacklab::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using DoubleTag = hn::ScalableTag<double>;

template <class D>
HWY_INLINE hn::Vec<D> load_wide(D d, const float* from) {
  return hn::PromoteTo(d, hn::LoadU(hn::Rebind<float, D>(), from));
}

// Rounds to nearest.
template <class D>
HWY_INLINE void store_narrow(D, hn::Vec<D> v, float* to) {
  const hn::Rebind<float, D> narrow;
  hn::StoreU(hn::DemoteTo(narrow, v), narrow, to);
}

// The value that store_narrow leaves in memory.
template <class D>
HWY_INLINE hn::Vec<D> narrowed(D d, hn::Vec<D> v) {
  return hn::PromoteTo(d, hn::DemoteTo(hn::Rebind<float, D>(), v));
}

// Calls f(d, i) for vectors of doubles at i, then for single elements.
template <class F>
HWY_INLINE void for_wide(std::int64_t begin, std::int64_t end, F&& f) {
  const DoubleTag d;
  constexpr std::int64_t lanes = HWY_MAX_BYTES / 8;
  std::int64_t i = begin;
  for (; i + lanes <= end; i += lanes) f(d, i);
  for (; i < end; ++i) f(hn::CappedTag<double, 1>(), i);
}

// The same with f(d, i) returning doubles to be added up: in each lane, then across lanes, then the single ones.
template <class F>
HWY_INLINE double sum_wide(std::int64_t begin, std::int64_t end, F&& f) {
  const DoubleTag d;
  const hn::CappedTag<double, 1> one;
  constexpr std::int64_t lanes = HWY_MAX_BYTES / 8;
  auto even = hn::Zero(d), odd = hn::Zero(d);
  std::int64_t i = begin;
  for (; i + 2 * lanes <= end; i += 2 * lanes) {
    even = hn::Add(even, f(d, i));
    odd = hn::Add(odd, f(d, i + lanes));
  }
  double sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(even, odd)));
  for (; i < end; ++i) sum += hn::GetLane(f(one, i));
  return sum;
}

inline double sum_of_squares(const float* x, std::int64_t begin, std::int64_t end) {
  return sum_wide(begin, end, [&](auto d, std::int64_t i) HWY_ATTR {
    const auto v = load_wide(d, x + i);
    return hn::Mul(v, v);
  });
}

}  // namespace stacklab::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
