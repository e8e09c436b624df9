// Documents -> tokenizer -> a folder of token shards. What comes out depends on the documents and the options alone,
// not on the number of threads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/data/corpus.h"
#include "engine/data/shards.h"
#include "engine/data/token_coding.h"

namespace stacklab {

struct ShardInput {
  std::filesystem::path corpus;  // its folder
  double weight = 1;
  bool held_out = false;  // all of it is for validation
};

struct ShardOptions {
  double validation_fraction = 0;
  // A shard is closed after the document with which it has so many tokens: 128 MiB of two bytes each.
  std::int64_t shard_tokens = std::int64_t{1} << 26;
  std::string recipe = "{}";  // canonical JSON of what was asked for
};

// Makes the folder: complete, or not at all. Empty documents are left out and counted. Refused: a document that is
// held out and among the training documents too, or of a source that is held out whole and there but for white space.
// Errors: dir exists, a corpus that is damaged, disk full, stopped. Memory: 16 MiB of text with its tokens, however
// large the corpora; and 16 bytes per document of a shard, 64 per held-out document.
Result<ShardManifest> build_shards(const std::filesystem::path& dir, const std::vector<ShardInput>& inputs,
                                   const TokenCoding& coding, const ShardOptions& options, ThreadTeam& team,
                                   const CorpusProgress& progress, std::stop_token stop);

}  // namespace stacklab
