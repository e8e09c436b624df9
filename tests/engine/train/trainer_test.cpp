// A whole run: it learns, stops, goes on bit for bit, and says what is wrong.
#include "engine/train/trainer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>

#include "engine/train/checkpoint.h"
#include "tests/engine/train/train_harness.h"

namespace stacklab::test {
namespace {

TEST_F(TrainerTest, LearnsAndReports) {
  RecordingSink sink;
  const auto r = run(small_config(), sink, "a");
  ASSERT_TRUE(r) << r.error().message();
  EXPECT_TRUE(r->complete);
  EXPECT_EQ(r->steps, 40);
  EXPECT_EQ(r->tokens, 40 * 128);
  EXPECT_NEAR(r->first_loss, std::log(256.0), 0.2);
  EXPECT_LT(r->val_loss, r->first_loss / 2);
  EXPECT_EQ(r->loss, sink.series["loss"][40]);
  EXPECT_EQ(sink.series["loss"].size(), 40u);
  EXPECT_EQ(sink.series["val_loss"].size(), 4u);
  for (const char* metric : {"ce", "z_loss", "adam_lr", "grad_norm", "max_logit", "tokens_per_second"})
    EXPECT_EQ(sink.series[metric].size(), 40u) << metric;
  EXPECT_NEAR(sink.series["adam_lr"][1], 1e-2 * 128 / 256, 1e-15);
  EXPECT_EQ(sink.series["adam_lr"][2], 1e-2);
  for (const auto& [step, loss] : sink.series["loss"])
    EXPECT_EQ(loss, sink.series["ce"][step] + sink.series["z_loss"][step]);
  EXPECT_GE(sink.beats, 40);
  EXPECT_EQ(sink.facts["parameters"], static_cast<double>(r->parameters));
  EXPECT_GT(r->plan_bytes, 0);
  EXPECT_GE(r->peak_bytes, r->plan_bytes / 2);
  // Two newest checkpoints stay: the last, and the last before the decay.
  const auto checkpoints = list_checkpoints(folder_.path() / "a");
  ASSERT_EQ(checkpoints.size(), 2u);
  EXPECT_EQ(checkpoints[0].step, 36);
  EXPECT_EQ(checkpoints[1].step, 40);
}

TEST_F(TrainerTest, FallsBelowWhatCountingLettersReaches) {
  RunConfig c = small_config();
  c.train.tokens = 160 * c.train.batch_tokens;
  RecordingSink sink;
  const auto r = run(c, sink, "l");
  ASSERT_TRUE(r);
  EXPECT_LT(r->val_loss, 0.6 * r->unigram_entropy);
}

TEST_F(TrainerTest, InterruptedAndResumedIsBitIdentical) {
  RecordingSink straight;
  ASSERT_TRUE(run(small_config(), straight, "straight"));
  for (const std::int64_t cut : {1, 7, 13, 39}) {
    const std::string name = "cut" + std::to_string(cut);
    RecordingSink first, second;
    std::stop_source source;
    first.stop_at_step = &source, first.when = cut;
    const auto stopped = run(small_config(), first, name, false, 0, source.get_token());
    ASSERT_TRUE(stopped);
    EXPECT_FALSE(stopped->complete);
    EXPECT_EQ(stopped->steps, cut) << "a stop finishes the step";
    RunConfig other = small_config();
    other.run.threads = 2;
    const auto resumed = run(other, second, name, true);
    ASSERT_TRUE(resumed);
    EXPECT_TRUE(resumed->complete);
    EXPECT_EQ(second.resumed, cut);
    EXPECT_EQ(resumed->first_loss, straight.series["loss"][1]);
    for (const char* metric : {"loss", "val_loss", "grad_norm", "adam_lr", "max_logit"}) {
      std::map<std::int64_t, double> joined = first.series[metric];
      joined.insert(second.series[metric].begin(), second.series[metric].end());
      EXPECT_EQ(joined, straight.series[metric]) << metric << " cut at " << cut;
    }
  }
}

TEST_F(TrainerTest, MaxStepsStopsEarlyAndIsNotConfig) {
  RecordingSink sink;
  const auto r = run(small_config(), sink, "m", false, 5);
  ASSERT_TRUE(r);
  EXPECT_EQ(r->steps, 5);
  EXPECT_FALSE(r->complete);
  EXPECT_EQ(list_checkpoints(folder_.path() / "m").back().step, 5);
  // Asking again for as many does nothing; a finished run makes no extra step.
  RecordingSink again;
  EXPECT_EQ(run(small_config(), again, "m", true, 5)->steps, 5);
  EXPECT_TRUE(again.series["loss"].empty());
}

TEST_F(TrainerTest, ResumeWithoutACheckpointStarts) {
  RecordingSink sink;
  const auto r = run(small_config(), sink, "r", true, 2);
  ASSERT_TRUE(r);
  EXPECT_EQ(r->steps, 2);
  EXPECT_EQ(sink.resumed, 0);
}

TEST_F(TrainerTest, ABrokenCheckpointIsPassedOverWithAWord) {
  RecordingSink first;
  ASSERT_TRUE(run(small_config(), first, "b", false, 14));
  std::filesystem::resize_file(folder_.path() / "b/ckpt_step14/optimiser.safetensors", 100);
  RecordingSink second;
  const auto r = run(small_config(), second, "b", true, 15);
  ASSERT_TRUE(r);
  EXPECT_EQ(second.resumed, 7);
  EXPECT_TRUE(second.said("passed over"));
  EXPECT_EQ(second.series["loss"][14], first.series["loss"][14]);
}

// Checkpoints that cannot be read, or are of a course that was left, must not take the places of new ones.
TEST_F(TrainerTest, NewCheckpointsStayWhereOldOnesHaveHigherSteps) {
  RecordingSink first;
  ASSERT_TRUE(run(small_config(), first, "h", false, 21));
  for (const char* folder : {"ckpt_step21", "ckpt_step14"})
    std::filesystem::resize_file(folder_.path() / "h" / folder / "model.safetensors", 100);
  RecordingSink second;
  TrainRequest request{small_config(), folder_.path() / "h", 9, true, 21};
  const auto again = train(request, data_, second, {});
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(again->steps, 9);
  EXPECT_TRUE(second.said("the 21 steps that were recorded are trained again"));
  EXPECT_TRUE(second.said("set aside"));
  EXPECT_EQ(second.series["loss"][9], first.series["loss"][9]);
  std::vector<std::int64_t> steps;
  for (const CheckpointFolder& f : list_checkpoints(folder_.path() / "h")) steps.push_back(f.step);
  EXPECT_EQ(steps, (std::vector<std::int64_t>{7, 9}));
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "h/set-aside-1-ckpt_step21"));
  // A run that does not resume shares the folder with nothing older.
  RecordingSink third;
  ASSERT_TRUE(run(small_config(), third, "h", false, 3));
  ASSERT_EQ(list_checkpoints(folder_.path() / "h").size(), 1u);
  EXPECT_EQ(list_checkpoints(folder_.path() / "h")[0].step, 3);
}

