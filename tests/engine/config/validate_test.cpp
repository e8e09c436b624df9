#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "engine/config/config_io.h"
#include "engine/config/mixture.h"

namespace stacklab {
namespace {

RunConfig trainable() {
  RunConfig c;
  c.model.vocab_size = 256;
  c.optim.matrices = "adamw";
  c.train.tokens = 1'638'400;
  c.optim.schedule.warmup_tokens = 81'920;
  c.optim.schedule.decay_tokens = 327'680;
  return c;
}

struct Case {
  std::string_view part;  // of the message
  std::function<void(RunConfig&)> change;
};

void expect_refused(const std::vector<Case>& cases) {
  ASSERT_TRUE(validate(trainable()));
  for (const Case& one : cases) {
    RunConfig c = trainable();
    one.change(c);
    const Status status = validate(c);
    ASSERT_FALSE(status) << one.part;
    EXPECT_EQ(status.error().kind, Error::Kind::usage);
    EXPECT_NE(status.error().message().find(one.part), std::string::npos) << status.error().message();
  }
}

TEST(Validate, WholeOfTheConfig) {
  expect_refused({
      {"model.n_kv_heads: 3 does not divide", [](RunConfig& c) { c.model.n_kv_heads = 3; }},
      {"model.n_kv_heads: 16 is more than", [](RunConfig& c) { c.model.n_kv_heads = 16; }},
      {"model.head_dim: 63 is odd", [](RunConfig& c) { c.model.head_dim = 63; }},
      {"train.tokens: the length", [](RunConfig& c) { c.train.tokens = 0; }},
      {"train.tokens: 4095 is less than one batch", [](RunConfig& c) { c.train.tokens = 4095; }},
      {"train.seq_len: 4096 is longer", [](RunConfig& c) { c.train.seq_len = 4096; }},
      {"train.batch_tokens: 4095 is not a multiple", [](RunConfig& c) { c.train.batch_tokens = 4095; }},
      {"run.micro_batch: 3 does not divide the 16 rows", [](RunConfig& c) { c.run.micro_batch = 3; }},
      {"optim.schedule.warmup_tokens", [](RunConfig& c) { c.optim.schedule.warmup_tokens = 1'638'401; }},
      {"optim.schedule: a warm-up of", [](RunConfig& c) { c.optim.schedule.decay_tokens = 1'638'400; }},
      {"optim.schedule.decay_tokens: a constant", [](RunConfig& c) { c.optim.schedule.kind = "constant"; }},
      {"data.corpus", [](RunConfig& c) { c.data.corpus.clear(); }},
  });
}

TEST(Validate, ValuesSetInCodeKeepTheRulesToo) {
  expect_refused({
      {"model.d_model: 0", [](RunConfig& c) { c.model.d_model = 0; }},
      {"model.n_heads: 0", [](RunConfig& c) { c.model.n_heads = 0; }},
      {"model.rope_theta: nan", [](RunConfig& c) { c.model.rope_theta = std::nan(""); }},
      {"optim.adam_lr: inf", [](RunConfig& c) { c.optim.adam_lr = HUGE_VAL; }},
      {"model.n_layers", [](RunConfig& c) { c.model.n_layers = INT64_MAX; }},
      {"optim.schedule.shape: \"steps\" is none of", [](RunConfig& c) { c.optim.schedule.shape = "steps"; }},
  });
}

TEST(Validate, WhatThisBuildCannotDo) {
  expect_refused({
      {"run.device: cpu", [](RunConfig& c) { c.train.precision = "fp64", c.run.device = "cpu"; }},
      {"optim.qk_clip: it rescales projections",
       [](RunConfig& c) {
         c.optim.adam_state = "bf16", c.optim.matrices = "adamw", c.train.precision = "bf16";
         c.model.qk_norm = false;
       }},
      {"run.device: cuda is not in this build", [](RunConfig& c) { c.run.device = "cuda"; }},
  });
}

TEST(Validate, Milestones) {
  RunConfig c = trainable();
  for (const char* good : {"", " ", "100", " 20, 10,20 ", "1"}) {
    c.run.keep_milestones = good;
    EXPECT_TRUE(validate(c)) << good;
  }
  c.run.keep_milestones = " 20, 10,20 ";
  EXPECT_EQ(milestones_of(c.run).value(), (std::vector<std::int64_t>{10, 20}));
  for (const char* bad : {"0", "-1", "1,,2", "1;2", "1.5", "ten", "99999999999999999999", ","})
    expect_refused({{"run.keep_milestones", [bad](RunConfig& config) { config.run.keep_milestones = bad; }}});
}

TEST(Validate, Data) {
  expect_refused({
      {"model.vocab_size: 255 does not cover the 256 bytes", [](RunConfig& c) { c.model.vocab_size = 255; }},
      {"data.tokenizer: no tokenizer", [](RunConfig& c) { c.data.tokenizer = ""; }},
      {"data.mixture: \"kjv:0\" does not give a weight above 0", [](RunConfig& c) { c.data.mixture = "a,kjv:0"; }},
      {"data.mixture: kjv is there twice", [](RunConfig& c) { c.data.mixture = "kjv:1,kjv:2"; }},
      {"data.mixture: \"a,,b\" has a part without a name", [](RunConfig& c) { c.data.mixture = "a,,b"; }},
      {"data.packing: \"cut\" is none of fragment, truncate, drop", [](RunConfig& c) { c.data.packing = "cut"; }},
  });
  RunConfig c = trainable();
  c.model.vocab_size = 300;
  EXPECT_TRUE(validate(c)) << "more than bytes need";
  c.data.tokenizer = "bpe-300";
  c.data.mixture = "kjv:3, tiny:0.5,more";
  c.data.packing = "drop";
  EXPECT_TRUE(validate(c)) << validate(c).error().message();
  EXPECT_EQ(*parse_mixture(c.data.mixture), (std::vector<MixturePart>{{"kjv", 3}, {"tiny", 0.5}, {"more", 1}}));
}

TEST(Validate, Edges) {
  RunConfig c = trainable();
  c.optim.schedule = {"wsd", c.train.tokens, 0, "linear"};
  EXPECT_TRUE(validate(c)) << "all warm-up";
  c.optim.schedule = {"wsd", 0, c.train.tokens, "linear"};
  EXPECT_TRUE(validate(c)) << "all decay";
  c = trainable();
  c.train.tokens = c.train.batch_tokens;
  c.optim.schedule = {};
  EXPECT_TRUE(validate(c)) << "one step";
  c.train.batch_tokens = c.train.tokens = c.train.seq_len = 2;
  EXPECT_TRUE(validate(c)) << "one row of two tokens";
}

TEST(Validate, Names) {
  for (const char* good : {"a", "first-run", "x_1.2", "0"}) {
    RunConfig c = trainable();
    c.name = good;
    EXPECT_TRUE(validate(c)) << good;
  }
  for (const std::string& bad :
       {std::string(), std::string("."), std::string(".."), std::string("a/b"), std::string("a b"), std::string("-x"),
        std::string("a\\b"), std::string("a\nb"), std::string("ü"), std::string(81, 'a'), std::string("a\0b", 3)}) {
    RunConfig c = trainable();
    c.name = bad;
    ASSERT_FALSE(validate(c)) << bad;
  }
}

}  // namespace
}  // namespace stacklab
