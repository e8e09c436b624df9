// Causal attention inside documents: QK-norm, rotation, scores, softmax, and the way back.
#include <algorithm>

#include "kernels/reference/norm.h"
#include "kernels/reference/ragged.h"
#include "kernels/reference/reference.h"
#include "kernels/reference/rope.h"

namespace stacklab::reference {
namespace {

// Head h of the q and k columns of a row of qkv: query heads first, then key heads.
template <class T>
T* head_of(T* row, std::int64_t head, const AttentionShape& s) {
  return row + head * s.head_dim;
}

// The front of the workspace: q and k after norm and rotation, as attention multiplies them, and the angles.
template <class T>
struct Prepared {
  T* heads;   // [T, (Hq + Hk), Dh]
  T* angles;  // [T, Dh]
  T* rest;    // what follows in the workspace

  static std::int64_t size(const TensorView& qkv, const AttentionShape& s) {
    return qkv.rows() * (s.n_heads + s.n_kv_heads + 1) * s.head_dim;
  }
  Prepared(const TensorView& workspace, const TensorView& qkv, const AttentionShape& s)
      : heads(workspace.as<T>()),
        angles(heads + qkv.rows() * (s.n_heads + s.n_kv_heads) * s.head_dim),
        rest(heads + size(qkv, s)) {}
};

template <class T>
void prepare_queries_and_keys(const KernelContext& context, Prepared<T> prepared, const TensorView& qkv,
                              const TensorView& q_gain, const TensorView& k_gain, const TensorView& positions,
                              const AttentionShape& s) {
  const std::int64_t heads = s.n_heads + s.n_kv_heads;
  if (s.rope) angle_table(context, prepared.angles, positions, s.head_dim, s.rope_theta);
  for_row_blocks(context, qkv.rows(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t)
      for (std::int64_t h = 0; h < heads; ++h) {
        const T* raw = head_of(qkv.as<T>() + t * s.qkv_width(), h, s);
        T* out = prepared.heads + (t * heads + h) * s.head_dim;
        const TensorView& gain = h < s.n_heads ? q_gain : k_gain;
        if (gain.present())
          rmsnorm_row(out, raw, gain.as<T>(), s.head_dim, s.norm_eps);
        else
          std::copy(raw, raw + s.head_dim, out);
        if (s.rope) rotate(out, prepared.angles + t * s.head_dim, s.head_dim, +1);
      }
  });
}

// What attention multiplies: prepared q and k, and v where it lies in qkv.
template <class T>
Ragged<T> ragged(const Prepared<T>& prepared, const TensorView& qkv, const TensorView& cu_seqlens,
                 const TensorView& lse, const AttentionShape& s) {
  const std::int64_t width = (s.n_heads + s.n_kv_heads) * s.head_dim;
  const std::int32_t* cu = cu_seqlens.as<std::int32_t>();
  return {{prepared.heads, width, s.head_dim},
          {prepared.heads + s.n_heads * s.head_dim, width, s.head_dim},
          {qkv.as<T>() + width, s.qkv_width(), s.head_dim},
          cu,
          cu,
          cu_seqlens.rows() - 1,
          s.n_heads,
          s.n_kv_heads,
          {.scale = s.scale, .soft_cap = s.soft_cap, .window = 0, .max_len = 0},
          lse.as<T>()};
}

}  // namespace

// workspace: Prepared, then a row of scores for each query head
Needs needs(const op::Attention& o) {
  return {.workspace = (Prepared<float>::size(o.qkv, o.shape) + o.shape.n_heads * o.qkv.rows()) * size_of(o.qkv.dtype)};
}

