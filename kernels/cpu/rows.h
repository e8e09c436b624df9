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

// u[T, f] = silu(gate) up from pairs of columns gate, up; slopes[T, 2 f] = its derivatives by gate and by up, which is
// all that backward wants. slopes may be where the pairs are.
void finish_swiglu(const Block& pairs, std::int64_t f, const Kept& u, const Kept& slopes);
// The same u, keeping the pairs, rounded, in place of the slopes; and from what was kept of rows begin .. end the same
// u again, with the slopes in place of it.
void keep_swiglu(const Block& pairs, std::int64_t f, const Kept& u, const Kept& kept);
void recompute_swiglu(const Kept& kept, std::int64_t f, std::int64_t begin, std::int64_t end, const Kept& u);

// to[r, c] = what is in the block; c tanh(v / c) in place of v.
void keep_block(const Block& block, const Kept& to, std::int64_t ld);
void soft_cap_block(const Block& block, double cap);

}  // namespace stacklab::cpu
