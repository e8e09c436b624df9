// Attention of the CPU backend: softmax blocks over packed keys and values (Dao 2023, FlashAttention-2), never a row of
// all logits.
#include "kernels/cpu/attention.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/attend-inl.h"
#include "kernels/cpu/heads-inl.h"
#include "kernels/cpu/pack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stacklab::cpu::HWY_NAMESPACE {
namespace {

// A gain as rows in work want it, or null.
struct PaddedGain {
  HeadRow row;
  const float* at = nullptr;
  PaddedGain(const float* gain, std::int64_t n, std::int64_t width) {
    if (!gain) return;
    widen_row(gain, n, row.at, width);
    at = row.at;
  }
};

// The front of the workspace.
struct Angles {
  const double* frequencies;
  float* table;
  float* rest;

  template <class E>
  explicit Angles(const AttentionCall<E>& call)
      : frequencies(reinterpret_cast<const double*>(call.workspace)),
        table(call.workspace + call.sizes.frequencies()),
        rest(table + call.sizes.angles()) {}

  const float* row(std::int64_t t, const AttentionSizes& s) const { return s.rope ? table + t * s.width() : nullptr; }
};

// Tokens of a document that are prepared together.
struct PreparationItem {
  std::int64_t document, block;
};

template <class E>
auto preparation_list(const AttentionCall<E>& call, std::int64_t nanoseconds) {
  return [&call, nanoseconds](auto&& f) {
    const Documents& docs = call.documents;
    for (std::int64_t e = 0; e < docs.count; ++e) {
      const std::int64_t tokens = std::max(docs.queries(e), docs.keys(e));
      for (std::int64_t b = 0; b * square_block < tokens; ++b)
        f(PreparationItem{e, b}, std::min(square_block, tokens - b * square_block) * nanoseconds);
    }
  };
}

// Keys j0 .. j1 of a document that lie as rows become panels.
void pack_key_panels(const float* rows, std::int64_t width, std::int64_t keys, std::int64_t dim, float* to) {
  for (std::int64_t c = 0; c < keys; c += tile_cols)
    pack_panel_transposed(rows, width, c, std::min(keys, c + tile_cols), 0, dim, to + c * dim);
}

std::int64_t first_panel(const Documents& docs, std::int64_t e) {
  return Documents::block_number(docs.cu_k, e, 0, tile_cols) * tile_cols;
}

struct ForwardItem {
  std::int64_t document, block, head;
};

template <class E>
void forward(const AttentionCall<E>& call, const KernelContext& context) {
  const AttentionSizes& s = call.sizes;
  const Documents& docs = call.documents;
  const std::int64_t width = s.width(), v_width = s.v_width(), group = call.group();
  const Angles angles(call);
  float* const k_panels = angles.rest;
  float* const v_rows = k_panels + s.k_heads * s.panels(s.head_dim);
  float* const tops = v_rows + s.k_heads * s.k_rows * v_width;
  if (s.rope) write_frequencies(call.rope_theta, s.head_dim, reinterpret_cast<double*>(call.workspace));
  std::fill(tops, tops + s.tops(), minus_infinity);

  run_shares(context, preparation_list(call, (s.rope ? width / 2 : 0) + s.k_heads * (width + v_width) / 2),
             [&](const PreparationItem& item) {
               const std::int64_t e = item.document, j0 = item.block * square_block;
               const std::int64_t q1 = std::min(docs.queries(e), j0 + square_block),
                                  keys = std::min(docs.keys(e) - j0, square_block);
               if (s.rope)
                 for (std::int64_t t = docs.cu_q[e] + j0; t < docs.cu_q[e] + q1; ++t)
                   angle_row(angles.frequencies, call.positions[t], width, angles.table + t * width);
               if (keys <= 0) return;
               alignas(64) float rows[square_block * widest_head];
               const PaddedGain gain(call.k_gain, s.head_dim, width);
               for (std::int64_t h = 0; h < s.k_heads; ++h) {
                 const std::int64_t first = docs.cu_k[e] + j0;
                 for (std::int64_t j = 0; j < keys; ++j) {
                   prepare_head(call.k.at(first + j, h), gain.at, call.norm_eps, angles.row(first + j, s), 1.0f,
                                s.head_dim, width, rows + j * width);
                   widen_row(call.v.at(first + j, h), s.v_dim, v_rows + (h * s.k_rows + first + j) * v_width, v_width);
                 }
                 pack_key_panels(rows, width, keys, s.head_dim,
                                 k_panels + h * s.panels(s.head_dim) + (first_panel(docs, e) + j0) * s.head_dim);
               }
             });

  const auto list = [&](auto&& f) {
    for (std::int64_t kv = 0; kv < s.k_heads; ++kv)
      for (std::int64_t e = 0; e < docs.count; ++e)
        for (std::int64_t b = 0; b * query_block < docs.queries(e); ++b) {
          const std::int64_t i0 = b * query_block, i1 = std::min(docs.queries(e), i0 + query_block);
          const std::int64_t seen = std::max<std::int64_t>(0, docs.last_key(e, i1 - 1) + 1 - docs.first_key(e, i0));
          const std::int64_t cost = (i1 - i0) * (seen * (s.head_dim + s.v_dim) / 80 + width / 2);
          for (std::int64_t g = 0; g < group; ++g) f(ForwardItem{e, b, kv * group + g}, cost);
        }
  };
  run_shares(context, list, [&](const ForwardItem& item) {
    const std::int64_t e = item.document, h = item.head, kv = h / group;
    const std::int64_t i0 = item.block * query_block, rows = std::min(docs.queries(e) - i0, query_block);
    const std::int64_t first = docs.cu_q[e] + i0;
    alignas(64) float q[query_block * wide_stride];
    alignas(64) float o[query_block * wide_stride];
    const PaddedGain gain(call.q_gain, s.head_dim, width);
    for (std::int64_t i = 0; i < rows; ++i)
      prepare_head(call.q.at(first + i, h), gain.at, call.norm_eps, angles.row(first + i, s),
                   static_cast<float>(call.scale), s.head_dim, width, q + i * wide_stride);
    const QueryBlock x{.k_panels = k_panels + kv * s.panels(s.head_dim) + first_panel(docs, e) * s.head_dim,
                       .v = v_rows + (kv * s.k_rows + docs.cu_k[e]) * v_width,
                       .head_dim = s.head_dim,
                       .v_dim = s.v_dim,
                       .v_width = v_width,
                       .rows = rows,
                       .last = docs.last_key(e, i0),
                       .window = docs.window,
                       .soft_cap = static_cast<float>(call.soft_cap)};
    Softmax softmax;
    if (call.soft_cap == 0)
      attend_block<false>(x, q, o, softmax);
    else
      attend_block<true>(x, q, o, softmax);
    tops[Documents::block_number(docs.cu_q, e, item.block, query_block) * s.q_heads + h] = softmax.max_logit;
    const Panels panels(rows);
    const FloatTag d;
    for (std::int64_t p = 0; p < panels.count; ++p) {
      alignas(64) float lse[panel_slots];
      const float* sums = softmax.sum + p * panel_slots;
      for (int i = 0; i < panel_slots; i += lanes)
        hn::Store(hn::Add(hn::Load(d, softmax.largest + p * panel_slots + i), log_positive(d, hn::Load(d, sums + i))),
                  d, lse + i);
      for (std::int64_t r = panels.begin(p); r < panels.begin(p + 1); ++r) {
        const std::int64_t slot = r - panels.begin(p);
        const bool blind = sums[slot] == 0;
        call.lse[(first + r) * s.q_heads + h] = blind ? minus_infinity : lse[slot];
        E* out = call.out.at(first + r, h);
        if (blind)
          std::fill(out, out + s.v_dim, E(0));
        else
          narrow_row(o + r * wide_stride, 1 / sums[slot], s.v_dim, out);
      }
    }
  });

  std::fill(call.max_logit, call.max_logit + s.q_heads, minus_infinity);
  for (std::int64_t block = 0; block < s.tops() / s.q_heads; ++block)
    for (std::int64_t h = 0; h < s.q_heads; ++h) {
      const float top = tops[block * s.q_heads + h];
      // A NaN stays: a broken logit must show.
      if (top > call.max_logit[h] || std::isnan(top)) call.max_logit[h] = top;
    }
}

// A block of queries and one of keys; the query heads that share a key-value head go together.
struct BackwardItem {
  std::int64_t document, i, j, kv;
  bool more_q, more_k;  // whether an earlier round has been there
};

// Whether every block of queries meets the keys of its own place, so that gradients need not be cleared first.
bool is_square(const Documents& docs) { return docs.cu_q == docs.cu_k && docs.window == 0; }

// A key-value head of a document.
struct BackwardUnit {
  std::int64_t document, kv;
};

std::int64_t rounds_of(const Documents& docs, std::int64_t e) {
  return blocks_of(std::max(docs.queries(e), docs.keys(e)), square_block);
}

// Calls f(item, nanoseconds) for the pairs of round c. In a document of n blocks they are i + j = c (mod n): each block
// of queries and of keys occurs once, so that all of a round may run at the same time, and rounds are alike in work.
template <class F>
void for_pairs(const AttentionSizes& s, const Documents& docs, const BackwardUnit& unit, std::int64_t c, F&& f) {
  const std::int64_t e = unit.document, queries = docs.queries(e), keys = docs.keys(e), n = rounds_of(docs, e);
  const bool square = is_square(docs);
  for (std::int64_t i = 0; i * square_block < queries; ++i) {
    const std::int64_t j = (c - i + n) % n;
    const std::int64_t i0 = i * square_block, i1 = std::min(queries, i0 + square_block);
    const std::int64_t j0 = j * square_block, j1 = std::min(keys, j0 + square_block);
    if (j0 >= j1 || docs.last_key(e, i1 - 1) < j0 || docs.first_key(e, i0) >= j1) continue;
    const std::int64_t pairs = (i1 - i0) * (j1 - j0) / (docs.last_key(e, i0) < j1 - 1 ? 2 : 1);
    // Where i >= j, block i comes first in round 0 or i, as queries, and in round 0 or 2 i - n, as keys.
    const bool more_q = !square || c > (2 * i >= n ? 0 : i),
               more_k = !square || c > std::max<std::int64_t>(0, 2 * j - n);
    f(BackwardItem{e, i, j, unit.kv, more_q, more_k}, s.q_heads / s.k_heads * pairs * (s.head_dim + s.v_dim) / 30);
  }
}

template <class F>
void for_units(const AttentionSizes& s, const Documents& docs, F&& f) {
  for (std::int64_t kv = 0; kv < s.k_heads; ++kv)
    for (std::int64_t e = 0; e < docs.count; ++e) f(BackwardUnit{e, kv});
}

// Gradients of all documents. Each is made round by round, whatever runs beside it.
template <class RunBlock>
void run_rounds(const AttentionSizes& s, const Documents& docs, const KernelContext& context,
                const RunBlock& run_block) {
  // One unit after the other stays in cache, where there are enough of them for all threads.
  const auto units = [&](auto&& f) {
    for_units(s, docs, [&](const BackwardUnit& unit) {
      std::int64_t cost = 0;
      for (std::int64_t c = 0; c < rounds_of(docs, unit.document); ++c)
        for_pairs(s, docs, unit, c, [&](const BackwardItem&, std::int64_t pair) { cost += pair; });
      f(unit, cost);
    });
  };
  if (shares_are_even(context, units))
    return run_shares(context, units, [&](const BackwardUnit& unit) {
      for (std::int64_t c = 0; c < rounds_of(docs, unit.document); ++c)
        for_pairs(s, docs, unit, c, [&](const BackwardItem& item, std::int64_t) { run_block(item); });
    });
  std::int64_t rounds = 0;
  for (std::int64_t e = 0; e < docs.count; ++e) rounds = std::max(rounds, rounds_of(docs, e));
  for (std::int64_t c = 0; c < rounds; ++c)
    run_shares(
        context,
        [&](auto&& f) {
          for_units(s, docs, [&](const BackwardUnit& unit) {
            if (c < rounds_of(docs, unit.document)) for_pairs(s, docs, unit, c, f);
          });
        },
        run_block);
}

template <class E>
void backward(const AttentionCall<E>& call, const KernelContext& context) {
  const AttentionSizes& s = call.sizes;
  const Documents& docs = call.documents;
  const std::int64_t width = s.width(), v_width = s.v_width(), group = call.group();
  const Angles angles(call);
  float* const q_rows = angles.rest;
  float* const k_rows = q_rows + s.q_heads * s.q_rows * width;
  float* const k_panels = k_rows + s.k_heads * s.k_rows * width;
  float* const v_panels = k_panels + s.k_heads * s.panels(s.head_dim);
  float* const means = v_panels + s.k_heads * s.panels(s.v_dim);
  float* const gain_parts = means + s.q_heads * s.q_rows;
  if (s.rope) write_frequencies(call.rope_theta, s.head_dim, reinterpret_cast<double*>(call.workspace));
  const auto clear = [](const Heads<float>& heads, std::int64_t count, std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) std::fill(heads.at(t, 0), heads.at(t, count), 0.0f);
  };
  const auto clear_queries = [&](std::int64_t begin, std::int64_t end) { clear(call.dq, s.q_heads, begin, end); };
  const auto clear_keys = [&](std::int64_t begin, std::int64_t end) {
    clear(call.dk, s.k_heads, begin, end), clear(call.dv, s.k_heads, begin, end);
  };
  clear_queries(0, docs.cu_q[0]), clear_queries(docs.cu_q[docs.count], s.q_rows);
  clear_keys(0, docs.cu_k[0]), clear_keys(docs.cu_k[docs.count], s.k_rows);

