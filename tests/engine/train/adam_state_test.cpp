// AdamW with moments in 8 bits and in bf16: runs learn, resume and are saved as others are.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "engine/base/safetensors.h"
#include "engine/program/checker.h"
#include "engine/train/checkpoint.h"
#include "tests/engine/train/train_harness.h"

namespace stacklab::test {
namespace {

using Kind = std::tuple<const char*, const char*, const char*>;  // state, precision, matrices

RunConfig config_of(const Kind& kind) {
  RunConfig c = small_config();
  std::tie(c.optim.adam_state, c.train.precision, c.optim.matrices) = kind;
  if (c.optim.matrices == "muon") c.optim.muon_lr = 2e-2;
  return c;
}

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

class AdamState : public TrainerTest, public testing::WithParamInterface<Kind> {};

// As the run with moments in fp32 does; both on every backend of this build.
TEST_P(AdamState, LearnsAsFullStateDoes) {
  RunConfig full = config_of(GetParam());
  full.optim.adam_state = "fp32";
  RecordingSink a, b;
  const auto compact = run(config_of(GetParam()), a, "compact"), reference = run(full, b, "full");
  ASSERT_TRUE(compact) << compact.error().message();
  ASSERT_TRUE(reference) << reference.error().message();
  EXPECT_GT(reference->first_loss - reference->val_loss, 2) << "nothing was learnt";
  EXPECT_GT(compact->first_loss - compact->val_loss, 0.9 * (reference->first_loss - reference->val_loss));
  EXPECT_NE(a.series["loss"][5], b.series["loss"][5]) << "nothing was rounded";
  EXPECT_LT(compact->plan_bytes, reference->plan_bytes);
}

TEST_P(AdamState, InterruptedAndResumedIsBitIdentical) {
  RecordingSink straight, first, second;
  ASSERT_TRUE(run(config_of(GetParam()), straight, "straight"));
  ASSERT_TRUE(run(config_of(GetParam()), first, "cut", false, 13));
  ASSERT_TRUE(run(config_of(GetParam()), second, "cut", true));
  EXPECT_EQ(second.resumed, 13);
  for (const char* metric : {"loss", "val_loss", "grad_norm", "update_norm"}) {
    std::map<std::int64_t, double> joined = first.series[metric];
    joined.insert(second.series[metric].begin(), second.series[metric].end());
    EXPECT_EQ(joined, straight.series[metric]) << metric;
  }
}

TEST_P(AdamState, SavedLoadedAndSavedAgainIsTheSameFile) {
  const RunConfig c = config_of(GetParam());
  RecordingSink sink;
  ASSERT_TRUE(run(c, sink, "run"));
  const CheckpointFolder saved = newest(folder_.path() / "run");
  auto step = TrainStep::create(c, *loader_shape(c), **training_backend(c), nullptr);
  ASSERT_TRUE(step) << step.error().message();
  for (std::size_t p = 0; p < (*step)->programs().set.programs().size(); ++p)
    EXPECT_EQ(check_program((*step)->programs().set, static_cast<int>(p)), std::vector<std::string>{});
  const auto loaded = load_checkpoint(saved, c, **step);
  ASSERT_TRUE(loaded) << loaded.error().message();
  ASSERT_TRUE(save_checkpoint(folder_.path() / "again", c, some_provenance(c), **step, loaded->state));
  for (const char* file : {"model.safetensors", "optimiser.safetensors"})
    EXPECT_EQ(text_of(newest(folder_.path() / "again").path / file), text_of(saved.path / file)) << file;
  const CheckpointSize size = checkpoint_size(c);
  EXPECT_EQ(static_cast<std::int64_t>(text_of(saved.path / "optimiser.safetensors").size()), size.optimiser);
  // What lies in the file is what the config says.
  const auto file = Safetensors::open(saved.path / "optimiser.safetensors");
  ASSERT_TRUE(file);
  const bool codes = c.optim.adam_state == "int8";
  EXPECT_EQ(file->find("adam_m.tok_emb.weight")->type, codes ? SafetensorsType::u8 : SafetensorsType::bf16);
  EXPECT_EQ(file->find("adam_v_scales.tok_emb.weight") != nullptr, codes);
  EXPECT_EQ(file->find("adam_m.final_norm.weight")->type, SafetensorsType::f32);
  const auto model = Safetensors::open(saved.path / "model.safetensors");
  ASSERT_TRUE(model);
  const bool no_master = !codes && c.train.precision == "bf16";
  EXPECT_EQ(model->find("tok_emb.weight")->type, no_master ? SafetensorsType::bf16 : SafetensorsType::f32);
}

INSTANTIATE_TEST_SUITE_P(Kinds, AdamState,
                         testing::Combine(testing::Values("int8", "bf16"), testing::Values("fp32", "bf16"),
                                          testing::Values("adamw", "muon")),
                         [](const auto& i) {
                           return std::string(std::get<0>(i.param)) + "_" + std::get<1>(i.param) + "_" +
                                  std::get<2>(i.param);
                         });

}  // namespace
}  // namespace stacklab::test
