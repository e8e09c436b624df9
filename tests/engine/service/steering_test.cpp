// Pausing, the queue and the trash, as the window and the command line use them.
#include "tests/engine/service/service_testing.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;

using Steering = ServiceTest;

std::vector<std::string> queued(JobService& service) {
  std::vector<std::string> names;
  for (const QueueEntry& entry : must(must(service.reader())->queue())) names.push_back(entry.name);
  return names;
}

using Names = std::vector<std::string>;

TEST_F(Steering, APausedRunWaitsAtTheHeadOfTheQueue) {
  auto service = open();
  must(service->queue_add(tiny_config("other", 2), {}));
  const RunConfig config = tiny_config();
  trainer_.pause_at = 7;
  const auto job = service->submit(config, {});
  trainer_.wait_until_paused();
  service->pause(config_hash(config));
  const auto paused = outcome_of(*service, job);
  EXPECT_EQ(paused.state, RunState::paused);
  EXPECT_EQ(stored(config).cause, "paused at step 7 by the user");
  EXPECT_EQ(queued(*service), (Names{"tiny", "other"}));
  // It goes on from where it was, when a person says so.
  trainer_.pause_at = 0;
  const auto next = must(service->queue_start({}));
  ASSERT_TRUE(next);
  EXPECT_EQ(outcome_of(*service, *next).state, RunState::finished);
  EXPECT_EQ(stored(config).state, RunState::finished);
  EXPECT_EQ(queued(*service), Names{"other"});
  EXPECT_EQ(outcome_of(*service, *must(service->queue_start({}))).state, RunState::finished);
  EXPECT_FALSE(must(service->queue_start({})));
}

TEST_F(Steering, AStoppedRunLeavesTheQueue) {
  auto service = open();
  const RunConfig config = tiny_config();
  trainer_.pause_at = 7;
  const auto job = service->submit(config, {});
  trainer_.wait_until_paused();
  service->stop(config_hash(config));
  outcome_of(*service, job);
  EXPECT_EQ(stored(config).cause, "stopped at step 7 by the user");
  EXPECT_EQ(queued(*service), Names());
}

TEST_F(Steering, WhatWaitsSurvivesTheProcessAndStartsOnlyByAPersonsWord) {
  {
    auto service = open();
    trainer_.pause_at = 3;
    service->submit(tiny_config("first", 1), {});
    trainer_.wait_until_paused();
    service->submit(tiny_config("second", 2), {});
    service->submit(tiny_config("third", 3), {});
    while (queued(*service).size() < 2) std::this_thread::yield();
    EXPECT_EQ(queued(*service), (Names{"second", "third"}));
    EXPECT_EQ(must(service->queue_start({})), std::nullopt) << "this process will come to them";
  }  // closed: the first is stopped, the others never began
  trainer_.pause_at = 0;
  auto service = open();
  EXPECT_EQ(queued(*service), (Names{"second", "third"}));
  EXPECT_TRUE(service->jobs().empty());
  EXPECT_EQ(must(must(service->reader())->queue()).at(0).process, 0);
  const auto job = must(service->queue_start({}));
  ASSERT_TRUE(job);
  EXPECT_EQ(outcome_of(*service, *job).run, config_hash(tiny_config("second", 2)));
  EXPECT_EQ(queued(*service), Names{"third"});
}

TEST_F(Steering, AnEntryThatIsRemovedNeverStarts) {
  auto service = open();
  trainer_.pause_at = 3;
  const auto first = service->submit(tiny_config("first", 1), {});
  trainer_.wait_until_paused();
  const auto second = service->submit(tiny_config("second", 2), {});
  while (queued(*service).empty()) std::this_thread::yield();
  must(service->queue_remove(must(must(service->reader())->queue()).at(0).id));
  trainer_.go_on();
  EXPECT_EQ(outcome_of(*service, first).state, RunState::finished);
  const auto never = outcome_of(*service, second);
  ASSERT_TRUE(never.error);
  EXPECT_EQ(never.error->kind, Error::Kind::stopped);
  EXPECT_FALSE(must(service->reader())->run("second"));
  EXPECT_EQ(queued(*service), Names());
}