  const auto prepare_queries = [&](std::int64_t begin, std::int64_t end) {
    const PaddedGain gain(call.q_gain, s.head_dim, width);
    HeadRow out, dout;
    for (std::int64_t t = begin; t < end; ++t) {
      if (s.rope) angle_row(angles.frequencies, call.positions[t], width, angles.table + t * width);
      for (std::int64_t h = 0; h < s.q_heads; ++h) {
        prepare_head(call.q.at(t, h), gain.at, call.norm_eps, angles.row(t, s), static_cast<float>(call.scale),
                     s.head_dim, width, q_rows + (h * s.q_rows + t) * width);
        widen_row(call.out.at(t, h), s.v_dim, out.at, v_width);
        widen_row(call.dout.at(t, h), s.v_dim, dout.at, v_width);
        means[h * s.q_rows + t] = dot_rows(out.at, dout.at, v_width);
      }
    }
    if (!is_square(docs)) clear_queries(begin, end);
  };
  const auto prepare_keys = [&](std::int64_t e, std::int64_t j0, std::int64_t keys) {
    const PaddedGain gain(call.k_gain, s.head_dim, width);
    alignas(64) float v_rows[square_block * widest_head];
    const std::int64_t first = docs.cu_k[e] + j0, panel = first_panel(docs, e) + j0;
    for (std::int64_t h = 0; h < s.k_heads; ++h) {
      float* rows = k_rows + (h * s.k_rows + first) * width;
      for (std::int64_t j = 0; j < keys; ++j) {
        prepare_head(call.k.at(first + j, h), gain.at, call.norm_eps, angles.row(first + j, s), 1.0f, s.head_dim, width,
                     rows + j * width);
        widen_row(call.v.at(first + j, h), s.v_dim, v_rows + j * v_width, v_width);
      }
      pack_key_panels(rows, width, keys, s.head_dim, k_panels + h * s.panels(s.head_dim) + panel * s.head_dim);
      pack_key_panels(v_rows, v_width, keys, s.v_dim, v_panels + h * s.panels(s.v_dim) + panel * s.v_dim);
    }
    if (!is_square(docs)) clear_keys(first, first + keys);
  };
  const std::int64_t each = (s.rope ? width / 2 : 0) + (s.q_heads + s.k_heads) * (width + v_width) / 2;
  run_shares(context, preparation_list(call, each), [&](const PreparationItem& item) {
    const std::int64_t e = item.document, begin = item.block * square_block;
    const std::int64_t queries = std::min(docs.queries(e) - begin, square_block),
                       keys = std::min(docs.keys(e) - begin, square_block);
    if (queries > 0) prepare_queries(docs.cu_q[e] + begin, docs.cu_q[e] + begin + queries);
    if (keys > 0) prepare_keys(e, begin, keys);
  });

