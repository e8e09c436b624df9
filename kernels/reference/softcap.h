// c tanh(s / c) (Gemma 2, section 2); a cap of 0 leaves s as it is.
#pragma once

#include <cmath>

namespace stacklab::reference {

template <class T>
T soft_capped(T s, double cap) {
  return cap == 0 ? s : static_cast<T>(cap) * std::tanh(s / static_cast<T>(cap));
}

// d capped / d s, from the capped value.
template <class T>
T soft_cap_slope(T capped, double cap) {
  if (cap == 0) return T(1);
  const T ratio = capped / static_cast<T>(cap);
  return T(1) - ratio * ratio;
}

}  // namespace stacklab::reference
