// Text out of unpacked packages, as documents.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/data/catalogue.h"
#include "engine/data/cutting.h"

namespace stacklab {

// The files below folder that a pattern names, as sorted paths relative to it. In a pattern '*' stands for anything,
// '/' included; one that begins with '!' takes out what those before it named. Symbolic links are not followed.
Result<std::vector<std::string>> matching_files(const std::filesystem::path& folder,
                                                const std::vector<std::string>& patterns);

// The text of a file, gzip undone where it is compressed. Errors: unreadable, broken, more than limit bytes.
Result<std::string> read_text(const std::filesystem::path& file, std::int64_t limit);

// Runs the recipe on packages unpacked in `unpacked`. Where the system lacks a library of the extracting program,
// fetch_libraries is called once, to unpack them there too.
Result<Extracted> extract(const ExtractionRecipe& recipe, const std::filesystem::path& unpacked,
                          const std::function<Status()>& fetch_libraries, std::stop_token stop);

}  // namespace stacklab
