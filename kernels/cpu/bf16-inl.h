// Vectors of floats from and to bf16 in memory. Included once for each instruction set.
#if defined(STACKLAB_KERNELS_CPU_BF16_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STACKLAB_KERNELS_CPU_BF16_INL_H_
#undef STACKLAB_KERNELS_CPU_BF16_INL_H_
#else
#define STACKLAB_KERNELS_CPU_BF16_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/bf16.h"

HWY_BEFORE_NAMESPACE();
namespace stacklab::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_INLINE hn::Vec<D> load_bf16(D d, const BFloat16* from) {
  const hn::RebindToUnsigned<D> bits;
  const hn::Rebind<std::uint16_t, D> half;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(bits, hn::LoadU(half, &from->bits))));
}

// Rounds as BFloat16 does.
template <class D>
HWY_INLINE void store_bf16(D, hn::Vec<D> v, BFloat16* to) {
  const hn::RebindToUnsigned<D> bits;
  const hn::RebindToSigned<D> integer;
  const hn::Rebind<std::uint16_t, D> half;
  const auto u = hn::BitCast(bits, v);
  const auto odd = hn::And(hn::ShiftRight<16>(u), hn::Set(bits, 1u));
  const auto rounded = hn::Add(u, hn::Add(odd, hn::Set(bits, 0x7fffu)));
  const auto quiet = hn::Or(u, hn::Set(bits, 0x400000u));
  const auto upper = hn::ShiftRight<16>(hn::IfThenElse(hn::RebindMask(bits, hn::Eq(v, v)), rounded, quiet));
  hn::StoreU(hn::DemoteTo(half, hn::BitCast(integer, upper)), half, &to->bits);
}

}  // namespace stacklab::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
