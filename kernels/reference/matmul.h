// Plain matrix products with a fixed order of summation. Matrices are row-major; weights are [out, in].
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/context.h"

namespace stacklab::reference {

// Sum of x[i] * y[i]: sixteen partial sums, added pairwise. The order depends on n alone.
template <class T>
T dot(const T* x, const T* y, std::int64_t n) {
  constexpr int lanes = 16;
  T sum[lanes] = {};
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (int l = 0; l < lanes; ++l) sum[l] += x[i + l] * y[i + l];
  for (int l = 0; i < n; ++i, ++l) sum[l] += x[i] * y[i];
  for (int half = lanes / 2; half > 0; half /= 2)
    for (int l = 0; l < half; ++l) sum[l] += sum[l + half];
  return sum[0];
}

// y += a x
template <class T>
void axpy(T* y, T a, const T* x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] += a * x[i];
}

inline constexpr std::int64_t rows_per_task = 16;

// Calls f(begin, end) for blocks of rows.
template <class F>
void for_row_blocks(const KernelContext& context, std::int64_t rows, F&& f) {
  context.for_each((rows + rows_per_task - 1) / rows_per_task,
                   [&](std::int64_t task) { f(task * rows_per_task, std::min(rows, (task + 1) * rows_per_task)); });
}

// y[t, n] = sum_k x[t, k] w[n, k], plus add[t, n] where add is given. add may be y.
template <class T>
void matmul_nt(const KernelContext& context, T* y, const T* x, const T* w, const T* add, std::int64_t rows,
               std::int64_t n, std::int64_t k) {
  for_row_blocks(context, rows, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t t = begin; t < end; ++t) {
        const T value = dot(x + t * k, w + j * k, k);
        y[t * n + j] = add ? add[t * n + j] + value : value;
      }
  });
}

// dx[t, k] (= or +=) sum_n dy[t, n] w[n, k]
template <class T>
void matmul_nn(const KernelContext& context, T* dx, const T* dy, const T* w, bool accumulate, std::int64_t rows,
               std::int64_t n, std::int64_t k) {
  for_row_blocks(context, rows, [&](std::int64_t begin, std::int64_t end) {
    if (!accumulate) std::fill(dx + begin * k, dx + end * k, T(0));
    for (std::int64_t t = begin; t < end; ++t)
      for (std::int64_t j = 0; j < n; ++j) axpy(dx + t * k, dy[t * n + j], w + j * k, k);
  });
}

// dw[n, k] (= or +=) sum_t dy[t, n] x[t, k]
template <class T>
void matmul_tn(const KernelContext& context, T* dw, const T* dy, const T* x, bool accumulate, std::int64_t rows,
               std::int64_t n, std::int64_t k) {
  for_row_blocks(context, n, [&](std::int64_t begin, std::int64_t end) {
    if (!accumulate) std::fill(dw + begin * k, dw + end * k, T(0));
    for (std::int64_t t = 0; t < rows; ++t)
      for (std::int64_t j = begin; j < end; ++j) axpy(dw + j * k, dy[t * n + j], x + t * k, k);
  });
}

}  // namespace stacklab::reference
