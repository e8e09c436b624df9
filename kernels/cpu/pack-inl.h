// Packing of A and B for the micro-kernel, with transformations on the way. A source gives vectors of its elements, of
// any width: the place where other storage types are converted. For products in bf16 two steps along the depth, each
// rounded to bf16, are packed as one word in the place of a float. Included once for each instruction set.
#if defined(STACKLAB_KERNELS_CPU_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STACKLAB_KERNELS_CPU_PACK_INL_H_
#undef STACKLAB_KERNELS_CPU_PACK_INL_H_
#else
#define STACKLAB_KERNELS_CPU_PACK_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/math-inl.h"
#include "kernels/cpu/storage-inl.h"
#include "kernels/cpu/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stacklab::cpu::HWY_NAMESPACE {

inline constexpr std::int64_t no_seam = std::numeric_limits<std::int64_t>::max();

template <class T>
HWY_INLINE void prefetch_span(const T* row, std::int64_t c0, std::int64_t c1) {
  for (std::int64_t c = c0; c < c1; c += 64 / static_cast<std::int64_t>(sizeof(T))) hwy::Prefetch(row + c);
}

template <class T>
struct PlainSource {
  const T* data;
  std::int64_t ld;
  PlainSource(const T* p, std::int64_t distance) : data(p), ld(distance) {}
  explicit PlainSource(const Operand& o) : data(static_cast<const T*>(o.data.data)), ld(o.ld) {}
  // The first column after c that no vector may reach across.
  std::int64_t seam(std::int64_t) const { return no_seam; }
  void prefetch(std::int64_t r, std::int64_t c0, std::int64_t c1) const { prefetch_span(data + r * ld, c0, c1); }
  template <class D>
  HWY_INLINE hn::Vec<D> load(D d, std::int64_t r, std::int64_t c) const {
    return load_as_float(d, data + r * ld + c);
  }
};

struct NormedSource {
  const float* data;
  std::int64_t ld;
  const float *row_scale, *col_gain;
  explicit NormedSource(const Operand& o)
      : data(static_cast<const float*>(o.data.data)), ld(o.ld), row_scale(o.row_scale), col_gain(o.col_gain) {}
  std::int64_t seam(std::int64_t) const { return no_seam; }
  void prefetch(std::int64_t r, std::int64_t c0, std::int64_t c1) const { prefetch_span(data + r * ld, c0, c1); }
  template <class D>
  HWY_INLINE hn::Vec<D> load(D d, std::int64_t r, std::int64_t c) const {
    return hn::Mul(hn::Mul(hn::LoadU(d, data + r * ld + c), hn::Set(d, row_scale[r])), hn::LoadU(d, col_gain + c));
  }
};

struct BlockScaledSource {
  const float *data, *scales;
  std::int64_t ld, ld_scale;
  explicit BlockScaledSource(const Operand& o)
      : data(static_cast<const float*>(o.data.data)), scales(o.row_scale), ld(o.ld), ld_scale(o.ld_scale) {}
  std::int64_t seam(std::int64_t c) const { return (c / column_step + 1) * column_step; }
  template <class D>
  HWY_INLINE hn::Vec<D> load(D d, std::int64_t r, std::int64_t c) const {
    return hn::Mul(hn::LoadU(d, data + r * ld + c), hn::Set(d, scales[r * ld_scale + c / column_step]));
  }
};

// Elements as the bits of bf16.
template <class D, class Source>
HWY_INLINE hn::Vec<hn::Rebind<std::uint32_t, D>> bits_at(D d, const Source& source, std::int64_t r, std::int64_t c) {
  return rounded_bits(d, source.load(d, r, c));
}
template <class D>
HWY_INLINE hn::Vec<hn::Rebind<std::uint32_t, D>> bits_at(D, const PlainSource<std::uint16_t>& source, std::int64_t r,
                                                         std::int64_t c) {
  const hn::Rebind<std::uint16_t, D> narrow;
  return hn::PromoteTo(hn::Rebind<std::uint32_t, D>(), hn::LoadU(narrow, source.data + r * source.ld + c));
}

// Of a source whose rows are steps along a depth of so many: row r is its rows 2 r and 2 r + 1, zero beyond the depth.
template <class Source>
struct PairsOfRows {
  const Source& source;
  std::int64_t depth;
  std::int64_t seam(std::int64_t c) const { return source.seam(c); }
  void prefetch(std::int64_t r, std::int64_t c0, std::int64_t c1) const {
    source.prefetch(2 * r, c0, c1);
    if (2 * r + 1 < depth) source.prefetch(2 * r + 1, c0, c1);
  }
  template <class D>
  HWY_INLINE hn::Vec<D> load(D d, std::int64_t r, std::int64_t c) const {
    auto word = bits_at(d, source, 2 * r, c);
    if (2 * r + 1 < depth) word = hn::Or(word, hn::ShiftLeft<16>(bits_at(d, source, 2 * r + 1, c)));
    return hn::BitCast(d, word);
  }
};

