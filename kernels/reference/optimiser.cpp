// Gradient norm, clipping and AdamW.
#include <algorithm>
#include <cmath>

#include "kernels/reference/reference.h"

namespace stacklab::reference {

template <class T>
void run(const op::SumSquares& o, const KernelContext&) {
  double sum = 0;
  const T* g = o.g.as<T>();
  for (std::int64_t i = 0; i < o.g.size(); ++i) sum += static_cast<double>(g[i]) * static_cast<double>(g[i]);
  *o.out.as<double>() = sum;
}

template <class T>
void run(const op::ClipScale& o, const KernelContext&) {
  double sum = 0;
  for (std::int64_t i = 0; i < o.partials.size(); ++i) sum += o.partials.as<double>()[i];
  const double norm = std::sqrt(sum);
  *o.norm.as<double>() = norm;
  const bool finite = std::isfinite(norm);
  *o.updates.as<double>() += finite ? 1 : 0;
  // torch.nn.utils.clip_grad_norm_ adds the same 1e-6.
  const double clipped = o.max_norm > 0 && norm > 0 ? std::min(1.0, o.max_norm / (norm + 1e-6)) : 1.0;
  *o.scale.as<double>() = finite ? clipped : 0.0;
}

template <class T>
void run(const op::AdamW& o, const KernelContext&) {
  const double lr = *o.lr.as<double>(), scale = *o.scale.as<double>(), t = *o.updates.as<double>();
  double change = 0;
  if (scale != 0) {
    const double correction1 = 1 - std::pow(o.beta1, t), correction2 = 1 - std::pow(o.beta2, t);
    T *w = o.w.as<T>(), *m = o.m.as<T>(), *v = o.v.as<T>();
    for (std::int64_t i = 0; i < o.w.size(); ++i) {
      const double g = static_cast<double>(o.g.as<T>()[i]) * scale;
      const double mi = o.beta1 * static_cast<double>(m[i]) + (1 - o.beta1) * g;
      const double vi = o.beta2 * static_cast<double>(v[i]) + (1 - o.beta2) * g * g;
      m[i] = static_cast<T>(mi);
      v[i] = static_cast<T>(vi);
      // A gradient that was always 0 moves nothing, whatever eps is: 0 / 0 must not appear.
      const double step = mi == 0 ? 0 : (mi / correction1) / (std::sqrt(vi / correction2) + o.eps);
      const double taken = lr * (step + o.weight_decay * static_cast<double>(w[i]));
      w[i] = static_cast<T>(static_cast<double>(w[i]) - taken);
      change += taken * taken;
    }
  }
  if (o.change.present()) *o.change.as<double>() = change;
}

#define INSTANTIATE(OP)                                      \
  template void run<float>(const OP&, const KernelContext&); \
  template void run<double>(const OP&, const KernelContext&)
INSTANTIATE(op::SumSquares);
INSTANTIATE(op::ClipScale);
INSTANTIATE(op::AdamW);
#undef INSTANTIATE

}  // namespace stacklab::reference
