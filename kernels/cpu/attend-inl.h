// One block of queries against the keys of its document, and one against one block of keys on the way back: small
// products on packed memory. Included once for each instruction set.
//
// Queries carry the scale, so products are logits. Keys and values lie as rows of padded heads, and as panels
// [head_dim, tile_cols] of tile_cols keys each, zero beyond the last key. Weights of keys that a row does not see are
// 0, so a value that is no number shows in rows that see it and may show in the few before it that share its tile,
// never in another document.
#if defined(STACKLAB_KERNELS_CPU_ATTEND_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STACKLAB_KERNELS_CPU_ATTEND_INL_H_
#undef STACKLAB_KERNELS_CPU_ATTEND_INL_H_
#else
#define STACKLAB_KERNELS_CPU_ATTEND_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "kernels/cpu/attention.h"
#include "kernels/cpu/heads-inl.h"
#include "kernels/cpu/math-inl.h"
#include "kernels/cpu/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stacklab::cpu::HWY_NAMESPACE {

inline constexpr float minus_infinity = -std::numeric_limits<float>::infinity();
// Distances of rows in work: no power of two, whose lines would share few places in the cache.
inline constexpr int wide_stride = widest_head + 8;
inline constexpr int square_stride = square_block + 8;
static_assert(key_block <= widest_head);
inline constexpr int panel_slots = 16;  // rows of a panel, in vectors
inline constexpr std::int64_t most_panels = blocks_of(query_block, tile_rows);

template <bool capped>
HWY_INLINE FloatVec soft_cap_of(FloatVec logit, float cap) {
  if constexpr (!capped) return logit;
  const FloatTag d;
  return hn::Mul(hn::Set(d, cap), tanh(d, hn::Mul(logit, hn::Set(d, 1 / cap))));
}

// c[rows, cols] (or c +=) = a b, where b and c may be written and read up to a whole vector beyond cols.
template <int stride>
HWY_INLINE void multiply(int rows, std::int64_t depth, const float* a, std::int64_t a_stride, const float* b,
                         std::int64_t ldb, std::int64_t cols, float* c, std::int64_t ldc, bool more) {
  const auto index = static_cast<std::size_t>(rows - 1);
  for (std::int64_t j = 0; j < cols; j += tile_cols) {
    const TileFunction function = cols - j > lanes ? tiles<stride>[index] : narrow_tiles<stride>[index];
    function(depth, a, a_stride, b + j, ldb, c + j, ldc, more ? c + j : nullptr, ldc, nullptr);
  }
}

// c[rows, cols] = a b with b in panels.
template <int stride>
HWY_INLINE void multiply_panels(int rows, std::int64_t depth, const float* a, const float* b, std::int64_t cols,
                                float* c, std::int64_t ldc) {
  const TileFunction function = tiles<stride>[static_cast<std::size_t>(rows - 1)];
  for (std::int64_t j = 0; j < cols; j += tile_cols, b += depth * tile_cols)
    function(depth, a, 1, b, tile_cols, c + j, ldc, nullptr, 0, nullptr);
}

// The keys begin .. end that a row sees, within a block.
struct Span {
  std::int64_t begin, end;
};

struct QueryBlock {
  const float* k_panels;  // of the document
  const float* v;         // its first row
  std::int64_t head_dim, v_dim, v_width;
  std::int64_t rows;
  std::int64_t last;  // the last key that row 0 sees
  std::int64_t window;
  float soft_cap;

  std::int64_t oldest(std::int64_t row) const {
    return window > 0 ? std::max<std::int64_t>(0, last + row - window + 1) : 0;
  }
};

// Sums and maxima of a block's rows, panel by panel.
struct Softmax {
  alignas(64) float largest[most_panels * panel_slots];  // of the capped logits
  alignas(64) float sum[most_panels * panel_slots];      // of exp(logit - largest)
  float max_logit = minus_infinity;                      // before the cap
};

