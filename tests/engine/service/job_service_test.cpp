#include "engine/service/job_service.h"

#include "tests/engine/service/service_testing.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;

using Service = ServiceTest;

TEST_F(Service, ARunGoesFromOrderToCompletionRecord) {
  auto service = open();
  const RunConfig config = tiny_config();
  const auto outcome = run(*service, config);
  EXPECT_FALSE(outcome.error) << outcome.error->message();
  EXPECT_EQ(outcome.state, RunState::finished);
  EXPECT_EQ(outcome.run, config_hash(config));
  EXPECT_EQ(outcome.steps, tiny_steps);
  EXPECT_EQ(outcome.tokens, tiny_steps * 64);
  EXPECT_EQ(outcome.loss, PretendTrainer::loss_at(tiny_steps));
  EXPECT_EQ(outcome.val_loss, 1.5);
  EXPECT_EQ(outcome.parameters, 4321);
  EXPECT_FALSE(outcome.already_finished);
  EXPECT_TRUE(service->jobs().empty());

  const auto stored_run = stored(config);
  EXPECT_EQ(stored_run.state, RunState::finished);
  EXPECT_EQ(stored_run.name, "tiny");
  EXPECT_EQ(stored_run.step, tiny_steps);
  EXPECT_EQ(stored_run.total_steps, tiny_steps);
  EXPECT_GT(stored_run.finished, 0);
  EXPECT_EQ(stored_run.parameters, 4321);
  EXPECT_EQ(stored_run.progress.done, tiny_steps);
  EXPECT_EQ(stored_run.corpus_sha256.size(), 16u);
  EXPECT_FALSE(stored_run.commit.empty());
  EXPECT_EQ(must(parse_config(stored_run.config_json, "stored")), config);
  EXPECT_EQ(stored_run.folder, "tiny-" + outcome.run);
  EXPECT_EQ(must(load_config(workspace() / "runs" / stored_run.folder / "config.json")), config);
  EXPECT_EQ(must(must(service->reader())->series(outcome.run, "loss", 0, 1000)).size(), 20u);
}

TEST_F(Service, TheSameConfigAgainIsDoneAlready) {
  auto service = open();
  const auto first = run(*service, tiny_config());
  for (const bool resume : {false, true}) {
    const auto again = run(*service, tiny_config(), {.resume = resume, .max_steps = 0, .fallback_corpus = {}});
    EXPECT_FALSE(again.error);
    EXPECT_TRUE(again.already_finished);
    EXPECT_EQ(again.state, RunState::finished);
    EXPECT_EQ(again.run, first.run);
    EXPECT_EQ(again.steps, first.steps);
    EXPECT_EQ(again.tokens, first.tokens);
    EXPECT_EQ(again.first_loss, first.first_loss);
    EXPECT_EQ(again.loss, first.loss);
    EXPECT_EQ(again.unigram_entropy, first.unigram_entropy);
    EXPECT_EQ(again.seconds, first.seconds);
    EXPECT_EQ(again.tokens_per_second, first.tokens_per_second);
    EXPECT_EQ(again.parameters, first.parameters);
    EXPECT_EQ(again.plan_bytes, first.plan_bytes);
    EXPECT_EQ(again.peak_bytes, first.peak_bytes);
  }
  EXPECT_EQ(trainer_.calls, 1);
  EXPECT_EQ(corpora_, 1);  // nothing is fetched for what is done
  EXPECT_EQ(must(must(service->reader())->runs()).size(), 1u);
}

TEST_F(Service, AStopPausesAndResumeGoesOn) {
  auto service = open();
  const RunConfig config = tiny_config();
  trainer_.pause_at = 7;
  const auto job = service->submit(config, {});
  trainer_.wait_until_paused();
  service->stop(config_hash(config));
  const auto stopped = outcome_of(*service, job);
  EXPECT_EQ(stopped.state, RunState::paused);
  ASSERT_TRUE(stopped.error);
  EXPECT_EQ(stopped.error->kind, Error::Kind::stopped);
  EXPECT_EQ(stopped.steps, 7);
  EXPECT_EQ(stored(config).state, RunState::paused);
  EXPECT_EQ(stored(config).cause, "stopped at step 7 by the user");
  EXPECT_EQ(stored(config).finished, 0);

  const auto again = run(*service, config);
  ASSERT_TRUE(again.error);
  EXPECT_EQ(again.error->kind, Error::Kind::refused);
  EXPECT_NE(again.error->message().find("--resume"), std::string::npos) << again.error->message();
  EXPECT_EQ(trainer_.calls, 1);

  const auto resumed = run(*service, config, {.resume = true, .max_steps = 0, .fallback_corpus = {}});
  EXPECT_FALSE(resumed.error);
  EXPECT_EQ(resumed.state, RunState::finished);
  EXPECT_EQ(resumed.steps, tiny_steps);
  const auto points = must(must(service->reader())->series(resumed.run, "loss", 0, 1000));
  ASSERT_EQ(points.size(), 20u);
  for (std::size_t i = 0; i < points.size(); ++i) EXPECT_EQ(points[i].step, static_cast<std::int64_t>(i) + 1);
}

