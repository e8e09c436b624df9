// Norms of gradients, AdamW, QK-clip of projections, and copies in another type.
#include <cmath>
#include <cstring>

#include "kernels/bf16.h"
#include "kernels/cpu/adamw.h"
#include "kernels/cpu/blocks.h"
#include "kernels/cpu/cpu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/optimiser.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/adamw-inl.h"
#include "kernels/cpu/rows-inl.h"
#include "kernels/cpu/wide-inl.h"

#ifndef STACKLAB_KERNELS_CPU_OPTIMISER_ONCE_
#define STACKLAB_KERNELS_CPU_OPTIMISER_ONCE_
namespace stacklab::cpu {
namespace {

struct AdamWUpdate {
  float *w, *m, *v;
  const float* g;
  AdamWNumbers numbers;
};

}  // namespace
}  // namespace stacklab::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace stacklab::cpu::HWY_NAMESPACE {
namespace {

// In f32: elements that were widened would be bound by their conversions. Returns the sum of squares of what is taken.
double adamw(const AdamWUpdate a, std::int64_t begin, std::int64_t end) {
  const auto take = [&](auto d, std::int64_t i) HWY_ATTR {
    const auto w = hn::LoadU(d, a.w + i);
    auto m = hn::LoadU(d, a.m + i), v = hn::LoadU(d, a.v + i);
    const auto taken = adamw_step(d, a.numbers, hn::LoadU(d, a.g + i), w, m, v);
    hn::StoreU(m, d, a.m + i);
    hn::StoreU(v, d, a.v + i);
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
  double change = 0;
  if (*o.scale.as<double>() != 0) {
    const AdamWUpdate a = {.w = o.w.as<float>(),
                           .m = o.m.as<float>(),
                           .v = o.v.as<float>(),
                           .g = o.g.as<float>(),
                           .numbers = adamw_numbers(o)};
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
