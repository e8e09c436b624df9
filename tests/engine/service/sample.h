// A config and a corpus so small that training takes no time.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "engine/config/run_config.h"
#include "engine/data/corpus.h"

namespace stacklab {

inline RunConfig tiny_config(const std::string& name = "tiny", std::int64_t seed = 1, std::int64_t steps = 20) {
  RunConfig config;
  config.name = name;
  config.model.vocab_size = 256;
  config.model.d_model = 16;
  config.model.n_layers = 1;
  config.model.n_heads = 1;
  config.model.n_kv_heads = 1;
  config.model.head_dim = 16;
  config.model.intermediate = 16;
  config.model.max_seq_len = 32;
  config.optim.matrices = "adamw";
  config.data.corpus = "sample";
  config.data.validation_fraction = 0.2;
  config.train.seed = seed;
  config.train.seq_len = 32;
  config.train.batch_tokens = 64;
  config.train.tokens = 64 * steps;
  config.run.threads = 1;
  config.run.eval_every = 5;
  config.run.checkpoint_every = 5;
  return config;
}
inline constexpr std::int64_t tiny_steps = 20;

// Opens <workspace>/data/<name>, made on demand for the names that a test allows.
inline Result<Corpus> make_sample(std::string_view name, const std::filesystem::path& workspace) {
  const auto dir = workspace / "data" / name;
  if (!std::filesystem::exists(dir)) {
    DocumentSet documents;
    for (int i = 0; i < 40; ++i)
      documents.add("Document " + std::to_string(i) + " of " + std::string(name) + ": the quick brown fox jumps.");
    CorpusInfo info;
    info.name = name;
    info.title = "A sample";
    info.licence = "public domain";
    info.origin = "a test";
    info.sources = {{"thing", "1.0", std::string(64, 'a'), 7}};
    if (auto written = write_corpus(dir, info, documents); !written) return tl::unexpected(written.error());
  }
  return Corpus::open(dir);
}

}  // namespace stacklab
