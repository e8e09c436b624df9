// Rows of heads on their way into and out of attention: QK-norm, rotation, and both ways back. A row in work is f32,
// padded with zeros to whole cache lines. Included once for each instruction set.
#if defined(STACKLAB_KERNELS_CPU_HEADS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STACKLAB_KERNELS_CPU_HEADS_INL_H_
#undef STACKLAB_KERNELS_CPU_HEADS_INL_H_
#else
#define STACKLAB_KERNELS_CPU_HEADS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/cpu/attention.h"
#include "kernels/cpu/math-inl.h"
#include "kernels/cpu/storage-inl.h"
#include "kernels/cpu/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stacklab::cpu::HWY_NAMESPACE {

// A row in work, with room for a vector beyond it.
struct HeadRow {
  alignas(64) float at[widest_head + 16];
};

template <class D>
HWY_INLINE void store_as(D d, hn::Vec<D> v, float* to) {
  hn::StoreU(v, d, to);
}
template <class D>
HWY_INLINE void store_as(D d, hn::Vec<D> v, std::uint16_t* to) {
  store_rounded(d, v, to);
}

// to[0 .. padded) = from[0 .. n), then zeros.
template <class E>
HWY_INLINE void widen_row(const E* from, std::int64_t n, float* to, std::int64_t padded) {
  const FloatTag d;
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(load_as_float(d, from + i), d, to + i);
  for (; i < n; ++i) hn::StoreU(load_as_float(One(), from + i), One(), to + i);
  for (; i < padded; ++i) to[i] = 0;
}

// to[0 .. n) = factor * from
template <class E>
HWY_INLINE void narrow_row(const float* from, float factor, std::int64_t n, E* to) {
  const FloatTag d;
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) store_as(d, hn::Mul(hn::Set(d, factor), hn::LoadU(d, from + i)), to + i);
  for (; i < n; ++i) store_as(One(), hn::Mul(hn::Set(One(), factor), hn::LoadU(One(), from + i)), to + i);
}

// to[0 .. n) += factor * from
HWY_INLINE void add_row(const float* from, float factor, std::int64_t n, float* to) {
  const FloatTag d;
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(hn::MulAdd(hn::Set(d, factor), hn::LoadU(d, from + i), hn::LoadU(d, to + i)), d, to + i);
  for (; i < n; ++i) {
    const One one;
    hn::StoreU(hn::MulAdd(hn::Set(one, factor), hn::LoadU(one, from + i), hn::LoadU(one, to + i)), one, to + i);
  }
}

// Both rows padded.
HWY_INLINE float dot_rows(const float* a, const float* b, std::int64_t padded) {
  const FloatTag d;
  auto sum = hn::Zero(d);
  for (std::int64_t i = 0; i < padded; i += lanes) sum = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), sum);
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

// One row of the table of angles: cosines of position * frequencies, then the sines, each padded to half a row.
HWY_INLINE void angle_row(const double* frequencies, std::int32_t position, std::int64_t width, float* to) {
  const hn::Rebind<double, hn::Half<FloatTag>> d;
  const hn::Half<FloatTag> half;
  const auto p = hn::Set(d, static_cast<double>(position));
  for (std::int64_t i = 0; i < width / 2; i += lanes / 2) {
    hn::Vec<decltype(d)> sine, cosine;
    sin_cos(d, hn::Mul(p, hn::LoadU(d, frequencies + i)), sine, cosine);
    hn::StoreU(hn::DemoteTo(half, cosine), half, to + i);
    hn::StoreU(hn::DemoteTo(half, sine), half, to + width / 2 + i);
  }
}