TEST_F(Steering, AnEntryThatCannotBeginStays) {
  auto service = open();
  JobSteps offline = steps();
  bool network = false;
  offline.ensure_corpus = [&](std::string_view name, const fs::path& at, const CorpusProgress&,
                              std::stop_token) -> Result<Corpus> {
    return network ? make_sample(name, at) : Result<Corpus>(failed("no network"));
  };
  service = open(std::move(offline));
  RunConfig config = tiny_config();
  config.data.corpus = "elsewhere";
  const auto entry = must(service->queue_add(config, {}));
  const auto outcome = outcome_of(*service, *must(service->queue_start(entry)));
  ASSERT_TRUE(outcome.error);
  EXPECT_FALSE(outcome.begun);
  EXPECT_EQ(queued(*service), Names{"tiny"});
  network = true;
  EXPECT_EQ(outcome_of(*service, *must(service->queue_start(entry))).state, RunState::finished);
  EXPECT_EQ(queued(*service), Names());
}

TEST_F(Steering, AnEntryWhoseRunIsTrainedElsewhereStays) {
  auto service = open();
  const RunConfig config = tiny_config();
  ChildProcess child({"hold", workspace().string(), config_hash(config)});
  ASSERT_EQ(child.line(), "holding");
  SubmitOptions options;
  options.resume = true;
  const auto entry = must(service->queue_add(config, options));
  const auto outcome = outcome_of(*service, *must(service->queue_start(entry)));
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->kind, Error::Kind::refused);
  EXPECT_EQ(queued(*service), Names{"tiny"});
  EXPECT_EQ(must(must(service->reader())->queue()).at(0).process, 0) << "it waits for a person";
}

TEST_F(Steering, ABudgetOfTokensEndsTheRunPausedAndRefused) {
  auto service = open();
  RunConfig config = tiny_config();
  config.run.budget.tokens = 64 * 5 + 1;
  const auto outcome = run(*service, config);
  EXPECT_EQ(outcome.steps, 5);
  EXPECT_EQ(outcome.state, RunState::paused);
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->kind, Error::Kind::refused);
  EXPECT_EQ(stored(config).step, 5);
  EXPECT_EQ(stored(config).cause, "budget: 320 of run.budget.tokens=321 are used");
}

TEST_F(Steering, ADeletedRunsFolderGoesToTheTrashAndBack) {
  auto service = open();
  const RunConfig config = tiny_config();
  const auto outcome = run(*service, config);
  const std::string folder = stored(config).folder;
  RunEdit away;
  away.deleted = true;
  const RunEdit back = must(service->edit(outcome.run, away));
  EXPECT_FALSE(fs::exists(workspace() / "runs" / folder));
  EXPECT_TRUE(fs::exists(workspace() / "trash" / folder / "config.json"));
  const auto again = run(*service, config);
  ASSERT_TRUE(again.error);
  EXPECT_EQ(again.error->kind, Error::Kind::refused);
  must(service->edit(outcome.run, back));
  EXPECT_TRUE(fs::exists(workspace() / "runs" / folder / "config.json"));
  EXPECT_TRUE(run(*service, config).already_finished);
  must(service->edit(outcome.run, away));
  // What is in the way is not overwritten, and the run stays where it is.
  put_file(workspace() / "runs" / folder / "something", "x");
  EXPECT_FALSE(service->edit(outcome.run, back));
  EXPECT_GT(stored(config).deleted, 0);
  fs::remove_all(workspace() / "runs" / folder);
  must(service->purge(outcome.run));
  EXPECT_FALSE(fs::exists(workspace() / "trash" / folder));
  EXPECT_FALSE(run(*service, config).already_finished) << "as if it had never been";
}

}  // namespace
}  // namespace stacklab
