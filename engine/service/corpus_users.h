// Which runs need a corpus.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"

namespace stacklab {

struct CorpusUsers {
  std::vector<std::string> to_go_on;   // "name (id), paused": runs, and entries of the queue, that still read it
  std::vector<std::string> to_replay;  // ended ones, that could not be replayed without it
};

// Of runs that are not in the trash. A workspace without a store has none.
Result<CorpusUsers> users_of_corpus(std::string_view name, const std::filesystem::path& workspace);

}  // namespace stacklab
