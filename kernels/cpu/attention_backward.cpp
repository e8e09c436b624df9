// The way back through attention: five products of every pair of blocks, then back through rotation and norm.
#include <algorithm>

#include "kernels/cpu/attention.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention_backward.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/attend-inl.h"
#include "kernels/cpu/attention-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stacklab::cpu::HWY_NAMESPACE {
namespace {

// Gradients of queries and of keys gather from many pairs of blocks. In a document of n blocks, round c has the pairs
// i + j = c (mod n): each block of queries and of keys occurs once, so that all of a round may run at the same time,
// rounds are alike in work, and sums have one order.
template <class E>
class Backward {
 public:
  explicit Backward(const AttentionCall<E>& call)
      : call_(call),
        s_(call.sizes),
        docs_(call.documents),
        // Every block of queries meets the keys of its own place: gradients need not be cleared first.
        square_(docs_.cu_q == docs_.cu_k && docs_.window == 0),
        width_(s_.width()),
        v_width_(s_.v_width()),
        angles_(call),
        q_rows_(angles_.rest),
        k_rows_(q_rows_ + s_.q_heads * s_.q_rows * width_),
        k_panels_(k_rows_ + s_.k_heads * s_.k_rows * width_, s_, s_.head_dim),
        v_panels_(k_panels_.base + s_.k_heads * k_panels_.head_floats, s_, s_.v_dim),
        means_(v_panels_.base + s_.k_heads * v_panels_.head_floats),
        gain_parts_(means_ + s_.q_heads * s_.q_rows) {}

  void run(const KernelContext& context) const {
    clear_outside();
    const auto documents = [&](auto&& f) {
      for (std::int64_t e = 0; e < docs_.count; ++e) {
        std::int64_t cost = docs_.square_blocks(e) * side_cost(e);
        for (std::int64_t kv = 0; kv < s_.k_heads; ++kv) cost += unit_cost({e, kv});
        f(e, cost);
      }
    };
    // One document after the other stays in cache.
    if (shares_are_even(context, documents))
      run_shares(context, documents, [&](std::int64_t e) {
        for (std::int64_t b = 0; b < docs_.square_blocks(e); ++b) prepare({e, b});
        for (std::int64_t kv = 0; kv < s_.k_heads; ++kv) run_unit({e, kv});
        for (std::int64_t b = 0; b < docs_.square_blocks(e); ++b) finish({e, b});
      });
    else
      run_blocks(context);
    sum_gains(call_.dq_gain, call_.add_q_gain, 0);
    sum_gains(call_.dk_gain, call_.add_k_gain, width_);
  }

 private:
  // Tokens of a document.
  struct Block {
    std::int64_t document, b;
  };
  // A key-value head of a document.
  struct Unit {
    std::int64_t document, kv;
  };
  // A block of queries and one of keys; the query heads that share a key-value head go together.
  struct Pair {
    Unit unit;
    std::int64_t i, j;
    bool more_q, more_k;  // whether an earlier round has been there
  };

  // Calls f(pair, nanoseconds) for the pairs of round c.
  template <class F>
  void for_pairs(const Unit& unit, std::int64_t c, F&& f) const {
    const std::int64_t e = unit.document, queries = docs_.queries(e), keys = docs_.keys(e);
    const std::int64_t n = docs_.square_blocks(e);
    for (std::int64_t i = 0; i * square_block < queries; ++i) {
      const std::int64_t j = (c - i + n) % n;
      const std::int64_t i0 = i * square_block, i1 = std::min(queries, i0 + square_block);
      const std::int64_t j0 = j * square_block, j1 = std::min(keys, j0 + square_block);
      if (j0 >= j1 || docs_.last_key(e, i1 - 1) < j0 || docs_.first_key(e, i0) >= j1) continue;
      const std::int64_t pairs = (i1 - i0) * (j1 - j0) / (docs_.last_key(e, i0) < j1 - 1 ? 2 : 1);
      // Where i >= j, block i comes first in round 0 or i, as queries, and in round 0 or 2 i - n, as keys.
      const bool more_q = !square_ || c > (2 * i >= n ? 0 : i),
                 more_k = !square_ || c > std::max<std::int64_t>(0, 2 * j - n);
      f(Pair{unit, i, j, more_q, more_k}, call_.group() * pairs * (s_.head_dim + s_.v_dim) / 30);
    }
  }
  std::int64_t unit_cost(const Unit& unit) const {
    std::int64_t cost = 0;
    for (std::int64_t c = 0; c < docs_.square_blocks(unit.document); ++c)
      for_pairs(unit, c, [&](const Pair&, std::int64_t each) { cost += each; });
    return cost;
  }
  // Of preparing or finishing one block.
  std::int64_t side_cost(std::int64_t e) const {
    const std::int64_t tokens = std::max(docs_.queries(e), docs_.keys(e));
    return tokens * (s_.q_heads + s_.k_heads) * width_ / 4 / std::max<std::int64_t>(1, docs_.square_blocks(e));
  }

