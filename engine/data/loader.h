// Packed batches from documents. Everything is a pure function of (seed, step), so a resumed run reads exactly on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/base/result.h"
#include "engine/data/corpus.h"

namespace stacklab {

inline constexpr std::int32_t ignored_target = -100;

// One micro-batch: T = micro_batch * seq_len tokens of packed documents.
// A document (or the fragment of one that fits its row) is tokens cu_seqlens[d] .. cu_seqlens[d+1]; unused entries at the end equal T.
struct MicroBatch {
  std::vector<std::int32_t> ids;         // [T]
  std::vector<std::int32_t> targets;     // [T] the token after ids[t] in the same document, else ignored_target
  std::vector<std::int32_t> positions;   // [T] from 0 in every fragment
  std::vector<std::int32_t> cu_seqlens;  // [max_documents + 1]
};

// All micro-batches of one update, with the number of targets in them: losses are divided once, by this.
struct StepBatch {
  std::vector<MicroBatch> micro;
  std::int64_t targets = 0;
};

struct LoaderShape {
  std::int64_t seq_len = 0;
  std::int64_t micro_batch = 0;   // rows of a micro-batch
  std::int64_t accumulation = 1;  // micro-batches of a step
  // Capacity of cu_seqlens: rows + document ends that can fall into them. Rows whose documents do not fit end with ignored padding.
  std::int64_t max_documents() const { return micro_batch * (1 + (seq_len + 15) / 16); }
  std::int64_t tokens() const { return micro_batch * seq_len; }
};

class BatchLoader {
 public:
  // documents: indices into the corpus, which must outlive the loader. shuffled: a new order each epoch, from the seed; else document
  // order (validation). Fails when there are no documents or fewer than 2 bytes of them, naming what is needed.
  static Result<BatchLoader> create(const Corpus& corpus, std::vector<std::size_t> documents, LoaderShape shape,
                                    std::uint64_t seed, bool shuffled);

  // The batch of step s (from 0). Epochs follow each other without a gap.
  StepBatch step(std::int64_t s) const;
  const LoaderShape& shape() const { return shape_; }
  std::int64_t tokens_per_epoch() const { return tokens_per_epoch_; }
  std::int64_t steps_per_epoch_rounded_up() const;

 private:
  BatchLoader() = default;

  const Corpus* corpus_ = nullptr;
  std::vector<std::size_t> documents_;
  LoaderShape shape_;
  std::uint64_t seed_ = 0;
  bool shuffled_ = false;
  std::int64_t tokens_per_epoch_ = 0;
};

// Entropy of single bytes, nats per byte: what counting letters reaches, and the first line a model must fall below.
double unigram_entropy(const Corpus& corpus, const std::vector<std::size_t>& documents);

}  // namespace stacklab
