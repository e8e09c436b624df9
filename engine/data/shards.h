// A folder of token shards, which a run reads where they lie:
//
//   train-00000.bin, ...     the documents to learn from
//   held-out-00000.bin, ...  those for validation
//   tokenizer.json           what made the tokens; absent for bytes
//   manifest.json            size and SHA-256 of each file, which source it is of, what it was made from and how
//
// A shard: "SLSHARD1", u32 version, u32 bytes of a token (2, or 4 for vocabularies above 65,536), u64 documents, u64
// tokens, 32 zero bytes; the tokens, padded to 8 bytes; u64 ends[documents], in tokens; u64 hashes[documents], the
// first 8 bytes of the SHA-256 of each document's text. All little-endian. A document is never empty, nor in two
// shards.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/base/mapped_file.h"
#include "engine/base/output_file.h"
#include "engine/base/result.h"
#include "engine/data/corpus.h"

namespace stacklab {

class ThreadTeam;

enum class ShardRole { train, held_out };
std::string_view to_string(ShardRole role);  // "train", "held-out"

struct ShardRecord {
  std::string path;  // a name in the folder
  ShardRole role = ShardRole::train;
  std::size_t source = 0;
  std::int64_t documents = 0, tokens = 0;
  std::int64_t bytes = 0;  // of the file
  std::string sha256;

  bool operator==(const ShardRecord&) const = default;
};

// Something that documents came from.
struct ShardSource {
  std::string name;
  double weight = 1;   // share of the tokens that a run reads; 0: all of it is held out
  std::string sha256;  // of the corpus' text
  std::int64_t documents = 0, tokens = 0;
  std::int64_t text_bytes = 0;

  bool operator==(const ShardSource&) const = default;
};

struct ShardManifest {
  std::string recipe;     // canonical JSON of what was asked for
  std::string tokenizer;  // "bytes", or a name
  std::string tokenizer_sha256;
  std::int64_t vocabulary_size = 0;
  std::optional<std::int32_t> end_of_document;  // the token after every document
  std::vector<ShardSource> sources;
  std::map<std::string, std::int64_t> removed;  // documents that were left out, by reason
  std::vector<ShardRecord> shards;              // in order of path

  // Over the training shards' hex digests, in order of path.
  std::string training_sha256() const;
  std::string corpus_hash() const { return training_sha256().substr(0, 16); }
  std::int64_t tokens(ShardRole role) const;
  std::int64_t documents(ShardRole role) const;
};

Result<ShardManifest> read_shard_manifest(const std::filesystem::path& dir);
Status write_shard_manifest(const std::filesystem::path& dir, const ShardManifest& manifest);

// The tokens of one document, where they lie.
class TokenDocument {
 public:
  TokenDocument(const std::byte* tokens, std::size_t size, bool wide) : tokens_(tokens), size_(size), wide_(wide) {}

  std::size_t size() const { return size_; }
  std::int32_t operator[](std::size_t i) const {
    if (wide_) return static_cast<std::int32_t>(reinterpret_cast<const std::uint32_t*>(tokens_)[i]);
    return reinterpret_cast<const std::uint16_t*>(tokens_)[i];
  }
  // Tokens first .. first + count - 1.
  void copy(std::size_t first, std::size_t count, std::int32_t* into) const {
    if (wide_) {
      std::memcpy(into, tokens_ + 4 * first, 4 * count);
    } else {
      const auto* from = reinterpret_cast<const std::uint16_t*>(tokens_) + first;
      for (std::size_t i = 0; i < count; ++i) into[i] = from[i];
    }
  }

 private:
  const std::byte* tokens_;
  std::size_t size_;
  bool wide_;
};

// A shard's file, mapped.
class Shard {
 public:
  // Verifies size, header, SHA-256, that every token is below the vocabulary's size and that documents follow each
  // other. Errors name the file and how it can be had again.
  static Result<Shard> open(const std::filesystem::path& dir, const ShardRecord& record, std::int64_t vocabulary_size,
                            std::stop_token stop);

  std::size_t size() const { return ends_.size(); }
  std::int64_t tokens() const { return ends_.empty() ? 0 : static_cast<std::int64_t>(ends_.back()); }
  TokenDocument document(std::size_t i) const {
    const std::uint64_t begin = i == 0 ? 0 : ends_[i - 1];
    return {tokens_ + begin * (wide_ ? 4 : 2), static_cast<std::size_t>(ends_[i] - begin), wide_};
  }
  std::int64_t document_tokens(std::size_t i) const {
    return static_cast<std::int64_t>(ends_[i] - (i == 0 ? 0 : ends_[i - 1]));
  }
  std::uint64_t hash(std::size_t i) const { return hashes_[i]; }

 private:
  MappedFile file_;
  const std::byte* tokens_ = nullptr;
  std::span<const std::uint64_t> ends_, hashes_;
  bool wide_ = false;
};

// Writes one shard. Memory: a buffer and 16 bytes a document.
class ShardWriter {
 public:
  static Result<ShardWriter> create(const std::filesystem::path& file, bool wide);
  Status add(std::span<const std::int32_t> tokens);  // of the document that has begun
  void end_document(std::uint64_t hash);
  std::int64_t tokens() const { return tokens_; }
  std::int64_t documents() const { return static_cast<std::int64_t>(ends_.size()); }
  // bytes and SHA-256 are for whoever writes the manifest.
  Status finish();

 private:
  OutputFile file_;
  bool wide_ = false;
  std::int64_t tokens_ = 0;
  std::vector<std::uint64_t> ends_, hashes_;
  std::string buffer_;
};

// What documents are told apart by: of the SHA-256 of a text, in hex.
std::uint64_t document_hash(std::string_view sha256);

}  // namespace stacklab
