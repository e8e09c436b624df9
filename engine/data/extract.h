// Text out of unpacked packages, as documents.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/data/catalogue.h"
#include "engine/data/corpus.h"

namespace stacklab {

struct Extracted {
  DocumentSet documents;
  std::int64_t lines = 0;
};

// Lines "Ge1:1 In the beginning ..." (book, chapter, verse, text) as one document per chapter: the texts, each ended by
// a newline, the references gone. Chapters of a book and verses of a chapter must count from 1. Errors name the line.
Result<Extracted> chapters_from_verses(std::string_view text);

// Runs the recipe on packages unpacked in `unpacked`. Where the system lacks a library of the extracting program,
// fetch_libraries is called once, to unpack them there too.
Result<Extracted> extract(const ExtractionRecipe& recipe, const std::filesystem::path& unpacked,
                          const std::function<Status()>& fetch_libraries, std::stop_token stop);

}  // namespace stacklab
