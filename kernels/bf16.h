// bfloat16: the upper half of a float. Rounds to nearest, ties to even; a NaN stays one.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/tensor_view.h"

namespace stacklab {

struct BFloat16 {
  std::uint16_t bits = 0;

  BFloat16() = default;
  explicit BFloat16(float x) {
    const auto u = std::bit_cast<std::uint32_t>(x);
    const bool is_nan = (u & 0x7fffffffu) > 0x7f800000u;
    bits = static_cast<std::uint16_t>(is_nan ? (u >> 16) | 0x40u : (u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
  }
  explicit operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
};
static_assert(sizeof(BFloat16) == 2);
template <>
inline constexpr DType dtype_of<BFloat16> = DType::bf16;

}  // namespace stacklab
