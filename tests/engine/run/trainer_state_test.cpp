// trainer.json is data from outside: checked field by field.
#include "engine/run/trainer_state.h"

#include <gtest/gtest.h>

#include <cmath>

namespace stacklab {
namespace {

TrainerFile example() {
  TrainerFile file;
  file.config_hash = "0123456789ab", file.seed = 1337;
  file.state = {12, 1536, 0.1 + 0.2, 5.5, std::nan(""), 1e-300, 2};
  file.sha256 = {{"model.safetensors", std::string(64, 'a')}};
  return file;
}

TEST(TrainerState, ReadsBackAsWritten) {
  const auto read = parse_trainer_file(to_json(example()), "trainer.json");
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->state.seconds, 0.1 + 0.2);
  EXPECT_TRUE(std::isnan(read->state.loss));
  EXPECT_EQ(read->state.val_loss, 1e-300);
  EXPECT_EQ(read->seed, 1337);
  EXPECT_EQ(to_json(*read), to_json(example()));
}

TEST(TrainerState, WhatDoesNotFitIsNamed) {
  const std::string good = to_json(example());
  const auto error = [&](std::string_view from, std::string_view to) {
    std::string bad = good;
    const std::size_t at = bad.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    bad.replace(at, from.size(), to);
    const auto read = parse_trainer_file(bad, "x/trainer.json");
    return read ? std::string("read") : read.error().what;
  };
  const auto expect = [&](std::string_view from, std::string_view to, std::string_view part) {
    EXPECT_NE(error(from, to).find(part), std::string::npos) << from << " -> " << to << ": " << error(from, to);
  };
  expect("\"format_version\": 1", "\"format_version\": 2", "another version of Stacklab (format 2)");
  expect("\"tokens\": 1536", "\"tokens\": -1", "\"tokens\" is missing or not a whole number from 0");
  expect("\"tokens\": 1536", "\"tokens\": 1.5", "tokens");
  expect("\"tokens\": 1536", "\"tokens\": 18446744073709551615", "tokens");
  expect("\"tokens\": 1536", "\"tokens\": true", "tokens");
  expect("\"tokens\": 1536", "\"token\": 1536", "tokens");
  expect("\"skipped\": 2", "\"skipped\": 13", "\"skipped\" is more than step");
  expect("\"loss\": null", "\"loss\": \"nan\"", "loss");
  expect("\"batches\": 12", "\"batches\": 11", "\"data.batches\" is not the step");
  expect("\"philox4x32-10\"", "\"mt19937\"", "\"random.generator\"");
  expect("\"sha256\"", "\"sha\"", "\"sha256\" is missing or not an object");
  expect("\"" + std::string(64, 'a') + "\"", "1", "\"sha256.model.safetensors\" is missing or not a text");
  expect("{", "[", "is not JSON");
  for (std::size_t n = 0; n + 2 < good.size(); ++n)
    EXPECT_FALSE(parse_trainer_file(std::string_view(good).substr(0, n), "t")) << n;
}

// A number that fits its field and is not what was saved.
TEST(TrainerState, AnyChangeOfItsContentIsSeen) {
  const std::string good = to_json(example());
  for (const auto& [from, to] : {std::pair("1536", "1537"), std::pair("5.5", "5.25"), std::pair("aaa\"", "aab\""),
                                 std::pair("0123456789ab", "0123456789ac"), std::pair("null", "3.0")}) {
    std::string bad = good;
    bad.replace(bad.find(from), std::string_view(from).size(), to);
    const auto read = parse_trainer_file(bad, "trainer.json");
    ASSERT_FALSE(read) << to;
    EXPECT_NE(read.error().what.find("SHA-256"), std::string::npos) << read.error().message();
  }
  std::string removed = good;
  removed.replace(removed.find("  \"skipped\": 2,\n"), 16, "");
  EXPECT_FALSE(parse_trainer_file(removed, "trainer.json"));
}

// Checkpoints of earlier builds say neither.
TEST(TrainerState, PositionAndGeneratorMayBeMissing) {
  EXPECT_TRUE(parse_trainer_file(
      R"({"format_version":1,"config_hash":"x","step":1,"tokens":2,"seconds":0,"first_loss":1,"loss":1,"val_loss":null,)"
      R"("skipped":0,"sha256":{}})",
      "t"));
}

}  // namespace
}  // namespace stacklab
