// Files with a JSON object on each line, plain or compressed by gzip, as documents.
#pragma once

#include <filesystem>
#include <stop_token>
#include <string>

#include "engine/data/corpus.h"

namespace stacklab {

// Whether add_lines can read a file of this name.
bool is_line_file(const std::filesystem::path& file);

// Adds the text under `field` of every line; blank lines are skipped. Errors name
// the file and the line: not JSON, no such text, damaged, longer than 256 MB.
Status add_lines(const std::filesystem::path& file, const std::string& field, CorpusWriter& writer,
                 std::stop_token stop);

}  // namespace stacklab
