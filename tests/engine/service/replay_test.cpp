// A run made again gives the same bits, and what was tampered with is found.
#include "engine/service/replay.h"

#include <cstring>
#include <nlohmann/json.hpp>

#include "engine/base/safetensors.h"
#include "engine/base/sha256.h"
#include "engine/train/checkpoint.h"
#include "tests/engine/service/service_testing.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;

class Replay : public testing::Test {
 protected:
  Replay() {
    must(make_sample("sample", workspace_));
    config_.run.keep_last = 9;  // checkpoints of 5, 10, 15, 20
    must(Store::open(workspace_));
  }
  void make() {
    auto service =
        must(open_job_service(workspace_, {[](std::string_view name, const fs::path& where, const CorpusProgress&,
                                              std::stop_token) { return make_sample(name, where); },
                                           train}));
    const auto outcome = service->wait(service->submit(config_, {}), 250).value();
    ASSERT_FALSE(outcome.error) << outcome.error->message();
    folder_ = workspace_ / "runs" / must(must(service->reader())->run(outcome.run)).folder;
  }
  Result<ReplayResult> again(std::int64_t from = -1, std::int64_t steps = 0) {
    return replay(workspace_, {config_, from, steps}, {}, {});
  }
  // Everything in the workspace that a replay might touch, but for the store's own side files.
  std::map<std::string, std::string> contents() const {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(workspace_))
      if (entry.is_regular_file() && !entry.path().filename().string().starts_with("stacklab.db-"))
        all[entry.path().string()] = file_text(entry.path());
    return all;
  }

  TemporaryFolder temporary_;
  fs::path workspace_ = temporary_ / "workspace", folder_;
  RunConfig config_ = tiny_config();
};

TEST_F(Replay, TheSameBitsFromEveryCheckpointAndTheStart) {
  make();
  const auto before = contents();
  const auto newest = again();
  ASSERT_TRUE(newest) << newest.error().message();
  EXPECT_EQ(newest->from, 15);
  EXPECT_EQ(newest->steps, 5);
  EXPECT_TRUE(newest->identical());
  EXPECT_GE(newest->values, 5 * 7);
  EXPECT_GT(newest->tensors, 20) << "the next checkpoint is reached";
  EXPECT_TRUE(newest->environment.empty()) << to_text(newest->environment);
  for (const std::int64_t from : {0, 5, 10}) {
    const auto result = again(from, 7);
    ASSERT_TRUE(result) << result.error().message();
    EXPECT_EQ(result->from, from);
    EXPECT_TRUE(result->identical());
    EXPECT_GT(result->tensors, 20);
  }
  const auto all = again(0, 20);
  ASSERT_TRUE(all);
  EXPECT_TRUE(all->identical());
  const auto last = again(-1, 3);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->from, 15) << "the newest checkpoint with three steps after it";
  EXPECT_EQ(last->tensors, 0);
  EXPECT_EQ(contents(), before) << "neither the run nor the store is touched";
}

TEST_F(Replay, ADifferentNumberIsFoundAtItsStep) {
  make();
  // The checkpoint that it begins with is another one: one weight is a little larger.
  const fs::path file = folder_ / "ckpt_step10/model.safetensors";
  std::string bytes = file_text(file);
  const Safetensors model = Safetensors::open(file).value();
  const auto at = static_cast<std::size_t>(model.find("tok_emb.weight")->bytes.data() - model.file_bytes().data());
  // A row that documents use: the letter 'e'.
  const std::size_t element = at + 4 * static_cast<std::size_t>('e') * 16;
  float value = 0;
  std::memcpy(&value, bytes.data() + element, 4);
  value = value * 1.5f + 0.1f;
  std::memcpy(bytes.data() + element, &value, 4);
  put_file(file, bytes);
  auto trainer = nlohmann::ordered_json::parse(file_text(folder_ / "ckpt_step10/trainer.json"));
  trainer["sha256"]["model.safetensors"] = sha256_hex(bytes);
  trainer.erase("content_sha256");
  put_file(folder_ / "ckpt_step10/trainer.json", trainer.dump());

  const auto from_it = again(10, 5);
  ASSERT_TRUE(from_it) << from_it.error().message();
  ASSERT_TRUE(from_it->first_difference);
  EXPECT_EQ(from_it->first_difference->step, 11);
  EXPECT_EQ(from_it->first_difference->file, "") << "a metric";
  EXPECT_NE(from_it->first_difference->recorded, from_it->first_difference->replayed);
  // Reached from before, its numbers are right and its tensor is not.
  const auto to_it = again(5, 8);
  ASSERT_TRUE(to_it) << to_it.error().message();
  ASSERT_TRUE(to_it->first_difference);
  EXPECT_EQ(to_it->first_difference->step, 10);
  EXPECT_EQ(to_it->first_difference->name, "tok_emb.weight");
  EXPECT_EQ(to_it->first_difference->element, 'e' * 16);
}

TEST_F(Replay, WhatDiffersBetweenThenAndNowIsSaid) {
  make();
  config_.run.device = "reference";
  const auto result = again();
  ASSERT_TRUE(result) << result.error().message();
  bool device = false;
  for (const FieldChange& c : result->environment) device |= c.field == "device" && c.was == "cpu" && c.bits;
  EXPECT_TRUE(device) << to_text(result->environment);
}

TEST_F(Replay, WhatCannotBeReplayedIsNamed) {
  EXPECT_FALSE(again()) << "no such run";
  make();
  const auto error = [&](std::int64_t from, std::int64_t steps) {
    const auto result = again(from, steps);
    return result ? std::string("replayed") : result.error().message();
  };
  EXPECT_NE(error(7, 3).find("no checkpoint of step 7"), std::string::npos) << error(7, 3);
  EXPECT_NE(error(7, 3).find("0, 5, 10, 15, 20"), std::string::npos) << error(7, 3);
  EXPECT_NE(error(15, 6).find("5 recorded steps after step 15"), std::string::npos) << error(15, 6);
  EXPECT_NE(error(20, 0).find("0 recorded steps"), std::string::npos) << error(20, 0);
  std::stop_source stop;
  stop.request_stop();
  const auto stopped = replay(workspace_, {config_, -1, 0}, {}, stop.get_token());
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().kind, Error::Kind::stopped);
  fs::resize_file(folder_ / "ckpt_step15/model.safetensors", 100);
  EXPECT_NE(error(-1, 0).find("ckpt_step15"), std::string::npos) << error(-1, 0);
}

TEST_F(Replay, ARunWithoutCheckpointsIsReplayedFromItsStart) {
  make();
  for (const CheckpointFolder& c : list_checkpoints(folder_)) fs::remove_all(c.path);
  const auto result = again();
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_EQ(result->from, 0);
  EXPECT_EQ(result->steps, 20);
  EXPECT_TRUE(result->identical());
  EXPECT_EQ(result->tensors, 0);
}

}  // namespace
}  // namespace stacklab
