#include "engine/service/own_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "engine/base/environment.h"
#include "engine/config/config_io.h"
#include "engine/data/byte_source.h"
#include "engine/data/import.h"
#include "engine/service/run_data.h"
#include "engine/service/tokenizers.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kilobyte = 1000, megabyte = 1000 * kilobyte;
// Times that a text is read at most: beyond, a small model learns it by heart and no more.
constexpr std::int64_t most_epochs = 12;

// Few tokens where there is little to learn them from; bytes where there is next to nothing.
std::int64_t vocabulary_for(std::int64_t bytes) {
  if (bytes < 100 * kilobyte) return 256;
  if (bytes < 2 * megabyte) return 1024;
  return bytes < 20 * megabyte ? 2048 : 4096;
}

// Of English with such a vocabulary, about; only the length of the run hangs on it.
double bytes_per_token(std::int64_t vocabulary) {
  return vocabulary <= 256 ? 1 : vocabulary <= 1024 ? 2.6 : vocabulary <= 2048 ? 3.1 : 3.5;
}

// A book is one file and many documents: else nothing of it could be held back for the test. Paragraphs where there are
// some, lines otherwise, by the beginning of the file.
constexpr std::int64_t fewest_documents = 20, few_documents = 500;

ReadOptions reading_of(const fs::path& text) {
  ReadOptions reading;
  if (const auto kind = kind_of_name(text); kind && *kind != FileKind::text) return reading;
  std::string start(megabyte, '\0');
  std::size_t size = 0;
  // Unpacked. What cannot be read, whoever takes the text in will say.
  if (const auto file = open_bytes(text)) {
    while (size < start.size()) {
      const Result<std::size_t> n = (*file)->read(std::span(start).subspan(size));
      if (!n || *n == 0) break;
      size += *n;
    }
  }
  start.resize(size);
  std::int64_t paragraphs = 0;
  for (std::size_t at = start.find("\n\n"); at != std::string::npos; at = start.find("\n\n", at + 2)) ++paragraphs;
  reading.blank_lines = paragraphs >= fewest_documents;
  if (!reading.blank_lines) reading.separator = "\n";
  return reading;
}

std::int64_t round_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

}  // namespace

OwnTextSize usual_size(std::int64_t bytes) {
  return bytes < 2 * megabyte ? OwnTextSize::small : bytes < 50 * megabyte ? OwnTextSize::medium : OwnTextSize::large;
}

RunConfig own_text_config(const fs::path& text, std::int64_t bytes, OwnTextSize size) {
  RunConfig config;
  config.name = import_name(text);
  ModelConfig& m = config.model;
  m.vocab_size = vocabulary_for(bytes);
  std::int64_t most_tokens = 0;
  switch (size) {
    case OwnTextSize::small:
      m.d_model = 64, m.n_layers = 4, m.n_heads = 2, m.n_kv_heads = 1, m.head_dim = 32, m.intermediate = 176;
      m.max_seq_len = 128, config.train.batch_tokens = 1024, most_tokens = 2'000'000;
      break;
    case OwnTextSize::medium:
      m.d_model = 128, m.n_layers = 6, m.n_heads = 4, m.n_kv_heads = 2, m.head_dim = 32, m.intermediate = 352;
      m.max_seq_len = 256, config.train.batch_tokens = 2048, most_tokens = 6'000'000;
      break;
    case OwnTextSize::large:
      m.d_model = 256, m.n_layers = 6, m.n_heads = 4, m.n_kv_heads = 2, m.head_dim = 64, m.intermediate = 704;
      m.max_seq_len = 512, config.train.batch_tokens = 8192, most_tokens = 12'000'000;
      break;
  }
  TrainConfig& t = config.train;
  t.seq_len = m.max_seq_len;
  t.precision = "fp32";
  const double tokens = static_cast<double>(bytes) / bytes_per_token(m.vocab_size);
  t.tokens = round_up(std::clamp(static_cast<std::int64_t>(tokens) * most_epochs, 200 * t.batch_tokens, most_tokens),
                      t.batch_tokens);
  OptimConfig& o = config.optim;
  if (size == OwnTextSize::small) {
    o.matrices = "adamw";
    o.adam_lr = 0.01;
    o.qk_clip = 0;
  } else {
    o.matrices = "muon";
    o.muon_lr = 0.0021;
    o.adam_lr = 0.0014;
  }
  o.schedule.kind = "wsd";
  o.schedule.warmup_tokens = round_up(t.tokens / 30, t.batch_tokens);
  o.schedule.decay_tokens = round_up(t.tokens / 3, t.batch_tokens);
  config.run.eval_every = std::max<std::int64_t>(20, config.steps() / 20);
  config.run.checkpoint_every = std::max<std::int64_t>(50, config.steps() / 10);
  config.data.corpus = "";
  config.data.tokenizer = "bytes";
  return config;
}

Result<RunConfig> prepare_own_text(const fs::path& text, const RunConfig& wanted, const fs::path& workspace,
                                   const OwnTextProgress& progress, std::stop_token stop) {
  const auto telling = [&](const char* phase) {
    return [&progress, phase](std::string_view detail, std::int64_t done, std::int64_t total) {
      progress({phase, std::string(detail), done, total});
    };
  };
  RunConfig config = wanted;
  progress({"text", {}, 0, 0});
  Result<std::string> corpus = take_in_text(text, reading_of(text), workspace, telling("text"), stop);
  if (!corpus) return tl::unexpected(corpus.error());
  config.data.corpus = *corpus;
  const Result<CorpusInfo> taken = Corpus::describe(workspace / "data" / *corpus);
  if (!taken) return tl::unexpected(taken.error());
  if (taken->documents < few_documents) config.data.validation_fraction = 0.1;
  if (config.model.vocab_size > 256) {
    progress({"tokenizer", {}, 0, 0});
    const std::string name = fmt::format("{}-{}", *corpus, config.model.vocab_size);
    TokenizerJob job;
    job.inputs = {workspace / "data" / *corpus};
    job.folder = workspace / "tokenizers" / name;
    job.threads = threads_for(config.run.threads);
    job.training.vocabulary_size = config.model.vocab_size;
    std::error_code error;
    if (!fs::exists(job.folder, error)) {
      const auto made = train_tokenizer_from(job, telling("tokenizer"), stop);
      // Another process may have been faster: its tokenizer is as good.
      if (!made && !fs::exists(job.folder, error)) return tl::unexpected(made.error());
    }
    config.data.tokenizer = name;
  }
  if (stop.stop_requested()) return stopped("stopped while the text was prepared");
  const Result<TokenCoding> coding = coding_named(config.data.tokenizer, workspace);
  if (!coding) return tl::unexpected(coding.error());
  // A text with few pairs gives fewer tokens than were asked for.
  config.model.vocab_size = coding->vocabulary_size();
  progress({"shards", {}, 0, 0});
  const auto data = open_run_data(config, {{*corpus, 1}}, *coding, workspace, telling("shards"), stop);
  if (!data) return tl::unexpected(data.error());
  std::int64_t tokens = 0, held_out = 0;
  for (const DataSource& source : data->sources()) {
    tokens += source.train.tokens();
    held_out += source.held_out.tokens();
  }
  if (tokens <= config.train.seq_len || held_out == 0)
    return failed(fmt::format("{} holds {} tokens to train on, and the model looks at {} at a time", text.string(),
                              tokens, config.train.seq_len),
                  "give a longer text, of several lines: a few thousand words are the least to learn from");
  if (const Status fine = validate(config); !fine) return tl::unexpected(fine.error());
  return config;
}

}  // namespace stacklab