  const auto run_block = [&](const BackwardItem& item) {
    const std::int64_t e = item.document, kv = item.kv;
    const std::int64_t i0 = item.i * square_block, rows = std::min(docs.queries(e) - i0, square_block);
    const std::int64_t j0 = item.j * square_block, keys = std::min(docs.keys(e) - j0, square_block);
    const std::int64_t first_q = docs.cu_q[e] + i0, first_k = docs.cu_k[e] + j0, panel = first_panel(docs, e) + j0;
    alignas(64) float dout[square_block * widest_head];
    alignas(64) float dk[square_block * widest_head];
    alignas(64) float dv[square_block * widest_head];
    alignas(64) float lse[square_block];
    for (std::int64_t g = 0; g < group; ++g) {
      const std::int64_t h = kv * group + g;
      for (std::int64_t i = 0; i < rows; ++i) {
        widen_row(call.dout.at(first_q + i, h), s.v_dim, dout + i * v_width, v_width);
        lse[i] = call.lse[(first_q + i) * s.q_heads + h];
      }
      const SquareBlock x{.q = q_rows + (h * s.q_rows + first_q) * width,
                          .dout = dout,
                          .k = k_rows + (kv * s.k_rows + first_k) * width,
                          .k_panels = k_panels + kv * s.panels(s.head_dim) + panel * s.head_dim,
                          .v_panels = v_panels + kv * s.panels(s.v_dim) + panel * s.v_dim,
                          .lse = lse,
                          .mean = means + h * s.q_rows + first_q,
                          .rows = rows,
                          .keys = keys,
                          .head_dim = s.head_dim,
                          .width = width,
                          .v_dim = s.v_dim,
                          .v_width = v_width,
                          .last = docs.last_key(e, i0) - j0,
                          .window = docs.window,
                          .soft_cap = static_cast<float>(call.soft_cap)};
      const auto go = call.soft_cap == 0 ? attend_block_backward<false> : attend_block_backward<true>;
      go(x, static_cast<float>(call.scale), call.dq.at(first_q, h), call.dq.stride, item.more_q, dk, dv, g > 0);
    }
    for (std::int64_t j = 0; j < keys; ++j) {
      put_row(dk + j * width, 1, s.head_dim, call.dk.at(first_k + j, kv), item.more_k);
      put_row(dv + j * v_width, 1, s.v_dim, call.dv.at(first_k + j, kv), item.more_k);
    }
  };
  run_rounds(s, docs, context, run_block);

