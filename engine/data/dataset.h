// What a run reads: the token shards of its sources, verified and mapped.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/data/shards.h"
#include "engine/data/token_coding.h"

namespace stacklab {

// One side of a source, over the shards that hold it.
class TokenDocuments {
 public:
  void add(std::shared_ptr<const Shard> shard);

  std::size_t size() const { return first_.back(); }
  std::int64_t tokens() const { return tokens_; }
  TokenDocument document(std::size_t i) const;
  std::int64_t document_tokens(std::size_t i) const;

 private:
  std::size_t shard_of(std::size_t i) const;

  std::vector<std::shared_ptr<const Shard>> shards_;
  std::vector<std::size_t> first_ = {0};  // [shards + 1] the number of each shard's first document
  std::int64_t tokens_ = 0;
};

struct DataSource {
  std::string name;
  double weight = 1;  // share of the training tokens; 0: all of it is held out
  TokenDocuments train, held_out;
};

class Dataset {
 public:
  // A folder of shards, and how much of it there is to be; with several sources in it, of all together.
  struct Part {
    std::filesystem::path folder;
    double weight = 1;
  };
  // Every file is read once, on all threads of the team, and compared with its manifest; errors name the bad one.
  // Refused: tokens of different tokenizers; a held-out document among the training documents.
  static Result<Dataset> open(const std::vector<Part>& parts, ThreadTeam& team, const CorpusProgress& progress,
                              std::stop_token stop);

  const std::vector<DataSource>& sources() const { return sources_; }
  // Of one folder its manifest's; of several, the same made from all their training shards in order.
  const std::string& corpus_hash() const { return corpus_hash_; }
  const TokenCoding& coding() const { return *coding_; }

 private:
  std::vector<DataSource> sources_;
  std::string corpus_hash_;
  std::shared_ptr<const TokenCoding> coding_;
};

// Entropy of single tokens, nats per token, over what is held out: what counting reaches, and the first line a model
// must fall below. NaN without tokens.
double unigram_entropy(const Dataset& data);

}  // namespace stacklab
