// RMSNorm and SwiGLU on their own.
#include <algorithm>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/workspace.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/fine.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stacklab::cpu::HWY_NAMESPACE {
namespace {

void scale_row(const float* x, float scale, const float* gain, std::int64_t d, float* y) {
  for_vectors(d, [&](auto tag, std::int64_t i) HWY_ATTR {
    hn::StoreU(hn::Mul(hn::Mul(hn::LoadU(tag, x + i), hn::Set(tag, scale)), hn::LoadU(tag, gain + i)), tag, y + i);
  });
}

void activate(const float* gate, const float* up, std::int64_t n, float* u) {
  for_vectors(n, [&](auto tag, std::int64_t i) HWY_ATTR {
    const auto g = hn::LoadU(tag, gate + i);
    hn::StoreU(hn::Mul(hn::Mul(g, sigmoid(tag, g)), hn::LoadU(tag, up + i)), tag, u + i);
  });
}

void activate_backward(const float* du, const float* gate, const float* up, std::int64_t n, float* dgate, float* dup) {
  for_vectors(n, [&](auto tag, std::int64_t i) HWY_ATTR {
    const auto g = hn::LoadU(tag, gate + i), d = hn::LoadU(tag, du + i), s = sigmoid(tag, g);
    const auto u = hn::LoadU(tag, up + i);
    hn::StoreU(hn::Mul(hn::Mul(d, u), silu_slope(tag, g, s)), tag, dgate + i);
    hn::StoreU(hn::Mul(hn::Mul(d, g), s), tag, dup + i);
  });
}

}  // namespace
}  // namespace stacklab::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stacklab::cpu {

HWY_EXPORT(scale_row);
HWY_EXPORT(activate);
HWY_EXPORT(activate_backward);

namespace {

// Blocks of rows of a few microseconds; at most 64, since each has a part of dgain.
RowCut rows_of(const TensorView& x) {
  const std::int64_t blocks = std::clamp<std::int64_t>(x.size() >> 15, 1, 64);
  return {x.rows(), std::min(blocks, std::max<std::int64_t>(1, x.rows()))};
}

template <class F>
void for_rows(const TensorView& x, const KernelContext& context, F&& f) {
  const RowCut cut = rows_of(x);
  for_each_worth(context, cut.blocks, 0.5 * static_cast<double>(x.size()),
                 [&](std::int64_t block) { f(block, cut.begin(block), cut.begin(block + 1)); });
}

struct BackwardSpace {
  float *scales, *dgains;
  BackwardSpace(const op::RmsNormBackward& o, Carver space)
      : scales(space.take<float>(o.x.rows())),
        dgains(space.take<float>(o.dgain.present() ? rows_of(o.x).blocks * o.x.cols() : 0)),
        bytes(space.bytes()) {}
  std::int64_t bytes;
};

}  // namespace

void run(const op::RmsNorm& o, const KernelContext& context) {
  const std::int64_t d = o.x.cols();
  for_rows(o.x, context, [&](std::int64_t, std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      const float* x = o.x.as<float>() + t * d;
      float scale = 0;
      inverse_rms(x, 1, d, o.eps, &scale);
      HWY_DYNAMIC_DISPATCH(scale_row)(x, scale, o.gain.as<float>(), d, o.y.as<float>() + t * d);
    }
  });
}

Needs needs(const op::RmsNormBackward& o) { return {.workspace = BackwardSpace(o, Carver()).bytes}; }

void run(const op::RmsNormBackward& o, const KernelContext& context) {
  const std::int64_t d = o.x.cols();
  const BackwardSpace space(o, Carver(o.workspace));
  const NormBackward norm{.d = d,
                          .x = o.x.as<float>(),
                          .scales = space.scales,
                          .gain = o.gain.as<float>(),
                          .dx = o.dx.present() ? o.dx.view.as<float>() : nullptr,
                          .add_dx = o.dx.accumulate};
  for_rows(o.x, context, [&](std::int64_t block, std::int64_t begin, std::int64_t end) {
    inverse_rms(norm.x + begin * d, end - begin, d, o.eps, space.scales + begin);
    float* dgain = o.dgain.present() ? space.dgains + block * d : nullptr;
    if (dgain) std::fill(dgain, dgain + d, 0.0f);
    norm_backward(norm, {o.dy.as<float>() + begin * d, d, 0, begin, end, 0, d}, dgain);
  });
  if (!o.dgain.present()) return;
  float* dgain = o.dgain.view.as<float>();
  if (!o.dgain.accumulate) std::fill(dgain, dgain + d, 0.0f);
  for (std::int64_t block = 0; block < rows_of(o.x).blocks; ++block)
    for (std::int64_t i = 0; i < d; ++i) dgain[i] += space.dgains[block * d + i];
}

void run(const op::Swiglu& o, const KernelContext& context) {
  for_blocks(context, o.u.size(), 1, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(activate)
    (o.gate.as<float>() + begin, o.up.as<float>() + begin, end - begin, o.u.as<float>() + begin);
  });
}

void run(const op::SwigluBackward& o, const KernelContext& context) {
  for_blocks(context, o.du.size(), 1.5, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(activate_backward)
    (o.du.as<float>() + begin, o.gate.as<float>() + begin, o.up.as<float>() + begin, end - begin,
     o.dgate.as<float>() + begin, o.dup.as<float>() + begin);
  });
}

}  // namespace stacklab::cpu
#endif