// Logits s of a panel's rows, columns c0 .. c1 of a block of keys, become exp(logit - largest), and 0 where row i,
// which sees spans[i], does not look. correction[i] is what gathered results of the row shrink by.
template <bool capped>
HWY_INLINE void softmax_panel(float* s, int rows, std::int64_t c0, std::int64_t c1, const Span* spans, float soft_cap,
                              float* largest, float* sum, float* correction, float& max_logit) {
  const FloatTag d;
  const auto nothing = hn::Set(d, minus_infinity);
  alignas(64) float top[panel_slots];
  std::fill(top, top + panel_slots, minus_infinity);
  auto broken = hn::IsNaN(hn::Zero(d));
  for (int i = 0; i < rows; ++i) {
    float* row = s + i * wide_stride;
    std::fill(row + c0, row + spans[i].begin, minus_infinity);
    std::fill(row + spans[i].end, row + c1, minus_infinity);
    // The second operand of Max survives where one is NaN.
    auto top0 = nothing, top1 = nothing;
    for (std::int64_t c = c0; c < c1; c += tile_cols) {
      const auto a = hn::LoadU(d, row + c), b = hn::LoadU(d, row + c + lanes);
      broken = hn::Or(broken, hn::Or(hn::IsNaN(a), hn::IsNaN(b)));
      top0 = hn::Max(a, top0), top1 = hn::Max(b, top1);
    }
    top[i] = hn::GetLane(hn::MaxOfLanes(d, hn::Max(top0, top1)));
  }
  auto block_top = nothing;
  for (int i = 0; i < panel_slots; i += lanes) {
    const auto raw = hn::Load(d, top + i), before = hn::Load(d, largest + i);
    block_top = hn::Max(raw, block_top);
    const auto capped_top = hn::IfThenElse(hn::Eq(raw, nothing), raw, soft_cap_of<capped>(raw, soft_cap));
    const auto now = hn::Max(capped_top, before);
    hn::Store(now, d, largest + i);
    hn::Store(hn::IfThenElse(hn::Eq(now, before), hn::Set(d, 1.0f), exp_bounded(d, hn::Sub(before, now))), d,
              correction + i);
  }
  if (!hn::AllFalse(d, broken))
    max_logit = std::numeric_limits<float>::quiet_NaN();
  else if (!std::isnan(max_logit))
    max_logit = std::max(max_logit, hn::GetLane(hn::MaxOfLanes(d, block_top)));

  for (int i = 0; i < rows; ++i) {
    float* row = s + i * wide_stride;
    if (spans[i].begin >= spans[i].end) {
      std::fill(row + c0, row + c1, 0.0f);
      continue;
    }
    const auto shift = hn::Set(d, largest[i]);
    const auto weight = [&](std::int64_t c) HWY_ATTR {
      const auto logit = hn::LoadU(d, row + c);
      auto p = exp_bounded(d, hn::Sub(soft_cap_of<capped>(logit, soft_cap), shift));
      if constexpr (capped) p = hn::IfThenZeroElse(hn::Eq(logit, nothing), p);
      hn::StoreU(p, d, row + c);
      return p;
    };
    auto sum0 = hn::Zero(d), sum1 = hn::Zero(d);
    for (std::int64_t c = c0; c < c1; c += tile_cols) {
      sum0 = hn::Add(sum0, weight(c));
      sum1 = hn::Add(sum1, weight(c + lanes));
    }
    sum[i] = sum[i] * correction[i] + hn::GetLane(hn::SumOfLanes(d, hn::Add(sum0, sum1)));
  }
}