  void run_unit(const Unit& unit) const {
    for (std::int64_t c = 0; c < docs_.square_blocks(unit.document); ++c)
      for_pairs(unit, c, [&](const Pair& pair, std::int64_t) { multiply_pair(pair); });
  }

  // Where documents are too few or too different for the threads.
  void run_blocks(const KernelContext& context) const {
    const auto blocks = [&](auto&& f) {
      for (std::int64_t e = 0; e < docs_.count; ++e)
        for (std::int64_t b = 0; b < docs_.square_blocks(e); ++b) f(Block{e, b}, side_cost(e));
    };
    run_shares(context, blocks, [&](const Block& block) { prepare(block); });
    const auto for_units = [&](auto&& f) {
      for (std::int64_t kv = 0; kv < s_.k_heads; ++kv)
        for (std::int64_t e = 0; e < docs_.count; ++e) f(Unit{e, kv});
    };
    const auto units = [&](auto&& f) { for_units([&](const Unit& unit) { f(unit, unit_cost(unit)); }); };
    if (shares_are_even(context, units)) {
      run_shares(context, units, [&](const Unit& unit) { run_unit(unit); });
    } else {
      std::int64_t rounds = 0;
      for (std::int64_t e = 0; e < docs_.count; ++e) rounds = std::max(rounds, docs_.square_blocks(e));
      for (std::int64_t c = 0; c < rounds; ++c) {
        const auto round = [&](auto&& f) {
          for_units([&](const Unit& unit) {
            if (c < docs_.square_blocks(unit.document)) for_pairs(unit, c, f);
          });
        };
        run_shares(context, round, [&](const Pair& pair) { multiply_pair(pair); });
      }
    }
    if (call_.dq_raw.base) run_shares(context, blocks, [&](const Block& block) { finish(block); });
  }

  template <class T>
  static void clear(const Heads<T>& heads, std::int64_t count, std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; heads.base && t < end; ++t) std::fill(heads.at(t, 0), heads.at(t, count), T(0));
  }
  // Tokens before and behind all documents.
  void clear_outside() const {
    const std::int32_t *q = docs_.cu_q, *k = docs_.cu_k;
    const auto clear_both = [&](const auto& heads, std::int64_t count, const std::int32_t* cu, std::int64_t rows) {
      clear(heads, count, 0, cu[0]), clear(heads, count, cu[docs_.count], rows);
    };
    clear_both(call_.dq, s_.q_heads, q, s_.q_rows), clear_both(call_.dq_raw, s_.q_heads, q, s_.q_rows);
    clear_both(call_.dk, s_.k_heads, k, s_.k_rows), clear_both(call_.dk_raw, s_.k_heads, k, s_.k_rows);
    clear_both(call_.dv, s_.k_heads, k, s_.k_rows), clear_both(call_.dv_raw, s_.k_heads, k, s_.k_rows);
  }

