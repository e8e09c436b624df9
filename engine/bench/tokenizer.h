// How fast a tokenizer is learnt, and encodes and decodes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/tokenizer/trainer.h"

namespace stacklab {

struct TokenizerBenchOptions {
  std::vector<std::string> documents;  // empty: generated_documents(bytes)
  std::int64_t bytes = 8 << 20;        // of generated text
  std::int64_t vocabulary_size = 8192;
  Split split = Split::llama3;
  int threads = 1;
  double seconds = 1;  // that encoding and decoding are repeated for; each at least 3 times
  std::function<void(const std::string& task, double seconds)> report;
};

struct TokenizerMeasurement {
  std::string task;  // "train", "encode", "encode in parallel", "decode"
  int threads = 1;
  double seconds = 0;  // the fastest of all rounds
  std::int64_t bytes = 0, tokens = 0;
  std::int64_t peak_bytes = 0;  // largest resident memory of the process, up to here
};

struct TokenizerBench {
  std::vector<TokenizerMeasurement> rows;
  std::int64_t documents = 0, bytes = 0, vocabulary = 0;
};

// Sentences of invented words, as frequent as words are (the n-th in 1/n of the cases), with names, numbers and signs:
// a function of the number of bytes alone.
std::vector<std::string> generated_documents(std::int64_t bytes);

// Learns from the documents, then encodes and decodes all of them; what is decoded must be what was encoded.
Result<TokenizerBench> bench_tokenizer(const TokenizerBenchOptions& options);

}  // namespace stacklab
