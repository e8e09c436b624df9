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

HWY_INLINE void put_row(const float* from, float factor, std::int64_t n, float* to, bool more) {
  more ? add_row(from, factor, n, to) : narrow_row(from, factor, n, to);
}

// Both rows padded.
HWY_INLINE void copy_row(const float* from, std::int64_t padded, float* to) {
  const FloatTag d;
  for (std::int64_t i = 0; i < padded; i += lanes) hn::StoreU(hn::LoadU(d, from + i), d, to + i);
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

HWY_INLINE float inverse_rms(float sum_of_squares, std::int64_t n, double eps) {
  return 1.0f / std::sqrt(sum_of_squares / static_cast<float>(n) + static_cast<float>(eps));
}

// Halves of a head as pairs of vectors (i, i + n / 2), in registers: for widths whose half is a number of whole
// vectors.
template <class D>
struct Pair {
  hn::Vec<D> first, second;

  template <class E>
  static HWY_INLINE Pair load(const E* row, std::int64_t i, std::int64_t half) {
    return {load_as_float(D(), row + i), load_as_float(D(), row + half + i)};
  }
  template <class E>
  HWY_INLINE void store(E* row, std::int64_t i, std::int64_t half) const {
    store_as(D(), first, row + i), store_as(D(), second, row + half + i);
  }
  HWY_INLINE Pair times(Pair o) const { return {hn::Mul(first, o.first), hn::Mul(second, o.second)}; }
  HWY_INLINE Pair times(hn::Vec<D> v) const { return {hn::Mul(first, v), hn::Mul(second, v)}; }
  // sum + what both halves of a product add up to
  HWY_INLINE hn::Vec<D> dot(Pair o, hn::Vec<D> sum) const {
    return hn::MulAdd(first, o.first, hn::MulAdd(second, o.second, sum));
  }
  // angles: a pair of cosine and sine
  HWY_INLINE Pair rotated(Pair angles) const {
    return {hn::NegMulAdd(second, angles.second, hn::Mul(first, angles.first)),
            hn::MulAdd(first, angles.second, hn::Mul(second, angles.first))};
  }
  HWY_INLINE Pair turned_back(Pair angles) const {
    return {hn::MulAdd(second, angles.second, hn::Mul(first, angles.first)),
            hn::NegMulAdd(first, angles.second, hn::Mul(second, angles.first))};
  }
};

template <class D>
HWY_INLINE float sum_of(D d, hn::Vec<D> v) {
  return hn::GetLane(hn::SumOfLanes(d, v));
}

template <class D, class E>
HWY_INLINE void prepare_halves(D d, const E* raw, const float* gain, double eps, const float* angles, float scale,
                               std::int64_t n, std::int64_t width, float* to) {
  using P = Pair<D>;
  const std::int64_t half = n / 2, step = static_cast<std::int64_t>(hn::Lanes(d));
  float factor = scale;
  if (gain) {
    auto squares = hn::Zero(d);
    for (std::int64_t i = 0; i < half; i += step) {
      const P x = P::load(raw, i, half);
      squares = x.dot(x, squares);
    }
    factor *= inverse_rms(sum_of(d, squares), n, eps);
  }
  for (std::int64_t i = 0; i < half; i += step) {
    P x = P::load(raw, i, half).times(hn::Set(d, factor));
    if (gain) x = x.times(P::load(gain, i, half));
    if (angles) x = x.rotated(P::load(angles, i, width / 2));
    x.store(to, i, half);
  }
  for (std::int64_t i = n; i < width; i += step) hn::StoreU(hn::Zero(d), d, to + i);
}

template <class D, class E>
HWY_INLINE void prepare_halves_backward(D d, const float* dprepared, const E* raw, const float* gain, double eps,
                                        const float* angles, std::int64_t n, std::int64_t width, float* dgain,
                                        E* draw) {
  using P = Pair<D>;
  const std::int64_t half = n / 2, step = static_cast<std::int64_t>(hn::Lanes(d));
  const auto gradient = [&](std::int64_t i) HWY_ATTR {
    const P g = P::load(dprepared, i, half);
    return angles ? g.turned_back(P::load(angles, i, width / 2)) : g;
  };
  if (!gain) {
    for (std::int64_t i = 0; i < half; i += step) gradient(i).store(draw, i, half);
    return;
  }
  auto squares = hn::Zero(d), shared = hn::Zero(d);
  for (std::int64_t i = 0; i < half; i += step) {
    const P x = P::load(raw, i, half);
    squares = x.dot(x, squares);
    shared = gradient(i).times(P::load(gain, i, half)).dot(x, shared);
  }
  const float r = inverse_rms(sum_of(d, squares), n, eps);
  const auto vr = hn::Set(d, r), projection = hn::Set(d, sum_of(d, shared) * r * r * r / static_cast<float>(n));
  for (std::int64_t i = 0; i < half; i += step) {
    const P x = P::load(raw, i, half), g = gradient(i), scaled = g.times(P::load(gain, i, half)).times(vr);
    const P sums = P::load(dgain, i, half), own = g.times(x);
    P{hn::MulAdd(own.first, vr, sums.first), hn::MulAdd(own.second, vr, sums.second)}.store(dgain, i, half);
    P{hn::NegMulAdd(x.first, projection, scaled.first), hn::NegMulAdd(x.second, projection, scaled.second)}.store(
        draw, i, half);
  }
}

// Calls f(tag) with the widest vectors that both halves of a head of n consist of; false where there are none.
template <class F>
HWY_INLINE bool with_halves(std::int64_t n, F&& f) {
  if (n % 8 != 0) return false;
  if (lanes >= 16 && n % 32 == 0)
    f(hn::CappedTag<float, 16>());
  else if (lanes >= 8 && n % 16 == 0)
    f(hn::CappedTag<float, 8>());
  else
    f(hn::CappedTag<float, 4>());
  return true;
}

// to = scale * the head as attention multiplies it. gain (padded) and angles are null where there are none.
template <class E>
HWY_INLINE void prepare_head(const E* raw, const float* gain, double eps, const float* angles, float scale,
                             std::int64_t n, std::int64_t width, float* to) {
  if (with_halves(n, [&](auto d) HWY_ATTR { prepare_halves(d, raw, gain, eps, angles, scale, n, width, to); })) return;
  const FloatTag d;
  HeadRow x, y;
  widen_row(raw, n, x.at, width + lanes);
  const float factor = gain ? scale * inverse_rms(dot_rows(x.at, x.at, width), n, eps) : scale;
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
  copy_row(x.at, width, to);
}

// The gradient of the raw head from that of the prepared one (without its scale); dgain (padded) gathers the gain's.
// draw may be dprepared.
template <class E>
HWY_INLINE void prepare_head_backward(const float* dprepared, const E* raw, const float* gain, double eps,
                                      const float* angles, std::int64_t n, std::int64_t width, float* dgain, E* draw) {
  if (with_halves(n, [&](auto d) HWY_ATTR {
        prepare_halves_backward(d, dprepared, raw, gain, eps, angles, n, width, dgain, draw);
      }))
    return;
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
  const float r = inverse_rms(dot_rows(x.at, x.at, width), n, eps);
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
