// The plan is what training allocates, and costs no memory of the model's size.
#include "engine/planner/memory.h"

#include <gtest/gtest.h>

#include <map>

#include "engine/base/environment.h"
#include "engine/config/config_io.h"
#include "engine/train/train_step.h"
#include "tests/engine/train/train_harness.h"
#include "tests/sanitized.h"

namespace stacklab::test {
namespace {

std::int64_t allocated(const RunConfig& c) {
  const auto step = TrainStep::create(c, *loader_shape(c), **training_backend(c), nullptr);
  EXPECT_TRUE(step) << step.error().message();
  return (*step)->executor().allocated_bytes();
}

TEST(PlanMemory, IsWhatTheEngineAllocates) {
  for (const char* device : {"auto", "reference"})
    for (const char* matrices : {"adamw", "muon"})
      for (const std::int64_t micro : {1, 2, 4})
        for (const std::int64_t chunk : {0, 5})
          for (const char* precision : {"fp32", "bf16"}) {
            RunConfig c = small_config();
            c.run.device = device, c.optim.matrices = matrices, c.run.micro_batch = micro, c.run.loss_chunk = chunk;
            c.train.precision = precision;
            c.model.qk_norm = chunk == 0;
            c.train.seq_len = chunk == 0 ? 32 : 16, c.train.batch_tokens = 4 * c.train.seq_len;
            for (const auto& [recompute, every] :
                 {std::pair("none", 1), std::pair("swiglu", 1), std::pair("block", 1), std::pair("block", 2)}) {
              c.run.recompute = recompute, c.run.recompute_every = every;
              c.optim.adam_state = every == 2 ? "int8" : recompute == std::string("swiglu") ? "bf16" : "fp32";
              c.optim.qk_clip = 100;
              if (!check_step(c)) c.optim.qk_clip = 0;
              const auto plan = plan_training_memory(c);
              ASSERT_TRUE(plan) << plan.error().message();
              EXPECT_EQ(plan->peak_bytes(), allocated(c))
                  << device << matrices << micro << chunk << precision << recompute << every;
              EXPECT_EQ(plan->shape.micro_batch, micro);
              EXPECT_TRUE(plan->fits);
            }
          }
}

TEST(PlanMemory, EveryBufferLiesInItsArena) {
  RunConfig c = small_config();
  c.run.micro_batch = 2;
  const TrainingMemory plan = *plan_training_memory(c);
  std::map<std::string, std::int64_t> end;  // by Program; "": the persistent arena
  std::int64_t parameters = 0;
  for (const PlannedBuffer& b : plan.buffers) {
    if (b.used) end[b.program] = std::max(end[b.program], b.offset + b.buffer.bytes());
    if (b.buffer.cls == BufferClass::parameter) parameters += b.buffer.shape.size();
  }
  EXPECT_LE(end[""], plan.persistent_bytes);
  EXPECT_GT(end[""], plan.persistent_bytes - MemoryPlan::alignment);
  std::int64_t largest = 0;
  for (const PlannedProgram& p : plan.programs) {
    EXPECT_LE(end[p.name], p.arena_bytes) << p.name;
    EXPECT_GE(p.arena_bytes, p.live_bytes) << p.name;
    EXPECT_LT(p.peak_index, p.operations) << p.name;
    EXPECT_FALSE(p.peak_op.empty()) << p.name;
    largest = std::max(largest, p.arena_bytes);
  }
  EXPECT_EQ(largest, plan.step_bytes);
  EXPECT_EQ(plan.programs[plan.largest_program].arena_bytes, largest);
  EXPECT_EQ(parameters, TrainPrograms(c, plan.shape, **training_backend(c)).model.parameters().count());
}

// Against a search that tries every divisor.
TEST(PlanMemory, TheLargestMicroBatchIsTheLargestThatFits) {
  RunConfig c = small_config();
  c.train.batch_tokens = 12 * 32, c.train.tokens = 12 * 32 * 4;
  std::map<std::int64_t, std::int64_t> bytes;
  for (const std::int64_t micro : {1, 2, 3, 4, 6, 12}) {
    c.run.micro_batch = micro;
    bytes[micro] = plan_training_memory(c)->peak_bytes();
  }
  for (const auto& [budget_of, budget] : bytes)
    for (const std::int64_t less : {0, 1}) {
      std::int64_t largest = 0;
      for (const auto& [micro, need] : bytes)
        if (need <= budget - less) largest = std::max(largest, micro);
      const auto plan = plan_training_memory(c, budget - less);
      EXPECT_EQ(plan->largest_micro_batch, largest) << budget_of << " less " << less;
      EXPECT_EQ(plan->fits, bytes[12] <= budget - less);
    }
}

// A model of 1e9 parameters: its plan says tens of GB, and takes none of them.
TEST(PlanMemory, AllocatesNothing) {
  RunConfig c = small_config();
  c.model.vocab_size = 32768, c.model.d_model = 2048, c.model.n_layers = 24, c.model.n_heads = 16;
  c.model.n_kv_heads = 8, c.model.head_dim = 128, c.model.intermediate = 5632, c.model.max_seq_len = 2048;
  c.train.seq_len = 2048, c.train.batch_tokens = 524288, c.train.tokens = 524288;
  c.optim.schedule = {};
  const std::int64_t before = peak_resident_bytes();
  const auto plan = plan_training_memory(c, std::int64_t{80'000'000'000});
  ASSERT_TRUE(plan);
  EXPECT_GT(plan->peak_bytes(), 12'000'000'000);
  EXPECT_GT(plan->largest_micro_batch, 0);
  if (sanitized) GTEST_SKIP() << "memory that was freed is kept by the sanitizer";
  // Lists of buffers and operations: far less than a single matrix of the model.
  EXPECT_LT(peak_resident_bytes() - before, 4 * c.model.intermediate * c.model.d_model);
}

TEST(PlanMemory, WhatCannotBePlannedIsSaid) {
  RunConfig c = small_config();
  c.run.micro_batch = 3;
  EXPECT_NE(plan_training_memory(c).error().message().find("run.micro_batch 3"), std::string::npos);
  c = small_config();
  c.run.device = "abacus";
  EXPECT_NE(plan_training_memory(c).error().message().find("abacus"), std::string::npos);
}

}  // namespace
}  // namespace stacklab::test
