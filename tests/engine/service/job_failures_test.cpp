// Jobs that do not end as they should.
#include <new>

#include "engine/base/atomic_file.h"
#include "engine/base/environment.h"
#include "engine/model/counts.h"
#include "engine/train/checkpoint.h"
#include "engine/train/milestones.h"
#include "tests/engine/service/service_testing.h"
#include "tests/in_child.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;

using Failure = ServiceTest;

TEST_F(Failure, WhatATrainerThrowsIsTheRunsCause) {
  const std::vector<std::pair<std::function<void()>, std::string>> throwers = {
      {[] { throw std::bad_alloc(); }, "out of memory"},
      {[] { throw std::runtime_error("the kernel said no"); }, "the kernel said no"},
      {[] { throw 5; }, "unknown reason"},
  };
  JobSteps throwing = steps();
  std::function<void()> now;
  throwing.train = [&](const TrainRequest&, const Dataset&, RunSink& sink, std::stop_token) -> Result<TrainResult> {
    sink.metrics(test_metrics(1, 2));
    now();
    return TrainResult{};
  };
  auto service = open(std::move(throwing));
  int n = 0;
  for (const auto& [thrower, words] : throwers) {
    now = thrower;
    const RunConfig config = tiny_config("run", ++n);
    const auto outcome = run(*service, config);
    EXPECT_EQ(outcome.state, RunState::failed);
    ASSERT_TRUE(outcome.error);
    EXPECT_NE(outcome.error->what.find(words), std::string::npos) << outcome.error->message();
    const auto stored_run = stored(config);
    EXPECT_EQ(stored_run.state, RunState::failed);
    EXPECT_NE(stored_run.cause.find(words), std::string::npos) << stored_run.cause;
    EXPECT_EQ(stored_run.step, 1);
  }
}

TEST_F(Failure, WhatAKilledStarterOfDetachedRunsLeavesIsSweptByTheNextThatOpens) {
  const fs::path runs = workspace() / "runs";
  ASSERT_EQ(in_child([&] {
              const auto made = AtomicDirectory::create(runs / "detached");
              if (!made || !write_file_atomically(made->path() / "a.json", "{}")) return 2;
              _exit(0);  // as killed: nothing is cleaned up
            }),
            0);
  ASSERT_FALSE(fs::is_empty(runs));
  put_file(runs / "mine" / "kept", "x");
  const auto service = open(steps());
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(runs)) names.push_back(entry.path().filename());
  EXPECT_EQ(names, std::vector<std::string>{"mine"});
}

TEST_F(Failure, WhatTheCorpusThrowsIsTheJobsError) {
  JobSteps throwing = steps();
  bool memory = true;
  throwing.ensure_corpus = [&](std::string_view, const fs::path&, const CorpusProgress&,
                               std::stop_token) -> Result<Corpus> {
    if (memory) throw std::bad_alloc();
    throw std::runtime_error("no such mirror");
  };
  auto service = open(std::move(throwing));
  EXPECT_EQ(run(*service, tiny_config()).error->what, "out of memory");
  memory = false;
  EXPECT_EQ(run(*service, tiny_config()).error->what, "no such mirror");
  EXPECT_TRUE(must(must(service->reader())->runs()).empty());
}

TEST_F(Failure, ATrainersErrorIsKeptWithItsRemedy) {
  JobSteps failing = steps();
  failing.train = [&](const TrainRequest&, const Dataset&, RunSink&, std::stop_token) -> Result<TrainResult> {
    return failed("the loss is NaN at step 3", "lower optim.adam_lr");
  };
  auto service = open(std::move(failing));
  const auto outcome = run(*service, tiny_config());
  EXPECT_EQ(outcome.state, RunState::failed);
  EXPECT_EQ(outcome.error->remedy, "lower optim.adam_lr");
  EXPECT_EQ(stored(tiny_config()).cause, "the loss is NaN at step 3 (lower optim.adam_lr)");
  // A failed run can be tried again, when somebody says so.
  EXPECT_EQ(run(*service, tiny_config()).error->kind, Error::Kind::refused);
  service = open();
  EXPECT_EQ(outcome_of(*service, service->resume(config_hash(tiny_config()))).state, RunState::finished);
}

TEST_F(Failure, AnInvalidConfigIsRefusedBeforeAnything) {
  auto service = open();
  RunConfig config = tiny_config();
  config.train.tokens = 0;
  const auto outcome = run(*service, config);
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->kind, Error::Kind::usage);
  EXPECT_NE(outcome.error->what.find("train.tokens"), std::string::npos) << outcome.error->message();
  EXPECT_EQ(corpora_, 0);
}

