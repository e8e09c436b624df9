// How fast matrix products are on this computer: the merged products of a model's training step, ours and oneDNN's.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/config/run_config.h"
#include "kernels/tensor_view.h"

namespace stacklab {

struct GemmProduct {
  std::string layer;    // qkv, o, gate_up, down, head
  std::string product;  // forward, dX, dW
  std::int64_t m = 0, n = 0, k = 0;
  bool a_transposed = false, b_transposed = false;
  double flops() const { return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k); }
};

// Forward, dX and dW of each merged matrix of a block, over `tokens`, and of the head over `head_tokens` (0: without
// it).
std::vector<GemmProduct> training_products(const ModelConfig& model, std::int64_t tokens, std::int64_t head_tokens);

struct GemmMeasurement {
  GemmProduct product;
  double seconds = 0;         // ours, the best round
  double onednn_seconds = 0;  // 0: not measured
  double ratio = 0;  // our rate over oneDNN's, the median of rounds: both sides within moments; 0: not measured
  double gflop_per_second() const { return product.flops() / seconds * 1e-9; }
  double onednn_gflop_per_second() const { return onednn_seconds > 0 ? product.flops() / onednn_seconds * 1e-9 : 0; }
};

struct GemmBench {
  std::string isa;                     // the instruction set in use
  int threads = 1;                     // that there are
  std::string onednn, without_onednn;  // its version, or why it is not there
  std::vector<GemmMeasurement> rows;
};

struct GemmBenchOptions {
  int threads = 1;
  std::string isa;            // empty: the best
  DType stored = DType::f32;  // of both factors; bf16 is multiplied as training in mixed precision multiplies it
  bool onednn = false;        // beside it, in f32 only
  double seconds = 0.5;       // for each product, at least 3 rounds and at most 200
  // Called with each finished row.
  std::function<void(const GemmMeasurement&)> report;
};

// Both sides in turn, the best of many rounds each: on a computer with other work only ratios within one call mean
// something. One thread is measured by its own time. Errors: an instruction set that is not there.
Result<GemmBench> bench_gemm(const std::vector<GemmProduct>& products, const GemmBenchOptions& options);

// FLOPs per second over all rows together.
double gemm_flops_per_second(const GemmBench& bench);

}  // namespace stacklab
