#include "kernels/cpu/rows.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/math-inl.h"
#include "kernels/cpu/rows-inl.h"
#include "kernels/cpu/storage-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stacklab::cpu::HWY_NAMESPACE {
namespace {

void inverse_rms_rows(const float* x, std::int64_t rows, std::int64_t d, double eps, float* scales) {
  for (std::int64_t t = 0; t < rows; ++t, x += d) {
    const float sum = sum_of(d, [x](auto tag, std::int64_t i) HWY_ATTR {
      const auto v = hn::LoadU(tag, x + i);
      return hn::Mul(v, v);
    });
    scales[t] = static_cast<float>(1 / std::sqrt(static_cast<double>(sum) / static_cast<double>(d) + eps));
  }
}

void norm_backward_block(const NormBackward& n, const Block& block, float* dgain) {
  const float* gain = n.gain;
  for (std::int64_t t = block.row0; t < block.row1; ++t) {
    const float* dn = block.row(t);
    const float* x = n.x + t * n.d;
    const float r = n.scales[t];
    if (n.dx) {
      // With xn = x r: dx = r (gain dn - xn mean(gain dn xn)), where nothing overflows.
      const float sum = sum_of(n.d, [=](auto tag, std::int64_t i) HWY_ATTR {
        return hn::Mul(hn::Mul(hn::LoadU(tag, dn + i), hn::LoadU(tag, gain + i)), hn::LoadU(tag, x + i));
      });
      const float mean = sum * r / static_cast<float>(n.d);
      float* dx = n.dx + t * n.d;
      for_vectors(n.d, [&](auto tag, std::int64_t i) HWY_ATTR {
        const auto scale = hn::Set(tag, r);
        const auto xn = hn::Mul(hn::LoadU(tag, x + i), scale);
        const auto along = hn::Mul(hn::LoadU(tag, dn + i), hn::LoadU(tag, gain + i));
        auto v = hn::Mul(scale, hn::NegMulAdd(xn, hn::Set(tag, mean), along));
        if (n.add_dx) v = hn::Add(hn::LoadU(tag, dx + i), v);
        hn::StoreU(v, tag, dx + i);
      });
    }
    if (!dgain) continue;
    for_vectors(n.d, [&](auto tag, std::int64_t i) HWY_ATTR {
      const auto xn = hn::Mul(hn::LoadU(tag, x + i), hn::Set(tag, r));
      hn::StoreU(hn::MulAdd(hn::LoadU(tag, dn + i), xn, hn::LoadU(tag, dgain + i)), tag, dgain + i);
    });
  }
}

void swiglu_block(const Block& block, std::int64_t f, const Kept& u, const Kept& kept) {
  for (std::int64_t t = block.row0; t < block.row1; ++t) {
    const float* gates = block.row(t);
    const float* ups = gates + block.pair;
    const std::int64_t at = t * f + block.col0, pair_at = t * 2 * f + block.col0;
    for_vectors(block.cols(), [&](auto tag, std::int64_t i) HWY_ATTR {
      store_kept(tag, hn::LoadU(tag, gates + i), kept, pair_at + i);
      store_kept(tag, hn::LoadU(tag, ups + i), kept, pair_at + f + i);
      const auto gate = load_kept(tag, kept, pair_at + i), up = load_kept(tag, kept, pair_at + f + i);
      store_kept(tag, hn::Mul(hn::Mul(gate, sigmoid(tag, gate)), up), u, at + i);
    });
  }
}

void swiglu_backward_block(const Block& block, std::int64_t f, const Kept& kept, const Kept& u) {
  for (std::int64_t t = block.row0; t < block.row1; ++t) {
    const float* dus = block.row(t);
    const std::int64_t at = t * f + block.col0, pair_at = t * 2 * f + block.col0;
    for_vectors(block.cols(), [&](auto tag, std::int64_t i) HWY_ATTR {
      const auto gate = load_kept(tag, kept, pair_at + i), up = load_kept(tag, kept, pair_at + f + i);
      const auto du = hn::LoadU(tag, dus + i);
      const auto s = sigmoid(tag, gate), silu = hn::Mul(gate, s);
      store_kept(tag, hn::Mul(hn::Mul(up, silu_slope(tag, gate, s)), du), kept, pair_at + i);
      store_kept(tag, hn::Mul(silu, du), kept, pair_at + f + i);
      if (u.data) store_kept(tag, hn::Mul(silu, up), u, at + i);
    });
  }
}

void keep_rows(const Block& block, const Kept& to, std::int64_t ld) {
  for (std::int64_t t = block.row0; t < block.row1; ++t) {
    const float* from = block.row(t);
    const std::int64_t at = t * ld + block.col0;
    for_vectors(block.cols(),
                [&](auto tag, std::int64_t i) HWY_ATTR { store_kept(tag, hn::LoadU(tag, from + i), to, at + i); });
  }
}

void soft_cap_rows(const Block& block, double cap) {
  for (std::int64_t t = block.row0; t < block.row1; ++t) {
    float* row = block.row(t);
    for_vectors(block.cols(), [&](auto tag, std::int64_t i) HWY_ATTR {
      hn::StoreU(soft_capped(tag, hn::LoadU(tag, row + i), static_cast<float>(cap)), tag, row + i);
    });
  }
}

}  // namespace
}  // namespace stacklab::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stacklab::cpu {

HWY_EXPORT(inverse_rms_rows);
HWY_EXPORT(norm_backward_block);
HWY_EXPORT(swiglu_block);
HWY_EXPORT(swiglu_backward_block);
HWY_EXPORT(keep_rows);
HWY_EXPORT(soft_cap_rows);

void inverse_rms(const float* x, std::int64_t rows, std::int64_t d, double eps, float* scales) {
  HWY_DYNAMIC_DISPATCH(inverse_rms_rows)(x, rows, d, eps, scales);
}
void norm_backward(const NormBackward& n, const Block& dn, float* dgain) {
  HWY_DYNAMIC_DISPATCH(norm_backward_block)(n, dn, dgain);
}
void swiglu(const Block& pairs, std::int64_t f, const Kept& u, const Kept& kept) {
  HWY_DYNAMIC_DISPATCH(swiglu_block)(pairs, f, u, kept);
}
void swiglu_backward(const Block& du, std::int64_t f, const Kept& kept, const Kept& u) {
  HWY_DYNAMIC_DISPATCH(swiglu_backward_block)(du, f, kept, u);
}
void keep_block(const Block& block, const Kept& to, std::int64_t ld) { HWY_DYNAMIC_DISPATCH(keep_rows)(block, to, ld); }
void soft_cap_block(const Block& block, double cap) { HWY_DYNAMIC_DISPATCH(soft_cap_rows)(block, cap); }

}  // namespace stacklab::cpu
#endif
