// tokenizer.json as the tokenizers of Hugging Face read and write it, of byte-level BPE models. What would silently
// encode differently there and here is refused.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/tokenizer/tokenizer.h"

namespace stacklab {

// name: of the file, for messages. Merges may be pairs or "a b". Errors: no JSON, too deep, a key twice, another
// version or kind of model, a normaliser or pre-tokenizer that is not known, truncation or padding, and all of
// Tokenizer::create. A post-processor is not applied: it adds tokens, which is left to who encodes. made_here: this
// program wrote it, which tells what a spelling of older versions means.
Result<Tokenizer> parse_tokenizer(std::string_view json, std::string_view name, bool made_here = false);
// A tokenizer.json, or a folder that holds one; made here if the folder's manifest has its hash.
Result<Tokenizer> read_tokenizer(const std::filesystem::path& path);

std::string tokenizer_json(const TokenizerModel& model);
// What transformers asks for beside it.
std::string tokenizer_config_json(const TokenizerModel& model);

// A text that a tokenizer was trained on.
struct TrainingText {
  std::string name;
  std::int64_t bytes = 0;
  std::string sha256;
};

// Whether write_tokenizer may replace what is there: nothing, an empty folder, or one that write_tokenizer made and
// that holds nothing else. Else it is refused, with what it is.
Status may_replace_tokenizer(const std::filesystem::path& folder);

// Makes the folder: tokenizer.json, tokenizer_config.json, and manifest.json, which names the texts and the hash of
// tokenizer.json. Complete, or not at all. Errors: it exists (with replace:
// and may not be replaced), cannot be written, disk full.
Status write_tokenizer(const std::filesystem::path& folder, const TokenizerModel& model,
                       const std::vector<TrainingText>& texts, bool replace = false);

}  // namespace stacklab
