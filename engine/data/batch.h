// What a step reads: micro-batches of packed documents.
#pragma once

#include <cstdint>
#include <vector>

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

// What attention inside documents costs grows with this: a key for every token of a document, as often as it has
// tokens.
inline double squared_document_lengths(const StepBatch& batch) {
  double sum = 0;
  for (const MicroBatch& micro : batch.micro)
    for (std::size_t d = 1; d < micro.cu_seqlens.size(); ++d) {
      const double length = micro.cu_seqlens[d] - micro.cu_seqlens[d - 1];
      sum += length * length;
    }
  return sum;
}

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
  std::int64_t step_rows() const { return accumulation * micro_batch; }
};

}  // namespace stacklab
