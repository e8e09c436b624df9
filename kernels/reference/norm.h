// Row functions of RMSNorm, shared by every operation that normalises.
#pragma once

#include <cmath>
#include <cstdint>

namespace stacklab::reference {

// 1 / sqrt(mean(x^2) + eps)
template <class T>
T inverse_rms(const T* x, std::int64_t n, double eps) {
  T sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += x[i] * x[i];
  return T(1) / std::sqrt(sum / static_cast<T>(n) + static_cast<T>(eps));
}

// y = x * r * gain with r = inverse_rms(x). y may be x.
template <class T>
void rmsnorm_row(T* y, const T* x, const T* gain, std::int64_t n, double eps) {
  const T r = inverse_rms(x, n, eps);
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] * r * gain[i];
}

// With y = x r gain: dx_i += r gain_i dy_i - x_i r^3 / n * sum_j(dy_j gain_j x_j). dgain_i += dy_i x_i r where dgain is
// given.
template <class T>
void rmsnorm_row_backward(T* dx, T* dgain, const T* dy, const T* x, const T* gain, std::int64_t n, double eps) {
  const T r = inverse_rms(x, n, eps);
  T projection = 0;
  for (std::int64_t i = 0; i < n; ++i) projection += dy[i] * gain[i] * x[i];
  projection *= r * r * r / static_cast<T>(n);
  for (std::int64_t i = 0; i < n; ++i) {
    if (dgain) dgain[i] += dy[i] * x[i] * r;
    dx[i] += r * gain[i] * dy[i] - x[i] * projection;
  }
}

}  // namespace stacklab::reference
