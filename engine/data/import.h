// One's own files as a corpus of the workspace.
#pragma once

#include <cstdint>
#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/data/corpus.h"
#include "engine/data/document_reader.h"

namespace stacklab {

struct ImportRequest {
  std::vector<std::filesystem::path> inputs;  // files, and folders with all that is in them
  std::string name;                           // empty: after the first input
  std::string licence;                        // empty: not stated
  ReadOptions reading;
};

struct ImportReport {
  CorpusInfo info;
  std::int64_t files = 0;
  std::vector<std::string> left_out;  // files of folders whose kind is not known
};

// The name that an import gets when none is given: of the first input, made plain.
std::string import_name(const std::filesystem::path& input);
// Of the files' names within the inputs and their bytes: the same text has the same, wherever it lies.
Result<std::string> import_sha256(const std::vector<std::filesystem::path>& inputs, const CorpusProgress& progress,
                                  std::stop_token stop);

// Copies the text into <workspace>/data/<name>. A file that is named is read whatever its name; what is surely no text
// is refused. In a folder, files are taken in order of their paths. Interrupted, it leaves nothing. Errors: the name is
// taken, nothing to read, and those of read_documents.
Result<ImportReport> import_corpus(const std::filesystem::path& workspace, const ImportRequest& request,
                                   const CorpusProgress& progress, std::stop_token stop);

}  // namespace stacklab
