// One step: its plan, its independence of cuts and threads.
#include "engine/train/train_step.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/program/checker.h"
#include "tests/engine/train/train_harness.h"
#include "tests/kernels/op_harness.h"

namespace stacklab::test {
namespace {

const Backend& reference() { return *find_backend("reference"); }

TEST(LoaderShape, CutsAStepOrSaysWhatDoesNotDivide) {
  RunConfig c = small_config();
  EXPECT_EQ(loader_shape(c)->micro_batch, 4);
  EXPECT_EQ(loader_shape(c)->accumulation, 1);
  c.run.micro_batch = 2;
  EXPECT_EQ(loader_shape(c)->accumulation, 2);
  c.run.micro_batch = 3;
  EXPECT_NE(loader_shape(c).error().message().find("run.micro_batch 3"), std::string::npos);
  c.run.micro_batch = 0;
  c.train.batch_tokens = 524288, c.train.seq_len = 2048;
  EXPECT_EQ(loader_shape(c)->micro_batch * loader_shape(c)->accumulation, 256);
  c.train.batch_tokens = 100;
  EXPECT_NE(loader_shape(c).error().message().find("train.batch_tokens 100"), std::string::npos);
}

// What the plan says is what is allocated, and the proof holds, for every way to build a run.
TEST(TrainPrograms, PlanIsAllocationOnAGrid) {
  for (const std::int64_t micro : {1, 2, 4})
    for (const std::int64_t seq_len : {16, 32})
      for (const std::int64_t chunk : {0, 5})
        for (const char* precision : {"fp32", "fp64", "bf16"})
          for (const bool tied : {true, false}) {
            RunConfig c = small_config();
            c.run.micro_batch = micro, c.train.seq_len = seq_len, c.run.loss_chunk = chunk,
            c.train.precision = precision;
            c.model.tie_embeddings = tied;
            const LoaderShape shape = *loader_shape(c);
            const TrainPrograms programs(c, shape, reference());
            const MemoryPlan plan = plan_memory(programs.set);
            for (std::size_t p = 0; p < programs.set.programs().size(); ++p)
              EXPECT_EQ(check_program(programs.set, static_cast<int>(p)), std::vector<std::string>{});
            EXPECT_EQ(check_plan(programs.set, plan), std::vector<std::string>{});
            auto step = TrainStep::create(c, shape, reference(), nullptr);
            ASSERT_TRUE(step);
            EXPECT_EQ((*step)->executor().allocated_bytes(), plan.total());
          }
}

TEST(TrainPrograms, GradientsAreStepBuffersUnlessAccumulated) {
  RunConfig c = small_config();
  const auto persistent_gradients = [&] {
    const TrainPrograms programs(c, *loader_shape(c), reference());
    return plan_memory(programs.set).persistent_by_class[static_cast<std::size_t>(BufferClass::gradient)];
  };
  EXPECT_EQ(persistent_gradients(), 0);
  c.run.micro_batch = 2;
  EXPECT_GT(persistent_gradients(), 0);
}

// Runs `steps` steps and returns the losses and gradient norms.
std::vector<double> trajectory(const RunConfig& c, const Dataset& data, int steps, ParallelFor* parallel = nullptr) {
  const LoaderShape shape = *loader_shape(c);
  auto loader = BatchLoader::training(data, shape, 1, Packing::fragment);
  auto step = TrainStep::create(c, shape, reference(), parallel);
  initialise((*step)->programs().model.parameters(), 3, (*step)->executor());
  std::vector<double> out;
  for (int s = 0; s < steps; ++s) {
    const StepResult r = (*step)->run(loader->step(s), {1e-3, 1e-3});
    out.push_back(r.loss());
    out.push_back(r.grad_norm);
  }
  return out;
}

TEST(TrainStep, AccumulationDividesOnceByTheTargetsOfTheWholeStep) {
  const TemporaryFolder folder;
  const Dataset data = small_data(folder.path());
  RunConfig c = small_config();
  c.train.precision = "fp64";
  const std::vector<double> whole = trajectory(c, data, 6);
  for (const std::int64_t micro : {2, 1}) {
    c.run.micro_batch = micro;
    const std::vector<double> cut = trajectory(c, data, 6);
    for (std::size_t i = 0; i < whole.size(); ++i)
      EXPECT_NEAR(cut[i], whole[i], 1e-11 * std::abs(whole[i])) << micro << " at " << i;
  }
}

TEST(TrainStep, LossAtTheStartIsThatOfAGuess) {
  const TemporaryFolder folder;
  const Dataset data = small_data(folder.path());
  const std::vector<double> t = trajectory(small_config(), data, 1);
  // A logit of the start has deviation .02 sqrt(d): two of them, and the z-loss of 1e-4 (ln 256)^2.
  EXPECT_NEAR(t[0], std::log(256.0), 2 * 0.02 * std::sqrt(16.0) + 1e-4 * std::pow(std::log(256.0), 2));
}

TEST(TrainStep, SameSeedIsTheSameBitForBitWhateverTheThreads) {
  const TemporaryFolder folder;
  const Dataset data = small_data(folder.path());
  const std::vector<double> once = trajectory(small_config(), data, 50);
  EXPECT_EQ(once, trajectory(small_config(), data, 50));
  ReversedTasks other_order;
  EXPECT_EQ(once, trajectory(small_config(), data, 50, &other_order));
}

TEST(TrainStep, AGradientThatIsNotFiniteChangesNothing) {
  const TemporaryFolder folder;
  const Dataset data = small_data(folder.path());
  const RunConfig c = small_config();
  const LoaderShape shape = *loader_shape(c);
  auto loader = BatchLoader::training(data, shape, 1, Packing::fragment);
  auto made = TrainStep::create(c, shape, reference(), nullptr);
  TrainStep& step = **made;
  const ParameterTable& table = step.programs().model.parameters();
  initialise(table, 3, step.executor());
  const auto last = step.executor().host<float>(table.parameters.back().view);
  last[0] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> before(last.begin(), last.end());
  const StepResult r = step.run(loader->step(0), {1e-2, 1e-2});
  EXPECT_TRUE(r.skipped);
  EXPECT_TRUE(std::isnan(r.loss()));
  for (std::size_t i = 1; i < before.size(); ++i) EXPECT_EQ(last[i], before[i]);
  EXPECT_EQ(step.executor().host<double>(step.programs().optimiser.updates())[0], 0);
  last[0] = 1;
  EXPECT_FALSE(step.run(loader->step(0), {1e-2, 1e-2}).skipped);
  EXPECT_EQ(step.executor().host<double>(step.programs().optimiser.updates())[0], 1);
}

}  // namespace
}  // namespace stacklab::test
