// A run on a text of one's own: a model that suits its length, and everything that training needs, made on the way.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>

#include "engine/base/result.h"
#include "engine/config/run_config.h"
#include "engine/run/run.h"

namespace stacklab {

enum class OwnTextSize { small, medium, large };

// From the length alone, before anything is read: model, vocabulary and how long to train. data.corpus and
// data.tokenizer are still to come.
RunConfig own_text_config(const std::filesystem::path& text, std::int64_t bytes, OwnTextSize size);
// The size that such a text is usually learnt with.
OwnTextSize usual_size(std::int64_t bytes);

// phase: "text", "tokenizer" or "shards".
using OwnTextProgress = std::function<void(const Progress&)>;

// Takes the text into the workspace, learns its tokenizer and builds its shards; what is there already is used. The
// config then names them. Stopped, it leaves what is whole and nothing else. Errors: not a text, too short, disk.
Result<RunConfig> prepare_own_text(const std::filesystem::path& text, const RunConfig& config,
                                   const std::filesystem::path& workspace, const OwnTextProgress& progress,
                                   std::stop_token stop);

}  // namespace stacklab
