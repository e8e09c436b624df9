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
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/atomic_file.h"
#include "engine/base/mapped_file.h"
#include "engine/base/output_file.h"
#include "engine/base/result.h"
#include "engine/base/sha256.h"

namespace stacklab {

// Says how far a preparation is: a line for a person, done and total in bytes or documents (total 0: unknown).
using CorpusProgress = std::function<void(std::string_view detail, std::int64_t done, std::int64_t total)>;

// One line of the catalogue.
struct CorpusEntry {
  std::string name;
  std::string title;
  std::string licence;
  std::string source;            // "package", "generator" or "url"; "workspace" of what the catalogue does not know
  std::int64_t about_bytes = 0;  // of plain text
  bool present = false;          // already in the workspace
  std::string from;              // the packages, the generator, the page of its owners, or the origin
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

// The documents stay in their file: whatever their size, memory holds no more than the pages in use.
class Corpus {
 public:
  // Opens <dir> and verifies sizes, offsets and SHA-256; an error names the bad file and what to do.
  static Result<Corpus> open(const std::filesystem::path& dir);
  // What the manifest says; nothing else is looked at.
  static Result<CorpusInfo> describe(const std::filesystem::path& dir);

  const CorpusInfo& info() const { return info_; }
  std::size_t size() const { return offsets_.size() - 1; }
  std::span<const std::uint8_t> document(std::size_t i) const {
    return documents_.subspan(begin(i), document_bytes(i));
  }
  std::size_t document_bytes(std::size_t i) const { return static_cast<std::size_t>(offsets_[i + 1] - offsets_[i]); }
  // These bytes of documents have been read: their pages may go. They can still be read.
  void release(std::span<const std::uint8_t> bytes) const;

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
  std::size_t begin(std::size_t i) const { return static_cast<std::size_t>(offsets_[i]); }

  CorpusInfo info_;
  std::shared_ptr<const MappedFile> bytes_, index_;
  std::span<const std::uint8_t> documents_;
  std::span<const std::uint64_t> offsets_;  // [documents + 1]
};

// Refused unless there is nothing but a corpus's files in the folder, damaged or not: only this may be removed.
Status expect_corpus_files(const std::filesystem::path& dir);

// Writes a corpus document by document, in a few megabytes of memory. The folder appears, whole, with commit; until
// then, and when it is destroyed without, there is nothing.
class CorpusWriter {
 public:
  // Makes the missing parents of dir. Errors: cannot be written.
  static Result<CorpusWriter> create(const std::filesystem::path& dir);

  Status add(std::string_view document);
  // A document of any length, in parts.
  Status append(std::string_view part);
  Status end_document();

  std::int64_t documents() const { return documents_; }
  std::int64_t bytes() const { return bytes_file_.size(); }

  // Of info, sha256, documents and bytes are found here. licence_text: empty for none. Errors: dir exists, disk full.
  Status commit(const CorpusInfo& info, std::string_view licence_text = {});

 private:
  explicit CorpusWriter(AtomicDirectory folder) : folder_(std::move(folder)) {}
  Status put_offset();

  AtomicDirectory folder_;
  OutputFile bytes_file_, index_file_;
  Sha256 hash_;
  std::int64_t documents_ = 0;
};

// The same from memory, in one call.
Status write_corpus(const std::filesystem::path& dir, const CorpusInfo& info, const DocumentSet& documents,
                    std::string_view licence_text = {});

// The side of a document whose bytes have this SHA-256 (hex): see Corpus::split.
bool is_held_out(std::string_view sha256, double validation_fraction);

// What can be had, with what is in the workspace already, and what else is in the workspace. Errors: the catalogue's
// file is missing or broken.
Result<std::vector<CorpusEntry>> corpus_catalogue(const std::filesystem::path& workspace);

// The licence of the corpus NAME of the workspace, as its owners word it; where they do not, its name.
Result<std::string> corpus_licence(std::string_view name, const std::filesystem::path& workspace);

// Whether remove_corpus may: an unknown name suggests the nearest, and what is no corpus's is refused.
Status may_remove_corpus(std::string_view name, const std::filesystem::path& workspace);
// Removes the corpus NAME from the workspace.
Status remove_corpus(std::string_view name, const std::filesystem::path& workspace);

// Opens the corpus NAME in the workspace, fetching or generating it first if it is not there. Written to a temporary
// folder, then renamed: an interrupted fetch leaves nothing behind, and two processes may do it at once. An unknown
// name suggests the nearest.
Result<Corpus> ensure_corpus(std::string_view name, const std::filesystem::path& workspace,
                             const CorpusProgress& progress, std::stop_token stop);

// The same for a person who asks for it: of a corpus by URL so many files; 0: as many as the catalogue says.
Result<Corpus> fetch_corpus(std::string_view name, const std::filesystem::path& workspace, std::int64_t files,
                            const CorpusProgress& progress, std::stop_token stop);

}  // namespace stacklab
