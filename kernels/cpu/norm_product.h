// y = rmsnorm(x) gain w^T and its gradients: the body of NormMatmul, NormSwiglu, Logits and the loss head. Without gain
// (null) there is no norm.
#pragma once

#include <cstdint>

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/workspace.h"

namespace stacklab::cpu {

struct NormProduct {
  std::int64_t rows = 0, n = 0, d = 0;
  double eps = 0;
  const float *x = nullptr, *gain = nullptr;
  Stored w = {};
  float* scales = nullptr;  // [rows] 1 / rms: forward writes them, backward reads them

  Operand normed_x() const { return gain ? Operand::normed(x, d, scales, gain) : Operand::plain(x, d); }
  std::int64_t forward_floats(bool paired = false) const { return gemm_workspace(n, d, paired); }
};

// g says what becomes of the product.
void norm_product(const NormProduct& p, Gemm g, const KernelContext& context);

// Null: not wanted.
struct NormProductGrads {
  Operand dy = {};             // [rows, n]; dx and dgain need it as it is, dw transposed
  Operand dy_transposed = {};  // the same memory
  float *dx = nullptr, *dgain = nullptr, *dw = nullptr;
  bool add_dx = false, add_dgain = false, add_dw = false;
};

// The scratch of backward, which holds no more than what the wanted gradients take.
struct NormProductScratch {
  float *dn = nullptr, *dgains = nullptr, *gemm = nullptr;
  NormProductScratch(Carver& space, std::int64_t rows, std::int64_t n, std::int64_t d, bool norm, bool dx, bool dgain,
                     bool dw);
};

void norm_product_backward(const NormProduct& p, const NormProductGrads& g, const NormProductScratch& scratch,
                           const KernelContext& context);

}  // namespace stacklab::cpu