  if (!call.dq_raw.base) return;
  // Back through rotation and norm.
  const std::int64_t begin = docs.cu_q[0], end = docs.cu_q[docs.count];
  const auto token_list = [&](auto&& f) {
    for (std::int64_t t = 0; t < s.q_rows; t += token_block)
      f(t, std::min(token_block, s.q_rows - t) * (s.q_heads + s.k_heads) * width / 2);
  };
  run_shares(context, token_list, [&](std::int64_t t0) {
    const PaddedGain q_gain(call.q_gain, s.head_dim, width), k_gain(call.k_gain, s.head_dim, width);
    float* dq_gain = gain_parts + t0 / token_block * 2 * width;
    float* dk_gain = dq_gain + width;
    std::fill(dq_gain, dk_gain + width, 0.0f);
    for (std::int64_t t = t0; t < std::min(s.q_rows, t0 + token_block); ++t) {
      const bool within = begin <= t && t < end;
      const float* turn = within ? angles.row(t, s) : nullptr;
      for (std::int64_t h = 0; h < s.q_heads; ++h)
        prepare_head_backward(call.dq.at(t, h), call.q.at(t, h), within ? q_gain.at : nullptr, call.norm_eps, turn,
                              s.head_dim, width, dq_gain, call.dq_raw.at(t, h));
      for (std::int64_t h = 0; h < s.k_heads; ++h) {
        prepare_head_backward(call.dk.at(t, h), call.k.at(t, h), within ? k_gain.at : nullptr, call.norm_eps, turn,
                              s.head_dim, width, dk_gain, call.dk_raw.at(t, h));
        if (call.dv_raw.base) narrow_row(call.dv.at(t, h), 1, s.v_dim, call.dv_raw.at(t, h));
      }
    }
  });
  const auto sum_gain = [&](float* to, bool add, std::int64_t offset) {
    if (!to) return;
    if (!add) std::fill(to, to + s.head_dim, 0.0f);
    for (std::int64_t b = 0; b < blocks_of(s.q_rows, token_block); ++b)
      add_row(gain_parts + b * 2 * width + offset, 1, s.head_dim, to);
  };
  sum_gain(call.dq_gain, call.add_q_gain, 0);
  sum_gain(call.dk_gain, call.add_k_gain, width);
}

