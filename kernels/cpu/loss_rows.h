// The loss of rows of logits, which come in blocks of columns: each block leaves its largest logit and its exponentials
// relative to that, so that nobody computes an exponential twice.
#pragma once

#include <cstdint>

#include "kernels/cpu/gemm.h"

namespace stacklab::cpu {

// A chunk of tokens.
struct LossRows {
  std::int64_t vocabulary = 0, ld = 0;
  double soft_cap = 0, z_coef = 0;
  bool gradient = false;
  const std::int32_t* targets = nullptr;  // < 0: the row is ignored
  const float* coefficients = nullptr;
  // [rows, ld]: exp(logit - largest of its block), times the slope of the cap; where a gradient is wanted.
  float* exponentials = nullptr;
  // [rows, blocks()]: the largest logit of a block, then what its exponentials are scaled by in the gradient; the sum
  // of its exponentials.
  float *scales = nullptr, *sums = nullptr;
  float* target_logits = nullptr;  // [rows]

  std::int64_t blocks() const { return (vocabulary + column_step - 1) / column_step; }
};

void loss_block(const LossRows& r, const Block& logits);
// When all blocks of rows begin .. end are done: parts[t] of both sums, and dL/dlogits as Operand::block_scaled.
void loss_rows(const LossRows& r, std::int64_t begin, std::int64_t end, double (*parts)[2]);

}  // namespace stacklab::cpu
