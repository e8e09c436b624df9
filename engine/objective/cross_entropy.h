// Pretraining: every target counts the same, and the loss is the mean over the targets of the whole step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace stacklab {

// coefficients[t] = dL/dlog p_t = -1/n for a target, 0 for an ignored one (negative). n counts the targets of all
// micro-batches of the step, so that accumulation divides once. n = 0 (every target ignored) gives loss 0 and gradient
// 0.
template <class T>
void cross_entropy_coefficients(std::span<const std::int32_t> targets, std::int64_t n, std::span<T> coefficients) {
  const T each = n > 0 ? T(-1) / static_cast<T>(n) : T(0);
  for (std::size_t t = 0; t < targets.size(); ++t) coefficients[t] = targets[t] < 0 ? T(0) : each;
}

}  // namespace stacklab
