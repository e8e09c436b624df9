// The micro-kernel: a tile of C held in registers. Included once for each instruction set.
#if defined(STACKLAB_KERNELS_CPU_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STACKLAB_KERNELS_CPU_TILE_INL_H_
#undef STACKLAB_KERNELS_CPU_TILE_INL_H_
#else
#define STACKLAB_KERNELS_CPU_TILE_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "kernels/cpu/tile.h"

HWY_BEFORE_NAMESPACE();
namespace stacklab::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using FloatVec = hn::Vec<FloatTag>;
inline constexpr int lanes = HWY_MAX_BYTES / 4;

// 14 x 2 (or 6 x 2) accumulators, two vectors of B and one of A fill the 32 (16) registers.
inline constexpr int tile_rows = HWY_TARGET == HWY_AVX3 ? 14 : 6;
inline constexpr int tile_vectors = 2;
inline constexpr int tile_cols = tile_vectors * lanes;

// Rows of A lie row_stride apart, and depth is contiguous (a_stride is 1); or, with row_stride 1, rows are contiguous.
template <int rows, int row_stride, int vectors = tile_vectors>
HWY_NOINLINE void tile(std::int64_t depth, const float* HWY_RESTRICT a, std::int64_t a_stride,
                       const float* HWY_RESTRICT b, std::int64_t b_stride, float* c, std::int64_t ldc,
                       const float* base, std::int64_t ld_base, Ahead* next) {
  const FloatTag d;
  const std::int64_t step = row_stride == 1 ? a_stride : 1;
  FloatVec sum[rows][vectors];
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i)
#pragma GCC unroll 2
    for (int j = 0; j < vectors; ++j) sum[i][j] = hn::Zero(d);
  // C, its base and what comes next arrive while the product is made, little by little: many lines at once would keep
  // B waiting.
  constexpr std::int64_t beat = 8;  // steps along the depth
  Ahead ahead = next ? *next : Ahead();
  std::int64_t lines = std::min(ahead.each, ahead.lines), row = 0;
  for (std::int64_t k = 0; k < depth;) {
    if (row < rows) {
#pragma GCC unroll 2
      for (int j = 0; j < vectors * lanes; j += 16) {
        __builtin_prefetch(c + row * ldc + j, 1);
        if (base) __builtin_prefetch(base + row * ld_base + j);
      }
      ++row;
    } else if (lines > 0) {
      ahead.fetch(), --lines;
    }
#pragma GCC unroll 1
    for (const std::int64_t end = std::min(k + beat, depth); k < end; ++k, a += step, b += b_stride) {
      FloatVec y[vectors];
#pragma GCC unroll 2
      for (int j = 0; j < vectors; ++j) y[j] = hn::LoadU(d, b + j * lanes);
      hwy::Prefetch(b + 48 * b_stride);  // from the last cache: it answers after hundreds of cycles
#pragma GCC unroll 16
      for (int i = 0; i < rows; ++i) {
        const FloatVec x = hn::Set(d, a[i * row_stride]);
#pragma GCC unroll 2
        for (int j = 0; j < vectors; ++j) sum[i][j] = hn::MulAdd(x, y[j], sum[i][j]);
      }
    }
  }
  if (next) *next = ahead;
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i)
#pragma GCC unroll 2
    for (int j = 0; j < vectors; ++j) {
      FloatVec v = sum[i][j];
      if (base) v = hn::Add(hn::LoadU(d, base + i * ld_base + j * lanes), v);
      hn::StoreU(v, d, c + i * ldc + j * lanes);
    }
}

template <int row_stride, int vectors, int... rows>
constexpr std::array<TileFunction, sizeof...(rows)> tile_table(std::integer_sequence<int, rows...>) {
  return {tile<rows + 1, row_stride, vectors>...};
}
// tiles<row_stride>[r - 1] makes a tile of r rows; narrow_tiles one of half the columns.
template <int row_stride>
inline constexpr auto tiles = tile_table<row_stride, tile_vectors>(std::make_integer_sequence<int, tile_rows>());
template <int row_stride>
inline constexpr auto narrow_tiles = tile_table<row_stride, 1>(std::make_integer_sequence<int, tile_rows>());

// A tile that may be narrower than tile_cols: only cols columns of c and base are touched.
HWY_INLINE void tile_at(TileFunction function, int rows, std::int64_t cols, std::int64_t depth, const float* a,
                        std::int64_t a_stride, const float* b, std::int64_t b_stride, float* c, std::int64_t ldc,
                        const float* base, std::int64_t ld_base, Ahead* next) {
  if (cols >= tile_cols) return function(depth, a, a_stride, b, b_stride, c, ldc, base, ld_base, next);
  alignas(64) float whole[tile_rows * tile_cols];
  function(depth, a, a_stride, b, b_stride, whole, tile_cols, nullptr, 0, next);
  for (int i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < cols; ++j) {
      const float v = whole[i * tile_cols + j];
      c[i * ldc + j] = base ? base[i * ld_base + j] + v : v;
    }
}

// Cuts rows into panels that differ by at most one row: small remainders would waste the registers.
struct Panels {
  std::int64_t row0, n, count;
  explicit Panels(std::int64_t rows) : Panels(0, rows) {}
  Panels(std::int64_t begin, std::int64_t end) : row0(begin), n(end - begin), count((n + tile_rows - 1) / tile_rows) {}
  std::int64_t begin(std::int64_t panel) const { return row0 + n * panel / count; }
};

}  // namespace stacklab::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