// q: rows wide_stride apart. o, like q: the sums of weighted values, not yet divided by softmax.sum; rows that see
// nothing keep garbage.
template <bool capped>
void attend_block(const QueryBlock& x, const float* q, float* o, Softmax& softmax) {
  const FloatTag d;
  std::fill(softmax.largest, softmax.largest + most_panels * panel_slots, minus_infinity);
  std::fill(softmax.sum, softmax.sum + most_panels * panel_slots, 0.0f);
  alignas(64) float s[tile_rows * wide_stride];
  alignas(64) float correction[panel_slots];
  Span spans[tile_rows];
  const Panels panels(x.rows);
  const std::int64_t end = x.last + x.rows;
  for (std::int64_t k0 = x.oldest(0) / key_block * key_block; k0 < end; k0 += key_block)
    for (std::int64_t p = 0; p < panels.count; ++p) {
      const std::int64_t r0 = panels.begin(p), r1 = panels.begin(p + 1), oldest = x.oldest(r0);
      const std::int64_t first = std::max(oldest, k0), behind = std::min(k0 + key_block, x.last + r1);
      if (first >= behind) continue;
      const int rows = static_cast<int>(r1 - r0);
      const std::int64_t c0 = (first - k0) / tile_cols * tile_cols, c1 = round_up_to(behind - k0, tile_cols);
      multiply_panels<wide_stride>(rows, x.head_dim, q + r0 * wide_stride, x.k_panels + (k0 + c0) * x.head_dim, c1 - c0,
                                   s + c0, wide_stride);
      for (int i = 0; i < rows; ++i) {
        const std::int64_t span_end = std::min(x.last + r0 + i + 1 - k0, behind - k0);
        const std::int64_t span_begin = std::max(c0, x.oldest(r0 + i) - k0);
        spans[i] = span_begin < span_end ? Span{span_begin, span_end} : Span{c0, c0};
      }
      softmax_panel<capped>(s, rows, c0, c1, spans, x.soft_cap, softmax.largest + p * panel_slots,
                            softmax.sum + p * panel_slots, correction, softmax.max_logit);
      float* out = o + r0 * wide_stride;
      const bool more = oldest < k0;
      if (more)
        for (int i = 0; i < rows; ++i) {
          if (correction[i] == 1) continue;
          const auto factor = hn::Set(d, correction[i]);
          for (std::int64_t c = 0; c < x.v_dim; c += lanes)
            hn::StoreU(hn::Mul(factor, hn::LoadU(d, out + i * wide_stride + c)), d, out + i * wide_stride + c);
        }
      multiply<wide_stride>(rows, behind - k0 - c0, s + c0, 1, x.v + (k0 + c0) * x.v_width, x.v_width, x.v_dim, out,
                            wide_stride, more);
    }
}

// A block of queries of one head against a block of keys.
struct SquareBlock {
  const float *q, *dout;  // rows of width, v_width
  const float* k;         // rows of width
  const float *k_panels, *v_panels;
  const float *lse, *mean;  // of each row: log-sum-exp, and the sum of out dout
  std::int64_t rows, keys;
  std::int64_t head_dim, width, v_dim, v_width;
  std::int64_t last;  // the last key that row 0 sees, counted from the block's first
  std::int64_t window;
  float soft_cap;

  Span span(std::int64_t row) const {
    const std::int64_t end = std::clamp<std::int64_t>(last + row + 1, 0, keys);
    const std::int64_t begin = window > 0 ? std::clamp<std::int64_t>(last + row + 1 - window, 0, end) : 0;
    return {begin, end};
  }
};

// Logits p and gradients of weights dp become weights p and gradients of logits dp.
template <bool capped>
HWY_INLINE void softmax_backward_row(float* p, float* dp, Span span, std::int64_t c0, std::int64_t c1,
                                     std::int64_t keys, float soft_cap, float lse, float mean) {
  const FloatTag d;
  const auto shift = hn::Set(d, lse), center = hn::Set(d, mean);
  const auto gradient = [&](std::int64_t c) HWY_ATTR {
    const auto logit = soft_cap_of<capped>(hn::LoadU(d, p + c), soft_cap);
    const auto weight = exp_bounded(d, hn::Sub(logit, shift));
    auto g = hn::Mul(weight, hn::Sub(hn::LoadU(d, dp + c), center));
    if constexpr (capped) {
      const auto ratio = hn::Mul(logit, hn::Set(d, 1 / soft_cap));
      g = hn::Mul(g, hn::NegMulAdd(ratio, ratio, hn::Set(d, 1.0f)));
    }
    hn::StoreU(weight, d, p + c);
    hn::StoreU(g, d, dp + c);
  };
  for (std::int64_t c = c0; c < c1; c += tile_cols) gradient(c), gradient(c + lanes);
  for (float* row : {p, dp}) {
    std::fill(row, row + span.begin, 0.0f);
    std::fill(row + span.end, row + std::max(c1, keys), 0.0f);
  }
}

