// How fast attention is on this computer, forward and backward, beside a product's rate in the same run.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "kernels/tensor_view.h"

namespace stacklab {

struct AttentionCase {
  std::int64_t n_heads = 0, n_kv_heads = 0, head_dim = 0;
  std::int64_t documents = 0, length = 0;  // of each
  // Of forward: two products of every query with every key that it sees. Backward has five.
  double flops() const {
    const double pairs = 0.5 * static_cast<double>(documents * length) * static_cast<double>(length + 1);
    return 4 * pairs * static_cast<double>(n_heads * head_dim);
  }
};

// Documents of 8192 tokens down to 16, with the heads of Stack-100M, and those of smaller models.
std::vector<AttentionCase> attention_cases();

struct AttentionMeasurement {
  AttentionCase which;
  double forward_seconds = 0, backward_seconds = 0;  // the best round
  double gemm_flops_per_second = 0;                  // of a product of 1024 x 1024 x 1024, in turn with them
  double forward_flops_per_second() const { return which.flops() / forward_seconds; }
  double backward_flops_per_second() const { return 2.5 * which.flops() / backward_seconds; }
};

struct AttentionBench {
  std::string isa;  // the instruction set in use
  int threads = 1;  // that there are
  std::vector<AttentionMeasurement> rows;
};

struct AttentionBenchOptions {
  int threads = 1;
  std::string isa;  // empty: the best
  DType stored = DType::f32;
  double seconds = 0.5;  // for each case, at least 3 rounds and at most 200
  // Called with each finished row.
  std::function<void(const AttentionMeasurement&)> report;
};

// Everything in turn, the best of many rounds. Errors: an instruction set that is not there, not enough memory.
Result<AttentionBench> bench_attention(const std::vector<AttentionCase>& cases, const AttentionBenchOptions& options);

}  // namespace stacklab
