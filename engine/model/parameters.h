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

struct ParameterTable {
  std::vector<ParameterBuffer> buffers;
  std::vector<Parameter> parameters;

  std::int64_t count() const;
};

}  // namespace stacklab
