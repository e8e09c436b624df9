// Attention of the CPU backend: softmax blocks over packed keys and values (Dao 2023, FlashAttention-2), never a row of
// all logits.
#include "kernels/cpu/attention.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/attend-inl.h"
#include "kernels/cpu/attention-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stacklab::cpu::HWY_NAMESPACE {
namespace {

template <class E>
class Forward {
 public:
  explicit Forward(const AttentionCall<E>& call)
      : call_(call),
        s_(call.sizes),
        docs_(call.documents),
        width_(s_.width()),
        v_width_(s_.v_width()),
        angles_(call),
        k_panels_(angles_.rest, s_, s_.head_dim),
        v_rows_(angles_.rest + s_.k_heads * s_.panels(s_.head_dim)),
        tops_(v_rows_ + s_.k_heads * s_.k_rows * v_width_) {}

  void run(const KernelContext& context) const {
    std::fill(tops_, tops_ + s_.tops(), minus_infinity);
    const auto documents = [&](auto&& f) {
      for (std::int64_t e = 0; e < docs_.count; ++e) {
        std::int64_t cost = preparation_cost(e);
        for_blocks(e, [&](std::int64_t, std::int64_t each) { cost += each * s_.q_heads; });
        f(e, cost);
      }
    };
    if (shares_are_even(context, documents))
      run_shares(context, documents, [&](std::int64_t e) { run_document(e); });
    else
      run_blocks(context);
    gather_max_logits();
  }

 private:
  struct Item {
    std::int64_t document, block, head;
  };

  // Calls f(block, nanoseconds for one head) for the blocks of queries of a document.
  template <class F>
  void for_blocks(std::int64_t e, F&& f) const {
    for (std::int64_t b = 0; b * query_block < docs_.queries(e); ++b) {
      const std::int64_t i0 = b * query_block, i1 = std::min(docs_.queries(e), i0 + query_block);
      const std::int64_t seen = std::max<std::int64_t>(0, docs_.last_key(e, i1 - 1) + 1 - docs_.first_key(e, i0));
      f(b, (i1 - i0) * (seen * (s_.head_dim + s_.v_dim) / 80 + width_ / 2));
    }
  }
  std::int64_t preparation_cost(std::int64_t e) const {
    return docs_.keys(e) * ((s_.rope ? width_ / 2 : 0) + s_.k_heads * (width_ + v_width_) / 2);
  }

  void run_document(std::int64_t e) const {
    for (std::int64_t b = 0; b < docs_.square_blocks(e); ++b) prepare(e, b);
    for (std::int64_t kv = 0; kv < s_.k_heads; ++kv)
      for_blocks(e, [&](std::int64_t b, std::int64_t) {
        for (std::int64_t g = 0; g < call_.group(); ++g) attend({e, b, kv * call_.group() + g});
      });
  }

  // The same where documents are too few or too different for the threads.
  void run_blocks(const KernelContext& context) const {
    const auto preparation = [&](auto&& f) {
      for (std::int64_t e = 0; e < docs_.count; ++e)
        for (std::int64_t b = 0; b < docs_.square_blocks(e); ++b)
          f(Item{e, b, 0}, preparation_cost(e) / docs_.square_blocks(e));
    };
    run_shares(context, preparation, [&](const Item& item) { prepare(item.document, item.block); });
    const auto attention = [&](auto&& f) {
      for (std::int64_t kv = 0; kv < s_.k_heads; ++kv)
        for (std::int64_t e = 0; e < docs_.count; ++e)
          for_blocks(e, [&](std::int64_t b, std::int64_t cost) {
            for (std::int64_t g = 0; g < call_.group(); ++g) f(Item{e, b, kv * call_.group() + g}, cost);
          });
    };
    run_shares(context, attention, [&](const Item& item) { attend(item); });
  }

  // Angles, keys and values of a block.
  void prepare(std::int64_t e, std::int64_t b) const {
    const std::int64_t j0 = b * square_block, keys = std::min(docs_.keys(e) - j0, square_block);
    const std::int64_t first = docs_.cu_k[e] + j0, first_q = docs_.cu_q[e] + j0;
    angles_.write(call_.positions, first_q, std::min<std::int64_t>(docs_.cu_q[e + 1], first_q + square_block));
    if (keys <= 0) return;
    alignas(64) float rows[square_block * widest_head];
    const PaddedGain gain(call_.k_gain, s_);
    for (std::int64_t h = 0; h < s_.k_heads; ++h) {
      for (std::int64_t j = 0; j < keys; ++j) {
        prepare_head(call_.k.at(first + j, h), gain.at, call_.norm_eps, angles_.row(first + j), 1.0f, s_.head_dim,
                     width_, rows + j * width_);
        widen_row(call_.v.at(first + j, h), s_.v_dim, v_rows_ + (h * s_.k_rows + first + j) * v_width_, v_width_);
      }
      k_panels_.pack(rows, width_, keys, k_panels_.at(docs_, e, j0, h));
    }
  }

