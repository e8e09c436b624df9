// What attention's files share that does not depend on the instruction set: sizes of blocks, who sees whom, shares of
// work.
//
// Blocks begin where documents begin, so a document's result does not depend on what lies beside it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/context.h"

namespace stacklab::cpu {

inline constexpr std::int64_t widest_head = 256;  // wider ones run on the reference
inline constexpr std::int64_t query_block = 64;   // of a forward task
inline constexpr std::int64_t key_block = 256;    // keys between two corrections of the running maximum
inline constexpr std::int64_t square_block =
    128;  // queries and keys of a backward task, and of what comes before and after
inline constexpr std::int64_t widest_panel = 32;  // keys beside one another, of any instruction set

constexpr std::int64_t round_up_to(std::int64_t n, std::int64_t step) { return (n + step - 1) / step * step; }
constexpr std::int64_t blocks_of(std::int64_t n, std::int64_t block) { return (n + block - 1) / block; }
// Floats of a head's row in work: whole vectors of any instruction set.
constexpr std::int64_t row_width(std::int64_t head_dim) { return round_up_to(head_dim, 16); }

// Documents of queries and keys.
struct Documents {
  const std::int32_t* cu_q = nullptr;
  const std::int32_t* cu_k = nullptr;
  std::int64_t count = 0;
  std::int64_t window = 0;

  std::int64_t queries(std::int64_t e) const { return cu_q[e + 1] - cu_q[e]; }
  std::int64_t keys(std::int64_t e) const { return cu_k[e + 1] - cu_k[e]; }
  std::int64_t square_blocks(std::int64_t e) const { return blocks_of(std::max(queries(e), keys(e)), square_block); }
  // The last key that query i of document e sees; below 0 where it sees none.
  std::int64_t last_key(std::int64_t e, std::int64_t i) const { return i + keys(e) - queries(e); }
  std::int64_t first_key(std::int64_t e, std::int64_t i) const {
    return window > 0 ? std::max<std::int64_t>(0, last_key(e, i) - window + 1) : 0;
  }
  // Blocks of at most `block` tokens, numbered over all documents with gaps: unique, below blocks_bound().
  static std::int64_t block_number(const std::int32_t* cu, std::int64_t e, std::int64_t b, std::int64_t block) {
    return cu[e] / block + e + b;
  }
  static constexpr std::int64_t blocks_bound(std::int64_t tokens, std::int64_t documents, std::int64_t block) {
    return tokens / block + documents + 1;
  }
};

// list(f) calls f(item, nanoseconds) for each item of work, always in the same order. Every thread gets a stretch of it
// that costs about the same.
struct Shares {
  std::int64_t total = 0, count = 0;
  std::int64_t threads = 1;  // that the whole is worth waking

  template <class List>
  Shares(const KernelContext& context, const List& list) {
    std::int64_t items = 0;
    list([&](const auto&, std::int64_t cost) { total += at_least_one(cost), ++items; });
    if (context.parallel && total >= 4000) threads = context.parallel->threads();
    count = std::min(items, threads);
  }
  // Calls f(share, item, cost) for all items.
  template <class List, class F>
  void for_each(const List& list, F&& f) const {
    std::int64_t at = 0;
    list([&](const auto& item, std::int64_t cost) {
      const std::int64_t middle = at + at_least_one(cost) / 2;
      at += at_least_one(cost);
      f(std::min(count - 1, middle * count / total), item, cost);
    });
  }
  static std::int64_t at_least_one(std::int64_t cost) { return std::max<std::int64_t>(1, cost); }
};

// run(item) for each item.
template <class List, class Run>
void run_shares(const KernelContext& context, const List& list, const Run& run) {
  const Shares shares(context, list);
  context.for_each(shares.count, [&](std::int64_t share) {
    shares.for_each(list, [&](std::int64_t owner, const auto& item, std::int64_t) {
      if (owner == share) run(item);
    });
  });
}

// Whether every thread has work, and none would wait long for another.
template <class List>
bool shares_are_even(const KernelContext& context, const List& list) {
  const Shares shares(context, list);
  std::int64_t share = 0, cost_of_share = 0, largest = 0;
  shares.for_each(list, [&](std::int64_t owner, const auto&, std::int64_t cost) {
    cost_of_share = owner == share ? cost_of_share + cost : cost;
    share = owner;
    largest = std::max(largest, cost_of_share);
  });
  return largest * shares.threads <= shares.total + shares.total / 16;
}

// Head h of row r.
template <class E>
struct Heads {
  E* base = nullptr;
  std::int64_t stride = 0, dim = 0;
  E* at(std::int64_t row, std::int64_t head) const { return base + row * stride + head * dim; }
};

// What the memory that attention works in is cut into: floats, from shapes alone.
struct AttentionSizes {
  std::int64_t q_rows = 0, k_rows = 0, documents = 0;
  std::int64_t q_heads = 0, k_heads = 0, head_dim = 0, v_dim = 0;
  bool rope = false;