TEST_F(TrainerTest, DamageOfEveryKindIsPassedOver) {
  RecordingSink first;
  ASSERT_TRUE(run(small_config(), first, "k", false, 14));
  const std::filesystem::path newest = folder_.path() / "k/ckpt_step14", kept = folder_.path() / "kept";
  std::filesystem::copy(newest, kept, std::filesystem::copy_options::recursive);
  const auto text = [&](const char* from, const char* to) {
    std::string json;
    std::getline(std::ifstream(kept / "trainer.json"), json, '\0');
    json.replace(json.find(from), std::string(from).size(), to);
    std::ofstream(newest / "trainer.json") << json;
  };
  const auto flip = [&] {
    std::fstream file(newest / "model.safetensors", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-5, std::ios::end);
    file.put('!');
  };
  const std::vector<std::pair<const char*, std::function<void()>>> damages = {
      {"a word for a number", [&] { text("\"tokens\": ", "\"tokens\": \"x\", \"t\": "); }},
      {"a word for the version", [&] { text("\"format_version\": 1", "\"format_version\": \"x\""); }},
      {"no state", [&] { std::ofstream(newest / "trainer.json") << "[]"; }},
      {"a flipped byte", flip},
      {"a file of another checkpoint", [&] {
         std::filesystem::copy_file(folder_.path() / "k/ckpt_step7/model.safetensors", newest / "model.safetensors",
                                    std::filesystem::copy_options::overwrite_existing);
       }}};
  for (const auto& [what, damage] : damages) {
    std::filesystem::remove_all(newest);
    std::filesystem::copy(kept, newest, std::filesystem::copy_options::recursive);
    damage();
    RecordingSink sink;
    const auto r = run(small_config(), sink, "k", true, 8);
    ASSERT_TRUE(r) << what << ": " << r.error().message();
    EXPECT_EQ(sink.resumed, 7) << what;
    EXPECT_TRUE(sink.said("passed over")) << what;
    std::filesystem::remove_all(folder_.path() / "k/ckpt_step8");
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path() / "k"))
      if (entry.path().filename().string().starts_with("set-aside")) std::filesystem::remove_all(entry.path());
  }
}

