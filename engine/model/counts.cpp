#include "engine/model/counts.h"

namespace stacklab {

ModelCounts count_parameters(const ModelConfig& m) {
  const std::int64_t queries = m.n_heads * m.head_dim, keys = m.n_kv_heads * m.head_dim;
  ModelCounts c;
  c.attention_per_layer = m.d_model * (queries + 2 * keys) + queries * m.d_model;
  c.ffn_per_layer = 3 * m.d_model * m.intermediate;
  c.norms_per_layer = 2 * m.d_model + (m.qk_norm ? 2 * m.head_dim : 0);
  c.layer = c.attention_per_layer + c.ffn_per_layer + c.norms_per_layer;
  c.body = m.n_layers * c.layer + m.d_model;
  c.embedding = m.vocab_size * m.d_model;
  c.head = m.tie_embeddings ? 0 : c.embedding;
  c.total = c.body + c.embedding + c.head;
  c.hidden_matrices = m.n_layers * (c.attention_per_layer + c.ffn_per_layer);
  return c;
}

TokenFlops flops_per_token(const ModelConfig& m, std::int64_t sequence_length) {
  // Attention: two products of T x width per query (scores, values), the causal half of each, times 2 for multiply-add
  // and 3 for forward and backward.
  return {6 * count_parameters(m).body, 6 * m.n_layers * sequence_length * m.n_heads * m.head_dim,
          6 * m.vocab_size * m.d_model};
}

std::int64_t kv_bytes_per_token(const ModelConfig& m, std::int64_t bytes_per_element) {
  return 2 * m.n_kv_heads * m.head_dim * m.n_layers * bytes_per_element;
}

std::vector<std::int64_t> nope_layers(const ModelConfig& m) {
  std::vector<std::int64_t> layers;
  if (m.nope_every <= 0) return layers;
  for (std::int64_t layer = m.nope_every - 1; layer < m.n_layers; layer += m.nope_every) layers.push_back(layer);
  return layers;
}

}  // namespace stacklab