  bool fits() const { return head_dim <= widest_head && v_dim <= widest_head; }
  std::int64_t width() const { return row_width(head_dim); }
  std::int64_t v_width() const { return row_width(v_dim); }
  std::int64_t frequencies() const { return rope ? width() : 0; }  // as doubles, half as many
  std::int64_t angles() const { return rope ? q_rows * width() : 0; }
  // Panels of one head: every document begins one.
  std::int64_t panels(std::int64_t dim) const { return (k_rows + widest_panel * (documents + 1)) * dim; }
  std::int64_t tops() const { return Documents::blocks_bound(q_rows, documents, query_block) * q_heads; }
  std::int64_t gain_parts() const { return Documents::blocks_bound(q_rows, documents, square_block) * 2 * width(); }

  std::int64_t forward() const {
    return frequencies() + angles() + k_heads * (panels(head_dim) + k_rows * v_width()) + tops();
  }
  std::int64_t backward() const {
    return frequencies() + angles() + (q_heads * q_rows + k_heads * k_rows) * width() +
           k_heads * (panels(head_dim) + panels(v_dim)) + q_heads * q_rows + gain_parts();
  }
};

// Attention on any layout; E is the type that heads are stored in: float, or the bits of bf16.
template <class E>
struct AttentionCall {
  AttentionSizes sizes;
  Documents documents;
  double scale = 1, soft_cap = 0;
  // What happens to q and k first: nothing, or QK-norm and rotation.
  const float *q_gain = nullptr, *k_gain = nullptr;
  double norm_eps = 0;
  const std::int32_t* positions = nullptr;
  double rope_theta = 0;
  Heads<const E> q, k, v;
  Heads<E> out;  // backward: what forward gave
  float* lse = nullptr;
  float* max_logit = nullptr;
  float* workspace = nullptr;
  // Backward: gradients of q, k and v as attention multiplies them, and where those of the raw ones go (v's only where
  // it is elsewhere). Nowhere: q and k are multiplied as they are.
  Heads<const E> dout;
  Heads<float> dq, dk, dv;
  Heads<E> dq_raw, dk_raw, dv_raw;
  float *dq_gain = nullptr, *dk_gain = nullptr;
  bool add_q_gain = false, add_k_gain = false;

  std::int64_t group() const { return sizes.q_heads / sizes.k_heads; }
};

// theta^(-2 i / head_dim) for the pairs of a head, zeros up to half of row_width(head_dim).
void write_frequencies(double theta, std::int64_t head_dim, double* to);

// f32, bf16
void attend(const AttentionCall<float>& call, const KernelContext& context);
void attend(const AttentionCall<std::uint16_t>& call, const KernelContext& context);
void attend_backward(const AttentionCall<float>& call, const KernelContext& context);
void attend_backward(const AttentionCall<std::uint16_t>& call, const KernelContext& context);

}  // namespace stacklab::cpu
