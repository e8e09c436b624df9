// The parameters of a model under the names that checkpoints and other programs use. Merged matrices (QKV; gate and up)
// are one buffer; their parts are row ranges of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/program/program.h"

namespace stacklab {

enum class ParameterKind : std::uint8_t { embedding, gain, matrix };

// One buffer, as gradients and optimisers see it.
struct ParameterBuffer {
  Value value;
  ParameterKind kind = ParameterKind::matrix;
};

// One tensor of a checkpoint: a whole buffer or rows of one.
struct Parameter {
  std::string name;  // "blocks.3.attn.wq.weight"
  Value view;
  ParameterKind kind = ParameterKind::matrix;
  double init_std = 0;  // normal with this deviation around 0; a gain starts at 1
};

// What QK-clip rescales in one attention layer. The gains are not present without QK-norm.
struct AttentionParameters {
  Value wq, wk;  // [Hq Dh, d], [Hk Dh, d]
  Value q_gain, k_gain;
  std::int64_t n_heads = 0, n_kv_heads = 0;
};

struct ParameterTable {
  std::vector<ParameterBuffer> buffers;
  std::vector<Parameter> parameters;
  std::vector<AttentionParameters> attention;  // in the order of layers

  std::int64_t count() const;
};

}  // namespace stacklab
