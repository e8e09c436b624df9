#include "kernels/cpu/loss_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/loss_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/math-inl.h"
#include "kernels/cpu/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stacklab::cpu::HWY_NAMESPACE {
namespace {

// Of numbers that may be NaN, which the sum of exponentials will show.
float largest_of(const float* v, std::int64_t n) {
  const hn::ScalableTag<float> d;
  // Finite, so that an infinite logit leaves exp(-inf) = 0 or NaN.
  auto most = hn::Set(d, std::numeric_limits<float>::lowest());
  auto most_of_rest = hn::Set(One(), std::numeric_limits<float>::lowest());
  const auto step = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + step <= n; i += step) most = hn::Max(hn::LoadU(d, v + i), most);
  for (; i < n; ++i) most_of_rest = hn::Max(hn::LoadU(One(), v + i), most_of_rest);
  return std::max(hn::GetLane(hn::MaxOfLanes(d, most)), hn::GetLane(most_of_rest));
}

void loss_block_rows(const LossRows& r, const Block& block) {
  const std::int64_t at = block.col0 / column_step, n = block.cols();
  const auto cap = static_cast<float>(r.soft_cap);
  for (std::int64_t t = block.row0; t < block.row1; ++t) {
    if (r.targets[t] < 0) continue;
    float* logits = block.row(t);
    if (cap != 0)
      for_vectors(n, [=](auto tag, std::int64_t i)
                         HWY_ATTR { hn::StoreU(soft_capped(tag, hn::LoadU(tag, logits + i), cap), tag, logits + i); });
    if (const std::int64_t target = r.targets[t] - block.col0; target >= 0 && target < n)
      r.target_logits[t] = logits[target];
    const float largest = largest_of(logits, n);
    float* to = r.gradient ? r.exponentials + t * r.ld + block.col0 : nullptr;
    r.scales[t * r.blocks() + at] = largest;
    r.sums[t * r.blocks() + at] = sum_of(n, [=](auto tag, std::int64_t i) HWY_ATTR {
      const auto v = hn::LoadU(tag, logits + i);
      const auto e = exp_bounded(tag, hn::Sub(v, hn::Set(tag, largest)));
      if (!to) return e;
      auto kept = e;
      if (cap != 0) {
        const auto ratio = hn::Div(v, hn::Set(tag, cap));
        kept = hn::Mul(e, hn::NegMulAdd(ratio, ratio, hn::Set(tag, 1.0f)));
      }
      hn::StoreU(kept, tag, to + i);
      return e;
    });
  }
}

void loss_rows_from(const LossRows& r, std::int64_t begin, std::int64_t end, double (*parts)[2]) {
  const std::int64_t blocks = r.blocks();
  for (std::int64_t t = begin; t < end; ++t) {
    parts[t][0] = parts[t][1] = 0;
    float *scales = r.scales + t * blocks, *row = r.gradient ? r.exponentials + t * r.ld : nullptr;
    if (r.targets[t] < 0) {
      if (!row) continue;
      std::fill(row, row + r.vocabulary, 0.0f);
      std::fill(scales, scales + blocks, 0.0f);
      continue;
    }
    const float largest = largest_of(scales, blocks);
    for_vectors(blocks, [=](auto tag, std::int64_t i) HWY_ATTR {
      hn::StoreU(exp_bounded(tag, hn::Sub(hn::LoadU(tag, scales + i), hn::Set(tag, largest))), tag, scales + i);
    });
    double sum = 0;
    for (std::int64_t b = 0; b < blocks; ++b)
      sum += static_cast<double>(scales[b]) * static_cast<double>(r.sums[t * blocks + b]);
    const double lse = static_cast<double>(largest) + std::log(sum), coefficient = r.coefficients[t];
    const double weight = std::abs(coefficient), above = static_cast<double>(r.target_logits[t]) - lse;
    parts[t][0] = coefficient * above;
    parts[t][1] = r.z_coef * weight * lse * lse;
    if (!row) continue;
    // dL/dlogit_v = coefficient (1[v = target] - p_v) + 2 z_coef |coefficient| lse p_v, then through the cap
    const double of_p = 2 * r.z_coef * weight * lse - coefficient;
    const auto scale = static_cast<float>(of_p / sum);
    for_vectors(blocks, [=](auto tag, std::int64_t i) HWY_ATTR {
      hn::StoreU(hn::Mul(hn::LoadU(tag, scales + i), hn::Set(tag, scale)), tag, scales + i);
    });
    // The block of the target gets its final values here.
    const std::int64_t at = r.targets[t] / column_step, first = at * column_step;
    const float of_block = scales[at];
    float* v = row + first;
    for_vectors(std::min(column_step, r.vocabulary - first), [=](auto tag, std::int64_t i) HWY_ATTR {
      hn::StoreU(hn::Mul(hn::LoadU(tag, v + i), hn::Set(tag, of_block)), tag, v + i);
    });
    scales[at] = 1;
    const double ratio = r.soft_cap == 0 ? 0 : static_cast<double>(r.target_logits[t]) / r.soft_cap;
    row[r.targets[t]] = static_cast<float>((of_p * std::exp(above) + coefficient) * (1 - ratio * ratio));
  }
}

}  // namespace
}  // namespace stacklab::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stacklab::cpu {

HWY_EXPORT(loss_block_rows);
HWY_EXPORT(loss_rows_from);

void loss_block(const LossRows& r, const Block& logits) { HWY_DYNAMIC_DISPATCH(loss_block_rows)(r, logits); }
void loss_rows(const LossRows& r, std::int64_t begin, std::int64_t end, double (*parts)[2]) {
  HWY_DYNAMIC_DISPATCH(loss_rows_from)(r, begin, end, parts);
}

}  // namespace stacklab::cpu
#endif
