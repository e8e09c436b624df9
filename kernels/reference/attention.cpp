// Causal attention inside documents: QK-norm, rotation, scores, softmax, and the way back.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/reference/matmul.h"
#include "kernels/reference/norm.h"
#include "kernels/reference/reference.h"
#include "kernels/reference/softcap.h"

namespace stacklab::reference {
namespace {

// cos and sin of position * theta^(-2i/Dh) for each token: [T, Dh], cosines first. Angles are taken in the run's own
// precision.
template <class T>
void angle_table(const KernelContext& context, T* table, const TensorView& positions, const AttentionShape& s) {
  const std::int64_t half = s.head_dim / 2;
  for_row_blocks(context, positions.rows(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = 0; i < half; ++i) {
      const T frequency =
          static_cast<T>(std::pow(s.rope_theta, -2.0 * static_cast<double>(i) / static_cast<double>(s.head_dim)));
      for (std::int64_t t = begin; t < end; ++t) {
        const T angle = static_cast<T>(positions.as<std::int32_t>()[t]) * frequency;
        table[t * s.head_dim + i] = std::cos(angle);
        table[t * s.head_dim + half + i] = std::sin(angle);
      }
    }
  });
}

// Rotates the halves (i, i + Dh/2) of a head by one row of the table; direction -1 turns back.
template <class T>
void rotate(T* head, const T* angles, std::int64_t head_dim, int direction) {
  const std::int64_t half = head_dim / 2;
  for (std::int64_t i = 0; i < half; ++i) {
    const T c = angles[i], sn = static_cast<T>(direction) * angles[half + i];
    const T a = head[i], b = head[i + half];
    head[i] = a * c - b * sn;
    head[i + half] = b * c + a * sn;
  }
}

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
  if (s.rope) angle_table(context, prepared.angles, positions, s);
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

// Calls f(begin, end) for each document.
template <class F>
void for_documents(const TensorView& cu_seqlens, F&& f) {
  const std::int32_t* cu = cu_seqlens.as<std::int32_t>();
  for (std::int64_t e = 0; e + 1 < cu_seqlens.rows(); ++e)
    if (cu[e + 1] > cu[e]) f(std::int64_t{cu[e]}, std::int64_t{cu[e + 1]});
}

}  // namespace

// workspace: Prepared, then a row of scores for each query head
Needs needs(const op::Attention& o) {
  return {.workspace = (Prepared<float>::size(o.qkv, o.shape) + o.shape.n_heads * o.qkv.rows()) * size_of(o.qkv.dtype)};
}

template <class T>
void run(const op::Attention& o, const KernelContext& context) {
  const AttentionShape& s = o.shape;
  const std::int64_t tokens = o.qkv.rows(), heads = s.n_heads + s.n_kv_heads, dh = s.head_dim;
  const Prepared<T> prepared(o.workspace, o.qkv, s);
  prepare_queries_and_keys(context, prepared, o.qkv, o.q_gain, o.k_gain, o.positions, s);
  context.for_each(s.n_heads, [&](std::int64_t h) {
    const std::int64_t kv = h / (s.n_heads / s.n_kv_heads);
    T* scores = prepared.rest + h * tokens;
    T largest_logit = -std::numeric_limits<T>::infinity();
    for_documents(o.cu_seqlens, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const T* q = prepared.heads + (i * heads + h) * dh;
        T largest = -std::numeric_limits<T>::infinity();
        for (std::int64_t j = begin; j <= i; ++j) {
          const T logit = static_cast<T>(s.scale) * dot(q, prepared.heads + (j * heads + s.n_heads + kv) * dh, dh);
          // A NaN stays: a broken logit must show.
          if (logit > largest_logit || std::isnan(logit)) largest_logit = logit;
          scores[j] = soft_capped(logit, s.soft_cap);
          largest = std::max(largest, scores[j]);
        }
        T sum = 0;
        for (std::int64_t j = begin; j <= i; ++j) sum += scores[j] = std::exp(scores[j] - largest);
        T* out = o.out.as<T>() + (i * s.n_heads + h) * dh;
        std::fill(out, out + dh, T(0));
        for (std::int64_t j = begin; j <= i; ++j)
          axpy(out, scores[j] / sum, head_of(o.qkv.as<T>() + j * s.qkv_width(), s.n_heads + s.n_kv_heads + kv, s), dh);
        o.lse.as<T>()[i * s.n_heads + h] = largest + std::log(sum);
      }
    });
    o.max_logit.as<T>()[h] = largest_logit;
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
  const std::int64_t group = s.n_heads / s.n_kv_heads;
  const Prepared<T> prepared(o.workspace, o.qkv, s);
  T* gain_parts = prepared.rest;
  prepare_queries_and_keys(context, prepared, o.qkv, o.q_gain, o.k_gain, o.positions, s);

  // Gradients of the prepared q and k, and of v, gather in dqkv. One task owns a key-value head and its query heads.
  T* dqkv = o.dqkv.as<T>();
  std::fill(dqkv, dqkv + tokens * width, T(0));
  context.for_each(s.n_kv_heads, [&](std::int64_t kv) {
    const std::int64_t k_head = s.n_heads + kv, v_head = s.n_heads + s.n_kv_heads + kv;
    for (std::int64_t h = kv * group; h < (kv + 1) * group; ++h)
      for_documents(o.cu_seqlens, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const T* q = prepared.heads + (i * heads + h) * dh;
          const T* dout = o.dout.as<T>() + (i * s.n_heads + h) * dh;
          const T lse = o.lse.as<T>()[i * s.n_heads + h];
          const T mean = dot(dout, o.out.as<T>() + (i * s.n_heads + h) * dh, dh);
          T* dq = head_of(dqkv + i * width, h, s);
          for (std::int64_t j = begin; j <= i; ++j) {
            const T* k = prepared.heads + (j * heads + k_head) * dh;
            const T score = soft_capped(static_cast<T>(s.scale) * dot(q, k, dh), s.soft_cap);
            const T p = std::exp(score - lse);
            axpy(head_of(dqkv + j * width, v_head, s), p, dout, dh);
            const T dp = dot(dout, head_of(o.qkv.as<T>() + j * width, v_head, s), dh);
            const T dlogit = p * (dp - mean) * soft_cap_slope(score, s.soft_cap) * static_cast<T>(s.scale);
            axpy(dq, dlogit, k, dh);
            axpy(head_of(dqkv + j * width, k_head, s), dlogit, q, dh);
          }
        }
      });
  });

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
    T* out = target.view.as<T>();
    if (!target.accumulate) std::fill(out, out + dh, T(0));
    for (std::int64_t h = first; h < first + count; ++h) axpy(out, T(1), gain_parts + h * dh, dh);
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
