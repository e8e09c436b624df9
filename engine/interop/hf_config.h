// config.json of models in the form of Hugging Face's transformers: Qwen3, Llama and SmolLM3, in the spelling of its
// versions 4 and 5.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/config/run_config.h"

namespace stacklab {

struct HfConfig {
  std::string architecture;        // "Qwen3ForCausalLM"
  ModelConfig model;               // as check_model allows it
  std::vector<std::string> notes;  // defaults that were taken where the file is silent and a person should know
};

// Errors name the source, the key and what is wrong: not JSON, an architecture, activation, bias, window, rotary
// scaling or quantisation that this build has not, a number that is none, is missing or cannot be. Keys that say
// nothing about the architecture are passed over.
Result<HfConfig> parse_hf_config(std::string_view json, std::string_view source_name);
Result<HfConfig> read_hf_config(const std::filesystem::path& file);

}  // namespace stacklab