TEST_F(Failure, ACorpusThatCannotBeHadFailsWithoutARow) {
  fs::remove_all(workspace() / "data/sample");
  JobSteps offline = steps();
  offline.ensure_corpus = [&](std::string_view name, const fs::path&, const CorpusProgress&,
                              std::stop_token) -> Result<Corpus> {
    return failed("no network for " + std::string(name), "try later");
  };
  auto service = open(std::move(offline));
  const auto outcome = run(*service, tiny_config());
  EXPECT_EQ(outcome.state, RunState::failed);
  EXPECT_EQ(outcome.error->message(), "no network for sample (try later)");
  EXPECT_EQ(outcome.run, "");
  EXPECT_TRUE(must(must(service->reader())->runs()).empty());
  const auto both = run(*service, tiny_config(), {.resume = false, .max_steps = 0, .fallback_corpus = "spare"});
  EXPECT_NE(both.error->what.find("no network for sample"), std::string::npos) << both.error->message();
  EXPECT_NE(both.error->what.find("no network for spare"), std::string::npos) << both.error->message();
}

// What is here and damaged, or named wrongly, is for the user to mend: nothing else is trained in its place.
TEST_F(Failure, OnlyWhatCannotBeFetchedIsReplaced) {
  JobSteps broken = steps();
  auto kind = Error::Kind::failed;
  broken.ensure_corpus = [&](std::string_view name, const fs::path& where, const CorpusProgress&,
                             std::stop_token) -> Result<Corpus> {
    if (name == "sample") return tl::unexpected<Error>({kind, "documents.bin is damaged", {}});
    return make_sample(name, where);
  };
  auto service = open(std::move(broken));
  const SubmitOptions with_fallback{.resume = false, .max_steps = 0, .fallback_corpus = "spare"};
  EXPECT_EQ(run(*service, tiny_config(), with_fallback).state, RunState::failed);
  fs::remove_all(workspace() / "data/sample");
  kind = Error::Kind::usage;
  EXPECT_EQ(run(*service, tiny_config(), with_fallback).state, RunState::failed);
  EXPECT_TRUE(must(must(service->reader())->runs()).empty());
}

TEST_F(Failure, TheFallbackCorpusMakesAnotherRunThatSaysSo) {
  fs::remove_all(workspace() / "data/sample");
  JobSteps offline = steps();
  offline.ensure_corpus = [&](std::string_view name, const fs::path& where, const CorpusProgress&,
                              std::stop_token) -> Result<Corpus> {
    if (name == "sample") return failed("no network", "try later");
    return make_sample(name, where);
  };
  auto service = open(std::move(offline));
  trainer_.pause_at = 2;
  const auto job = service->submit(tiny_config(), {.resume = false, .max_steps = 0, .fallback_corpus = "spare"});
  trainer_.wait_until_paused();
  EXPECT_NE(service->jobs().at(0)->progress.detail.find("spare in place of sample"), std::string::npos)
      << service->jobs().at(0)->progress.detail;
  trainer_.go_on();
  const auto outcome = outcome_of(*service, job);
  EXPECT_FALSE(outcome.error);
  RunConfig used = tiny_config();
  used.data.corpus = "spare";
  EXPECT_EQ(outcome.run, config_hash(used));
  EXPECT_EQ(must(parse_config(stored(used).config_json, "stored")).data.corpus, "spare");
  const auto events = must(must(service->reader())->events(outcome.run, 0, 10));
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events[0].event.kind, RunEvent::Kind::warning);
  EXPECT_NE(events[0].event.text.find("no network"), std::string::npos) << events[0].event.text;
  // Again, still without network: the same run, done already.
  const auto again = run(*service, tiny_config(), {.resume = false, .max_steps = 0, .fallback_corpus = "spare"});
  EXPECT_TRUE(again.already_finished);
  EXPECT_EQ(trainer_.calls, 1);
}

TEST_F(Failure, AStopWhileTheCorpusIsMadeLeavesNoRow) {
  JobSteps slow = steps();
  std::atomic<bool> begun = false;
  slow.ensure_corpus = [&](std::string_view, const fs::path&, const CorpusProgress& progress,
                           std::stop_token stop) -> Result<Corpus> {
    progress("fetching", 10, 100);
    begun = true;
    while (!stop.stop_requested()) std::this_thread::yield();
    return stopped("the fetch was stopped");
  };
  auto service = open(std::move(slow));
  const auto job = service->submit(tiny_config(), {.resume = false, .max_steps = 0, .fallback_corpus = "spare"});
  while (!begun) std::this_thread::yield();
  const auto snapshot = service->jobs().at(0);
  EXPECT_EQ(snapshot->progress.phase, "text");
  EXPECT_EQ(snapshot->progress.detail, "fetching");
  EXPECT_EQ(snapshot->progress.done, 10);
  EXPECT_EQ(snapshot->progress.total, 100);
  service->stop_job(job);
  const auto outcome = outcome_of(*service, job);
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->kind, Error::Kind::stopped);
  EXPECT_TRUE(must(must(service->reader())->runs()).empty());
}

