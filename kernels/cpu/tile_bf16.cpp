// Only functions that say so use the instruction: the rest of the program runs anywhere.
#include <hwy/highway.h>

#include <utility>

#include "kernels/cpu/tile.h"

#if HWY_ARCH_X86_64 && (HWY_TARGETS & HWY_AVX3)
#include <immintrin.h>

namespace stacklab::cpu {
namespace {

template <int rows, int row_stride>
__attribute__((noinline, target("avx512f,avx512bf16"))) void tile(std::int64_t depth, const float* HWY_RESTRICT a,
                                                                  std::int64_t a_stride, const float* HWY_RESTRICT b,
                                                                  std::int64_t b_stride, float* c, std::int64_t ldc,
                                                                  const float* base, std::int64_t ld_base,
                                                                  Ahead* next) {
  constexpr int vectors = 2, lanes = 16;
  const std::int64_t step = row_stride == 1 ? a_stride : 1;
  __m512 sum[rows][vectors];
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i)
#pragma GCC unroll 2
    for (int j = 0; j < vectors; ++j) sum[i][j] = _mm512_setzero_ps();
  // As in tile-inl.h: what comes next arrives little by little.
  constexpr std::int64_t beat = 8;
  Ahead ahead = next ? *next : Ahead();
  std::int64_t lines = ahead.each < ahead.lines ? ahead.each : ahead.lines, row = 0;
  for (std::int64_t k = 0; k < depth;) {
    if (row < rows) {
#pragma GCC unroll 2
      for (int j = 0; j < vectors * lanes; j += lanes) {
        __builtin_prefetch(c + row * ldc + j, 1);
        if (base) __builtin_prefetch(base + row * ld_base + j);
      }
      ++row;
    } else if (lines > 0) {
      ahead.fetch(), --lines;
    }
#pragma GCC unroll 1
    for (const std::int64_t end = k + beat < depth ? k + beat : depth; k < end; ++k, a += step, b += b_stride) {
      const auto y0 = reinterpret_cast<__m512bh>(_mm512_loadu_ps(b)),
                 y1 = reinterpret_cast<__m512bh>(_mm512_loadu_ps(b + lanes));
      __builtin_prefetch(b + 48 * b_stride);
#pragma GCC unroll 16
      for (int i = 0; i < rows; ++i) {
        const auto x = reinterpret_cast<__m512bh>(_mm512_set1_ps(a[i * row_stride]));
        sum[i][0] = _mm512_dpbf16_ps(sum[i][0], x, y0);
        sum[i][1] = _mm512_dpbf16_ps(sum[i][1], x, y1);
      }
    }
  }
  if (next) *next = ahead;
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i)
#pragma GCC unroll 2
    for (int j = 0; j < vectors; ++j) {
      __m512 v = sum[i][j];
      if (base) v = _mm512_add_ps(_mm512_loadu_ps(base + i * ld_base + j * lanes), v);
      _mm512_storeu_ps(c + i * ldc + j * lanes, v);
    }
}

template <int row_stride, int... rows>
constexpr Bf16Tiles table(std::integer_sequence<int, rows...>) {
  return {tile<rows + 1, row_stride>...};
}
template <int row_stride>
constexpr Bf16Tiles tiles = table<row_stride>(std::make_integer_sequence<int, bf16_tile_rows>());

}  // namespace

const Bf16Tiles& bf16_tiles(bool contiguous_rows) { return contiguous_rows ? tiles<1> : tiles<bf16_row_stride>; }

bool processor_multiplies_bf16() { return __builtin_cpu_supports("avx512bf16") > 0; }

}  // namespace stacklab::cpu

#else

namespace stacklab::cpu {

const Bf16Tiles& bf16_tiles(bool) {
  static constexpr Bf16Tiles none = {};
  return none;
}
bool processor_multiplies_bf16() { return false; }

}  // namespace stacklab::cpu

#endif
