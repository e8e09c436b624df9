// What a folder of shards is to be made of, as JSON:
//
//   {"sources": ["kjv", {"path": "letters.jsonl", "field": "body", "weight": 2}], "held_out": ["exam.txt"],
//    "tokenizer": "bytes", "validation_fraction": 0.02, "shard_tokens": 67108864}
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/data/document_reader.h"

namespace stacklab {

// A corpus of the catalogue or the workspace, or a file or folder of one's own.
struct RecipeSource {
  std::string corpus;          // or
  std::filesystem::path path;  // relative ones are as seen from the recipe
  double weight = 1;           // share of the tokens that a run reads, relative to the others'
  ReadOptions reading;         // of a path
};

struct DataRecipe {
  std::vector<RecipeSource> sources;
  std::vector<RecipeSource> held_out;  // for validation, and refused among the sources
  std::string tokenizer = "bytes";
  double validation_fraction = 0.02;
  std::int64_t shard_tokens = std::int64_t{1} << 26;
};

// Errors name the file and the key: no JSON, a key that is unknown (with the nearest), twice, or of the wrong type, a
// value out of range. folder: of the recipe.
Result<DataRecipe> parse_recipe(std::string_view json, std::string_view name, const std::filesystem::path& folder);

// "\n", "\t", "\0" and "\\" in a separator that somebody typed.
Result<std::string> unescaped(std::string_view typed);

}  // namespace stacklab
