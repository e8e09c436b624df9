// The update of AdamW on vectors. Included once for each instruction set.
#if defined(STACKLAB_KERNELS_CPU_ADAMW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STACKLAB_KERNELS_CPU_ADAMW_INL_H_
#undef STACKLAB_KERNELS_CPU_ADAMW_INL_H_
#else
#define STACKLAB_KERNELS_CPU_ADAMW_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/cpu/adamw.h"

HWY_BEFORE_NAMESPACE();
namespace stacklab::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Moves m and v by a gradient, and returns what is to be taken from w.
template <class D>
HWY_INLINE hn::Vec<D> adamw_step(D d, const AdamWNumbers& a, hn::Vec<D> gradient, hn::Vec<D> w, hn::Vec<D>& m,
                                 hn::Vec<D>& v) {
  const auto g = hn::Mul(gradient, hn::Set(d, a.scale));
  m = hn::MulAdd(hn::Set(d, a.beta1), m, hn::Mul(hn::Set(d, a.rest1), g));
  v = hn::MulAdd(hn::Set(d, a.beta2), v, hn::Mul(hn::Mul(hn::Set(d, a.rest2), g), g));
  const auto root = hn::MulAdd(hn::Set(d, a.root), hn::Sqrt(v), hn::Set(d, a.eps));
  // A gradient that was always 0 (or whose square is) moves nothing, whatever eps is: 0 / 0 must not appear.
  const auto step = hn::IfThenZeroElse(hn::Eq(root, hn::Zero(d)), hn::Div(m, root));
  return hn::Mul(hn::Set(d, a.lr), hn::MulAdd(hn::Set(d, a.weight_decay), w, step));
}

}  // namespace stacklab::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
