// AdamW with moments in bf16 or 8 bits.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/adamw.h"
#include "kernels/cpu/blocks.h"
#include "kernels/cpu/cpu.h"
#include "kernels/rounding.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/adamw_compact.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/adamw-inl.h"
#include "kernels/cpu/rows-inl.h"
#include "kernels/cpu/wide-inl.h"

#ifndef STACKLAB_KERNELS_CPU_ADAMW_COMPACT_ONCE_
#define STACKLAB_KERNELS_CPU_ADAMW_COMPACT_ONCE_
namespace stacklab::cpu {
namespace {

struct CompactUpdate {
  const op::AdamWCompact* o;
  AdamWNumbers numbers;
  std::uint32_t seed;
};

}  // namespace
}  // namespace stacklab::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace stacklab::cpu::HWY_NAMESPACE {
namespace {

// noise_bits of positions i, i + 1, ...
template <class D>
HWY_INLINE auto noise(D, std::int64_t i, std::uint32_t seed) {
  const hn::Rebind<std::uint32_t, D> u;
  auto x = hn::Add(hn::Mul(hn::Iota(u, static_cast<std::uint32_t>(i)), hn::Set(u, 0xd2a80a3fu)), hn::Set(u, seed));
  x = hn::Add(hn::Xor(x, hn::ShiftRight<9>(x)), hn::Set(u, 0xa884f197u));
  x = hn::Mul(hn::Xor(x, hn::ShiftRight<11>(x)), hn::Set(u, 0x6c736f4bu));
  x = hn::Add(hn::Xor(x, hn::ShiftRight<13>(x)), hn::Set(u, 0xb79f3abbu));
  x = hn::Mul(hn::Xor(x, hn::ShiftRight<15>(x)), hn::Set(u, 0x1b56c4f5u));
  return hn::Xor(x, hn::ShiftRight<17>(x));
}

// bits: the lower 16 of each lane count
template <class D, class Bits>
HWY_INLINE void store_by_chance(D, hn::Vec<D> v, Bits bits, BFloat16* to) {
  const hn::Rebind<std::uint32_t, D> u;
  const hn::Rebind<std::int32_t, D> s;
  const hn::Rebind<std::uint16_t, D> narrow;
  const auto all = hn::BitCast(u, v);
  const auto rounded = hn::ShiftRight<16>(hn::Add(all, hn::And(bits, hn::Set(u, 0xffffu))));
  const auto quiet = hn::Or(hn::ShiftRight<16>(all), hn::Set(u, 0x40));
  const auto kept = hn::IfThenElse(hn::RebindMask(u, hn::IsNaN(v)), quiet, rounded);
  hn::StoreU(hn::DemoteTo(narrow, hn::BitCast(s, kept)), narrow, reinterpret_cast<std::uint16_t*>(to));
}

// A code: the whole part of size, which is not negative, and of a chance.
template <class D, class Bits>
HWY_INLINE auto code(D d, hn::Vec<D> size, Bits bits, float most) {
  const hn::Rebind<std::uint32_t, D> u;
  const hn::Rebind<std::int32_t, D> s;
  const auto chance = hn::ConvertTo(d, hn::BitCast(s, hn::And(bits, hn::Set(u, 0xffffu))));
  return hn::ConvertTo(s, hn::Min(hn::MulAdd(chance, hn::Set(d, 0x1p-16f), size), hn::Set(d, most)));
}

struct Moments {
  HWY_ALIGN float m[moment_block];
  HWY_ALIGN float v[moment_block];

  void load(const op::AdamWCompact& o, std::int64_t begin, std::int64_t n) {
    if (o.m.dtype == DType::bf16) {
      widen(o.m.as<std::uint16_t>() + begin, m, n);
      widen(o.v.as<std::uint16_t>() + begin, v, n);
      return;
    }
    const float m_unit = o.m_scales.as<float>()[begin / moment_block] / 16129.0f;
    const float v_scale = o.v_scales.as<float>()[begin / moment_block];
    for_vectors(n, [&](auto d, std::int64_t i) HWY_ATTR {
      const hn::Rebind<std::int32_t, decltype(d)> wide;
      const hn::Rebind<std::int8_t, decltype(d)> code8;
      const hn::Rebind<std::uint8_t, decltype(d)> ucode8;
      const auto q = hn::ConvertTo(d, hn::PromoteTo(wide, hn::LoadU(code8, o.m.as<std::int8_t>() + begin + i)));
      hn::StoreU(hn::Mul(hn::Mul(hn::Set(d, m_unit), q), hn::Abs(q)), d, m + i);
      const auto r =
          hn::Mul(hn::ConvertTo(d, hn::PromoteTo(wide, hn::LoadU(ucode8, o.v.as<std::uint8_t>() + begin + i))),
                  hn::Set(d, 1 / 255.0f));
      const auto square = hn::Mul(r, r);
      hn::StoreU(hn::Mul(hn::Mul(hn::Set(d, v_scale), square), square), d, v + i);
    });
  }

