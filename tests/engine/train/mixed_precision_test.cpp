// Mixed precision: bf16 copies of f32 masters.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/program/checker.h"
#include "engine/train/checkpoint.h"
#include "kernels/bf16.h"
#include "tests/engine/train/train_harness.h"

namespace stacklab::test {
namespace {

RunConfig mixed_config(const std::string& matrices = "adamw") {
  RunConfig c = small_config();
  c.train.precision = "bf16";
  c.optim.matrices = matrices;
  if (matrices == "muon") c.optim.muon_lr = 2e-2;
  return c;
}

// Every copy is its master, rounded.
void expect_rounded(TrainStep& step) {
  int copies = 0;
  for (const ParameterBuffer& b : step.programs().model.parameters().buffers) {
    if (!b.is_copy()) continue;
    ++copies;
    const auto master = step.executor().host<float>(b.master);
    const auto copy = step.executor().host<BFloat16>(b.value);
    for (std::size_t i = 0; i < master.size(); ++i) ASSERT_EQ(copy[i].bits, BFloat16(master[i]).bits);
  }
  EXPECT_GT(copies, 0);
}

class MixedPrecision : public TrainerTest, public testing::WithParamInterface<std::string> {};
TEST_P(MixedPrecision, LearnsAsFullPrecisionDoes) {
  RecordingSink mixed, full;
  const auto a = run(mixed_config(GetParam()), mixed, "mixed");
  RunConfig config = mixed_config(GetParam());
  config.train.precision = "fp32";
  const auto b = run(config, full, "full");
  ASSERT_TRUE(a) << a.error().message();
  ASSERT_TRUE(b) << b.error().message();
  EXPECT_GT(b->first_loss - b->val_loss, 2) << "nothing was learnt";
  // Forty steps at a high rate part ways; what is learnt must stay of one size.
  EXPECT_GT(a->first_loss - a->val_loss, 0.9 * (b->first_loss - b->val_loss));
  // The first loss, before anything was learnt: a logit is a sum of d products of operands rounded to 2^-9, of the size
  // that the initial deviations give.
  const double d = static_cast<double>(config.model.d_model);
  EXPECT_NEAR(mixed.series["loss"][1], full.series["loss"][1], 4 * 0x1p-9 * 0.02 * std::sqrt(d));
  EXPECT_NE(mixed.series["loss"][1], full.series["loss"][1]) << "nothing was rounded";
}

TEST_P(MixedPrecision, InterruptedAndResumedIsBitIdentical) {
  RecordingSink straight, first, second;
  ASSERT_TRUE(run(mixed_config(GetParam()), straight, "straight"));
  ASSERT_TRUE(run(mixed_config(GetParam()), first, "cut", false, 13));
  ASSERT_TRUE(run(mixed_config(GetParam()), second, "cut", true));
  EXPECT_EQ(second.resumed, 13);
  for (const char* metric : {"loss", "val_loss", "grad_norm"}) {
    std::map<std::int64_t, double> joined = first.series[metric];
    joined.insert(second.series[metric].begin(), second.series[metric].end());
    EXPECT_EQ(joined, straight.series[metric]) << metric;
  }
}

INSTANTIATE_TEST_SUITE_P(Optimisers, MixedPrecision, testing::Values("adamw", "muon"));

TEST(MixedPrecisionStep, CopiesFollowTheirMasters) {
  for (const std::int64_t micro : {4, 2}) {
    RunConfig c = mixed_config();
    c.run.micro_batch = micro;
    for (const std::string_view device : backend_names()) {
      const Backend& backend = *find_backend(device);
      auto step = TrainStep::create(c, *loader_shape(c), backend, nullptr);
      ASSERT_TRUE(step);
      TrainStep& s = **step;
      for (std::size_t p = 0; p < s.programs().set.programs().size(); ++p)
        EXPECT_EQ(check_program(s.programs().set, static_cast<int>(p)), std::vector<std::string>{});
      EXPECT_EQ(s.executor().allocated_bytes(), s.executor().plan().total());
      initialise(s.programs().model.parameters(), 5, s.executor());
      s.parameters_changed();
      expect_rounded(s);
      const TemporaryFolder folder;
      const Dataset data = small_data(folder.path());
      auto loader = BatchLoader::training(data, *loader_shape(c), 1, Packing::fragment);
      ASSERT_TRUE(loader);
      const float before = s.executor().host<float>(s.programs().model.parameters().parameters[1].view)[0];
      s.run(loader->step(0), {1e-2, 1e-2});
      EXPECT_NE(s.executor().host<float>(s.programs().model.parameters().parameters[1].view)[0], before);
      expect_rounded(s);

      // A checkpoint holds the masters.
      ASSERT_TRUE(save_checkpoint(folder.path() / "run", c, some_provenance(c), s, TrainerState{}));
      auto other = TrainStep::create(c, *loader_shape(c), backend, nullptr);
      ASSERT_TRUE(other);
      ASSERT_TRUE(load_checkpoint(newest(folder.path() / "run"), c, **other));
      expect_rounded(**other);
      const auto &mine = s.programs().model.parameters().parameters,
                 &theirs = (*other)->programs().model.parameters().parameters;
      for (std::size_t i = 0; i < mine.size(); ++i) {
        const auto a = s.executor().host<float>(mine[i].view), b = (*other)->executor().host<float>(theirs[i].view);
        EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin())) << mine[i].name;
      }
    }
  }
}

}  // namespace
}  // namespace stacklab::test
