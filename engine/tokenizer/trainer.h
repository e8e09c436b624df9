// Learns a byte-level BPE tokenizer from documents. The result depends on the documents alone, not on the number of
// threads.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/tokenizer/tokenizer.h"

namespace stacklab {

struct TokenizerTraining {
  std::int64_t vocabulary_size = 32768;  // with the 256 bytes and the special tokens
  Split split = Split::llama3;
  bool nfc = false;
  std::int64_t min_frequency = 1;                                                       // rarer pairs are not merged
  std::vector<std::string> specials = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};  // the last ids, in this order
  // Different pieces that are counted at most, which bounds memory: when there are more, the rarest half is forgotten.
  // One of 32 bytes or more counts for several.
  std::int64_t max_pieces = std::int64_t{1} << 21;
};

struct TrainedTokenizer {
  TokenizerModel model;        // smaller than asked for when the text has no more pairs
  std::int64_t bytes = 0;      // of the documents
  double bytes_per_token = 0;  // of what was counted, encoded as text; 0: there was nothing
  std::int64_t pieces = 0;     // different ones
  std::int64_t forgotten = 0;  // different pieces that were dropped to keep memory bounded
};

// Gives the next document, or part of one behind find_safe_cut; it lives until the next call. false: there are no more.
using NextDocument = std::function<Result<bool>(std::string_view& document)>;
// What is being done, and how far: bytes while counting (total unknown: 0), merges while learning.
using TrainingProgress = std::function<void(std::string_view what, std::int64_t done, std::int64_t total)>;

// Errors: a vocabulary too small for the bytes and special tokens, those of next, stopped.
Result<TrainedTokenizer> train_tokenizer(const TokenizerTraining& training, const NextDocument& next, ThreadTeam& team,
                                         const TrainingProgress& progress, std::stop_token stop);

}  // namespace stacklab
