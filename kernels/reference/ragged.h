// Softmax attention of ragged documents on any layout of q, k and v: the body of Attention and RaggedAttention.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/ops_fine.h"
#include "kernels/reference/matmul.h"
#include "kernels/reference/softcap.h"

namespace stacklab::reference {

// Rows of heads: head h of row r begins at base + r * row_stride + h * width.
template <class T>
struct Heads {
  T* base = nullptr;
  std::int64_t row_stride = 0;
  std::int64_t width = 0;
  T* at(std::int64_t row, std::int64_t head) const { return base + row * row_stride + head * width; }
};

template <class T>
struct Ragged {
  Heads<const T> q, k, v;
  const std::int32_t* cu_q = nullptr;
  const std::int32_t* cu_k = nullptr;
  std::int64_t documents = 0, n_heads = 0, n_kv_heads = 0;
  RaggedShape shape;
  T* lse = nullptr;  // [Nq, Hq]

  std::int64_t group() const { return n_heads / n_kv_heads; }

  // Calls f(i, first, last) for each query row i that sees key rows first .. last (inclusive; last < first: none).
  template <class F>
  void for_queries(F&& f) const {
    for (std::int64_t e = 0; e < documents; ++e) {
      const std::int64_t earlier = (cu_k[e + 1] - cu_k[e]) - (cu_q[e + 1] - cu_q[e]);
      for (std::int64_t i = cu_q[e]; i < cu_q[e + 1]; ++i) {
        const std::int64_t last = cu_k[e] + (i - cu_q[e]) + earlier;
        const std::int64_t oldest = shape.window > 0 ? last - shape.window + 1 : std::int64_t{cu_k[e]};
        f(i, std::max<std::int64_t>(cu_k[e], oldest), last);
      }
    }
  }
  T logit(std::int64_t i, std::int64_t h, std::int64_t j) const {
    return static_cast<T>(shape.scale) * dot<T>(q.at(i, h), k.at(j, h / group()), q.width);
  }
};

// One head, forward. scores: one element for each key row.
template <class T>
void attend_head(const Ragged<T>& r, std::int64_t h, Heads<T> out, T* max_logit, T* scores) {
  T largest_logit = -std::numeric_limits<T>::infinity();
  r.for_queries([&](std::int64_t i, std::int64_t first, std::int64_t last) {
    T largest = -std::numeric_limits<T>::infinity();
    for (std::int64_t j = first; j <= last; ++j) {
      const T logit = r.logit(i, h, j);
      // A NaN stays: a broken logit must show.
      if (logit > largest_logit || std::isnan(logit)) largest_logit = logit;
      scores[j] = soft_capped(logit, r.shape.soft_cap);
      largest = std::max(largest, scores[j]);
    }
    T sum = 0;
    for (std::int64_t j = first; j <= last; ++j) sum += scores[j] = std::exp(scores[j] - largest);
    std::fill(out.at(i, h), out.at(i, h) + out.width, T(0));
    for (std::int64_t j = first; j <= last; ++j)
      axpy<T>(out.at(i, h), scores[j] / sum, r.v.at(j, h / r.group()), out.width);
    r.lse[i * r.n_heads + h] = largest + std::log(sum);
  });
  *max_logit = largest_logit;
}

// One key-value head and its query heads, backward: adds to dq, dk and dv, which start at 0.
template <class T>
void attend_group_backward(const Ragged<T>& r, std::int64_t kv, Heads<const T> out, Heads<const T> dout, Heads<T> dq,
                           Heads<T> dk, Heads<T> dv) {
  for (std::int64_t h = kv * r.group(); h < (kv + 1) * r.group(); ++h)
    r.for_queries([&](std::int64_t i, std::int64_t first, std::int64_t last) {
      const T mean = dot<T>(dout.at(i, h), out.at(i, h), out.width);
      for (std::int64_t j = first; j <= last; ++j) {
        const T score = soft_capped(r.logit(i, h, j), r.shape.soft_cap);
        const T p = std::exp(score - r.lse[i * r.n_heads + h]);
        axpy<T>(dv.at(j, kv), p, dout.at(i, h), out.width);
        const T dp = dot<T>(dout.at(i, h), r.v.at(j, kv), out.width);
        const T dlogit = p * (dp - mean) * soft_cap_slope(score, r.shape.soft_cap) * static_cast<T>(r.shape.scale);
        axpy<T>(dq.at(i, h), dlogit, r.k.at(j, kv), dq.width);
        axpy<T>(dk.at(j, kv), dlogit, r.q.at(i, h), dk.width);
      }
    });
}

}  // namespace stacklab::reference
