#include "engine/model/counts.h"

#include "engine/model/sublayer.h"

namespace stacklab {
namespace {

// Calls f(size) for every mixer and FFN of the model.
template <class F>
void for_each_sublayer(const ModelConfig& m, F&& f) {
  for (std::int64_t layer = 0; layer < m.n_layers; ++layer) {
    f(mixer_of(m, layer).size(m));
    f(ffn_of(m, layer).size(m));
  }
}

}  // namespace

ModelCounts count_parameters(const ModelConfig& m) {
  const SublayerSize mixer = mixer_of(m, 0).size(m), ffn = ffn_of(m, 0).size(m);
  ModelCounts c;
  c.attention_per_layer = mixer.matrices;
  c.ffn_per_layer = ffn.matrices;
  c.norms_per_layer = 2 * m.d_model + mixer.gains + ffn.gains;
  c.layer = c.attention_per_layer + c.ffn_per_layer + c.norms_per_layer;
  c.body = m.d_model;
  for_each_sublayer(m, [&](const SublayerSize& s) {
    c.hidden_matrices += s.matrices;
    c.body += s.matrices + s.gains + m.d_model;
  });
  c.embedding = m.vocab_size * m.d_model;
  c.head = m.tie_embeddings ? 0 : c.embedding;
  c.total = c.body + c.embedding + c.head;
  return c;
}

TokenFlops flops_per_token(const ModelConfig& m, std::int64_t sequence_length) {
  TokenFlops flops{6 * count_parameters(m).body, 0, 6 * m.vocab_size * m.d_model};
  for_each_sublayer(m, [&](const SublayerSize& s) { flops.attention += s.flops_per_key * sequence_length; });
  return flops;
}

std::int64_t kv_bytes_per_token(const ModelConfig& m, std::int64_t bytes_per_element) {
  std::int64_t elements = 0;
  for_each_sublayer(m, [&](const SublayerSize& s) { elements += s.kv; });
  return elements * bytes_per_element;
}

std::vector<std::int64_t> nope_layers(const ModelConfig& m) {
  std::vector<std::int64_t> layers;
  if (m.nope_every <= 0) return layers;
  for (std::int64_t layer = m.nope_every - 1; layer < m.n_layers; layer += m.nope_every) layers.push_back(layer);
  return layers;
}

}  // namespace stacklab