TEST_F(TrainerTest, APlanBeyondFreeMemoryIsRefusedBeforeAnythingIsAllocated) {
  RunConfig c = small_config();
  c.model.d_model = 1 << 14, c.model.intermediate = 1 << 16, c.model.n_layers = 200;
  RecordingSink sink;
  const auto r = run(c, sink, "g");
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().kind, Error::Kind::refused);
  EXPECT_NE(r.error().message().find("run.memory_guard"), std::string::npos);
  TrainRequest request{c, folder_.path() / "g"};
  std::int64_t asked = 0;
  request.memory_remedy = [&](std::int64_t available) {
    asked = available;
    return std::string("buy some");
  };
  const auto with_remedy = train(request, data_, sink, {});
  ASSERT_FALSE(with_remedy);
  EXPECT_NE(with_remedy.error().message().find("(buy some; --set run.memory_guard=false"), std::string::npos);
  EXPECT_GT(asked, 0);
}

TEST_F(TrainerTest, UnknownDeviceIsAUsageError) {
  RunConfig c = small_config();
  c.run.device = "cuda";
  RecordingSink sink;
  const auto r = run(c, sink, "d");
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().kind, Error::Kind::usage);
  EXPECT_NE(r.error().message().find("cuda"), std::string::npos);
}

TEST_F(TrainerTest, NoHeldOutDocumentsIsSaid) {
  data_ = small_data(folder_ / "all", 0);
  RecordingSink sink;
  const auto r = run(small_config(), sink, "v", false, 3);
  ASSERT_TRUE(r) << r.error().message();
  EXPECT_TRUE(std::isnan(r->val_loss));
  EXPECT_TRUE(sink.said("No validation loss"));
}

TEST_F(TrainerTest, ANonFiniteGradientStopsTheRunWithItsCauseAfterTenSteps) {
  RunConfig c = small_config();
  c.optim.adam_lr = 1e38;
  c.optim.grad_clip = 0;
  c.run.checkpoint_every = 0;
  RecordingSink sink;
  const auto r = run(c, sink, "n");
  ASSERT_FALSE(r);
  EXPECT_NE(r.error().message().find("not finite in 10 steps in a row"), std::string::npos) << r.error().message();
  EXPECT_TRUE(sink.said("Step skipped"));
}

}  // namespace
}  // namespace stacklab::test
