// Checkpoints: whole, strict, and the same bytes again.
#include "engine/train/checkpoint.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>

#include "tests/engine/train/train_harness.h"

namespace stacklab::test {
namespace {

namespace fs = std::filesystem;

std::unique_ptr<TrainStep> make_step(const RunConfig& c) {
  auto step = TrainStep::create(c, *loader_shape(c), *find_backend("reference"), nullptr);
  initialise((*step)->programs().model.parameters(), 5, (*step)->executor());
  return std::move(*step);
}

std::string bytes_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TrainerState some_state() {
  TrainerState s;
  s.step = 12, s.tokens = 1536, s.seconds = 3.25, s.first_loss = 5.5, s.loss = 0.1 + 0.2, s.val_loss = std::nan("");
  s.skipped = 1;
  return s;
}

TEST(Checkpoint, SaveLoadSaveGivesTheSameBytes) {
  const TemporaryFolder folder;
  const auto step = make_step(small_config());
  ASSERT_TRUE(save_checkpoint(folder.path() / "a", "0123456789ab", *step, some_state()));
  const auto other = make_step(small_config());
  for (float& v : other->executor().host<float>(other->programs().model.parameters().parameters[0].view)) v = 9;
  const auto state = load_checkpoint(list_checkpoints(folder.path() / "a").at(0), "0123456789ab", *other);
  ASSERT_TRUE(state) << state.error().message();
  EXPECT_EQ(state->loss, 0.1 + 0.2);
  EXPECT_TRUE(std::isnan(state->val_loss));
  EXPECT_EQ(state->tokens, 1536);
  ASSERT_TRUE(save_checkpoint(folder.path() / "b", "0123456789ab", *other, *state));
  for (const char* file : {"model.safetensors", "optimiser.safetensors", "trainer.json"}) {
    EXPECT_EQ(bytes_of(folder.path() / "a/ckpt_step12" / file), bytes_of(folder.path() / "b/ckpt_step12" / file))
        << file;
    EXPECT_FALSE(bytes_of(folder.path() / "a/ckpt_step12" / file).empty());
  }
}

TEST(Checkpoint, WhatDoesNotBelongIsNamed) {
  const TemporaryFolder folder;
  const auto step = make_step(small_config());
  ASSERT_TRUE(save_checkpoint(folder.path(), "0123456789ab", *step, some_state()));
  const CheckpointFolder saved = list_checkpoints(folder.path()).at(0);
  const auto error = [&](TrainStep& into, const std::string& hash = "0123456789ab") {
    const auto loaded = load_checkpoint(saved, hash, into);
    return loaded ? std::string() : loaded.error().message();
  };
  EXPECT_EQ(error(*step), "");
  EXPECT_NE(error(*step, "ba9876543210").find("belongs to run 0123456789ab"), std::string::npos);
  RunConfig deeper = small_config();
  deeper.model.n_layers = 3;
  EXPECT_NE(error(*make_step(deeper)).find("blocks.2.attn_norm.weight is missing"), std::string::npos)
      << error(*make_step(deeper));
  RunConfig shallower = small_config();
  shallower.model.n_layers = 1;
  EXPECT_NE(error(*make_step(shallower)).find("does not belong to this model"), std::string::npos);
  RunConfig wider = small_config();
  wider.model.intermediate = 32;
  EXPECT_NE(error(*make_step(wider)).find("another type or shape"), std::string::npos);

  fs::resize_file(saved.path / "model.safetensors", 200);
  EXPECT_NE(error(*step).find("model.safetensors"), std::string::npos);
  std::ofstream(saved.path / "trainer.json") << "{\"step\": 12";
  EXPECT_NE(error(*step).find("trainer.json"), std::string::npos);
}

TEST(Checkpoint, TiedHeadIsStoredOnce) {
  const TemporaryFolder folder;
  const auto step = make_step(small_config());
  ASSERT_TRUE(save_checkpoint(folder.path(), "0123456789ab", *step, some_state()));
  const std::string model = bytes_of(folder.path() / "ckpt_step12/model.safetensors");
  EXPECT_NE(model.find("tok_emb.weight"), std::string::npos);
  EXPECT_NE(model.find("lm_head.weight=tok_emb.weight"), std::string::npos) << "the tie is said";
  EXPECT_EQ(model.find("\"lm_head.weight\":"), std::string::npos);
}

TEST(Checkpoint, OnlyItsOwnFoldersAreListedAndPruned) {
  const TemporaryFolder folder;
  for (const char* name : {"ckpt_step10", "ckpt_step9", "ckpt_step100", "ckpt_step", "ckpt_step12x", "ckpt_step-3",
                           "ckpt_step7.tmp", "notes"})
    fs::create_directories(folder.path() / name);
  std::ofstream(folder.path() / "ckpt_step5") << "a file";
  std::vector<std::int64_t> steps;
  for (const CheckpointFolder& f : list_checkpoints(folder.path())) steps.push_back(f.step);
  EXPECT_EQ(steps, (std::vector<std::int64_t>{9, 10, 100}));
  EXPECT_EQ(prune_checkpoints(folder.path(), 2), std::vector<std::int64_t>{9});
  EXPECT_EQ(prune_checkpoints(folder.path(), 0), std::vector<std::int64_t>{10}) << "the newest always stays";
  for (const char* name :
       {"ckpt_step100", "ckpt_step", "ckpt_step12x", "ckpt_step-3", "ckpt_step7.tmp", "notes", "ckpt_step5"})
    EXPECT_TRUE(fs::exists(folder.path() / name)) << name;
  EXPECT_TRUE(list_checkpoints(folder.path() / "nowhere").empty());
}

}  // namespace
}  // namespace stacklab::test
