// Building and looking at folders of token shards, and taking in one's own files, as app/ and ui/ see them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/config/run_config.h"
#include "engine/data/import.h"
#include "engine/data/recipe.h"
#include "engine/data/shards.h"

namespace stacklab {

// What `what` stands for: a recipe (a .json file with an object in it), a file or folder of text, or a corpus' name.
Result<DataRecipe> recipe_of(const std::string& what, const std::filesystem::path& workspace);

struct DataBuildReport {
  ShardManifest manifest;
  double seconds = 0;
};

// Fetches the corpora that are missing, copies files into the workspace, and builds the shards in `out`, which must not
// exist.
Result<DataBuildReport> build_data(const std::filesystem::path& workspace, const DataRecipe& recipe,
                                   const std::filesystem::path& out, int threads, const CorpusProgress& progress,
                                   std::stop_token stop);

// data.corpus may be a path: of text, which becomes a corpus; of a recipe, whose shards are built; or of a folder of
// shards, which is copied. The config then names what is in the workspace: nothing there leads out of it.
Status take_in_corpus(RunConfig& config, const std::filesystem::path& workspace, const CorpusProgress& progress,
                      std::stop_token stop);

struct ShardSample {
  ShardRole role = ShardRole::train;
  std::string source;
  std::int64_t tokens = 0;
  std::string text;  // the beginning of it
};

struct ShardInspection {
  ShardManifest manifest;
  std::optional<Error> fault;  // the first thing that is wrong with the files
  std::vector<ShardSample> samples;
};

// Verifies every file. Errors: there is no manifest that can be read.
Result<ShardInspection> inspect_data(const std::filesystem::path& folder, int samples, int threads,
                                     const CorpusProgress& progress, std::stop_token stop);

}  // namespace stacklab
