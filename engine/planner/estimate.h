// Closed forms for the memory of training in mixed precision on a device with bf16: what is said about models that
// nobody has built yet. The engine's own plan (memory.h) is exact for what it builds; these are models of it, and each
// stands under its name.
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/base/result.h"
#include "engine/config/run_config.h"

namespace stacklab {

// Bytes of weights, gradients and optimiser state for each parameter, by what trains it: adamw 16, muon 12, adamw8bit
// 10, adamw_bf16 8.
std::int64_t state_bytes_per_parameter(std::string_view optimiser);

struct TrunkShape {
  std::int64_t layers = 0, width = 0, heads = 0;
};
// Activations that backward finds again, of tokens = s b. coefficient: bytes for each token and channel of a layer, 20
// at Stack's shape and 34 as the bound of Korthikanti et al. 2022. Without fused attention the scores are kept too.
double trunk_bytes(const TrunkShape& trunk, std::int64_t tokens, double coefficient);
double trunk_bytes_with_scores(const TrunkShape& trunk, std::int64_t tokens, std::int64_t seq_len, double coefficient);
double trunk_bytes_recomputed(const TrunkShape& trunk, std::int64_t tokens);  // the input of each block

// Logits, their gradients and copies: all at once, or of one chunk.
double head_bytes(std::int64_t tokens, std::int64_t vocabulary);
double head_bytes_chunked(std::int64_t chunk, std::int64_t vocabulary);

// The other model: an exact list of the tensors that automatic differentiation in bf16 keeps of one block, for each
// token. swiglu: gate and up are kept, their product is not.
std::int64_t kept_elements_per_layer(const ModelConfig& model, bool recompute_swiglu = false);

// Both models of a config's micro-batch; bytes.
struct MemoryEstimate {
  std::int64_t state = 0;
  double trunk_least = 0, trunk_most = 0;  // coefficients 20 and 34, or what recompute leaves of them
  double head = 0;
  double listed_trunk = 0, listed_head = 0;  // the list
  double least() const { return static_cast<double>(state) + trunk_least + head; }
  double most() const { return static_cast<double>(state) + trunk_most + head; }
  double listed() const { return static_cast<double>(state) + listed_trunk + listed_head; }
};
// tokens: of a micro-batch; chunk: those of the loss head at once, 0: all. recompute "block" leaves the inputs of
// stretches, and one stretch while it is computed again.
MemoryEstimate estimate_memory(const RunConfig& config, std::int64_t tokens, std::int64_t chunk);

// The largest micro-batch, in sequences, whose estimate stays below budget; 0: none does.
std::int64_t largest_estimated_micro_batch(const TrunkShape& trunk, std::int64_t seq_len, double coefficient,
                                           double state, double head, double budget);

}  // namespace stacklab