TEST_F(Failure, ARunFolderThatCannotBeMadeIsNamed) {
  auto service = open();
  const RunConfig config = tiny_config();
  put_file(workspace() / "runs" / ("tiny-" + config_hash(config)), "in the way");
  const auto outcome = run(*service, config);
  EXPECT_EQ(outcome.state, RunState::failed);
  EXPECT_NE(outcome.error->what.find("tiny-" + config_hash(config)), std::string::npos) << outcome.error->message();
  EXPECT_EQ(stored(config).state, RunState::failed);
  EXPECT_EQ(trainer_.calls, 0);
}

TEST_F(Failure, ACompletionThatCannotBeRecordedIsAFailure) {
  StoreOptions options;
  options.max_pages = 30;
  options.patience = std::chrono::milliseconds(0);
  JobSteps wordy = steps();
  wordy.train = [&](const TrainRequest&, const Dataset&, RunSink& sink, std::stop_token) -> Result<TrainResult> {
    fs::rename(workspace() / "runs", workspace() / "runs away");
    for (int step = 1; step <= 20000; ++step) sink.metrics(test_metrics(step, step));
    TrainResult result;
    result.steps = 20000;
    result.complete = true;
    return result;
  };
  auto service = must(open_job_service(workspace(), std::move(wordy), options));
  const auto outcome = run(*service, tiny_config());
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->kind, Error::Kind::failed);
  EXPECT_NE(outcome.error->what.find("could not be recorded"), std::string::npos) << outcome.error->message();
  fs::rename(workspace() / "runs away", workspace() / "runs");
}

TEST_F(Failure, ADiskWithoutRoomForACheckpointIsRefusedBeforehand) {
  auto service = open();
  const auto free = disk_free(workspace());
  RunConfig config = tiny_config();
  // Parameters and two moments each, four bytes: one checkpoint of this is larger than what is free here.
  config.model.n_layers = 1024;
  config.model.d_model = 16384;
  config.model.intermediate = 65536;
  ASSERT_GT(count_parameters(config.model).total * 12, free);
  const auto outcome = run(*service, config);
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->kind, Error::Kind::refused) << outcome.error->message();
  EXPECT_NE(outcome.error->what.find("too full"), std::string::npos) << outcome.error->message();
  EXPECT_NE(outcome.error->what.find(workspace().string()), std::string::npos) << outcome.error->message();
  EXPECT_TRUE(must(must(service->reader())->runs()).empty());
}

// Room for one is not enough where three are kept at once; --set run.disk_guard=false goes on with a warning.
TEST_F(Failure, ADiskWithoutRoomForAllCheckpointsThatAreKeptIsRefused) {
  const fs::path disk = folder_ / "disk";
  fs::create_directories(disk);
  RunConfig config = tiny_config();
  config.model.d_model = 64, config.model.intermediate = 256;
  const std::int64_t one = checkpoint_size(config).total();
  ASSERT_EQ(checkpoints_at_once(config), 3);
  const int code = in_child([&] {
    if (!mount_small(disk, "16m")) return skip_code;
    auto service = must(open_job_service(disk, steps()));
    must(make_sample("sample", disk));
    const auto leave = [&](std::int64_t bytes) {
      fs::remove(disk / "filler");
      const auto filler = static_cast<std::size_t>(disk_free(disk) - bytes);
      put_file(disk / "filler", std::string(filler, 'x'));
    };
    leave(2 * one + (200 << 10) + store_room);
    const auto refusal = run(*service, config);
    if (!refusal.error || refusal.error->kind != Error::Kind::refused) return 1;
    std::cerr << refusal.error->message() << "\n";
    for (const char* part : {"3 checkpoints are kept at once, each of", "run.keep_last", "run.disk_guard=false"})
      if (refusal.error->message().find(part) == std::string::npos) return 2;
    if (!must(must(service->reader())->runs()).empty()) return 3;
    RunConfig fewer = config;
    fewer.run.keep_last = 1, fewer.run.checkpoint_every = 0;
    if (run(*service, fewer).state != RunState::finished) return 4;
    RunConfig careless = tiny_config("careless", 2);
    careless.model = config.model, careless.run.disk_guard = false;
    const auto outcome = run(*service, careless);
    if (outcome.state != RunState::finished) return 5;
    return must(must(service->reader())->events(outcome.run, 0, 10)).at(0).event.text.find("too full") !=
                   std::string::npos
               ? 0
               : 6;
  });
  if (code == skip_code) GTEST_SKIP() << "a small file system cannot be mounted here";
  EXPECT_EQ(code, 0);
}

TEST_F(Failure, AWorkspaceThatIsNoFolderIsNamed) {
  put_file(folder_ / "file", "x");
  const auto service = JobService::open(folder_ / "file");
  ASSERT_FALSE(service);
  EXPECT_NE(service.error().what.find((folder_ / "file").string()), std::string::npos) << service.error().message();
  const auto reader = JobService::open_reader(folder_ / "nowhere");
  ASSERT_FALSE(reader);
  EXPECT_NE(reader.error().what.find("there is no workspace"), std::string::npos) << reader.error().message();
}

}  // namespace
}  // namespace stacklab
