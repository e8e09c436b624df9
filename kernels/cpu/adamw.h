// What an update of AdamW is made with, however its moments are kept.
#pragma once

#include <cmath>

#include "kernels/ops.h"

namespace stacklab::cpu {

struct AdamWNumbers {
  float lr, scale, beta1, rest1, beta2, rest2, weight_decay;  // rest: 1 - beta
  // m / (root sqrt(v) + eps) is the step: both corrections of bias are in these.
  float root, eps;
};

// Of op::AdamW or op::AdamWCompact.
template <class Op>
AdamWNumbers adamw_numbers(const Op& o) {
  const double t = *o.updates.template as<double>();
  const double correction1 = 1 - std::pow(o.beta1, t), correction2 = 1 - std::pow(o.beta2, t);
  const auto f = [](double x) { return static_cast<float>(x); };
  return {.lr = f(*o.lr.template as<double>()),
          .scale = f(*o.scale.template as<double>()),
          .beta1 = f(o.beta1),
          .rest1 = f(1 - o.beta1),
          .beta2 = f(o.beta2),
          .rest2 = f(1 - o.beta2),
          .weight_decay = f(o.weight_decay),
          .root = f(correction1 / std::sqrt(correction2)),
          .eps = f(correction1 * o.eps)};
}

}  // namespace stacklab::cpu