void forward_f32(const AttentionCall<float>& call, const KernelContext& context) { forward(call, context); }
void forward_bf16(const AttentionCall<std::uint16_t>& call, const KernelContext& context) { forward(call, context); }
void backward_f32(const AttentionCall<float>& call, const KernelContext& context) { backward(call, context); }
void backward_bf16(const AttentionCall<std::uint16_t>& call, const KernelContext& context) { backward(call, context); }

}  // namespace
}  // namespace stacklab::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stacklab::cpu {

HWY_EXPORT(forward_f32);
HWY_EXPORT(forward_bf16);
HWY_EXPORT(backward_f32);
HWY_EXPORT(backward_bf16);

void attend(const AttentionCall<float>& call, const KernelContext& context) {
  HWY_DYNAMIC_DISPATCH(forward_f32)(call, context);
}
void attend(const AttentionCall<std::uint16_t>& call, const KernelContext& context) {
  HWY_DYNAMIC_DISPATCH(forward_bf16)(call, context);
}
void attend_backward(const AttentionCall<float>& call, const KernelContext& context) {
  HWY_DYNAMIC_DISPATCH(backward_f32)(call, context);
}
void attend_backward(const AttentionCall<std::uint16_t>& call, const KernelContext& context) {
  HWY_DYNAMIC_DISPATCH(backward_bf16)(call, context);
}

}  // namespace stacklab::cpu
#endif
