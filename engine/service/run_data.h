// How a run gets its data: names of the config -> texts and a tokenizer in the workspace -> token shards, kept there by
// what they were made from, so that a second run starts at once -> the mapped shards.
#pragma once

#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/config/mixture.h"
#include "engine/config/run_config.h"
#include "engine/data/corpus.h"
#include "engine/data/dataset.h"
#include "engine/data/document_reader.h"
#include "engine/data/token_coding.h"

namespace stacklab {

// The corpora that a run reads, with their weights: data.mixture, or data.corpus alone.
Result<std::vector<MixturePart>> mixture_of(const DataConfig& data);

// "bytes", a tokenizer of the workspace, or one at a path. Errors: there is none of that name, it is damaged.
Result<TokenCoding> coding_named(std::string_view name, const std::filesystem::path& workspace);
// Refused: a model whose vocabulary does not cover the tokenizer's.
Status check_vocabulary(const RunConfig& config, const TokenCoding& coding);

// One's own files as a corpus of the workspace, named after them and their bytes: the same text is taken in once.
Result<std::string> take_in_text(const std::filesystem::path& input, const ReadOptions& reading,
                                 const std::filesystem::path& workspace, const CorpusProgress& progress,
                                 std::stop_token stop);
// A tokenizer that the config names by a path is copied into the workspace, and the config then names the copy: nothing
// in a workspace leads out of it.
Status take_in_tokenizer(RunConfig& config, const std::filesystem::path& workspace);

// Whether the workspace has the shards of a corpus: then its text is not needed.
bool has_shards(const std::string& corpus, const TokenCoding& coding, const DataConfig& data,
                const std::filesystem::path& workspace);

// Makes the shards of a corpus of the workspace that are not there yet, and opens those of all.
Result<Dataset> open_run_data(const RunConfig& config, const std::vector<MixturePart>& mixture,
                              const TokenCoding& coding, const std::filesystem::path& workspace,
                              const CorpusProgress& progress, std::stop_token stop);

// Whether data.corpus is the name of a folder in <workspace>/shards, made beforehand.
bool names_shards(const DataConfig& data, const std::filesystem::path& workspace);
// Opens it. Refused: another tokenizer than the config's.
Result<Dataset> open_named_shards(const RunConfig& config, const std::filesystem::path& workspace,
                                  const CorpusProgress& progress, std::stop_token stop);

}  // namespace stacklab
