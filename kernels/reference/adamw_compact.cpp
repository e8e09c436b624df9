// AdamW with moments in bf16 or 8 bits.
#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/reference/reference.h"
#include "kernels/rounding.h"

namespace stacklab::reference {
namespace {

constexpr auto block = static_cast<std::size_t>(moment_block);

// Elements begin .. begin + n of both moments, in double.
struct Moments {
  std::array<double, block> m, v;

  template <class T>
  void load(const op::AdamWCompact& o, std::int64_t begin, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
      const std::int64_t at = begin + static_cast<std::int64_t>(i);
      if (o.m.dtype == DType::bf16) {
        m[i] = static_cast<double>(static_cast<float>(o.m.as<BFloat16>()[at]));
        v[i] = static_cast<double>(static_cast<float>(o.v.as<BFloat16>()[at]));
      } else {
        m[i] = first_moment(o.m.as<std::int8_t>()[at], static_cast<double>(o.m_scales.as<T>()[at / moment_block]));
        v[i] = second_moment(o.v.as<std::uint8_t>()[at], static_cast<double>(o.v_scales.as<T>()[at / moment_block]));
      }
    }
  }

  template <class T>
  void store(const op::AdamWCompact& o, std::int64_t begin, std::size_t n, std::uint32_t seed) const {
    T m_scale = 0, v_scale = 0;
    for (std::size_t i = 0; i < n; ++i) {
      m_scale = std::max(m_scale, static_cast<T>(std::abs(m[i])));
      v_scale = std::max(v_scale, static_cast<T>(v[i]));
    }
    if (o.m_scales.present()) {
      o.m_scales.as<T>()[begin / moment_block] = m_scale;
      o.v_scales.as<T>()[begin / moment_block] = v_scale;
    }
    for (std::size_t i = 0; i < n; ++i) {
      const std::int64_t at = begin + static_cast<std::int64_t>(i);
      const std::uint32_t bits = noise_bits(static_cast<std::uint32_t>(at), seed);
      if (o.m.dtype == DType::bf16) {
        o.m.as<BFloat16>()[at] = rounded_by_chance(static_cast<float>(m[i]), bits);
        o.v.as<BFloat16>()[at] = rounded_by_chance(static_cast<float>(v[i]), bits >> 16);
      } else {
        o.m.as<std::int8_t>()[at] = first_moment_code(m[i], static_cast<double>(m_scale), bits);
        o.v.as<std::uint8_t>()[at] = second_moment_code(v[i], static_cast<double>(v_scale), bits >> 16);
      }
    }
  }
};

}  // namespace

template <class T>
void run(const op::AdamWCompact& o, const KernelContext&) {
  const double lr = *o.lr.as<double>(), scale = *o.scale.as<double>(), t = *o.updates.as<double>();
  double change = 0;
  if (scale != 0) {
    const double correction1 = 1 - std::pow(o.beta1, t), correction2 = 1 - std::pow(o.beta2, t);
    const std::uint32_t seed = noise_seed(o.seed, t);
    Moments moments;
    for (std::int64_t begin = 0; begin < o.w.size(); begin += moment_block) {
      const auto n = static_cast<std::size_t>(std::min(moment_block, o.w.size() - begin));
      moments.load<T>(o, begin, n);
      for (std::size_t i = 0; i < n; ++i) {
        const std::int64_t at = begin + static_cast<std::int64_t>(i);
        const bool narrow = o.w.dtype == DType::bf16;
        const double w = narrow ? static_cast<double>(static_cast<float>(o.w.as<BFloat16>()[at]))
                                : static_cast<double>(o.w.as<T>()[at]);
        const double g = static_cast<double>(o.g.as<T>()[at]) * scale;
        double &m = moments.m[i], &v = moments.v[i];
        m = o.beta1 * m + (1 - o.beta1) * g;
        v = o.beta2 * v + (1 - o.beta2) * g * g;
        const double step = m == 0 ? 0 : (m / correction1) / (std::sqrt(v / correction2) + o.eps);
        const double taken = lr * (step + o.weight_decay * w);
        change += taken * taken;
        if (narrow)
          o.w.as<BFloat16>()[at] = rounded_by_chance(static_cast<float>(w - taken),
                                                     noise_bits(static_cast<std::uint32_t>(at), other_noise(seed)));
        else
          o.w.as<T>()[at] = static_cast<T>(w - taken);
      }
      moments.store<T>(o, begin, n, seed);
    }
  }
  if (o.change.present()) *o.change.as<double>() = change;
}

template void run<float>(const op::AdamWCompact&, const KernelContext&);
template void run<double>(const op::AdamWCompact&, const KernelContext&);

}  // namespace stacklab::reference
