// Tensors from a safetensors file into a model's memory. Strict: a model is loaded whole or not at all.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/base/safetensors.h"
#include "kernels/tensor_view.h"

namespace stacklab {

struct NamedTensor {
  std::string name;
  TensorView view;  // bound
};

SafetensorsType file_type(DType type);
std::vector<std::int64_t> file_shape(const Shape& shape);

inline constexpr std::string_view embedding_name = "tok_emb.weight", head_name = "lm_head.weight";

// Every tensor must be in the file with its type and shape, and nothing else; the error lists what is missing, what is
// left over and what has another shape, and knows the prefixes that wrappers of other programs put before names. With
// tied_head the file may hold the head as a second copy of the embedding; another one is an error. Nothing is copied
// unless all of it fits.
Status load_tensors(const Safetensors& file, std::string_view source_name, std::span<const NamedTensor> tensors,
                    bool tied_head);

}  // namespace stacklab
