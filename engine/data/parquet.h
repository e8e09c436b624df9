// Parquet files, through a library beside the program that is opened only when there is one to read.
#pragma once

#include <filesystem>
#include <stop_token>
#include <string>

#include "engine/base/result.h"
#include "engine/data/document_reader.h"

namespace stacklab {

// As read_documents. Errors, besides: this build is without Apache Arrow, or its libraries are gone.
Result<FileDigest> read_parquet(const std::filesystem::path& file, const std::string& column, const TakePart& take,
                                const ReadSoFar& so_far, std::stop_token stop);
// Whether Parquet can be read here; the error says why not.
Status parquet_available();

}  // namespace stacklab