  void store(const op::AdamWCompact& o, std::int64_t begin, std::int64_t n, std::uint32_t seed) const {
    if (o.m.dtype == DType::bf16) {
      for_vectors(n, [&](auto d, std::int64_t i) HWY_ATTR {
        const auto bits = noise(d, begin + i, seed);
        store_by_chance(d, hn::LoadU(d, m + i), bits, o.m.as<BFloat16>() + begin + i);
        store_by_chance(d, hn::LoadU(d, v + i), hn::ShiftRight<16>(bits), o.v.as<BFloat16>() + begin + i);
      });
      return;
    }
    float m_scale = 0, v_scale = 0;
    for (std::int64_t i = 0; i < n; ++i) m_scale = std::max(m_scale, std::abs(m[i])), v_scale = std::max(v_scale, v[i]);
    o.m_scales.as<float>()[begin / moment_block] = m_scale;
    o.v_scales.as<float>()[begin / moment_block] = v_scale;
    for_vectors(n, [&](auto d, std::int64_t i) HWY_ATTR {
      const hn::Rebind<std::int32_t, decltype(d)> wide;
      const hn::Rebind<std::int8_t, decltype(d)> code8;
      const hn::Rebind<std::uint8_t, decltype(d)> ucode8;
      const auto bits = noise(d, begin + i, seed);
      // A scale of 0 leaves 0 / 0 behind: a code of 0.
      const auto share = [&](auto x, float scale)
                             HWY_ATTR { return scale > 0 ? hn::Div(x, hn::Set(d, scale)) : hn::Zero(d); };
      const auto mi = hn::LoadU(d, m + i), vi = hn::LoadU(d, v + i);
      const auto q = code(d, hn::Mul(hn::Set(d, 127.0f), hn::Sqrt(share(hn::Abs(mi), m_scale))), bits, 127.0f);
      const auto negative = hn::RebindMask(wide, hn::Lt(mi, hn::Zero(d)));
      hn::StoreU(hn::DemoteTo(code8, hn::IfThenElse(negative, hn::Neg(q), q)), code8,
                 o.m.as<std::int8_t>() + begin + i);
      const auto r = code(d, hn::Mul(hn::Set(d, 255.0f), hn::Sqrt(hn::Sqrt(share(vi, v_scale)))),
                          hn::ShiftRight<16>(bits), 255.0f);
      const auto positive = hn::RebindMask(wide, hn::Gt(vi, hn::Zero(d)));
      const auto least = hn::IfThenElseZero(positive, hn::Set(wide, 1));
      hn::StoreU(hn::DemoteTo(ucode8, hn::Max(hn::IfThenElseZero(positive, r), least)), ucode8,
                 o.v.as<std::uint8_t>() + begin + i);
    });
  }
};

// Elements begin .. end, begin at a block's beginning. Returns the sum of squares of what is taken.
double adamw_compact(const CompactUpdate a, std::int64_t begin, std::int64_t end) {
  const op::AdamWCompact& o = *a.o;
  Moments moments;
  HWY_ALIGN float taken[moment_block];
  double sum = 0;
  for (; begin < end; begin += moment_block) {
    const std::int64_t n = std::min(moment_block, end - begin);
    moments.load(o, begin, n);
    for_vectors(n, [&](auto d, std::int64_t i) HWY_ATTR {
      const bool narrow = o.w.dtype == DType::bf16;
      const auto w = narrow ? load_as_float(d, o.w.as<std::uint16_t>() + begin + i)
                            : load_as_float(d, o.w.as<float>() + begin + i);
      auto m = hn::LoadU(d, moments.m + i), v = hn::LoadU(d, moments.v + i);
      const auto less = adamw_step(d, a.numbers, hn::LoadU(d, o.g.as<float>() + begin + i), w, m, v);
      hn::StoreU(m, d, moments.m + i);
      hn::StoreU(v, d, moments.v + i);
      hn::StoreU(less, d, taken + i);
      if (narrow)
        store_by_chance(d, hn::Sub(w, less), noise(d, begin + i, other_noise(a.seed)), o.w.as<BFloat16>() + begin + i);
      else
        hn::StoreU(hn::Sub(w, less), d, o.w.as<float>() + begin + i);
    });
    moments.store(o, begin, n, a.seed);
    sum += sum_of_squares(taken, 0, n);
  }
  return sum;
}

}  // namespace
}  // namespace stacklab::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stacklab::cpu {

HWY_EXPORT(adamw_compact);

void run(const op::AdamWCompact& o, const KernelContext& context) {
  double change = 0;
  if (*o.scale.as<double>() != 0) {
    const CompactUpdate a = {.o = &o, .numbers = adamw_numbers(o), .seed = noise_seed(o.seed, *o.updates.as<double>())};
    change = sum_over_blocks(
        context, o.w.size(), 3,
        [&](std::int64_t begin, std::int64_t end) { return HWY_DYNAMIC_DISPATCH(adamw_compact)(a, begin, end); },
        moment_block);
  }
  if (o.change.present()) *o.change.as<double>() = change;
}

}  // namespace stacklab::cpu
#endif
