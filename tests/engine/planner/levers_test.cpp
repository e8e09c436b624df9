// What each lever saves and costs is what the changed config is planned to need.
#include "engine/planner/levers.h"

#include <gtest/gtest.h>

#include "engine/config/config_io.h"
#include "engine/planner/memory.h"
#include "engine/train/train_step.h"
#include "tests/engine/train/train_harness.h"

namespace stacklab::test {
namespace {

RunConfig wide_config() {
  RunConfig c = small_config();
  c.model.n_layers = 6, c.model.vocab_size = 1024, c.model.max_seq_len = 256;
  c.train.seq_len = 256, c.train.batch_tokens = 4 * 256, c.train.tokens = 8 * 256;
  c.run.micro_batch = 4;
  return c;
}

RunConfig changed(RunConfig c, const std::vector<std::string>& settings) {
  for (const std::string& s : settings) EXPECT_TRUE(set_field(c, s)) << s;
  return c;
}

std::int64_t planned(const RunConfig& c) { return plan_training_memory(c)->peak_bytes(); }
double flops(const RunConfig& c) {
  const LoaderShape shape = *loader_shape(c);
  return TrainPrograms(c, shape, **training_backend(c)).step_flops(shape.accumulation);
}

TEST(Levers, AreThosePlansInTheirOrder) {
  const RunConfig c = wide_config();
  const Levers all = *memory_levers(c, 1);
  EXPECT_EQ(all.peak_bytes, planned(c));
  EXPECT_EQ(all.flops, flops(c));
  std::vector<std::string_view> names;
  RunConfig together = c;
  for (const Lever& lever : all.levers) {
    names.push_back(lever.name);
    EXPECT_NE(lever.settings.empty(), lever.why_not.empty()) << lever.name;
    EXPECT_FALSE(lever.fits);
    if (lever.settings.empty()) continue;
    EXPECT_EQ(lever.saved_bytes, planned(c) - planned(changed(c, lever.settings))) << lever.name;
    EXPECT_DOUBLE_EQ(lever.more_flops, flops(changed(c, lever.settings)) / flops(c) - 1) << lever.name;
    const std::int64_t before = planned(together);
    together = changed(together, lever.settings);
    EXPECT_EQ(lever.peak_bytes, planned(together)) << lever.name;
    EXPECT_LT(lever.peak_bytes, before) << lever.name;
    EXPECT_TRUE(check_step(together)) << lever.name;
  }
  EXPECT_EQ(names, (std::vector<std::string_view>{"loss_chunk", "micro_batch", "recompute", "adam_int8", "adam_bf16",
                                                  "sharding"}));
  EXPECT_TRUE(all.enough().empty());
  EXPECT_NE(to_text(all).find("all together are not enough"), std::string::npos);
}

// With as many bytes as any number of levers need, the settings that are said to be enough are, and no lever is pulled
// that is not needed.
TEST(Levers, WhatIsEnoughFits) {
  const RunConfig c = wide_config();
  const Levers all = *memory_levers(c, 1);
  std::size_t pulled = 0;
  for (const Lever& least : all.levers) {
    if (least.settings.empty()) continue;
    ++pulled;
    const Levers levers = *memory_levers(c, least.peak_bytes);
    const std::vector<std::string> enough = levers.enough();
    ASSERT_FALSE(enough.empty()) << least.name;
    EXPECT_LE(planned(changed(c, enough)), least.peak_bytes) << least.name;
    std::size_t needed = 0;
    for (const Lever& lever : levers.levers) {
      needed += !lever.settings.empty();
      if (lever.fits) break;
    }
    EXPECT_LE(needed, pulled) << least.name;
    const std::string text = to_text(levers);
    EXPECT_NE(text.find("it fits with --set " + enough[0]), std::string::npos) << text;
  }
  EXPECT_GE(pulled, 3u);
  const Levers none = *memory_levers(c, all.peak_bytes);
  EXPECT_TRUE(none.enough().empty()) << "it fits as it is";
}

TEST(Levers, WhatTheConfigForbidsIsSaid) {
  RunConfig c = wide_config();
  c.train.precision = "bf16", c.model.qk_norm = false, c.optim.adam_state = "int8";
  const Levers all = *memory_levers(c, 1);
  EXPECT_EQ(all.levers[4].name, "adam_bf16");
  EXPECT_NE(all.levers[4].why_not.find("optim.qk_clip"), std::string::npos) << all.levers[4].why_not;
}

TEST(Levers, ThoseThatArePulledAlreadySaySo) {
  RunConfig c = wide_config();
  c.run.micro_batch = 1, c.run.loss_chunk = 32, c.run.recompute = "block";
  const Levers all = *memory_levers(c, 1);
  EXPECT_EQ(all.levers[0].why_not, "the loss head is in small chunks already");
  EXPECT_EQ(all.levers[1].why_not, "a micro-batch is one sequence already");
}

}  // namespace
}  // namespace stacklab::test
