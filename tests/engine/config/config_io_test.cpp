#include "engine/config/config_io.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/comma_locale.h"
#include "tests/temporary_folder.h"

namespace stacklab {
namespace {

// The message of a config that must be refused.
std::string refusal(std::string_view json) {
  const Result<RunConfig> config = parse_config(json, "file.json");
  if (config) return "accepted";
  EXPECT_EQ(config.error().kind, Error::Kind::usage);
  EXPECT_TRUE(config.error().what.starts_with("file.json: ")) << config.error().what;
  EXPECT_LT(config.error().message().size(), 500u);
  return config.error().message();
}

void expect_refusal(std::string_view json, std::initializer_list<std::string_view> parts) {
  const std::string message = refusal(json);
  for (const std::string_view part : parts) EXPECT_NE(message.find(part), std::string::npos) << json << "\n" << message;
}

TEST(ParseConfig, EmptyObjectIsTheDefault) {
  EXPECT_EQ(parse_config("{}", "x").value(), RunConfig());
  EXPECT_EQ(parse_config("\xEF\xBB\xBF {} \r\n", "x").value(), RunConfig());
  EXPECT_EQ(parse_config(R"({"model":{},"optim":{"schedule":{}}})", "x").value(), RunConfig());
}

TEST(ParseConfig, ReadsEveryKindOfValue) {
  const RunConfig c =
      parse_config(R"({"name": "a-b_c.1", "model": {"d_model": 64, "rope_theta": 5e5, "qk_norm": false, "mixer": "mla"},
                                       "optim": {"schedule": {"warmup_tokens": 18e9, "shape": "linear"}, "adam_lr": 1},
                                       "run": {"micro_batch": "auto", "threads": 2.0}})",
                   "x")
          .value();
  EXPECT_EQ(c.name, "a-b_c.1");
  EXPECT_EQ(c.model.d_model, 64);
  EXPECT_EQ(c.model.rope_theta, 5e5);
  EXPECT_FALSE(c.model.qk_norm);
  EXPECT_EQ(c.model.mixer, "mla");
  EXPECT_EQ(c.optim.schedule.warmup_tokens, 18'000'000'000);
  EXPECT_EQ(c.optim.schedule.shape, "linear");
  EXPECT_EQ(c.optim.adam_lr, 1.0);
  EXPECT_EQ(c.run.micro_batch, 0);
  EXPECT_EQ(c.run.threads, 2);
}

TEST(ParseConfig, UnknownKeysNameTheNearest) {
  expect_refusal(R"({"model":{"d_modl":1}})", {"\"model.d_modl\"", "did you mean \"model.d_model\"?"});
  expect_refusal(R"({"optim":{"schedule":{"warmup_token":1}}})",
                 {"\"optim.schedule.warmup_token\"", "\"optim.schedule.warmup_tokens\""});
  expect_refusal(R"({"modle":{"d_model":1}})", {"\"modle\"", "\"model\""});
  expect_refusal(R"({"adam_lr":1})", {"\"adam_lr\"", "\"optim.adam_lr\""});
  expect_refusal(R"({"model":{"seed":1}})", {"\"model.seed\"", "\"train.seed\""});
  expect_refusal(R"({"model":{"adam_lr":1}})", {"\"model.adam_lr\"", "\"optim.adam_lr\""});
  expect_refusal(R"({"model.d_model":1})", {"unknown key \"model.d_model\""});
  expect_refusal(R"({"hidden_size":64,"num_hidden_layers":2})", {"unknown key \"hidden_size\""});
  expect_refusal(R"({"_comment":"x"})", {"unknown key"});
  expect_refusal("{\"a\\u0000\\n\\u001b[31m\":1}", {"unknown key \"a???[31m\""});
  expect_refusal("{\"" + std::string(100'000, 'k') + "\":1}", {"unknown key"});
  expect_refusal(R"({"":1})", {"unknown key \"\""});
}

TEST(ParseConfig, WrongTypes) {
  expect_refusal(R"({"model":{"d_model":"64"}})", {"model.d_model", "\"64\" instead of a whole number"});
  expect_refusal(R"({"model":{"d_model":64.5}})", {"model.d_model", "64.5 instead of a whole number"});
  expect_refusal(R"({"model":{"d_model":true}})", {"model.d_model", "true instead of a whole number"});
  expect_refusal(R"({"model":{"d_model":null}})", {"model.d_model", "null", "leave the key out"});
  expect_refusal(R"({"model":{"d_model":[64]}})", {"model.d_model", "a list"});
  expect_refusal(R"({"model":{"d_model":{"x":1}}})", {"\"model.d_model\" is one value"});
  expect_refusal(R"({"model":64})", {"\"model\" is a section"});
  expect_refusal(R"({"model":[64]})", {"model", "a list"});
  expect_refusal(R"({"model":{"qk_norm":1}})", {"model.qk_norm", "1 instead of true or false"});
  expect_refusal(R"({"model":{"qk_norm":"yes"}})", {"model.qk_norm", "\"yes\""});
  expect_refusal(R"({"model":{"rope_theta":"big"}})", {"model.rope_theta", "a number"});
  expect_refusal(R"({"data":{"corpus":3}})", {"data.corpus", "3 instead of text"});
  expect_refusal(R"({"model":{"d_model":"auto"}})", {"model.d_model"});
}

TEST(ParseConfig, NumbersOutOfRange) {
  expect_refusal(R"({"model":{"d_model":-64}})", {"model.d_model", "-64", "at least 1"});
  expect_refusal(R"({"model":{"n_layers":0}})", {"model.n_layers", "0 is out of range"});
  expect_refusal(R"({"model":{"n_layers":1000000000000}})", {"model.n_layers", "at most 1024"});
  expect_refusal(R"({"model":{"d_model":1099511627776}})", {"model.d_model"});
  expect_refusal(R"({"model":{"d_model":9223372036854775808}})", {"model.d_model"});
  expect_refusal(R"({"train":{"seed":18446744073709551616}})", {"train.seed"});
  expect_refusal(R"({"train":{"seed":-1}})", {"train.seed"});
  expect_refusal(R"({"train":{"tokens":1e400}})", {"not valid JSON", "1e400"});
  expect_refusal(R"({"optim":{"adam_lr":-1e400}})", {"not valid JSON"});
  expect_refusal(R"({"train":{"tokens":1e300}})", {"train.tokens"});
  expect_refusal(R"({"model":{"rope_theta":0}})", {"model.rope_theta", "above 0"});
  expect_refusal(R"({"model":{"norm_eps":-1e-5}})", {"model.norm_eps", "-1e-05"});
  expect_refusal(R"({"optim":{"adam_beta2":1.0}})", {"optim.adam_beta2"});
  EXPECT_EQ(parse_config(R"({"model":{"norm_eps":0}})", "x")->model.norm_eps, 0.0);
  EXPECT_EQ(parse_config(R"({"train":{"seed":9007199254740992}})", "x")->train.seed, 9'007'199'254'740'992);
}

TEST(ParseConfig, Choices) {
  expect_refusal(R"({"optim":{"matrices":"moun"}})",
                 {"optim.matrices", "\"moun\" is none of muon, adamw", "did you mean \"muon\"?"});
  expect_refusal(R"({"run":{"device":"gpu"}})", {"run.device", "cuda"});
  expect_refusal("{\"data\":{\"corpus\":\"a\\u0007\"}}", {"data.corpus", "control characters"});
  expect_refusal("{\"data\":{\"corpus\":\"" + std::string(1000, 'c') + "\"}}", {"data.corpus", "too long"});
}

TEST(ParseConfig, DuplicateKeys) {
  expect_refusal(R"({"model":{"d_model":64,"d_model":64}})", {"\"model.d_model\" occurs twice"});
  expect_refusal(R"({"model":{},"model":{"d_model":64}})", {"\"model\" occurs twice"});
  expect_refusal("{\"name\":\"a\",\"n\\u0061me\":\"b\"}", {"\"name\" occurs twice"});
}

TEST(ParseConfig, WhatIsNotAnObject) {
  for (const char* json : {"[]", "3", "\"text\"", "null", "true"}) expect_refusal(json, {"instead of an object"});
  for (const char* json : {"", " \n", "\t"}) expect_refusal(json, {"empty"});
  expect_refusal(std::string("{}\0 lost", 8), {"NUL"});
  for (const char* json :
       {"{", "{}}", "{} {}", "{\"a\"}", "{'a':1}", "{\"name\":\"a\",}", "// c\n{}", "{/*c*/}", "{\"name\":nan}",
        "{\"name\":\"\xff\"}", "nonsense", "\xEF\xBB\xBF", "{\"train\":{\"seed\":01}}"})
    expect_refusal(json, {"not valid JSON"});
}

TEST(ParseConfig, DeepAndLargeInput) {
  std::string bomb;
  for (int i = 0; i < 100'000; ++i) bomb += "{\"model\":";
  expect_refusal(bomb, {"model"});
  expect_refusal("{\"model\":" + std::string(500'000, '['), {"a list"});
  expect_refusal("{" + std::string(2'000'000, ' ') + "}", {"too many"});
}

// Configs of other programs, whole or broken, are no configs of runs.
TEST(ParseConfig, ForeignFilesAreRefused) {
  const std::filesystem::path folder = std::filesystem::path(STACKLAB_SOURCE_DIR) / "tests/golden/malformed/config";
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const Result<RunConfig> config = load_config(entry.path());
    ASSERT_FALSE(config) << entry.path();
    EXPECT_NE(config.error().what.find(entry.path().filename()), std::string::npos) << config.error().message();
    ++files;
  }
  EXPECT_GE(files, 39u);
}

TEST(LoadConfig, FilesThatCannotBeRead) {
  const TemporaryFolder folder;
  put_file(folder / "large.json", std::string(2'000'000, ' '));
  for (const auto& file :
       {folder / "missing.json", folder.path(), folder / "large.json", std::filesystem::path("/dev/zero")}) {
    const Result<RunConfig> config = load_config(file);
    ASSERT_FALSE(config);
    EXPECT_NE(config.error().what.find(file.string()), std::string::npos) << config.error().message();
  }
}

TEST(ConfigJson, ReadsBackExactly) {
  RunConfig c;
  c.name = "x";
  c.model.rope_theta = 1.0 / 3;
  c.optim.adam_eps = 5e-324;
  c.optim.adam_lr = 0.1 + 0.2;
  c.train.tokens = 999'999'999'999'999;
  c.data.corpus = "a \"b\" \\ ü";
  c.model.qk_norm = false;
  EXPECT_EQ(parse_config(to_json(c), "x").value(), c);
  // Every key is there, and any reader of JSON agrees.
  const nlohmann::json json = nlohmann::json::parse(to_json(c));
  EXPECT_EQ(json["optim"]["schedule"]["shape"], "1-sqrt");
  EXPECT_EQ(json["data"]["corpus"], c.data.corpus);
  EXPECT_EQ(json["optim"]["adam_lr"].get<double>(), c.optim.adam_lr);
  EXPECT_TRUE(to_json(c).starts_with("{\n  \"name\": \"x\",\n  \"model\": {\n    \"vocab_size\": 32768,\n"));
}

TEST(SetField, SetsValuesOfEveryKind) {
  RunConfig c;
  for (const char* assignment : {"name=n", "model.d_model=128", "optim.adam_lr=3e-4", "model.qk_norm=false",
                                 "data.corpus=two words", "train.tokens=1e6", "run.micro_batch=auto",
                                 "optim.grad_clip=off", "data.mixture=", "optim.schedule.kind = constant"})
    EXPECT_TRUE(set_field(c, assignment)) << assignment;
  EXPECT_EQ(c.name, "n");
  EXPECT_EQ(c.model.d_model, 128);
  EXPECT_EQ(c.optim.adam_lr, 3e-4);
  EXPECT_FALSE(c.model.qk_norm);
  EXPECT_EQ(c.data.corpus, "two words");
  EXPECT_EQ(c.train.tokens, 1'000'000);
  EXPECT_EQ(c.optim.grad_clip, 0);
  EXPECT_EQ(c.optim.schedule.kind, "constant");
}

TEST(SetField, RefusalsLeaveTheConfigAlone) {
  RunConfig c;
  const auto message = [&c](std::string_view assignment) {
    const Status status = set_field(c, assignment);
    EXPECT_FALSE(status) << assignment;
    EXPECT_EQ(c, RunConfig());
    return status ? std::string() : status.error().message();
  };
  EXPECT_NE(message("optim.adm_lr=1").find("did you mean \"optim.adam_lr\"?"), std::string::npos);
  EXPECT_NE(message("adam_lr=1").find("\"optim.adam_lr\""), std::string::npos);
  EXPECT_NE(message("model=1").find("\"model\" is a section"), std::string::npos);
  EXPECT_NE(message("model.d_model").find("section.key=value"), std::string::npos);
  for (const char* bad : {"=", "=1", "", "model.d_model=", "model.d_model=1.5", "model.d_model=1,5",
                          "model.d_model=abc", "model.d_model=-1", "model.d_model=99999999999999999999",
                          "optim.adam_lr=nan", "optim.adam_lr=inf", "optim.adam_lr=1e400", "optim.adam_lr=0,003",
                          "model.qk_norm=1", "model.qk_norm=True", "optim.matrices=sgd", "model.d_model=0x40"})
    message(bad);
}

TEST(Canonical, IdentityFieldsSortedWithoutSpaces) {
  RunConfig c;
  c.train.tokens = 1'638'400;
  EXPECT_EQ(
      canonical_json(c),
      R"({"data":{"corpus":"kjv","mixture":"","packing":"fragment","tokenizer":"bytes","validation_fraction":0.02},)"
      R"("model":{"attn_every":0,"attn_soft_cap":0,"d_model":512,"ffn":"swiglu","head_dim":64,"intermediate":1408,"logit_soft_cap":0,)"
      R"("max_seq_len":2048,"mixer":"gqa","n_heads":8,"n_kv_heads":2,"n_layers":30,"nope_every":4,"norm_eps":1e-05,"qk_norm":true,)"
      R"("rope_theta":10000,"tie_embeddings":true,"vocab_size":32768,"z_loss_coef":1e-04},)"
      R"("optim":{"adam_beta1":0.9,"adam_beta2":0.95,"adam_eps":1e-08,"adam_lr":0.001,"grad_clip":1,"matrices":"muon","muon_lr":0.0015,)"
      R"("muon_momentum":0.95,"muon_scale":"match_rms","ns_steps":5,"qk_clip":100,)"
      R"("schedule":{"decay_tokens":0,"kind":"wsd","shape":"1-sqrt","warmup_tokens":0},"weight_decay":0.1},)"
      R"("train":{"batch_tokens":4096,"precision":"fp32","seed":1337,"seq_len":256,"tokens":1638400}})");
  EXPECT_EQ(parse_config(canonical_json(c), "x").value(), c);
}

TEST(Canonical, HashIsOfIdentityAlone) {
  RunConfig c;
  const std::string hash = config_hash(c);
  EXPECT_EQ(hash.size(), 12u);
  EXPECT_EQ(hash.find_first_not_of("0123456789abcdef"), std::string::npos);
  RunConfig other = c;
  other.name = "another";
  other.run.threads = 7;
  other.run.checkpoint_every = 3;
  EXPECT_EQ(config_hash(other), hash);
  other.optim.weight_decay = -0.0;
  c.optim.weight_decay = 0.0;
  EXPECT_EQ(config_hash(other), config_hash(c));
  other.train.seed = 1;
  EXPECT_NE(config_hash(other), config_hash(c));
  // The hashes of started runs must stay what they are.
  EXPECT_EQ(hash, "5bf0ae8e14e0");
}

TEST(Canonical, KeysAddedLaterCountOnlyWhenTheyAreUsed) {
  RunConfig c;
  EXPECT_EQ(canonical_json(c).find("min_factor"), std::string::npos);
  EXPECT_NE(to_json(c).find("min_factor"), std::string::npos);
  const std::string hash = config_hash(c);
  c.optim.schedule.min_factor = 0.1;
  EXPECT_NE(canonical_json(c).find("\"min_factor\":0.1"), std::string::npos);
  EXPECT_NE(config_hash(c), hash);
}

TEST(Canonical, DoesNotDependOnTheLocale) {
  const std::string before = canonical_json(RunConfig());
  const CommaLocale locale;
  if (!locale.here()) GTEST_SKIP() << "no locale with a decimal comma can be had";
  EXPECT_EQ(canonical_json(RunConfig()), before);
  EXPECT_EQ(parse_config(R"({"optim":{"adam_lr":0.0003}})", "x")->optim.adam_lr, 0.0003);
}

}  // namespace
}  // namespace stacklab