  void prepare(const Block& block) const {
    const std::int64_t e = block.document, begin = block.b * square_block;
    const std::int64_t queries = std::min(docs_.queries(e) - begin, square_block),
                       keys = std::min(docs_.keys(e) - begin, square_block);
    if (queries > 0) prepare_queries(docs_.cu_q[e] + begin, docs_.cu_q[e] + begin + queries);
    if (keys > 0) prepare_keys(e, begin, keys);
  }
  void prepare_queries(std::int64_t begin, std::int64_t end) const {
    angles_.write(call_.positions, begin, end);
    const PaddedGain gain(call_.q_gain, s_);
    HeadRow out, dout;
    for (std::int64_t t = begin; t < end; ++t)
      for (std::int64_t h = 0; h < s_.q_heads; ++h) {
        prepare_head(call_.q.at(t, h), gain.at, call_.norm_eps, angles_.row(t), static_cast<float>(call_.scale),
                     s_.head_dim, width_, q_rows_ + (h * s_.q_rows + t) * width_);
        widen_row(call_.out.at(t, h), s_.v_dim, out.at, v_width_);
        widen_row(call_.dout.at(t, h), s_.v_dim, dout.at, v_width_);
        means_[h * s_.q_rows + t] = dot_rows(out.at, dout.at, v_width_);
      }
    if (!square_) clear(call_.dq, s_.q_heads, begin, end);
  }
  void prepare_keys(std::int64_t e, std::int64_t j0, std::int64_t keys) const {
    const PaddedGain gain(call_.k_gain, s_);
    alignas(64) float v_rows[square_block * widest_head];
    const std::int64_t first = docs_.cu_k[e] + j0;
    for (std::int64_t h = 0; h < s_.k_heads; ++h) {
      float* rows = k_rows_ + (h * s_.k_rows + first) * width_;
      for (std::int64_t j = 0; j < keys; ++j) {
        prepare_head(call_.k.at(first + j, h), gain.at, call_.norm_eps, angles_.row(first + j), 1.0f, s_.head_dim,
                     width_, rows + j * width_);
        widen_row(call_.v.at(first + j, h), s_.v_dim, v_rows + j * v_width_, v_width_);
      }
      k_panels_.pack(rows, width_, keys, k_panels_.at(docs_, e, j0, h));
      v_panels_.pack(v_rows, v_width_, keys, v_panels_.at(docs_, e, j0, h));
    }
    if (square_) return;
    clear(call_.dk, s_.k_heads, first, first + keys), clear(call_.dv, s_.k_heads, first, first + keys);
  }

  void multiply_pair(const Pair& pair) const {
    const std::int64_t e = pair.unit.document, kv = pair.unit.kv;
    const std::int64_t i0 = pair.i * square_block, rows = std::min(docs_.queries(e) - i0, square_block);
    const std::int64_t j0 = pair.j * square_block, keys = std::min(docs_.keys(e) - j0, square_block);
    const std::int64_t first_q = docs_.cu_q[e] + i0, first_k = docs_.cu_k[e] + j0;
    alignas(64) float dout[square_block * widest_head];
    alignas(64) float dk[square_block * widest_head];
    alignas(64) float dv[square_block * widest_head];
    alignas(64) float lse[square_block];
    const auto multiply_block = call_.soft_cap == 0 ? attend_block_backward<false> : attend_block_backward<true>;
    for (std::int64_t g = 0; g < call_.group(); ++g) {
      const std::int64_t h = kv * call_.group() + g;
      for (std::int64_t i = 0; i < rows; ++i) {
        widen_row(call_.dout.at(first_q + i, h), s_.v_dim, dout + i * v_width_, v_width_);
        lse[i] = call_.lse[(first_q + i) * s_.q_heads + h];
      }
      const SquareBlock x{.q = q_rows_ + (h * s_.q_rows + first_q) * width_,
                          .dout = dout,
                          .k = k_rows_ + (kv * s_.k_rows + first_k) * width_,
                          .k_panels = k_panels_.at(docs_, e, j0, kv),
                          .v_panels = v_panels_.at(docs_, e, j0, kv),
                          .lse = lse,
                          .mean = means_ + h * s_.q_rows + first_q,
                          .rows = rows,
                          .keys = keys,
                          .head_dim = s_.head_dim,
                          .width = width_,
                          .v_dim = s_.v_dim,
                          .v_width = v_width_,
                          .last = docs_.last_key(e, i0) - j0,
                          .window = docs_.window,
                          .soft_cap = static_cast<float>(call_.soft_cap)};
      multiply_block(x, static_cast<float>(call_.scale), call_.dq.at(first_q, h), call_.dq.stride, pair.more_q, dk, dv,
                     g > 0);
    }
    for (std::int64_t j = 0; j < keys; ++j) {
      put_row(dk + j * width_, 1, s_.head_dim, call_.dk.at(first_k + j, kv), pair.more_k);
      put_row(dv + j * v_width_, 1, s_.v_dim, call_.dv.at(first_k + j, kv), pair.more_k);
    }
  }