template <class T>
void run(const op::Attention& o, const KernelContext& context) {
  const AttentionShape& s = o.shape;
  const Prepared<T> prepared(o.workspace, o.qkv, s);
  prepare_queries_and_keys(context, prepared, o.qkv, o.q_gain, o.k_gain, o.positions, s);
  const Ragged<T> r = ragged(prepared, o.qkv, o.cu_seqlens, o.lse, s);
  const Heads<T> out{o.out.as<T>(), o.out.cols(), s.head_dim};
  context.for_each(s.n_heads, [&](std::int64_t h) {
    attend_head(r, h, out, o.max_logit.as<T>() + h, prepared.rest + h * o.qkv.rows());
  });
}

// workspace: Prepared, then one row of gain gradients for each head
Needs needs(const op::AttentionBackward& o) {
  return {.workspace =
              (Prepared<float>::size(o.qkv, o.shape) + (o.shape.n_heads + o.shape.n_kv_heads) * o.shape.head_dim) *
              size_of(o.qkv.dtype)};
}

template <class T>
void run(const op::AttentionBackward& o, const KernelContext& context) {
  const AttentionShape& s = o.shape;
  const std::int64_t tokens = o.qkv.rows(), heads = s.n_heads + s.n_kv_heads, dh = s.head_dim, width = s.qkv_width();
  const Prepared<T> prepared(o.workspace, o.qkv, s);
  T* gain_parts = prepared.rest;
  prepare_queries_and_keys(context, prepared, o.qkv, o.q_gain, o.k_gain, o.positions, s);

  // Gradients of the prepared q and k, and of v, gather in dqkv. One task owns a key-value head and its query heads.
  T* dqkv = o.dqkv.as<T>();
  std::fill(dqkv, dqkv + tokens * width, T(0));
  const Ragged<T> r = ragged(prepared, o.qkv, o.cu_seqlens, o.lse, s);
  const Heads<const T> out{o.out.as<T>(), o.out.cols(), dh}, dout{o.dout.as<T>(), o.dout.cols(), dh};
  const Heads<T> dq{dqkv, width, dh}, dk{dqkv + s.n_heads * dh, width, dh}, dv{dqkv + heads * dh, width, dh};
  context.for_each(s.n_kv_heads, [&](std::int64_t kv) { attend_group_backward(r, kv, out, dout, dq, dk, dv); });

  // Back through rotation and norm, in place; one task owns a head, so that its gain's gradient sums in the order of
  // tokens.
  context.for_each(heads, [&](std::int64_t h) {
    const TensorView& gain = h < s.n_heads ? o.q_gain : o.k_gain;
    T* dgain = gain_parts + h * dh;
    std::fill(dgain, dgain + dh, T(0));
    for (std::int64_t t = 0; t < tokens; ++t) {
      T* grad = head_of(dqkv + t * width, h, s);
      if (s.rope) rotate(grad, prepared.angles + t * dh, dh, -1);
      if (!gain.present()) continue;
      // The prepared head has done its work: its place takes the gradient of the normalised head.
      T* dnormalised = prepared.heads + (t * heads + h) * dh;
      std::copy(grad, grad + dh, dnormalised);
      std::fill(grad, grad + dh, T(0));
      rmsnorm_row_backward(grad, dgain, dnormalised, head_of(o.qkv.as<T>() + t * width, h, s), gain.as<T>(), dh,
                           s.norm_eps);
    }
  });
  const auto add_gain = [&](const GradView& target, std::int64_t first, std::int64_t count) {
    if (!target.present()) return;
    T* sum = target.view.as<T>();
    if (!target.accumulate) std::fill(sum, sum + dh, T(0));
    for (std::int64_t h = first; h < first + count; ++h) axpy(sum, T(1), gain_parts + h * dh, dh);
  };
  add_gain(o.dq_gain, 0, s.n_heads);
  add_gain(o.dk_gain, s.n_heads, s.n_kv_heads);
}

#define INSTANTIATE(OP)                                      \
  template void run<float>(const OP&, const KernelContext&); \
  template void run<double>(const OP&, const KernelContext&)
INSTANTIATE(op::Attention);
INSTANTIATE(op::AttentionBackward);
#undef INSTANTIATE

}  // namespace stacklab::reference