TEST_F(Service, ResumeStartsWhereThereIsNothingToContinue) {
  auto service = open();
  const auto outcome = run(*service, tiny_config(), {.resume = true, .max_steps = 0, .fallback_corpus = {}});
  EXPECT_FALSE(outcome.error);
  EXPECT_EQ(outcome.state, RunState::finished);
}

TEST_F(Service, MaxStepsPausesWithoutAnError) {
  auto service = open();
  const RunConfig config = tiny_config();
  const auto outcome = run(*service, config, {.resume = false, .max_steps = 5, .fallback_corpus = {}});
  EXPECT_FALSE(outcome.error);
  EXPECT_EQ(outcome.state, RunState::paused);
  EXPECT_EQ(outcome.steps, 5);
  EXPECT_EQ(stored(config).cause, "reached --max-steps 5");
  const auto more = run(*service, config, {.resume = true, .max_steps = 8, .fallback_corpus = {}});
  EXPECT_EQ(more.steps, 8);
  EXPECT_EQ(stored(config).step, 8);
}

TEST_F(Service, AStoredRunIsResumedByItsId) {
  auto service = open();
  const RunConfig config = tiny_config();
  run(*service, config, {.resume = false, .max_steps = 5, .fallback_corpus = {}});
  const auto outcome = outcome_of(*service, service->resume(config_hash(config)));
  EXPECT_FALSE(outcome.error);
  EXPECT_EQ(outcome.state, RunState::finished);
  EXPECT_EQ(outcome.run, config_hash(config));
  EXPECT_TRUE(outcome_of(*service, service->resume(config_hash(config))).already_finished);
  const auto unknown = outcome_of(*service, service->resume("ffffffffffff"));
  ASSERT_TRUE(unknown.error);
  EXPECT_EQ(unknown.error->kind, Error::Kind::usage);
}

TEST_F(Service, ARenamedConfigIsTheSameRunInTheSameFolder) {
  auto service = open();
  run(*service, tiny_config("first"), {.resume = false, .max_steps = 5, .fallback_corpus = {}});
  const auto outcome = run(*service, tiny_config("second"), {.resume = true, .max_steps = 0, .fallback_corpus = {}});
  EXPECT_EQ(outcome.state, RunState::finished);
  EXPECT_EQ(stored(tiny_config()).name, "first");
  EXPECT_TRUE(fs::exists(workspace() / "runs" / ("first-" + outcome.run)));
  EXPECT_FALSE(fs::exists(workspace() / "runs" / ("second-" + outcome.run)));
}

TEST_F(Service, JobsRunOneAfterAnotherInOrder) {
  auto service = open();
  trainer_.pause_at = 3;
  const auto first = service->submit(tiny_config("one", 1), {});
  const auto second = service->submit(tiny_config("two", 2), {});
  const auto third = service->submit(tiny_config("three", 3), {});
  trainer_.wait_until_paused();
  auto jobs = service->jobs();
  ASSERT_EQ(jobs.size(), 3u);
  EXPECT_EQ(jobs[0]->job, first);
  EXPECT_EQ(jobs[0]->name, "one");
  EXPECT_EQ(jobs[0]->run, config_hash(tiny_config("one", 1)));
  EXPECT_EQ(jobs[0]->progress.phase, "training");
  EXPECT_EQ(jobs[0]->progress.done, 3);
  EXPECT_EQ(jobs[0]->progress.total, tiny_steps);
  EXPECT_FALSE(jobs[0]->stopping);
  EXPECT_EQ(jobs[1]->job, second);
  EXPECT_EQ(jobs[1]->run, "");
  EXPECT_EQ(jobs[1]->progress.phase, "queued");
  EXPECT_FALSE(service->outcome(first));
  EXPECT_FALSE(service->wait(second, 0));

  service->stop_job(second);
  trainer_.pause_at = 0;
  trainer_.go_on();
  EXPECT_EQ(outcome_of(*service, first).state, RunState::finished);
  const auto never = outcome_of(*service, second);
  ASSERT_TRUE(never.error);
  EXPECT_EQ(never.error->kind, Error::Kind::stopped);
  EXPECT_EQ(never.run, "");
  EXPECT_EQ(outcome_of(*service, third).state, RunState::finished);
  EXPECT_EQ(trainer_.calls, 2);
  // A snapshot that somebody still holds does not change.
  EXPECT_EQ(jobs[0]->progress.done, 3);
}

