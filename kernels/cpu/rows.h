// What is done to rows beside products: on blocks of them, by the task that has them in cache.
#pragma once

#include <cstdint>

#include "kernels/cpu/gemm.h"

namespace stacklab::cpu {

// Where results go, in f32 or bf16 (rounded once).
struct Kept {
  void* data = nullptr;
  bool bf16 = false;
  explicit Kept(const TensorView& v) : data(v.data), bf16(v.dtype == DType::bf16) {}
  Kept(void* p, bool narrow) : data(p), bf16(narrow) {}
};

inline Stored stored(const Kept& k) {
  return k.bf16 ? Stored(static_cast<const BFloat16*>(k.data)) : Stored(static_cast<const float*>(k.data));
}

// scales[t] = 1 / sqrt(mean(x_t^2) + eps)
void inverse_rms(const float* x, std::int64_t rows, std::int64_t d, double eps, float* scales);

// What is behind n = x scale gain, of rows as they lie in a block of dn.
struct NormBackward {
  std::int64_t d = 0;
  const float *x = nullptr, *scales = nullptr, *gain = nullptr;
  float* dx = nullptr;  // or null
  bool add_dx = false;
};
// dx = (add_dx ? dx : 0) + its part; dgain += dn x scale, in the order of rows. dgain may be null.
void norm_backward(const NormBackward& n, const Block& dn, float* dgain);

// u[T, f] = silu(gate) up from a block of pairs of columns gate, up; kept[T, 2 f] = the pairs, rounded first. kept may
// be where the pairs are.
void swiglu(const Block& pairs, std::int64_t f, const Kept& u, const Kept& kept);
// From a block of the gradient of that u: kept becomes the gradients of gate and up, and u the same u again, where it
// is wanted (or null). u may be where du is.
void swiglu_backward(const Block& du, std::int64_t f, const Kept& kept, const Kept& u);

// to[r, c] = what is in the block; c tanh(v / c) in place of v.
void keep_block(const Block& block, const Kept& to, std::int64_t ld);
void soft_cap_block(const Block& block, double cap);

}  // namespace stacklab::cpu
