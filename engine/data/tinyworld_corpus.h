// TinyWorld as a corpus of the workspace.
#pragma once

#include <cstdint>
#include <filesystem>
#include <stop_token>
#include <string>
#include <string_view>

#include "engine/data/corpus.h"

namespace stacklab {

struct TinyWorldSettings {
  std::uint64_t seed = 1;
  std::int64_t people = 2000;  // the size of the world
  std::int64_t items = 12000;
  std::string streams = "documents";  // "documents:9,drills:1": which, and how often their turn comes
  std::string kinds;                  // "entry:3,letter:1": kinds of documents and their weights; empty: the usual
  int threads = 1;                    // changes nothing but the time
};

// Streams the items into the writer, in a few megabytes of memory, and says what they are: origin and source of the
// corpus. Errors: settings that cannot be, full disk, stop.
Result<CorpusInfo> write_tinyworld(const TinyWorldSettings& settings, CorpusWriter& writer,
                                   const CorpusProgress& progress, std::stop_token stop);

// Makes the corpus `name`, or opens it where it is there and of the same settings. One of other settings is refused,
// or with replace removed.
Result<Corpus> make_tinyworld(const TinyWorldSettings& settings, std::string_view name,
                              const std::filesystem::path& workspace, bool replace, const CorpusProgress& progress,
                              std::stop_token stop);

// How many items of the library stream hold all that can be searched for.
Result<std::int64_t> tinyworld_search_items(const TinyWorldSettings& settings);

}  // namespace stacklab
