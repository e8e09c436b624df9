// silu(gate) * up for one element, and its gradients.
#pragma once

#include <cmath>

namespace stacklab::reference {

template <class T>
T sigmoid(T x) {
  return T(1) / (T(1) + std::exp(-x));
}

template <class T>
T swiglu(T gate, T up) {
  return gate * sigmoid(gate) * up;
}

// d silu(g) / dg = s + g s (1 - s); finite for any g, since s and 1 - s vanish before g grows.
template <class T>
void swiglu_backward(T du, T gate, T up, T& dgate, T& dup) {
  const T s = sigmoid(gate);
  dgate = du * up * (s + gate * s * (T(1) - s));
  dup = du * gate * s;
}

}  // namespace stacklab::reference
