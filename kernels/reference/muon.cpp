// Newton-Schulz orthogonalisation, Muon, and QK-clip.
#include <algorithm>
#include <cmath>

#include "kernels/reference/matmul.h"
#include "kernels/reference/reference.h"

namespace stacklab::reference {
namespace {

// Works on the wide orientation [m, n] with m <= n: x, and scratch of m n + 2 m m elements.
template <class T>
void newton_schulz(const KernelContext& context, T* x, T* scratch, std::int64_t m, std::int64_t n, std::int64_t steps,
                   double eps) {
  constexpr double a = 3.4445, b = -4.7750, c = 2.0315;
  double squares = 0;
  for (std::int64_t i = 0; i < m * n; ++i) squares += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  const double norm = std::sqrt(squares) + eps;
  for (std::int64_t i = 0; i < m * n; ++i) x[i] = static_cast<T>(static_cast<double>(x[i]) / norm);
  T *next = scratch, *gram = next + m * n, *poly = gram + m * m;
  for (std::int64_t step = 0; step < steps; ++step) {
    // A = X X^T, B = b A + c A A, X = a X + B X
    matmul_nt<T>(context, gram, x, x, nullptr, m, m, n);
    matmul_nn<T>(context, poly, gram, gram, false, m, m, m);
    for (std::int64_t i = 0; i < m * m; ++i) poly[i] = static_cast<T>(b) * gram[i] + static_cast<T>(c) * poly[i];
    for (std::int64_t i = 0; i < m * n; ++i) next[i] = static_cast<T>(a) * x[i];
    matmul_nn<T>(context, next, poly, x, true, m, m, n);
    std::copy(next, next + m * n, x);
  }
}

std::int64_t scratch_elements(std::int64_t rows, std::int64_t cols) {
  const std::int64_t m = std::min(rows, cols);
  return 2 * rows * cols + 2 * m * m;
}

// Element (r, c) of [rows, cols] in the wide orientation.
std::int64_t wide_index(std::int64_t r, std::int64_t c, std::int64_t rows, std::int64_t cols) {
  return rows <= cols ? r * cols + c : c * rows + r;
}

}  // namespace

// workspace: x in the wide orientation, then scratch
Needs needs(const op::NewtonSchulz& o) {
  return {.workspace = scratch_elements(o.x.rows(), o.x.cols()) * size_of(o.x.dtype)};
}

template <class T>
void run(const op::NewtonSchulz& o, const KernelContext& context) {
  const std::int64_t rows = o.x.rows(), cols = o.x.cols();
  T* wide = o.workspace.as<T>();
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < cols; ++c) wide[wide_index(r, c, rows, cols)] = o.x.as<T>()[r * cols + c];
  newton_schulz(context, wide, wide + rows * cols, std::min(rows, cols), std::max(rows, cols), o.steps, o.eps);
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < cols; ++c) o.y.as<T>()[r * cols + c] = wide[wide_index(r, c, rows, cols)];
}

Needs needs(const op::Muon& o) { return {.workspace = scratch_elements(o.w.rows(), o.w.cols()) * size_of(o.w.dtype)}; }

template <class T>
void run(const op::Muon& o, const KernelContext& context) {
  const double lr = *o.lr.as<double>(), scale = *o.scale.as<double>();
  double change = 0;
  if (scale != 0) {
    const std::int64_t rows = o.w.rows(), cols = o.w.cols();
    T *w = o.w.as<T>(), *m = o.m.as<T>(), *wide = o.workspace.as<T>();
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < cols; ++c) {
        const std::int64_t i = r * cols + c;
        const double g = static_cast<double>(o.g.as<T>()[i]) * scale;
        const double mi = o.momentum * static_cast<double>(m[i]) + g;
        m[i] = static_cast<T>(mi);
        wide[wide_index(r, c, rows, cols)] = static_cast<T>(g + o.momentum * mi);
      }
    newton_schulz(context, wide, wide + rows * cols, std::min(rows, cols), std::max(rows, cols), o.ns_steps, o.ns_eps);
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < cols; ++c) {
        const std::int64_t i = r * cols + c;
        const double direction = static_cast<double>(wide[wide_index(r, c, rows, cols)]);
        const double taken = lr * (o.factor * direction + o.weight_decay * static_cast<double>(w[i]));
        w[i] = static_cast<T>(static_cast<double>(w[i]) - taken);
        change += taken * taken;
      }
  }
  if (o.change.present()) *o.change.as<double>() = change;
}

template <class T>
void run(const op::QkClipHeads& o, const KernelContext&) {
  const std::int64_t dh = o.wq.rows() / o.n_heads, d = o.wq.cols(), group = o.n_heads / o.n_kv_heads;
  const auto scale_head = [&](const TensorView& w, std::int64_t head, double factor) {
    T* rows = w.as<T>() + head * dh * d;
    for (std::int64_t i = 0; i < dh * d; ++i) rows[i] = static_cast<T>(static_cast<double>(rows[i]) * factor);
  };
  for (std::int64_t kv = 0; kv < o.n_kv_heads; ++kv) {
    double largest = 0;
    for (std::int64_t h = kv * group; h < (kv + 1) * group; ++h) {
      const double logit = static_cast<double>(o.max_logit.as<T>()[h]);
      if (logit > largest) largest = logit;
    }
    if (!(largest > o.threshold) || !std::isfinite(largest)) continue;
    const double factor = std::sqrt(o.threshold / largest);
    for (std::int64_t h = kv * group; h < (kv + 1) * group; ++h) scale_head(o.wq, h, factor);
    scale_head(o.wk, kv, factor);
  }
}

template <class T>
void run(const op::QkClipGains& o, const KernelContext&) {
  const auto largest = [](const TensorView& gain) {
    double m = 0;
    for (std::int64_t i = 0; i < gain.size(); ++i) m = std::max(m, std::abs(static_cast<double>(gain.as<T>()[i])));
    return m;
  };
  const double bound = std::sqrt(static_cast<double>(o.q_gain.size())) * largest(o.q_gain) * largest(o.k_gain);
  if (!(bound > o.threshold) || !std::isfinite(bound)) return;
  const double factor = std::sqrt(o.threshold / bound);
  for (const TensorView* gain : {&o.q_gain, &o.k_gain})
    for (std::int64_t i = 0; i < gain->size(); ++i)
      gain->as<T>()[i] = static_cast<T>(static_cast<double>(gain->as<T>()[i]) * factor);
}

#define INSTANTIATE(OP)                                      \
  template void run<float>(const OP&, const KernelContext&); \
  template void run<double>(const OP&, const KernelContext&)
INSTANTIATE(op::NewtonSchulz);
INSTANTIATE(op::Muon);
INSTANTIATE(op::QkClipHeads);
INSTANTIATE(op::QkClipGains);
#undef INSTANTIATE

}  // namespace stacklab::reference
