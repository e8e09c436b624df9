// Rounding by chance, right on average: what is kept in fewer bits neither sticks nor drifts. The chance is a function
// of a seed and an element's position alone, the same on every device and for any threads.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/bf16.h"

namespace stacklab {

// SquirrelNoise5 (Eiserloh 2021): 32 random bits of a position.
constexpr std::uint32_t noise_bits(std::uint32_t position, std::uint32_t seed) {
  std::uint32_t x = position * 0xd2a80a3fu + seed;
  x = (x ^ (x >> 9)) + 0xa884f197u;
  x = (x ^ (x >> 11)) * 0x6c736f4bu;
  x = (x ^ (x >> 13)) + 0xb79f3abbu;
  x = (x ^ (x >> 15)) * 0x1b56c4f5u;
  return x ^ (x >> 17);
}
// The seed of one tensor's update.
constexpr std::uint32_t noise_seed(std::uint64_t tensor, double update) {
  const auto low = static_cast<std::uint32_t>(tensor), high = static_cast<std::uint32_t>(tensor >> 32);
  return noise_bits(static_cast<std::uint32_t>(static_cast<std::int64_t>(update)), noise_bits(low, high));
}
// What parameters are rounded with is independent of what their moments are.
constexpr std::uint32_t other_noise(std::uint32_t seed) { return seed ^ 0x9e3779b9u; }

// Up with probability (x - below) / (above - below); bits: 16 random ones. What bf16 holds stays, and so does a NaN.
inline BFloat16 rounded_by_chance(float x, std::uint32_t bits) {
  const auto u = std::bit_cast<std::uint32_t>(x);
  BFloat16 r;
  r.bits = static_cast<std::uint16_t>(std::isnan(x) ? (u >> 16) | 0x40u : (u + (bits & 0xffffu)) >> 16);
  return r;
}

// Moments in 8 bits: blocks of so many elements share a scale, the largest size among them.
inline constexpr std::int64_t moment_block = 256;

// m = scale q |q| / 127^2. The square makes small elements fine: their codes lie closer.
inline double first_moment(std::int8_t q, double scale) { return scale / 16129 * q * std::abs(q); }
inline std::int8_t first_moment_code(double m, double scale, std::uint32_t bits) {
  const double size = 127 * std::sqrt(std::abs(m) / scale) + (bits & 0xffffu) * 0x1p-16;
  const int q = size >= 127 ? 127 : size > 0 ? static_cast<int>(size) : 0;
  return static_cast<std::int8_t>(m < 0 ? -q : q);
}
// v = scale (q / 255)^4: its root, which is divided by, is as fine as m. What is not 0 never becomes 0.
inline double second_moment(std::uint8_t q, double scale) {
  const double root = q / 255.0;
  return scale * (root * root) * (root * root);
}
inline std::uint8_t second_moment_code(double v, double scale, std::uint32_t bits) {
  const double size = 255 * std::sqrt(std::sqrt(v / scale)) + (bits & 0xffffu) * 0x1p-16;
  const int q = size >= 255 ? 255 : size > 0 ? static_cast<int>(size) : 0;
  return static_cast<std::uint8_t>(v > 0 ? std::max(q, 1) : 0);
}

}  // namespace stacklab
