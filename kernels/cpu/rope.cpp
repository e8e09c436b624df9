// Rotary positions as an operation of its own.
#include <cmath>

#include "kernels/cpu/attention.h"
#include "kernels/cpu/cpu.h"
#include "kernels/reference/backend.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rope.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/heads-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stacklab::cpu::HWY_NAMESPACE {
namespace {

void rotate_heads(const op::Rope& o, const double* frequencies, std::int64_t begin, std::int64_t end) {
  const std::int64_t n = o.x.shape[1], d = o.x.shape[2], width = row_width(d);
  HeadRow angles, from, to;
  for (std::int64_t t = begin; t < end; ++t) {
    angle_row(frequencies, o.positions.as<std::int32_t>()[t], width, angles.at);
    for (std::int64_t h = 0; h < n; ++h) {
      widen_row(o.x.as<float>() + (t * n + h) * d, d, from.at, width + lanes);
      rotate_row(from.at, angles.at, o.inverse ? -1.0f : 1.0f, d, width, to.at);
      narrow_row(to.at, 1, d, o.y.as<float>() + (t * n + h) * d);
    }
  }
}

}  // namespace
}  // namespace stacklab::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stacklab::cpu {

HWY_EXPORT(rotate_heads);

constexpr std::int64_t token_block = 64;

void write_frequencies(double theta, std::int64_t head_dim, double* to) {
  for (std::int64_t i = 0; i < row_width(head_dim) / 2; ++i)
    to[i] = 2 * i < head_dim ? std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim)) : 0;
}

Needs needs(const op::Rope& o) {
  if (o.x.shape[2] > widest_head) return reference::needs_of(o);
  return {.workspace = row_width(o.x.shape[2]) / 2 * size_of(DType::f64)};
}

void run(const op::Rope& o, const KernelContext& context) {
  if (o.x.shape[2] > widest_head) return reference::run_on(o, context);
  double* frequencies = o.workspace.as<double>();
  write_frequencies(o.theta, o.x.shape[2], frequencies);
  const std::int64_t tokens = o.x.rows(), each = o.x.shape[1] * row_width(o.x.shape[2]);
  const auto list = [&](auto&& f) {
    for (std::int64_t t = 0; t < tokens; t += token_block) f(t, std::min(token_block, tokens - t) * each / 4);
  };
  run_shares(context, list, [&](std::int64_t t) {
    HWY_DYNAMIC_DISPATCH(rotate_heads)(o, frequencies, t, std::min(tokens, t + token_block));
  });
}

}  // namespace stacklab::cpu
#endif