// to = from, halves (i, i + n / 2) rotated by a row of angles; direction -1 turns back.
HWY_INLINE void rotate_row(const float* from, const float* angles, float direction, std::int64_t n, std::int64_t width,
                           float* to) {
  const FloatTag d;
  const std::int64_t half = n / 2;
  const float* sines = angles + width / 2;
  const auto turn = hn::Set(d, direction);
  // What is stored beyond a half is overwritten by the next one.
  for (std::int64_t i = 0; i < half; i += lanes) {
    const auto s = hn::Mul(turn, hn::LoadU(d, sines + i));
    hn::StoreU(
        hn::NegMulAdd(hn::LoadU(d, from + half + i), s, hn::Mul(hn::LoadU(d, from + i), hn::LoadU(d, angles + i))), d,
        to + i);
  }
  for (std::int64_t i = 0; i < half; i += lanes) {
    const auto s = hn::Mul(turn, hn::LoadU(d, sines + i));
    hn::StoreU(hn::MulAdd(hn::LoadU(d, from + i), s, hn::Mul(hn::LoadU(d, from + half + i), hn::LoadU(d, angles + i))),
               d, to + half + i);
  }
  for (std::int64_t i = n; i < width; ++i) to[i] = 0;
}

HWY_INLINE float inverse_rms(const float* row, std::int64_t n, std::int64_t width, double eps) {
  return 1.0f / std::sqrt(dot_rows(row, row, width) / static_cast<float>(n) + static_cast<float>(eps));
}

// to = scale * the head as attention multiplies it. gain (padded) and angles are null where there are none.
template <class E>
HWY_INLINE void prepare_head(const E* raw, const float* gain, double eps, const float* angles, float scale,
                             std::int64_t n, std::int64_t width, float* to) {
  const FloatTag d;
  HeadRow x, y;
  widen_row(raw, n, x.at, width + lanes);
  const float factor = gain ? scale * inverse_rms(x.at, n, width, eps) : scale;
  float* scaled = angles ? y.at : x.at;
  for (std::int64_t i = 0; i < width; i += lanes) {
    auto v = hn::Mul(hn::LoadU(d, x.at + i), hn::Set(d, factor));
    if (gain) v = hn::Mul(v, hn::LoadU(d, gain + i));
    hn::StoreU(v, d, scaled + i);
  }
  if (angles) {
    hn::StoreU(hn::Zero(d), d, y.at + width);
    rotate_row(y.at, angles, 1, n, width, x.at);
  }
  for (std::int64_t i = 0; i < width; i += lanes) hn::StoreU(hn::LoadU(d, x.at + i), d, to + i);
}

// The gradient of the raw head from that of the prepared one (without its scale); dgain (padded) gathers the gain's.
template <class E>
HWY_INLINE void prepare_head_backward(const float* dprepared, const E* raw, const float* gain, double eps,
                                      const float* angles, std::int64_t n, std::int64_t width, float* dgain, E* draw) {
  const FloatTag d;
  HeadRow turned, x, product;
  float* g = turned.at;
  if (angles) {
    widen_row(dprepared, n, x.at, width + lanes);
    rotate_row(x.at, angles, -1, n, width, g);
  } else {
    widen_row(dprepared, n, g, width);
  }
  if (!gain) return narrow_row(g, 1, n, draw);
  widen_row(raw, n, x.at, width);
  const float r = inverse_rms(x.at, n, width, eps);
  const auto vr = hn::Set(d, r);
  for (std::int64_t i = 0; i < width; i += lanes) {
    const auto grad = hn::LoadU(d, g + i);
    hn::StoreU(hn::MulAdd(hn::Mul(grad, hn::LoadU(d, x.at + i)), vr, hn::LoadU(d, dgain + i)), d, dgain + i);
    hn::StoreU(hn::Mul(grad, hn::LoadU(d, gain + i)), d, product.at + i);
  }
  const auto projection = hn::Set(d, dot_rows(product.at, x.at, width) * r * r * r / static_cast<float>(n));
  for (std::int64_t i = 0; i < width; i += lanes)
    hn::StoreU(hn::NegMulAdd(hn::LoadU(d, x.at + i), projection, hn::Mul(vr, hn::LoadU(d, product.at + i))), d, g + i);
  narrow_row(g, 1, n, draw);
}

}  // namespace stacklab::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
