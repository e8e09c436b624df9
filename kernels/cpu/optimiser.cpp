// Norms of gradients, AdamW, QK-clip of projections, and copies in another type.
#include <cmath>
#include <cstring>

#include "kernels/bf16.h"
#include "kernels/cpu/blocks.h"
#include "kernels/cpu/cpu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/optimiser.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/storage-inl.h"
#include "kernels/cpu/wide-inl.h"

#ifndef STACKLAB_KERNELS_CPU_OPTIMISER_ONCE_
#define STACKLAB_KERNELS_CPU_OPTIMISER_ONCE_
namespace stacklab::cpu {
namespace {

// What an update is made with: see op::AdamW.
struct AdamWNumbers {
  float *w, *m, *v;
  const float* g;
  double lr, scale, beta1, beta2, weight_decay;
  // m / (root sqrt(v) + eps) is the step: both corrections of bias are in these.
  double root, eps;
};

}  // namespace
}  // namespace stacklab::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace stacklab::cpu::HWY_NAMESPACE {
namespace {

// The same bits on every instruction set: no fused multiplications.
double adamw(const AdamWNumbers& a, std::int64_t begin, std::int64_t end) {
  return sum_wide(begin, end, [&](auto d, std::int64_t i) HWY_ATTR {
    const auto g = hn::Mul(load_wide(d, a.g + i), hn::Set(d, a.scale)), w = load_wide(d, a.w + i);
    const auto m = hn::Add(hn::Mul(hn::Set(d, a.beta1), load_wide(d, a.m + i)), hn::Mul(hn::Set(d, 1 - a.beta1), g));
    const auto v =
        hn::Add(hn::Mul(hn::Set(d, a.beta2), load_wide(d, a.v + i)), hn::Mul(hn::Mul(hn::Set(d, 1 - a.beta2), g), g));
    store_narrow(d, m, a.m + i);
    store_narrow(d, v, a.v + i);
    const auto root = hn::Add(hn::Mul(hn::Set(d, a.root), hn::Sqrt(v)), hn::Set(d, a.eps));
    // A gradient that was always 0 moves nothing, whatever eps is: 0 / 0 must not appear.
    const auto step = hn::IfThenZeroElse(hn::Eq(m, hn::Zero(d)), hn::Div(m, root));
    const auto taken = hn::Mul(hn::Set(d, a.lr), hn::Add(step, hn::Mul(hn::Set(d, a.weight_decay), w)));
    store_narrow(d, hn::Sub(w, taken), a.w + i);
    return hn::Mul(taken, taken);
  });
}

void scale_all(float* x, double factor, std::int64_t begin, std::int64_t end) {
  for_wide(begin, end, [&](auto d, std::int64_t i) HWY_ATTR {
    store_narrow(d, hn::Mul(load_wide(d, x + i), hn::Set(d, factor)), x + i);
  });
}

void narrow_all(const float* from, BFloat16* to, std::int64_t begin, std::int64_t end) {
  const hn::ScalableTag<float> d;
  constexpr std::int64_t lanes = HWY_MAX_BYTES / 4;
  std::int64_t i = begin;
  for (; i + lanes <= end; i += lanes) store_rounded(d, hn::LoadU(d, from + i), &to[i].bits);
  for (; i < end; ++i) to[i] = BFloat16(from[i]);
}

void widen_all(const BFloat16* from, float* to, std::int64_t begin, std::int64_t end) {
  const hn::ScalableTag<float> d;
  constexpr std::int64_t lanes = HWY_MAX_BYTES / 4;
  std::int64_t i = begin;
  for (; i + lanes <= end; i += lanes) hn::StoreU(load_as_float(d, &from[i].bits), d, to + i);
  for (; i < end; ++i) to[i] = static_cast<float>(from[i]);
}

}  // namespace
}  // namespace stacklab::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stacklab::cpu {

HWY_EXPORT(sum_of_squares);
HWY_EXPORT(adamw);
HWY_EXPORT(scale_all);
HWY_EXPORT(narrow_all);
HWY_EXPORT(widen_all);

void run(const op::SumSquares& o, const KernelContext& context) {
  *o.out.as<double>() = sum_over_blocks(context, o.g.size(), 0.3, [&](std::int64_t begin, std::int64_t end) {
    return HWY_DYNAMIC_DISPATCH(sum_of_squares)(o.g.as<float>(), begin, end);
  });
}

void run(const op::AdamW& o, const KernelContext& context) {
  const double scale = *o.scale.as<double>(), t = *o.updates.as<double>();
  double change = 0;
  if (scale != 0) {
    const double correction1 = 1 - std::pow(o.beta1, t), correction2 = 1 - std::pow(o.beta2, t);
    const AdamWNumbers a = {.w = o.w.as<float>(),
                            .m = o.m.as<float>(),
                            .v = o.v.as<float>(),
                            .g = o.g.as<float>(),
                            .lr = *o.lr.as<double>(),
                            .scale = scale,
                            .beta1 = o.beta1,
                            .beta2 = o.beta2,
                            .weight_decay = o.weight_decay,
                            .root = correction1 / std::sqrt(correction2),
                            .eps = correction1 * o.eps};
    change = sum_over_blocks(context, o.w.size(), 2, [&](std::int64_t begin, std::int64_t end) {
      return HWY_DYNAMIC_DISPATCH(adamw)(a, begin, end);
    });
  }
  if (o.change.present()) *o.change.as<double>() = change;
}

void run(const op::QkClipHeads& o, const KernelContext& context) {
  const std::int64_t head = o.wq.rows() / o.n_heads * o.wq.cols(), group = o.n_heads / o.n_kv_heads;
  const auto scale_heads = [&](const TensorView& w, std::int64_t first, std::int64_t heads, double factor) {
    float* rows = w.as<float>() + first * head;
    for_blocks(context, heads * head, 0.3, [&](std::int64_t begin, std::int64_t end) {
      HWY_DYNAMIC_DISPATCH(scale_all)(rows, factor, begin, end);
    });
  };
  for (std::int64_t kv = 0; kv < o.n_kv_heads; ++kv) {
    double largest = 0;
    for (std::int64_t h = kv * group; h < (kv + 1) * group; ++h) {
      const double logit = static_cast<double>(o.max_logit.as<float>()[h]);
      if (logit > largest) largest = logit;
    }
    if (!(largest > o.threshold) || !std::isfinite(largest)) continue;
    const double factor = std::sqrt(o.threshold / largest);
    scale_heads(o.wq, kv * group, group, factor);
    scale_heads(o.wk, kv, 1, factor);
  }
}

void run(const op::Cast& o, const KernelContext& context) {
  const std::int64_t size = size_of(o.from.dtype);
  for_blocks(context, o.from.size(), 0.3, [&](std::int64_t begin, std::int64_t end) {
    if (o.from.dtype == o.to.dtype)
      std::memcpy(o.to.data + begin * size, o.from.data + begin * size, static_cast<std::size_t>((end - begin) * size));
    else if (o.to.dtype == DType::bf16)
      HWY_DYNAMIC_DISPATCH(narrow_all)(o.from.as<float>(), o.to.as<BFloat16>(), begin, end);
    else
      HWY_DYNAMIC_DISPATCH(widen_all)(o.from.as<BFloat16>(), o.to.as<float>(), begin, end);
  });
}

}  // namespace stacklab::cpu
#endif
