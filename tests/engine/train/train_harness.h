// A small corpus, a small config and a sink that remembers: what the tests of training share.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "engine/base/thread_team.h"
#include "engine/config/config_io.h"
#include "engine/data/shard_builder.h"
#include "engine/train/trainer.h"
#include "tests/temporary_folder.h"

namespace stacklab::test {

// As bytes; so much is held out.
inline Dataset data_of(const DocumentSet& documents, const std::filesystem::path& folder, double held_out) {
  CorpusInfo info;
  info.name = "small";
  if (Status s = write_corpus(folder / "small", info, documents); !s) throw std::runtime_error(s.error().message());
  ThreadTeam team(1);
  ShardOptions options;
  options.validation_fraction = held_out;
  const auto built = build_shards(folder / "shards", {{folder / "small"}}, TokenCoding::bytes(), options, team, {}, {});
  if (!built) throw std::runtime_error(built.error().message());
  auto data = Dataset::open({{folder / "shards"}}, team, {}, {});
  if (!data) throw std::runtime_error(data.error().message());
  return std::move(*data);
}

// Documents of a language that a tiny model learns quickly: each repeats a short word of its own.
inline Dataset small_data(const std::filesystem::path& folder, double held_out = 0.1) {
  DocumentSet documents;
  for (int i = 0; i < 120; ++i) {
    const char letter = static_cast<char>('a' + i % 9);
    std::string text;
    for (int k = 0; k < 20 + i % 17; ++k)
      text += std::string(1, letter) + std::string(1, static_cast<char>(letter + 1)) + " ";
    text += std::to_string(i);
    documents.add(text);
  }
  return data_of(documents, folder, held_out);
}

inline RunConfig small_config() {
  RunConfig c;
  c.name = "small";
  c.model.vocab_size = 256, c.model.d_model = 16, c.model.n_layers = 2, c.model.n_heads = 2, c.model.n_kv_heads = 1;
  c.model.head_dim = 8, c.model.intermediate = 24, c.model.max_seq_len = 32, c.model.nope_every = 2;
  c.optim.matrices = "adamw", c.optim.adam_lr = 1e-2, c.optim.schedule.warmup_tokens = 256,
  c.optim.schedule.decay_tokens = 512;
  c.data.corpus = "small", c.data.validation_fraction = 0.1;
  c.train.seq_len = 32, c.train.batch_tokens = 128, c.train.tokens = 40 * 128;
  c.run.threads = 1, c.run.eval_every = 10, c.run.checkpoint_every = 7, c.run.keep_last = 2;
  return c;
}

// Of the small corpus; what a run of these tests would record.
inline Provenance some_provenance(const RunConfig& config) {
  Provenance p = provenance_of_build();
  p.config_hash = config_hash(config);
  p.corpus = "small", p.corpus_sha256 = std::string(64, '5'), p.tokenizer = "bytes";
  p.environment = current_fingerprint("reference", 1);
  return p;
}

// The newest checkpoint below a folder, of however many.
inline CheckpointFolder newest(const std::filesystem::path& run_dir) { return list_checkpoints(run_dir).back(); }

struct RecordingSink final : RunSink {
  std::map<std::string, std::map<std::int64_t, double>> series;
  std::vector<RunEvent> events;
  std::vector<Progress> progresses;
  std::map<std::string, double> facts;
  std::int64_t resumed = -1;
  int beats = 0;
  std::stop_source* stop_at_step = nullptr;  // asks to stop when step `when` is reported
  std::int64_t when = -1;

  void progress(const Progress& p) override { progresses.push_back(p); }
  void metrics(const MetricEvent& e) override {
    for (const MetricValue& v : e.values) series[std::string(v.name)][e.step] = v.value;
    if (stop_at_step && e.step == when) stop_at_step->request_stop();
  }
  void event(const RunEvent& e) override { events.push_back(e); }
  void beat(double) override { ++beats; }
  void resumed_after(std::int64_t step) override { resumed = step; }
  void fact(std::string_view name, double value) override { facts[std::string(name)] = value; }

  bool said(std::string_view word) const {
    for (const RunEvent& e : events)
      if (e.text.find(word) != std::string::npos) return true;
    return false;
  }
};

// Runs whole trainings on the small corpus.
class TrainerTest : public testing::Test {
 protected:
  Result<TrainResult> run(const RunConfig& config, RecordingSink& sink, const std::string& name, bool resume = false,
                          std::int64_t max_steps = 0, std::stop_token stop = {}) {
    std::filesystem::create_directories(folder_.path() / name);
    return train({config, folder_.path() / name, max_steps, resume, 0}, data_, sink, std::move(stop));
  }

  TemporaryFolder folder_;
  Dataset data_ = small_data(folder_.path());
};

}  // namespace stacklab::test
