// What this build can make of a model's config, and exactly how large it is.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/result.h"
#include "engine/config/run_config.h"

namespace stacklab {

// Refuses a mixer or FFN that this build cannot make, naming those it can. Everything below needs a config that passed.
Status check_layers(const ModelConfig& config);

// Parameters. Of the first layer (in a hybrid others differ): mixer [QKV and O], feed-forward [gate, up, down], norms
// [two of the stream; gains of q and k with qk_norm].
struct ModelCounts {
  std::int64_t attention_per_layer = 0;
  std::int64_t ffn_per_layer = 0;
  std::int64_t norms_per_layer = 0;
  std::int64_t layer = 0;            // the three together
  std::int64_t body = 0;             // all layers and the final norm
  std::int64_t embedding = 0;        // [vocab, d]
  std::int64_t head = 0;             // [vocab, d]; 0 when it is the embedding
  std::int64_t total = 0;            // every parameter once
  std::int64_t hidden_matrices = 0;  // what Muon may train; AdamW has the rest: embedding, head, gains
};

// Sizes as check_model allows them.
ModelCounts count_parameters(const ModelConfig& model);

// Forward and backward of one token in training, multiplications and additions: 6 per parameter of the body; attention
// over the causal half of a window; 6 per entry of the head, tied or not. Looking an embedding up costs nothing.
struct TokenFlops {
  std::int64_t body = 0;
  std::int64_t attention = 0;
  std::int64_t head = 0;
  std::int64_t total() const { return body + attention + head; }
};
TokenFlops flops_per_token(const ModelConfig& model, std::int64_t sequence_length);

// Keys and values of one token in all layers.
std::int64_t kv_bytes_per_token(const ModelConfig& model, std::int64_t bytes_per_element = 2);

// Layers without rotary positions, counted from 0.
std::vector<std::int64_t> nope_layers(const ModelConfig& model);

}  // namespace stacklab
