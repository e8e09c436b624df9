// Tokenizers, as app/ and ui/ see them: the tokenizer room's own interface, and training from files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/tokenizer/tokenizer_json.h"
#include "engine/tokenizer/trainer.h"

namespace stacklab {

// Files of text (packed by gzip or zstd or not), in which a NUL byte ends a document, and folders of corpora.
struct TokenizerJob {
  std::vector<std::filesystem::path> inputs;
  std::filesystem::path folder;  // the tokenizer's; must not exist, unless replace
  bool replace = false;
  int threads = 1;
  TokenizerTraining training;
};

struct TokenizerReport {
  TrainedTokenizer trained;
  std::vector<TrainingText> texts;
  std::int64_t documents = 0;
  double seconds = 0;
};

// Learns and writes the tokenizer. Errors name the file that cannot be read, the folder that exists, and those of
// train_tokenizer; nothing is written then. progress: what, done, total in bytes while counting, in tokens while
// merging.
Result<TokenizerReport> train_tokenizer_from(const TokenizerJob& job, const TrainingProgress& progress,
                                             std::stop_token stop);

// Writes the tokenizer found at path (a tokenizer.json, or a folder with one) as a folder of ours.
Result<Tokenizer> import_tokenizer(const std::filesystem::path& path, const std::filesystem::path& folder,
                                   bool replace);

}  // namespace stacklab
