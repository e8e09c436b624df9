// Packed batches from documents. Everything is a pure function of (seed, step), so a resumed run reads exactly on.
//
// The stream: in each epoch every document comes once, in an order of that epoch; epochs follow each other without a
// gap, and a row is the next seq_len tokens of the stream. A document that does not fit its row is cut into fragments:
// the next row goes on with the next byte, which is also the target of the fragment's last token, so that no byte and
// no (input, target) pair is ever lost. A document shorter than LoaderShape::min_slot is padded to it, which bounds the
// number of documents in a row. Padding comes after the document's own tokens, has ignored targets and counts as part
// of the document before it: causal attention never sees it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/base/result.h"
#include "engine/data/corpus.h"

namespace stacklab {

inline constexpr std::int32_t ignored_target = -100;

// One micro-batch: T = micro_batch * seq_len tokens of packed documents.
// A document (or the fragment of one that fits its row) is tokens cu_seqlens[d] .. cu_seqlens[d+1]; every row begins
// with a new one; unused entries at the end equal T.
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
  static constexpr std::int64_t min_slot = 4;  // tokens that a document takes at least

  std::int64_t seq_len = 0;
  std::int64_t micro_batch = 0;   // rows of a micro-batch
  std::int64_t accumulation = 1;  // micro-batches of a step

  // Capacity of cu_seqlens: no order of any documents can exceed it, since a row holds at most the rest of one document
  // and ceil(seq_len / min_slot) that begin in it.
  std::int64_t max_documents() const { return micro_batch * (1 + (seq_len + min_slot - 1) / min_slot); }
  std::int64_t tokens() const { return micro_batch * seq_len; }
  std::int64_t step_tokens() const { return accumulation * tokens(); }
};

// What packing does to the documents in one epoch. Nothing is lost: long documents are cut, not dropped.
struct PackingReport {
  std::int64_t documents = 0;        // with at least one byte
  std::int64_t empty_documents = 0;  // have nothing to read; left out
  std::int64_t tokens_in = 0;        // bytes of all documents
  std::int64_t tokens_packed = 0;    // of those, inputs of the epoch
  std::int64_t tokens_lost = 0;      // tokens_in - tokens_packed
  std::int64_t targets = 0;          // all but the first byte of each document
  std::int64_t padding = 0;          // after documents shorter than min_slot
};

class BatchLoader {
 public:
  // documents: indices into the corpus, which must outlive the loader.
  // shuffled (training): a new order each epoch, from the seed. Fails when the documents hold fewer than seq_len + 1
  // bytes. Not shuffled (validation): one pass in the order given; what is left of the last step, and every step after
  // it, is padding, so that steps_per_epoch_rounded_up() steps score every target exactly once. Fails when there is no
  // target.
  static Result<BatchLoader> create(const Corpus& corpus, std::vector<std::size_t> documents, LoaderShape shape,
                                    std::uint64_t seed, bool shuffled);
  BatchLoader(BatchLoader&&) noexcept;
  BatchLoader& operator=(BatchLoader&&) noexcept;
  ~BatchLoader();

  // The batch of step s (from 0), in any order of calls, from any thread.
  StepBatch step(std::int64_t s) const;
  // The same into a batch that was filled before: nothing is allocated, unless the step is the first of its epoch.
  void fill(std::int64_t s, StepBatch& batch) const;
  const LoaderShape& shape() const { return shape_; }
  const PackingReport& report() const { return report_; }
  std::int64_t tokens_per_epoch() const { return report_.tokens_packed + report_.padding; }
  std::int64_t steps_per_epoch_rounded_up() const;

 private:
  struct Epoch;       // an order of the documents and where each begins
  struct EpochCache;  // the epochs used last

  BatchLoader();
  std::shared_ptr<const Epoch> epoch(std::int64_t e) const;
  void fill_row(std::int64_t begin, std::int64_t row, MicroBatch& batch, std::size_t& entries) const;

  const Corpus* corpus_ = nullptr;
  std::vector<std::size_t> documents_;
  LoaderShape shape_;
  std::uint64_t seed_ = 0;
  bool shuffled_ = false;
  PackingReport report_;
  std::unique_ptr<EpochCache> cache_;
};

// Whether a micro-batch keeps the promises above: sizes, cu_seqlens rising from 0 to T and staying there, a document
// boundary at every row, positions from 0 in every fragment. The error says which entry does not.
Status check_micro_batch(const MicroBatch& batch, const LoaderShape& shape);

// Entropy of single bytes, nats per byte: what counting letters reaches, and the first line a model must fall below.
// NaN without bytes.
double unigram_entropy(const Corpus& corpus, const std::vector<std::size_t>& documents);

}  // namespace stacklab
