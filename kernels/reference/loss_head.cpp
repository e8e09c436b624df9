// Final norm, logits, soft cap, log-sum-exp, loss and gradients, over chunks of tokens.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/reference/norm_product.h"
#include "kernels/reference/reference.h"
#include "kernels/reference/softcap.h"

namespace stacklab::reference {
namespace {

std::int64_t chunk_rows(const op::LossHead& o) { return std::min(o.chunk, o.x.rows()); }

// One row: its part of both sums, and (where wanted) logits replaced by their gradient.
template <class T>
void loss_row(const op::LossHead& o, T* logits, std::int64_t vocabulary, std::int32_t target, T coefficient,
              bool gradient, double& objective, double& z) {
  objective = z = 0;
  if (target < 0) {
    if (gradient) std::fill(logits, logits + vocabulary, T(0));
    return;
  }
  T largest = -std::numeric_limits<T>::infinity();
  for (std::int64_t v = 0; v < vocabulary; ++v) {
    logits[v] = soft_capped(logits[v], o.soft_cap);
    largest = std::max(largest, logits[v]);
  }
  T sum = 0;
  for (std::int64_t v = 0; v < vocabulary; ++v) sum += std::exp(logits[v] - largest);
  const T lse = largest + std::log(sum);
  const double weight = std::abs(static_cast<double>(coefficient));
  objective = static_cast<double>(coefficient) * static_cast<double>(logits[target] - lse);
  z = o.z_coef * weight * static_cast<double>(lse) * static_cast<double>(lse);
  if (!gradient) return;
  // dL/dlogit_v = coefficient (1[v = target] - p_v) + 2 z_coef |coefficient| lse p_v, then through the cap
  const T of_p = static_cast<T>(2 * o.z_coef * weight) * lse - coefficient;
  for (std::int64_t v = 0; v < vocabulary; ++v) {
    const T p = std::exp(logits[v] - lse);
    logits[v] = (of_p * p + (v == target ? coefficient : T(0))) * soft_cap_slope(logits[v], o.soft_cap);
  }
}

}  // namespace

// workspace: each row's part of both sums (double), logits of a chunk, scratch of the product
Needs needs(const op::LossHead& o) {
  const NormProductShape s{chunk_rows(o), o.w.rows(), o.x.cols(), o.eps};
  const std::int64_t scratch = o.dx.present() ? s.backward_scratch() : s.forward_scratch();
  return {.workspace = 2 * o.x.rows() * size_of(DType::f64) + (s.rows * s.n + scratch) * size_of(o.x.dtype)};
}

template <class T>
void run(const op::LossHead& o, const KernelContext& context) {
  const std::int64_t tokens = o.x.rows(), d = o.x.cols(), vocabulary = o.w.rows();
  double* parts = o.workspace.as<double>();
  T* logits = reinterpret_cast<T*>(parts + 2 * tokens);
  T* scratch = logits + chunk_rows(o) * vocabulary;
  GradTarget<T> dgain(o.dgain), dw(o.dw);
  for (std::int64_t begin = 0; begin < tokens; begin += o.chunk) {
    const NormProductShape s{std::min(o.chunk, tokens - begin), vocabulary, d, o.eps};
    const T* x = o.x.as<T>() + begin * d;
    norm_product(context, logits, x, o.gain.as<T>(), o.w.as<T>(), s, scratch);
    for_row_blocks(context, s.rows, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t r = first; r < last; ++r)
        loss_row(o, logits + r * vocabulary, vocabulary, o.targets.as<std::int32_t>()[begin + r],
                 o.coefficients.as<T>()[begin + r], o.dx.present(), parts[2 * (begin + r)], parts[2 * (begin + r) + 1]);
    });
    if (!o.dx.present()) continue;
    norm_product_backward(context, static_cast<const T*>(logits), x, o.gain.as<T>(), o.w.as<T>(),
                          GradTarget<T>(o.dx.as<T>() + begin * d, false), dgain, dw, s, scratch);
    // The first chunk assigns where that is asked for, the others add to it.
    dgain.accumulate = dw.accumulate = true;
  }
  double sums[2] = {0, 0};
  for (std::int64_t t = 0; t < tokens; ++t) sums[0] += parts[2 * t], sums[1] += parts[2 * t + 1];
  o.sums.as<double>()[0] = sums[0];
  o.sums.as<double>()[1] = sums[1];
}

template void run<float>(const op::LossHead&, const KernelContext&);
template void run<double>(const op::LossHead&, const KernelContext&);

}  // namespace stacklab::reference
