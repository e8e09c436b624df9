// The promise of determinism on the CPU backend: the same run is the same to the bit, losses and weights, for any
// number of threads, interrupted or not.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "engine/repro/compare.h"
#include "engine/train/checkpoint.h"
#include "tests/engine/train/train_harness.h"

namespace stacklab::test {
namespace {

constexpr std::int64_t steps = 50;

struct Way {
  std::string name;
  std::string matrices, precision = "fp32";
  bool qk_norm = true;
  std::int64_t micro_batch = 0;
};

// The shape of the first run that a newcomer sees, with short documents.
RunConfig config_of(const Way& way, int threads) {
  RunConfig c = small_config();
  c.model.d_model = 64, c.model.n_layers = 2, c.model.n_heads = 2, c.model.n_kv_heads = 1, c.model.head_dim = 32;
  c.model.intermediate = 176, c.model.max_seq_len = 64, c.model.qk_norm = way.qk_norm;
  c.optim.matrices = way.matrices, c.optim.muon_lr = 3e-3, c.optim.adam_lr = 1e-2;
  // Low enough to be reached, so that clipping takes part.
  c.optim.qk_clip = way.qk_norm ? 1 : 0.1;
  c.train.seq_len = 64, c.train.batch_tokens = 256, c.train.tokens = steps * 256, c.train.precision = way.precision;
  c.run.device = "cpu", c.run.threads = threads, c.run.micro_batch = way.micro_batch;
  c.run.eval_every = 25, c.run.checkpoint_every = 1000;
  return c;
}

using Series = std::map<std::string, std::map<std::int64_t, double>>;

Series comparable(const RecordingSink& sink) {
  Series out = sink.series;
  std::erase_if(out, [](const auto& metric) { return !is_repeatable(metric.first); });
  return out;
}

class DeterminismTest : public TrainerTest, public testing::WithParamInterface<Way> {
 protected:
  void SetUp() override {
    if (!find_backend("cpu")) GTEST_SKIP() << "this processor does not run the CPU backend";
  }

  // Weights and the optimiser's state of the newest checkpoint, as they are on disk.
  std::string tensors(const std::string& name) {
    std::string all;
    const auto checkpoints = list_checkpoints(folder_.path() / name);
    if (checkpoints.empty()) return all;
    EXPECT_EQ(checkpoints.back().step, steps);
    for (const char* file : {"model.safetensors", "optimiser.safetensors"}) {
      std::ifstream in(checkpoints.back().path / file, std::ios::binary);
      EXPECT_TRUE(in) << file;
      all.append(std::istreambuf_iterator<char>(in), {});
    }
    return all;
  }
};

TEST_P(DeterminismTest, ARunIsTheSameToTheBitForAnyNumberOfThreads) {
  RecordingSink first;
  ASSERT_TRUE(run(config_of(GetParam(), 1), first, "first"));
  ASSERT_EQ(first.series["loss"].size(), static_cast<std::size_t>(steps));
  EXPECT_LT(first.series["loss"][steps], 0.8 * first.series["loss"][1]) << "nothing was learnt that could differ";
  double largest = 0;
  for (const auto& [step, logit] : first.series["max_logit"]) largest = std::max(largest, logit);
  EXPECT_GT(largest, config_of(GetParam(), 1).optim.qk_clip) << "nothing was clipped";
  for (const int threads : {1, 2}) {
    const std::string name = "threads" + std::to_string(threads);
    RecordingSink again;
    ASSERT_TRUE(run(config_of(GetParam(), threads), again, name));
    EXPECT_EQ(comparable(again), comparable(first)) << name;
    EXPECT_TRUE(tensors(name) == tensors("first")) << name;
  }
}

TEST_P(DeterminismTest, AnInterruptedRunGoesOnToTheBit) {
  RecordingSink straight, before, after;
  ASSERT_TRUE(run(config_of(GetParam(), 1), straight, "straight"));
  std::stop_source source;
  before.stop_at_step = &source, before.when = 23;
  const auto stopped = run(config_of(GetParam(), 2), before, "cut", false, 0, source.get_token());
  ASSERT_TRUE(stopped);
  ASSERT_EQ(stopped->steps, 23);
  ASSERT_TRUE(run(config_of(GetParam(), 1), after, "cut", true));
  EXPECT_EQ(after.resumed, 23);
  Series joined = comparable(before);
  for (auto& [metric, values] : comparable(after)) joined[metric].insert(values.begin(), values.end());
  EXPECT_EQ(joined, comparable(straight));
  EXPECT_TRUE(tensors("cut") == tensors("straight"));
}

INSTANTIATE_TEST_SUITE_P(Ways, DeterminismTest,
                         testing::Values(Way{.name = "Muon", .matrices = "muon"},
                                         Way{.name = "AdamW", .matrices = "adamw"},
                                         Way{.name = "MuonClippingProjections", .matrices = "muon", .qk_norm = false},
                                         Way{.name = "MuonInBf16", .matrices = "muon", .precision = "bf16"},
                                         Way{.name = "AdamWAccumulated", .matrices = "adamw", .micro_batch = 2}),
                         [](const auto& i) { return i.param.name; });

}  // namespace
}  // namespace stacklab::test