  // One head of a block of queries.
  void attend(const Item& item) const {
    const std::int64_t e = item.document, h = item.head, kv = h / call_.group();
    const std::int64_t i0 = item.block * query_block, rows = std::min(docs_.queries(e) - i0, query_block);
    const std::int64_t first = docs_.cu_q[e] + i0;
    alignas(64) float q[query_block * wide_stride];
    alignas(64) float o[query_block * wide_stride];
    const PaddedGain gain(call_.q_gain, s_);
    for (std::int64_t i = 0; i < rows; ++i)
      prepare_head(call_.q.at(first + i, h), gain.at, call_.norm_eps, angles_.row(first + i),
                   static_cast<float>(call_.scale), s_.head_dim, width_, q + i * wide_stride);
    const QueryBlock x{.k_panels = k_panels_.at(docs_, e, 0, kv),
                       .v = v_rows_ + (kv * s_.k_rows + docs_.cu_k[e]) * v_width_,
                       .head_dim = s_.head_dim,
                       .v_dim = s_.v_dim,
                       .v_width = v_width_,
                       .rows = rows,
                       .last = docs_.last_key(e, i0),
                       .window = docs_.window,
                       .soft_cap = static_cast<float>(call_.soft_cap)};
    Softmax softmax;
    if (call_.soft_cap == 0)
      attend_block<false>(x, q, o, softmax);
    else
      attend_block<true>(x, q, o, softmax);
    tops_[Documents::block_number(docs_.cu_q, e, item.block, query_block) * s_.q_heads + h] = softmax.max_logit;
    store(o, softmax, first, rows, h);
  }

  void store(const float* o, const Softmax& softmax, std::int64_t first, std::int64_t rows, std::int64_t h) const {
    const FloatTag d;
    const Panels panels(rows);
    for (std::int64_t p = 0; p < panels.count; ++p) {
      alignas(64) float lse[panel_slots];
      const float* sums = softmax.sum + p * panel_slots;
      for (int i = 0; i < panel_slots; i += lanes)
        hn::Store(hn::Add(hn::Load(d, softmax.largest + p * panel_slots + i), log_positive(d, hn::Load(d, sums + i))),
                  d, lse + i);
      for (std::int64_t r = panels.begin(p); r < panels.begin(p + 1); ++r) {
        const std::int64_t slot = r - panels.begin(p);
        // A row that sees nothing.
        const bool blind = sums[slot] == 0;
        call_.lse[(first + r) * s_.q_heads + h] = blind ? minus_infinity : lse[slot];
        E* out = call_.out.at(first + r, h);
        if (blind)
          std::fill(out, out + s_.v_dim, E(0));
        else
          narrow_row(o + r * wide_stride, 1 / sums[slot], s_.v_dim, out);
      }
    }
  }

  void gather_max_logits() const {
    std::fill(call_.max_logit, call_.max_logit + s_.q_heads, minus_infinity);
    for (std::int64_t at = 0; at < s_.tops(); at += s_.q_heads)
      for (std::int64_t h = 0; h < s_.q_heads; ++h)
        // A NaN stays: a broken logit must show.
        if (tops_[at + h] > call_.max_logit[h] || std::isnan(tops_[at + h])) call_.max_logit[h] = tops_[at + h];
  }

  const AttentionCall<E>& call_;
  const AttentionSizes& s_;
  const Documents& docs_;
  const std::int64_t width_, v_width_;
  const Angles angles_;
  const KeyPanels k_panels_;
  float* const v_rows_;  // [Hk, keys, v_width]
  float* const tops_;    // [blocks, Hq]: largest logits
};

void forward_f32(const AttentionCall<float>& call, const KernelContext& context) { Forward(call).run(context); }
void forward_bf16(const AttentionCall<std::uint16_t>& call, const KernelContext& context) {
  Forward(call).run(context);
}

}  // namespace
}  // namespace stacklab::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stacklab::cpu {

HWY_EXPORT(forward_f32);
HWY_EXPORT(forward_bf16);

void attend(const AttentionCall<float>& call, const KernelContext& context) {
  HWY_DYNAMIC_DISPATCH(forward_f32)(call, context);
}
void attend(const AttentionCall<std::uint16_t>& call, const KernelContext& context) {
  HWY_DYNAMIC_DISPATCH(forward_bf16)(call, context);
}

}  // namespace stacklab::cpu
#endif