// dk, dv: rows of width, v_width. dq: rows ld_dq apart, without padding, scaled. Results are added to what is there
// where there is more.
template <bool capped>
void attend_block_backward(const SquareBlock& x, float scale, float* dq, std::int64_t ld_dq, bool more_dq, float* dk,
                           float* dv, bool more) {
  alignas(64) float p[square_block * square_stride];
  alignas(64) float dp[square_block * square_stride];
  alignas(64) float a[tile_rows * wide_stride];
  alignas(64) float sums[tile_rows * widest_head];
  const Panels queries(x.rows);
  for (std::int64_t panel = 0; panel < queries.count; ++panel) {
    const std::int64_t r0 = queries.begin(panel), r1 = queries.begin(panel + 1);
    const int rows = static_cast<int>(r1 - r0);
    const std::int64_t begin = x.span(r0).begin, end = x.span(r1 - 1).end;
    const std::int64_t c0 = begin / tile_cols * tile_cols, c1 = round_up_to(end, tile_cols);
    const auto product = [&](const float* from, std::int64_t depth, std::int64_t width, const float* b_panels,
                             float* to) HWY_ATTR {
      // With a distance that the tile knows.
      for (int i = 0; i < rows; ++i) copy_row(from + (r0 + i) * width, width, a + i * wide_stride);
      multiply_panels<wide_stride>(rows, depth, a, b_panels + c0 * depth, c1 - c0, to + r0 * square_stride + c0,
                                   square_stride);
    };
    product(x.q, x.head_dim, x.width, x.k_panels, p);
    product(x.dout, x.v_dim, x.v_width, x.v_panels, dp);
    for (int i = 0; i < rows; ++i)
      softmax_backward_row<capped>(p + (r0 + i) * square_stride, dp + (r0 + i) * square_stride, x.span(r0 + i), c0, c1,
                                   x.keys, x.soft_cap, x.lse[r0 + i], x.mean[r0 + i]);
    if (begin >= end) continue;
    multiply<square_stride>(rows, end - c0, dp + r0 * square_stride + c0, 1, x.k + c0 * x.width, x.width, x.head_dim,
                            sums, x.width, false);
    for (int i = 0; i < rows; ++i) put_row(sums + i * x.width, scale, x.head_dim, dq + (r0 + i) * ld_dq, more_dq);
  }

  const Panels keys(x.keys);
  for (std::int64_t panel = 0; panel < keys.count; ++panel) {
    const std::int64_t m0 = keys.begin(panel), m1 = keys.begin(panel + 1);
    // The queries that see any of these keys.
    const std::int64_t r0 = std::clamp<std::int64_t>(m0 - x.last, 0, x.rows);
    const std::int64_t r1 = x.window > 0 ? std::clamp<std::int64_t>(m1 - 1 - x.last + x.window, r0, x.rows) : x.rows;
    const int rows = static_cast<int>(m1 - m0);
    multiply<1>(rows, r1 - r0, p + r0 * square_stride + m0, square_stride, x.dout + r0 * x.v_width, x.v_width, x.v_dim,
                dv + m0 * x.v_width, x.v_width, more);
    multiply<1>(rows, r1 - r0, dp + r0 * square_stride + m0, square_stride, x.q + r0 * x.width, x.width, x.head_dim,
                dk + m0 * x.width, x.width, more);
  }
}

}  // namespace stacklab::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
