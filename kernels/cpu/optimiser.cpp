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

#include "kernels/cpu/rows-inl.h"
#include "kernels/cpu/wide-inl.h"

#ifndef STACKLAB_KERNELS_CPU_OPTIMISER_ONCE_
#define STACKLAB_KERNELS_CPU_OPTIMISER_ONCE_
namespace stacklab::cpu {
namespace {

// What an update is made with: see op::AdamW.
struct AdamWNumbers {
  float *w, *m, *v;
  const float* g;
  float lr, scale, beta1, rest1, beta2, rest2, weight_decay;  // rest: 1 - beta
  // m / (root sqrt(v) + eps) is the step: both corrections of bias are in these.
  float root, eps;
};

}  // namespace
}  // namespace stacklab::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace stacklab::cpu::HWY_NAMESPACE {
namespace {

// In f32: elements that were widened would be bound by their conversions. Returns the sum of squares of what is taken.
double adamw(const AdamWNumbers a, std::int64_t begin, std::int64_t end) {
  const auto take = [&](auto d, std::int64_t i) HWY_ATTR {
    const auto g = hn::Mul(hn::LoadU(d, a.g + i), hn::Set(d, a.scale)), w = hn::LoadU(d, a.w + i);
    const auto m = hn::MulAdd(hn::Set(d, a.beta1), hn::LoadU(d, a.m + i), hn::Mul(hn::Set(d, a.rest1), g));
    const auto v = hn::MulAdd(hn::Set(d, a.beta2), hn::LoadU(d, a.v + i), hn::Mul(hn::Mul(hn::Set(d, a.rest2), g), g));
    hn::StoreU(m, d, a.m + i);
    hn::StoreU(v, d, a.v + i);
    const auto root = hn::MulAdd(hn::Set(d, a.root), hn::Sqrt(v), hn::Set(d, a.eps));
    // A gradient that was always 0 (or whose square is) moves nothing, whatever eps is: 0 / 0 must not appear.
    const auto step = hn::IfThenZeroElse(hn::Eq(root, hn::Zero(d)), hn::Div(m, root));
    const auto taken = hn::Mul(hn::Set(d, a.lr), hn::MulAdd(hn::Set(d, a.weight_decay), w, step));
    hn::StoreU(hn::Sub(w, taken), d, a.w + i);
    return taken;
  };
  const hn::ScalableTag<float> d;
  const hn::Half<decltype(d)> half;
  const DoubleTag wide;
  constexpr std::int64_t lanes = HWY_MAX_BYTES / 4;
  auto lower = hn::Zero(wide), upper = hn::Zero(wide);
  std::int64_t i = begin;
  for (; i + lanes <= end; i += lanes) {
    const auto taken = take(d, i);
    const auto low = hn::PromoteTo(wide, hn::LowerHalf(half, taken)),
               up = hn::PromoteTo(wide, hn::UpperHalf(half, taken));
    lower = hn::MulAdd(low, low, lower);
    upper = hn::MulAdd(up, up, upper);
  }
  double sum = hn::GetLane(hn::SumOfLanes(wide, hn::Add(lower, upper)));
  for (; i < end; ++i) {
    const double taken = hn::GetLane(take(One(), i));
    sum += taken * taken;
  }
  return sum;
}

void scale_all(float* x, double factor, std::int64_t begin, std::int64_t end) {
  for_wide(begin, end, [&](auto d, std::int64_t i) HWY_ATTR {
    store_narrow(d, hn::Mul(load_wide(d, x + i), hn::Set(d, factor)), x + i);
  });
}

void round_all(const float* from, std::uint16_t* to, std::int64_t n) {
  for_vectors(n, [&](auto d, std::int64_t i) HWY_ATTR { store_rounded(d, hn::LoadU(d, from + i), to + i); });
}

}  // namespace
}  // namespace stacklab::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stacklab::cpu {

HWY_EXPORT(sum_of_squares);
HWY_EXPORT(adamw);
HWY_EXPORT(scale_all);
HWY_EXPORT(round_all);
HWY_EXPORT(widen);

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
    const auto f = [](double x) { return static_cast<float>(x); };
    const AdamWNumbers a = {.w = o.w.as<float>(),
                            .m = o.m.as<float>(),
                            .v = o.v.as<float>(),
                            .g = o.g.as<float>(),
                            .lr = f(*o.lr.as<double>()),
                            .scale = f(scale),
                            .beta1 = f(o.beta1),
                            .rest1 = f(1 - o.beta1),
                            .beta2 = f(o.beta2),
                            .rest2 = f(1 - o.beta2),
                            .weight_decay = f(o.weight_decay),
                            .root = f(correction1 / std::sqrt(correction2)),
                            .eps = f(correction1 * o.eps)};
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
      HWY_DYNAMIC_DISPATCH(round_all)(o.from.as<float>() + begin, o.to.as<std::uint16_t>() + begin, end - begin);
    else
      HWY_DYNAMIC_DISPATCH(widen)(o.from.as<std::uint16_t>() + begin, o.to.as<float>() + begin, end - begin);
  });
}

}  // namespace stacklab::cpu
#endif