// Of bf16 whose columns are the depth: column c is its columns 2 c and 2 c + 1.
struct PairsOfColumns {
  const std::uint16_t* data;
  std::int64_t ld;
  void prefetch(std::int64_t r, std::int64_t c0, std::int64_t c1) const {
    prefetch_span(data + r * ld, 2 * c0, 2 * c1);
  }
  template <class D>
  HWY_INLINE hn::Vec<D> load(D d, std::int64_t r, std::int64_t c) const {
    return hn::BitCast(d, hn::LoadU(hn::Repartition<std::uint16_t, D>(), data + r * ld + 2 * c));
  }
};

// out[0 .. c1 - c0) = row r, columns c0 .. c1, none of them across the seam.
template <class Source>
HWY_INLINE void copy_span(const Source& source, std::int64_t r, std::int64_t c0, std::int64_t c1, float* out) {
  const FloatTag d;
  std::int64_t c = c0;
  for (; c + lanes <= c1; c += lanes) hn::StoreU(source.load(d, r, c), d, out + (c - c0));
  for (; c < c1; ++c) hn::StoreU(source.load(One(), r, c), One(), out + (c - c0));
}

template <class Source>
HWY_INLINE void copy_span(const Source& source, std::int64_t r, std::int64_t c0, std::int64_t c1, std::uint16_t* out) {
  const FloatTag d;
  std::int64_t c = c0;
  for (; c + lanes <= c1; c += lanes) store_rounded(d, source.load(d, r, c), out + (c - c0));
  for (; c < c1; ++c) store_rounded(One(), source.load(One(), r, c), out + (c - c0));
}
HWY_INLINE void copy_span(const PlainSource<std::uint16_t>& source, std::int64_t r, std::int64_t c0, std::int64_t c1,
                          std::uint16_t* out) {
  std::memcpy(out, source.data + r * source.ld + c0, static_cast<std::size_t>(c1 - c0) * 2);
}

template <class Source, class T>
HWY_INLINE void copy_row(const Source& source, std::int64_t r, std::int64_t c0, std::int64_t c1, T* out) {
  while (c0 < c1) {
    const std::int64_t cut = std::min(source.seam(c0), c1);
    copy_span(source, r, c0, cut, out);
    out += cut - c0, c0 = cut;
  }
}

// Rows m0 .. m1, each depth k0 .. k1, row_stride apart.
template <class Source>
void pack_rows(const Source& source, std::int64_t m0, std::int64_t m1, std::int64_t k0, std::int64_t k1, float* out,
               std::int64_t row_stride) {
  for (std::int64_t m = m0; m < m1; ++m) copy_row(source, m, k0, k1, out + (m - m0) * row_stride);
}

// The same as words, with a zero after an odd depth.
template <class Source>
void pack_rows_of_pairs(const Source& source, std::int64_t m0, std::int64_t m1, std::int64_t k0, std::int64_t k1,
                        float* out, std::int64_t row_stride) {
  for (std::int64_t m = m0; m < m1; ++m, out += row_stride) {
    auto* to = reinterpret_cast<std::uint16_t*>(out);
    copy_row(source, m, k0, k1, to);
    if ((k1 - k0) % 2 != 0) std::memset(to + (k1 - k0), 0, 2);
  }
}

// Distance of packed columns: none crosses a cache line.
inline constexpr std::int64_t column_stride = (tile_rows + lanes - 1) / lanes * lanes;

// The source is [K, M]: for each k the m1 - m0 <= tile_rows elements of a panel. Two vectors of the largest width that
// fits, overlapping, copy any count.
template <int width, class Source>
HWY_INLINE void pack_columns_by(const Source& source, std::int64_t m0, std::int64_t m1, std::int64_t k0,
                                std::int64_t k1, float* out) {
  const hn::CappedTag<float, width> d;
  const std::int64_t tail = m1 - m0 - width;
  for (std::int64_t k = k0; k < k1; ++k, out += column_stride) {
    const auto first = source.load(d, k, m0), last = source.load(d, k, m0 + tail);
    hn::StoreU(first, d, out);
    hn::StoreU(last, d, out + tail);
  }
}

