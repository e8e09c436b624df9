#include "engine/planner/estimate.h"

#include <algorithm>
#include <cmath>

#include "engine/model/counts.h"

namespace stacklab {
namespace {

constexpr double bf16_bytes = 2;
constexpr double least_coefficient = 20, most_coefficient = 34;  // bytes
constexpr double naive_logit_bytes = 14, chunked_logit_bytes = 8;
// The list's: logits in bf16, their copy and gradient in fp32; in chunks the copy alone lives.
constexpr double listed_logit_bytes = 10, listed_chunk_logit_bytes = 4;

double product(std::int64_t a, std::int64_t b) { return static_cast<double>(a) * static_cast<double>(b); }

}  // namespace

std::int64_t state_bytes_per_parameter(std::string_view optimiser) {
  return optimiser == "muon" ? 12 : optimiser == "adamw8bit" ? 10 : optimiser == "adamw_bf16" ? 8 : 16;
}

double trunk_bytes(const TrunkShape& trunk, std::int64_t tokens, double coefficient) {
  return product(tokens, trunk.width) * coefficient * static_cast<double>(trunk.layers);
}

double trunk_bytes_with_scores(const TrunkShape& trunk, std::int64_t tokens, std::int64_t seq_len, double coefficient) {
  return trunk_bytes(trunk, tokens, coefficient + 5 * product(trunk.heads, seq_len) / static_cast<double>(trunk.width));
}

double trunk_bytes_recomputed(const TrunkShape& trunk, std::int64_t tokens) {
  return trunk_bytes(trunk, tokens, bf16_bytes);
}

double head_bytes(std::int64_t tokens, std::int64_t vocabulary) {
  return product(tokens, vocabulary) * naive_logit_bytes;
}

double head_bytes_chunked(std::int64_t chunk, std::int64_t vocabulary) {
  return product(chunk, vocabulary) * chunked_logit_bytes;
}

std::int64_t kept_elements_per_layer(const ModelConfig& m, bool recompute_swiglu) {
  const std::int64_t queries = m.n_heads * m.head_dim, keys = m.n_kv_heads * m.head_dim;
  // Inputs and outputs of both norms, what both sublayers add; q, k, v; q and k after their norm and after rotation;
  // what attention gives; gate and up; silu(gate) and its product with up.
  return 6 * m.d_model + (queries + 2 * keys) + 2 * (queries + keys) + queries +
         (recompute_swiglu ? 2 : 4) * m.intermediate;
}

MemoryEstimate estimate_memory(const RunConfig& config, std::int64_t tokens, std::int64_t chunk) {
  const ModelConfig& m = config.model;
  const ModelCounts counts = count_parameters(m);
  const std::int64_t by_muon = config.optim.matrices == "muon" ? counts.hidden_matrices : 0;
  const TrunkShape trunk{m.n_layers, m.d_model, m.n_heads};
  MemoryEstimate e;
  e.state = by_muon * state_bytes_per_parameter("muon") +
            (counts.total - by_muon) * state_bytes_per_parameter(config.optim.adam_state == "int8"   ? "adamw8bit"
                                                                 : config.optim.adam_state == "bf16" ? "adamw_bf16"
                                                                                                     : "adamw");
  const double layer = product(tokens, kept_elements_per_layer(m, config.run.recompute == "swiglu")) * bf16_bytes;
  e.trunk_least = trunk_bytes(trunk, tokens, least_coefficient);
  e.trunk_most = trunk_bytes(trunk, tokens, most_coefficient);
  e.listed_trunk = layer * static_cast<double>(m.n_layers);
  if (config.run.recompute == "block") {
    const std::int64_t stretch = std::min(config.run.recompute_every, m.n_layers);
    const double inputs = trunk_bytes_recomputed(trunk, tokens) / static_cast<double>(stretch);
    const TrunkShape live{stretch, m.d_model, m.n_heads};
    e.trunk_least = inputs + trunk_bytes(live, tokens, least_coefficient);
    e.trunk_most = inputs + trunk_bytes(live, tokens, most_coefficient);
    e.listed_trunk = inputs + layer * static_cast<double>(stretch);
  } else if (config.run.recompute == "swiglu") {
    const double dropped = product(tokens, 2 * m.intermediate * m.n_layers) * bf16_bytes;
    e.trunk_least -= dropped, e.trunk_most -= dropped;
  }
  const std::int64_t at_once = std::min(chunk, tokens);
  e.head = chunk > 0 ? head_bytes_chunked(at_once, m.vocab_size) : head_bytes(tokens, m.vocab_size);
  e.listed_head = chunk > 0 ? product(at_once, m.vocab_size) * listed_chunk_logit_bytes
                            : product(tokens, m.vocab_size) * listed_logit_bytes;
  return e;
}

std::int64_t largest_estimated_micro_batch(const TrunkShape& trunk, std::int64_t seq_len, double coefficient,
                                           double state, double head, double budget) {
  const double room = (budget - state - head) / trunk_bytes(trunk, seq_len, coefficient);
  return room >= 1 ? static_cast<std::int64_t>(std::floor(room)) : 0;
}

}  // namespace stacklab
