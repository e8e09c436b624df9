// Going on from any step, elsewhere, and with what changed since: one curve, the same bits, and a word where a bit may
// differ.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/base/sha256.h"
#include "tests/engine/train/train_harness.h"

namespace stacklab::test {
namespace {

namespace fs = std::filesystem;
using Resume = TrainerTest;

std::string weights(const fs::path& run_dir, std::int64_t step) {
  return file_text(run_dir / ("ckpt_step" + std::to_string(step)) / "model.safetensors") +
         file_text(run_dir / ("ckpt_step" + std::to_string(step)) / "optimiser.safetensors");
}

// Ten rows of 32 in an epoch, steps of two rows in two micro-batches, three epochs: k at 1, within an epoch, the last
// and the first of one, and N.
TEST(ResumeAnywhere, EveryStepOfThreeEpochs) {
  const TemporaryFolder folder;
  DocumentSet documents;
  for (int i = 0; i < 10; ++i) documents.add(std::string(31, static_cast<char>('a' + i)) + "\n");
  const Dataset data = data_of(documents, folder.path(), 0);
  RunConfig c = small_config();
  c.data.validation_fraction = 0;
  c.train.batch_tokens = 64, c.run.micro_batch = 1;
  c.train.tokens = 15 * 64;
  c.optim.schedule.warmup_tokens = 128, c.optim.schedule.decay_tokens = 256;
  c.run.checkpoint_every = 0;
  auto loader = BatchLoader::training(data, *loader_shape(c), 1337, Packing::fragment);
  ASSERT_TRUE(loader);
  ASSERT_EQ(loader->tokens_per_epoch(), 320);
  ASSERT_EQ(loader->shape().accumulation, 2);

  RecordingSink straight;
  fs::create_directories(folder / "straight");
  ASSERT_TRUE(train({c, folder / "straight", 0, false, 0}, data, straight, {}));
  for (std::int64_t k = 1; k <= 15; ++k) {
    const fs::path run = folder / std::to_string(k);
    fs::create_directories(run);
    RecordingSink first, second;
    const auto stopped = train({c, run, k, false, 0}, data, first, {});
    ASSERT_TRUE(stopped) << stopped.error().message();
    EXPECT_EQ(stopped->steps, k);
    const auto resumed = train({c, run, 0, true, k}, data, second, {});
    ASSERT_TRUE(resumed) << resumed.error().message();
    EXPECT_TRUE(resumed->complete);
    EXPECT_EQ(resumed->steps, 15);
    EXPECT_EQ(second.series["loss"].size(), static_cast<std::size_t>(15 - k)) << "no step twice, none left out";
    for (const char* metric : {"loss", "ce", "grad_norm", "adam_lr", "update_norm", "max_logit"}) {
      std::map<std::int64_t, double> joined = first.series[metric];
      joined.merge(second.series[metric]);
      EXPECT_EQ(joined, straight.series[metric]) << metric << " at " << k;
    }
    EXPECT_EQ(weights(run, 15), weights(folder / "straight", 15)) << k;
    EXPECT_FALSE(second.said("made elsewhere")) << k;
  }
}

TEST_F(Resume, AFinishedRunMakesNoStepAndNoCheckpoint) {
  RecordingSink first, again;
  ASSERT_TRUE(run(small_config(), first, "f"));
  const fs::path last = folder_.path() / "f/ckpt_step40/trainer.json";
  const auto written = fs::last_write_time(last);
  const auto r = run(small_config(), again, "f", true);
  ASSERT_TRUE(r);
  EXPECT_TRUE(r->complete);
  EXPECT_TRUE(again.series["loss"].empty());
  EXPECT_EQ(fs::last_write_time(last), written);
}

TEST_F(Resume, OnTheOtherBackendWithOtherThreadsInAMovedFolder) {
  for (const auto& [from, to] : {std::pair("reference", "cpu"), std::pair("cpu", "reference")}) {
    RunConfig c = small_config();
    c.run.device = from;
    RecordingSink first, second, straight;
    const std::string name = std::string("from-") + from;
    ASSERT_TRUE(run(c, first, name, false, 20));
    ASSERT_TRUE(run(c, straight, name + "-straight"));
    fs::create_directories(folder_.path() / "moved to");
    fs::rename(folder_.path() / name, folder_.path() / "moved to" / name);
    c.run.device = to, c.run.threads = 2;
    const auto r = run(c, second, "moved to/" + name, true);
    ASSERT_TRUE(r) << r.error().message();
    EXPECT_EQ(second.resumed, 20);
    EXPECT_TRUE(r->complete);
    EXPECT_TRUE(second.said(std::string("device was ") + from + ", is " + to)) << "it is said";
    EXPECT_FALSE(second.said("threads was")) << "what changes no bit is not";
    // The same curve but for rounding: the two sum in other orders, over the vocabulary at most, in every step.
    for (const auto& [step, loss] : second.series["loss"]) {
      const double expected = straight.series["loss"][step];
      const double sums = static_cast<double>(c.model.vocab_size) * static_cast<double>(step - 20);
      EXPECT_NEAR(loss, expected, std::numeric_limits<float>::epsilon() * sums * expected) << step;
    }
  }
}

TEST_F(Resume, WhatChangedSinceIsNamed) {
  RecordingSink first, second;
  RunConfig c = small_config();
  c.run.keep_last = 9;
  ASSERT_TRUE(run(c, first, "w", false, 5));
  const fs::path made = folder_.path() / "w/ckpt_step5";
  auto json = nlohmann::ordered_json::parse(file_text(made / "provenance.json"));
  json["commit"] = "0123456789ab";
  json["environment"]["isa"] = "AVX9";
  json["environment"]["library.glibc"] = "1.0";
  json["environment"]["cpu"] = "Another";
  const auto resum = [&](const std::string& text) {
    put_file(made / "provenance.json", text);
    auto trainer = nlohmann::json::parse(file_text(made / "trainer.json"));
    trainer["sha256"]["provenance.json"] = sha256_hex(text);
    trainer.erase("content_sha256");
    put_file(made / "trainer.json", trainer.dump());
  };
  resum(json.dump());
  const auto r = run(c, second, "w", true, 8);
  ASSERT_TRUE(r) << r.error().message();
  EXPECT_EQ(second.resumed, 5);
  for (const char* part : {"commit was 0123456789ab", "isa was AVX9, is ", "library.glibc was 1.0", "goes on"})
    EXPECT_TRUE(second.said(part)) << part;
  EXPECT_FALSE(second.said("Another"));
  // One that is no provenance makes the checkpoint unreadable: it is not what this program wrote.
  for (const char* later : {"w/ckpt_step7", "w/ckpt_step8"}) fs::remove_all(folder_.path() / later);
  resum("{}");
  RecordingSink third;
  ASSERT_TRUE(run(c, third, "w", true, 6));
  EXPECT_TRUE(third.said("passed over"));
  EXPECT_EQ(third.resumed, 0);
}

// Checkpoints of builds that wrote neither config nor provenance go on.
TEST_F(Resume, FromACheckpointOfAnEarlierBuild) {
  RecordingSink first, second, straight;
  ASSERT_TRUE(run(small_config(), first, "e", false, 5));
  ASSERT_TRUE(run(small_config(), straight, "e2", false, 8));
  const fs::path made = folder_.path() / "e/ckpt_step5";
  auto trainer = nlohmann::json::parse(file_text(made / "trainer.json"));
  for (const char* file : {"config.json", "provenance.json"}) {
    fs::remove(made / file);
    trainer["sha256"].erase(file);
  }
  trainer.erase("data");
  trainer.erase("random");
  trainer.erase("content_sha256");
  put_file(made / "trainer.json", trainer.dump());
  ASSERT_TRUE(run(small_config(), second, "e", true, 8));
  EXPECT_EQ(second.resumed, 5);
  EXPECT_EQ(weights(folder_.path() / "e", 8), weights(folder_.path() / "e2", 8));
}

TEST_F(Resume, FromACheckpointOfAnotherFolder) {
  RecordingSink first, second;
  ASSERT_TRUE(run(small_config(), first, "origin", false, 14));
  const auto before = fs::last_write_time(folder_.path() / "origin/ckpt_step7");
  fs::create_directories(folder_.path() / "copy");
  TrainRequest request{small_config(), folder_.path() / "copy", 14, false, 0};
  request.from = list_checkpoints(folder_.path() / "origin").at(0);
  const auto r = train(request, data_, second, {});
  ASSERT_TRUE(r) << r.error().message();
  EXPECT_EQ(second.series["loss"].begin()->first, 8);
  EXPECT_EQ(second.series["loss"][14], first.series["loss"][14]);
  EXPECT_EQ(weights(folder_.path() / "copy", 14), weights(folder_.path() / "origin", 14));
  EXPECT_EQ(fs::last_write_time(folder_.path() / "origin/ckpt_step7"), before);
  EXPECT_EQ(list_checkpoints(folder_.path() / "origin").size(), 2u);
  // What it cannot give is an error, not a start from nothing.
  fs::resize_file(folder_.path() / "origin/ckpt_step7/model.safetensors", 100);
  EXPECT_FALSE(train(request, data_, second, {}));
}

TEST_F(Resume, MilestonesHaveCheckpointsThatStay) {
  RunConfig c = small_config();  // 40 steps, every 7, keep 2, the rate decays over the last 4
  c.run.keep_milestones = "3,10";
  for (const auto& [keep, expected] : std::vector<std::pair<std::int64_t, std::vector<std::int64_t>>>{
           {0, {3, 10, 36, 40}}, {1, {3, 10, 36, 40}}, {2, {3, 10, 36, 40}}, {4, {3, 10, 28, 35, 36, 40}}}) {
    c.run.keep_last = keep;
    RecordingSink sink;
    const std::string name = "m" + std::to_string(keep);
    ASSERT_TRUE(run(c, sink, name));
    std::vector<std::int64_t> steps;
    for (const CheckpointFolder& f : list_checkpoints(folder_.path() / name)) steps.push_back(f.step);
    EXPECT_EQ(steps, expected) << keep;
  }
  // The last step at the full rate, and the next one below it.
  RecordingSink sink;
  ASSERT_TRUE(run(c, sink, "rates"));
  EXPECT_EQ(sink.series["adam_lr"][36], c.optim.adam_lr);
  EXPECT_LT(sink.series["adam_lr"][37], c.optim.adam_lr);
}

}  // namespace
}  // namespace stacklab::test