  // Gradients of gains of one block, those of queries before those of keys.
  float* gain_part(const Block& block) const {
    return gain_parts_ + Documents::block_number(docs_.cu_q, block.document, block.b, square_block) * 2 * width_;
  }

  // Back through rotation and norm.
  void finish(const Block& block) const {
    if (!call_.dq_raw.base) return;
    const std::int64_t begin = docs_.cu_q[block.document] + block.b * square_block,
                       end = std::min<std::int64_t>(docs_.cu_q[block.document + 1], begin + square_block);
    const PaddedGain q_gain(call_.q_gain, s_), k_gain(call_.k_gain, s_);
    HeadRow dq_gain, dk_gain;
    std::fill(dq_gain.at, dq_gain.at + width_, 0.0f);
    std::fill(dk_gain.at, dk_gain.at + width_, 0.0f);
    for (std::int64_t t = begin; t < end; ++t) {
      for (std::int64_t h = 0; h < s_.q_heads; ++h)
        prepare_head_backward(call_.dq.at(t, h), call_.q.at(t, h), q_gain.at, call_.norm_eps, angles_.row(t),
                              s_.head_dim, width_, dq_gain.at, call_.dq_raw.at(t, h));
      for (std::int64_t h = 0; h < s_.k_heads; ++h) {
        prepare_head_backward(call_.dk.at(t, h), call_.k.at(t, h), k_gain.at, call_.norm_eps, angles_.row(t),
                              s_.head_dim, width_, dk_gain.at, call_.dk_raw.at(t, h));
        if (call_.dv_raw.base) narrow_row(call_.dv.at(t, h), 1, s_.v_dim, call_.dv_raw.at(t, h));
      }
    }
    copy_row(dq_gain.at, width_, gain_part(block));
    copy_row(dk_gain.at, width_, gain_part(block) + width_);
  }

  void sum_gains(float* to, bool add, std::int64_t offset) const {
    if (!to) return;
    if (!add) std::fill(to, to + s_.head_dim, 0.0f);
    for (std::int64_t e = 0; e < docs_.count; ++e)
      for (std::int64_t b = 0; b < docs_.square_blocks(e); ++b) add_row(gain_part({e, b}) + offset, 1, s_.head_dim, to);
  }

  const AttentionCall<E>& call_;
  const AttentionSizes& s_;
  const Documents& docs_;
  const bool square_;
  const std::int64_t width_, v_width_;
  const Angles angles_;
  float* const q_rows_;  // [Hq, queries, width], with the scale
  float* const k_rows_;  // [Hk, keys, width]
  const KeyPanels k_panels_, v_panels_;
  float* const means_;       // [Hq, queries]: sums of out dout
  float* const gain_parts_;  // [blocks, 2, width]
};

void backward_f32(const AttentionCall<float>& call, const KernelContext& context) { Backward(call).run(context); }
void backward_bf16(const AttentionCall<std::uint16_t>& call, const KernelContext& context) {
  Backward(call).run(context);
}

}  // namespace
}  // namespace stacklab::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stacklab::cpu {

HWY_EXPORT(backward_f32);
HWY_EXPORT(backward_bf16);

void attend_backward(const AttentionCall<float>& call, const KernelContext& context) {
  HWY_DYNAMIC_DISPATCH(backward_f32)(call, context);
}
void attend_backward(const AttentionCall<std::uint16_t>& call, const KernelContext& context) {
  HWY_DYNAMIC_DISPATCH(backward_bf16)(call, context);
}

}  // namespace stacklab::cpu
#endif
