// A corpus is a folder <workspace>/data/<name>/ of documents with a manifest; the catalogue says how to make it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"

namespace stacklab {

// Says how far a preparation is: a line for a person, done and total in bytes or documents (total 0: unknown).
using CorpusProgress = std::function<void(std::string_view detail, std::int64_t done, std::int64_t total)>;

// One line of the catalogue.
struct CorpusEntry {
  std::string name;
  std::string title;
  std::string licence;
  std::string source;        // "package" or "generator"
  std::int64_t about_bytes;  // of plain text
  bool present = false;      // already in the workspace
};

struct CorpusInfo {
  std::string name;
  std::string title;
  std::string licence;
  std::string origin;  // package and version, or generator and seed
  std::string sha256;  // of the documents file
  std::int64_t documents = 0;
  std::int64_t bytes = 0;
};

// The documents of a corpus, all in memory (byte strings; the text is not checked to be UTF-8).
class Corpus {
 public:
  // Opens <dir> and verifies sizes and the SHA-256; names the bad file.
  static Result<Corpus> open(const std::filesystem::path& dir);

  const CorpusInfo& info() const { return info_; }
  std::size_t size() const { return offsets_.size() - 1; }
  std::span<const std::uint8_t> document(std::size_t i) const {
    return std::span(bytes_).subspan(offsets_[i], offsets_[i + 1] - offsets_[i]);
  }

  // Indices of the documents held out for validation and of the rest, in document order: by hash of the document's bytes, so that a
  // document keeps its side whatever else the corpus holds.
  struct Split {
    std::vector<std::size_t> train;
    std::vector<std::size_t> validation;
  };
  Split split(double validation_fraction) const;

 private:
  CorpusInfo info_;
  std::vector<std::uint8_t> bytes_;
  std::vector<std::size_t> offsets_ = {0};  // [documents + 1]
};

// What can be had, with what is in the workspace already.
std::vector<CorpusEntry> corpus_catalogue(const std::filesystem::path& workspace);

// Opens the corpus NAME in the workspace, fetching or generating it first if it is not there. Written to a temporary folder, then
// renamed: an interrupted fetch leaves nothing behind. An unknown name suggests the nearest.
Result<Corpus> ensure_corpus(std::string_view name, const std::filesystem::path& workspace, const CorpusProgress& progress,
                             std::stop_token stop);

}  // namespace stacklab