// Rows below whole_rows may be read a vector further than their last element: another row follows.
template <class Source>
void pack_columns(const Source& source, std::int64_t m0, std::int64_t m1, std::int64_t k0, std::int64_t k1,
                  std::int64_t whole_rows, float* out) {
  const std::int64_t rows = m1 - m0;
  if (source.seam(m0) >= m1) {
    if constexpr (column_stride == lanes)
      for (const FloatTag d; k0 < std::min(k1, whole_rows); ++k0, out += column_stride)
        hn::StoreU(source.load(d, k0, m0), d, out);
    if (lanes >= 8 && rows >= 8) return pack_columns_by<8>(source, m0, m1, k0, k1, out);
    if (lanes >= 4 && rows >= 4) return pack_columns_by<4>(source, m0, m1, k0, k1, out);
    if (lanes >= 2 && rows >= 2) return pack_columns_by<2>(source, m0, m1, k0, k1, out);
  }
  for (std::int64_t k = k0; k < k1; ++k, out += column_stride) copy_row(source, k, m0, m1, out);
}

// Panels of B, [k1 - k0, tile_cols] each, from columns n0 .. n1 of [K, N]; zeros beyond n1.
template <class Source>
void pack_panels(const Source& source, std::int64_t n0, std::int64_t n1, std::int64_t k0, std::int64_t k1, float* out) {
  const FloatTag d;
  const std::int64_t whole = (n1 - n0) / tile_cols * tile_cols, panel = (k1 - k0) * tile_cols;
  // Along the rows, so that memory is read as it lies.
  for (std::int64_t k = k0; k < k1; ++k) {
    if (k + 8 < k1) source.prefetch(k + 8, n0, n1);
    float* to = out + (k - k0) * tile_cols;
    for (std::int64_t n = n0; n < n0 + whole; n += tile_cols, to += panel)
      for (int j = 0; j < tile_vectors; ++j) hn::StoreU(source.load(d, k, n + j * lanes), d, to + j * lanes);
    if (n0 + whole == n1) continue;
    copy_span(source, k, n0 + whole, n1, to);
    std::fill(to + (n1 - n0 - whole), to + tile_cols, 0.0f);
  }
}

// One panel from a matrix that is given as [N, K]: four by four elements at a time change places.
template <class Source>
void pack_panel_transposed(const Source& source, std::int64_t n0, std::int64_t n1, std::int64_t k0, std::int64_t k1,
                           float* out) {
  const std::int64_t whole = lanes >= 4 ? (n1 - n0) / 4 * 4 : 0, deep = lanes >= 4 ? (k1 - k0) / 4 * 4 : 0;
  if constexpr (lanes >= 4) {
    const hn::FixedTag<float, 4> d;
    for (std::int64_t n = n0; n < n0 + whole; n += 4) {
      float* to = out + (n - n0);
      for (std::int64_t k = k0; k < k0 + deep; k += 4, to += 4 * tile_cols) {
        if ((k - k0) % 16 == 0)
          for (int i = 4; i < 8; ++i) source.prefetch(n + i, k, k + 1);
        store_turned(source.load(d, n, k), source.load(d, n + 1, k), source.load(d, n + 2, k), source.load(d, n + 3, k),
                     to, tile_cols);
      }
    }
  }
  for (std::int64_t n = 0; n < n1 - n0; ++n)
    for (std::int64_t k = n < whole ? deep : 0; k < k1 - k0; ++k)
      hn::StoreU(source.load(One(), n0 + n, k0 + k), One(), out + k * tile_cols + n);
  for (std::int64_t k = 0; k < k1 - k0; ++k)
    std::fill(out + k * tile_cols + (n1 - n0), out + (k + 1) * tile_cols, 0.0f);
}

template <class T>
void pack_panel_transposed(const T* data, std::int64_t ld, std::int64_t n0, std::int64_t n1, std::int64_t k0,
                           std::int64_t k1, float* out) {
  pack_panel_transposed(PlainSource<T>(data, ld), n0, n1, k0, k1, out);
}

// The same from bf16, as words; what is beyond an odd depth is zero.
inline void pack_pairs_transposed(const PlainSource<std::uint16_t>& source, std::int64_t n0, std::int64_t n1,
                                  std::int64_t k0, std::int64_t k1, float* out) {
  const std::int64_t pairs = (k1 - k0) / 2;
  pack_panel_transposed(PairsOfColumns{source.data + k0, source.ld}, n0, n1, 0, pairs, out);
  if ((k1 - k0) % 2 == 0) return;
  out += pairs * tile_cols;
  std::fill(out, out + tile_cols, 0.0f);
  for (std::int64_t n = n0; n < n1; ++n) std::memcpy(out + (n - n0), source.data + n * source.ld + k1 - 1, 2);
}

}  // namespace stacklab::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
