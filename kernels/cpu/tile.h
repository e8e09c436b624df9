// The micro-kernel's interface, and the one that multiplies bf16: vdpbf16ps, which Highway lacks.
#pragma once

#include <hwy/base.h>

#include <array>
#include <cstdint>

namespace stacklab::cpu {

// Memory that will be wanted, rows of so many bytes: fetched into cache while tiles are made.
struct Ahead {
  const char* row = nullptr;
  std::int64_t ld = 0, length = 0, at = 0;
  std::int64_t lines = 0;  // that are left
  std::int64_t each = 0;   // lines a tile
  HWY_INLINE void fetch() {
    __builtin_prefetch(row + at, 0, 2);
    if ((at += 64) >= length) at = 0, row += ld;
    --lines;
  }
};

// C[rows, tile_cols] = base + A B, with base absent where null. a_stride and b_stride step along the depth.
using TileFunction = void (*)(std::int64_t depth, const float* a, std::int64_t a_stride, const float* b,
                              std::int64_t b_stride, float* c, std::int64_t ldc, const float* base,
                              std::int64_t ld_base, Ahead* next);

// Tiles of up to 14 rows and 32 columns, whose A and B are words of two steps along the depth in bf16, the first in the
// lower half; depth and strides count words. Sums are f32; numbers below the least normal one count as zero.
inline constexpr int bf16_tile_rows = 14, bf16_tile_cols = 32, bf16_row_stride = 520;
using Bf16Tiles = std::array<TileFunction, bf16_tile_rows>;
// [r - 1] makes r rows. Rows of A lie contiguous at each step, or bf16_row_stride words apart.
const Bf16Tiles& bf16_tiles(bool contiguous_rows);

// Whether this processor has the instruction, beside AVX-512.
bool processor_multiplies_bf16();

}  // namespace stacklab::cpu
