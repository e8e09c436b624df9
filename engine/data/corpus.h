// A corpus is a folder <workspace>/data/<name>/ of documents with a manifest; the catalogue says how to make it.
//
//   documents.bin   the documents' bytes, one after another
//   documents.idx   where they begin: "SLDOCIDX", u32 version, u32 zero, u64 documents, u64 bytes, u64
//   offsets[documents + 1], all
//                   little-endian; offsets begin with 0, never fall, and end with bytes
//   licence.txt     the licence as its owners word it, if there is such a text
//   manifest.json   what it is, what it was made from, and the size and SHA-256 of the other files
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
  std::string source;            // "package" or "generator"
  std::int64_t about_bytes = 0;  // of plain text
  bool present = false;          // already in the workspace
};

// Something that a corpus was made from: a package (its version, size and SHA-256), or a generator (its settings, and
// the SHA-256 of the data that it reads).
struct CorpusSource {
  std::string name;
  std::string version;
  std::string sha256;
  std::int64_t bytes = 0;

  bool operator==(const CorpusSource&) const = default;
};

struct CorpusInfo {
  std::string name;
  std::string title;
  std::string licence;
  std::string origin;  // one line: packages and versions, or generator and seed
  std::vector<CorpusSource> sources;
  std::string sha256;  // of documents.bin
  std::int64_t documents = 0;
  std::int64_t bytes = 0;

  bool operator==(const CorpusInfo&) const = default;
};

// Documents in memory: byte strings, whatever they hold; a document may be empty.
struct DocumentSet {
  std::string bytes;
  std::vector<std::uint64_t> offsets = {0};  // [documents + 1]

  std::size_t size() const { return offsets.size() - 1; }
  void add(std::string_view document) {
    bytes.append(document);
    offsets.push_back(bytes.size());
  }
};

class Corpus {
 public:
  // Opens <dir> and verifies sizes, offsets and SHA-256; an error names the bad file and what to do.
  static Result<Corpus> open(const std::filesystem::path& dir);

  const CorpusInfo& info() const { return info_; }
  std::size_t size() const { return documents_.size(); }
  std::span<const std::uint8_t> document(std::size_t i) const {
    return std::span(reinterpret_cast<const std::uint8_t*>(documents_.bytes.data()), documents_.bytes.size())
        .subspan(documents_.offsets[i], documents_.offsets[i + 1] - documents_.offsets[i]);
  }

  // Indices of the documents held out for validation and of the rest, in document order: by hash of the document's
  // bytes, so that a document keeps its side whatever else the corpus holds, equal documents are on one side, and a
  // larger fraction only adds to validation. Either side may be empty (a small corpus, a fraction of 0): callers say
  // so.
  struct Split {
    std::vector<std::size_t> train;
    std::vector<std::size_t> validation;
  };
  Split split(double validation_fraction) const;

 private:
  Corpus() = default;

  CorpusInfo info_;
  DocumentSet documents_;
};

// Makes the folder dir: complete, or not at all. Of info, sha256, documents and bytes are found here. licence_text:
// empty for none. Errors: dir exists, cannot be written, disk full.
Status write_corpus(const std::filesystem::path& dir, const CorpusInfo& info, const DocumentSet& documents,
                    std::string_view licence_text = {});

// What can be had, with what is in the workspace already. Errors: the catalogue's file is missing or broken.
Result<std::vector<CorpusEntry>> corpus_catalogue(const std::filesystem::path& workspace);

// Opens the corpus NAME in the workspace, fetching or generating it first if it is not there. Written to a temporary
// folder, then renamed: an interrupted fetch leaves nothing behind, and two processes may do it at once. An unknown
// name suggests the nearest.
Result<Corpus> ensure_corpus(std::string_view name, const std::filesystem::path& workspace,
                             const CorpusProgress& progress, std::stop_token stop);

}  // namespace stacklab
