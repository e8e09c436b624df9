// Reading and writing vectors of floats that are kept in f32 or bf16. Included once for each instruction set.
#if defined(STACKLAB_KERNELS_CPU_STORAGE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STACKLAB_KERNELS_CPU_STORAGE_INL_H_
#undef STACKLAB_KERNELS_CPU_STORAGE_INL_H_
#else
#define STACKLAB_KERNELS_CPU_STORAGE_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "kernels/cpu/gemm.h"

HWY_BEFORE_NAMESPACE();
namespace stacklab::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using One = hn::CappedTag<float, 1>;

template <class D>
HWY_INLINE hn::Vec<D> load_as_float(D d, const float* from) {
  return hn::LoadU(d, from);
}
// bf16, by its bits
template <class D>
HWY_INLINE hn::Vec<D> load_as_float(D d, const std::uint16_t* from) {
  const hn::Rebind<std::uint16_t, D> narrow;
  const hn::Rebind<std::uint32_t, D> wide;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(wide, hn::LoadU(narrow, from))));
}
template <class D>
HWY_INLINE hn::Vec<D> load_stored(D d, const Stored& s, std::int64_t i) {
  return s.bf16 ? load_as_float(d, static_cast<const std::uint16_t*>(s.data) + i)
                : load_as_float(d, static_cast<const float*>(s.data) + i);
}

// The bits of bf16, rounded to nearest, ties to even; a NaN stays one (kernels/bf16.h).
template <class D>
HWY_INLINE hn::Vec<hn::Rebind<std::uint32_t, D>> rounded_bits(D, hn::Vec<D> v) {
  const hn::Rebind<std::uint32_t, D> wide;
  const auto bits = hn::BitCast(wide, v);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(wide, 1));
  const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(wide, 0x7fff))));
  const auto quiet = hn::Or(hn::ShiftRight<16>(bits), hn::Set(wide, 0x40));
  return hn::IfThenElse(hn::RebindMask(wide, hn::IsNaN(v)), quiet, rounded);
}
template <class D>
HWY_INLINE void store_rounded(D d, hn::Vec<D> v, std::uint16_t* to) {
  const hn::Rebind<std::int32_t, D> signed_wide;
  const hn::Rebind<std::uint16_t, D> narrow;
  hn::StoreU(hn::DemoteTo(narrow, hn::BitCast(signed_wide, rounded_bits(d, v))), narrow, to);
}

// Four rows of four as columns.
template <class V>
HWY_INLINE void store_turned(V r0, V r1, V r2, V r3, float* to, std::int64_t ld) {
  const hn::FixedTag<float, 4> d;
  const hn::FixedTag<double, 2> pair;
  const auto low01 = hn::BitCast(pair, hn::InterleaveLower(d, r0, r1)),
             low23 = hn::BitCast(pair, hn::InterleaveLower(d, r2, r3)),
             up01 = hn::BitCast(pair, hn::InterleaveUpper(d, r0, r1)),
             up23 = hn::BitCast(pair, hn::InterleaveUpper(d, r2, r3));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pair, low01, low23)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pair, low01, low23)), d, to + ld);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pair, up01, up23)), d, to + 2 * ld);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pair, up01, up23)), d, to + 3 * ld);
}

}  // namespace stacklab::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