TEST_F(Service, UnknownJobsAreNotWaitedFor) {
  auto service = open();
  EXPECT_FALSE(service->wait(1, 1e300));
  EXPECT_FALSE(service->wait(-5, 10));
  EXPECT_FALSE(service->outcome(17));
  service->stop_job(17);
  service->stop("ffffffffffff");
  service->stop_all();
}

TEST_F(Service, ClosingStopsTheRunCleanlyAndDropsTheQueue) {
  const RunConfig config = tiny_config();
  {
    auto service = open();
    trainer_.pause_at = 4;
    service->submit(config, {});
    service->submit(tiny_config("next", 2), {});
    trainer_.wait_until_paused();
  }
  EXPECT_EQ(stored(config).state, RunState::paused);
  EXPECT_EQ(stored(config).step, 4);
  EXPECT_EQ(trainer_.calls, 1);
  EXPECT_EQ(must(must(open_store_reader(workspace()))->runs()).size(), 1u);
}

TEST_F(Service, ClosingAtAnyMomentLeavesNothingRunning) {
  for (int i = 0; i < 20; ++i) {
    auto service = open();
    for (int job = 0; job < 3; ++job)
      service->submit(tiny_config("run", i * 3 + job), {.resume = true, .max_steps = 0, .fallback_corpus = {}});
    for (int turn = 0; turn < i * 5; ++turn) std::this_thread::yield();
    service.reset();
    for (const auto& run : must(must(open_store_reader(workspace()))->runs())) {
      EXPECT_TRUE(run.state == RunState::paused || run.state == RunState::finished) << to_string(run.state);
    }
  }
}

TEST_F(Service, AStopWhileTheRunIsStoppingShowsAsStopping) {
  // A trainer that takes its time to finish the step.
  std::atomic<bool> let_go = false;
  JobSteps slow = steps();
  slow.train = [&](const TrainRequest& request, const Dataset& data, RunSink& sink, std::stop_token stop) {
    auto result = trainer_.train(request, data, sink, stop);
    while (!let_go) std::this_thread::yield();
    return result;
  };
  auto service = open(std::move(slow));
  const RunConfig config = tiny_config();
  trainer_.pause_at = 2;
  const auto job = service->submit(config, {});
  trainer_.wait_until_paused();
  service->stop_job(job);
  EXPECT_TRUE(service->jobs().at(0)->stopping);
  while (stored(config).state != RunState::stopping) std::this_thread::yield();
  let_go = true;
  EXPECT_EQ(outcome_of(*service, job).state, RunState::paused);
}

TEST_F(Service, AMovedWorkspaceGoesOn) {
  const RunConfig config = tiny_config();
  {
    auto service = open();
    run(*service, config, {.resume = false, .max_steps = 5, .fallback_corpus = {}});
  }
  const TemporaryFolder elsewhere;
  fs::rename(workspace(), elsewhere / "moved");
  auto service = must(open_job_service(elsewhere / "moved", steps()));
  const auto outcome = outcome_of(*service, service->resume(config_hash(config)));
  EXPECT_FALSE(outcome.error) << outcome.error->message();
  EXPECT_EQ(outcome.state, RunState::finished);
  EXPECT_EQ(must(must(service->reader())->series(outcome.run, "loss", 0, 100)).size(), 20u);
  EXPECT_FALSE(fs::exists(workspace()));
}

TEST_F(Service, ManyThreadsMayCallAtOnce) {
  auto service = open();
  std::vector<std::thread> threads;
  std::atomic<int> ended = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 5; ++i) {
        const auto job = service->submit(tiny_config("run", t * 10 + i), {});
        service->jobs();
        if (i % 2 == 1) service->stop_job(job);
        if (service->wait(job, long_enough)) ++ended;
        service->stop(config_hash(tiny_config("run", t * 10 + i)));
        must(must(service->reader())->runs());
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(ended, 20);
}

}  // namespace
}  // namespace stacklab
