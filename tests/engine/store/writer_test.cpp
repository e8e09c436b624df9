#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>

#include <cmath>
#include <future>
#include <limits>
#include <thread>

#include "engine/store/database.h"
#include "tests/engine/store/store_testing.h"

namespace stacklab {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

TEST(Writer, WhatIsReportedIsRead) {
  const TemporaryFolder folder;
  auto store = must(Store::open(folder.path()));
  const auto claim = must(store->claim(test_request(1), {}));
  EXPECT_EQ(claim.kind, Claim::Kind::created);
  const auto sink = store->sink(claim);
  sink->progress({"training", "ten steps", 3, 100});
  sink->beat(12);
  sink->fact("unigram_entropy", 2.85);
  for (int step = 1; step <= 10; ++step) sink->metrics(test_metrics(step, 5.0 / step));
  MetricEvent validation;
  validation.step = 10;
  validation.tokens = 100;
  validation.process_seconds = 5;
  validation.values = {{metric::val_loss, 0.75}};
  sink->metrics(validation);
  sink->event({RunEvent::Kind::checkpoint, 10, "ckpt_step10"});
  must(store->flush());

  auto reader = must(open_store_reader(folder.path()));
  const RunSummary run = must(reader->run("run 1"));
  EXPECT_EQ(run.id, test_id(1));
  EXPECT_EQ(run.number, 0);
  EXPECT_EQ(run.state, RunState::running);
  EXPECT_FALSE(run.stalled);
  EXPECT_EQ(run.process, getpid());
  EXPECT_EQ(run.progress.phase, "training");
  EXPECT_EQ(run.progress.detail, "ten steps");
  EXPECT_EQ(run.progress.done, 3);
  EXPECT_EQ(run.progress.total, 100);
  EXPECT_GT(run.last_beat, 0);
  EXPECT_EQ(run.step, 10);
  EXPECT_EQ(run.total_steps, 100);
  EXPECT_EQ(run.tokens, 100);
  EXPECT_EQ(run.seconds, 5);
  EXPECT_EQ(run.first_loss, 5.0);
  EXPECT_EQ(run.last_loss, 0.5);
  EXPECT_EQ(run.val_loss, 0.75);
  EXPECT_GT(run.created, 1.6e9);
  EXPECT_EQ(run.finished, 0);
  EXPECT_EQ(run.commit, "abcdef012345");
  EXPECT_EQ(run.corpus_sha256, std::string(64, 'c'));
  EXPECT_EQ(run.facts, (std::vector<std::pair<std::string, double>>{{"unigram_entropy", 2.85}}));

  EXPECT_EQ(must(reader->metrics(run.id)), (std::vector<std::string>{"loss", "grad_norm", "val_loss"}));
  const auto points = must(reader->series(run.id, "loss", 4, 3));
  ASSERT_EQ(points.size(), 3u);
  EXPECT_EQ(points[0].step, 5);
  EXPECT_EQ(points[2].step, 7);
  EXPECT_EQ(points[2].value, 5.0 / 7);
  EXPECT_EQ(must(reader->last_point(run.id, "loss"))->step, 10);
  EXPECT_EQ(must(reader->last_point(run.id, "val_loss"))->value, 0.75);
  EXPECT_FALSE(must(reader->last_point(run.id, "temperature")));
  const auto steps = must(reader->steps(run.id, 9, 10));
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].tokens, 100);
  const auto events = must(reader->events(run.id, 0, 10));
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].event.kind, RunEvent::Kind::checkpoint);
  EXPECT_EQ(events[0].event.step, 10);
  EXPECT_EQ(events[0].event.text, "ckpt_step10");
  EXPECT_TRUE(must(reader->events(run.id, events[0].id, 10)).empty());
}

TEST(Writer, EndIsRecordedWithItsFigures) {
  const TemporaryFolder folder;
  auto store = must(Store::open(folder.path()));
  const auto claim = must(store->claim(test_request(1), {}));
  const auto sink = store->sink(claim);
  sink->metrics(test_metrics(1, 2));
  sink->progress({"training", {}, 100, 100});
  must(store->end(claim, {.state = RunState::failed,
                          .cause = "loss is NaN",
                          .step = 3,
                          .tokens = 30,
                          .seconds = 1.25,
                          .parameters = 11,
                          .plan_bytes = 22,
                          .peak_bytes = 33,
                          .tokens_per_second = 4.5}));
  const auto run = must(must(open_store_reader(folder.path()))->run(test_id(1)));
  EXPECT_EQ(run.state, RunState::failed);
  EXPECT_EQ(run.cause, "loss is NaN");
  EXPECT_GT(run.finished, 0);
  // Not every step has a row; the end knows better.
  EXPECT_EQ(run.step, 3);
  EXPECT_EQ(run.tokens, 30);
  EXPECT_EQ(run.seconds, 1.25);
  EXPECT_EQ(run.parameters, 11);
  EXPECT_EQ(run.plan_bytes, 22);
  EXPECT_EQ(run.peak_bytes, 33);
  EXPECT_EQ(run.tokens_per_second, 4.5);
  EXPECT_EQ(run.progress.done, 100);  // the last progress comes with the end
}

TEST(Writer, NonFiniteValuesStayApart) {
  const TemporaryFolder folder;
  auto store = must(Store::open(folder.path()));
  const auto claim = must(store->claim(test_request(1), {}));
  const auto sink = store->sink(claim);
  const std::vector<double> values = {
      1.5, std::nan(""), inf, -inf, -0.0, std::numeric_limits<double>::denorm_min(), std::numeric_limits<double>::max(),
      0.1};
  for (std::size_t i = 0; i < values.size(); ++i) sink->metrics(test_metrics(static_cast<int>(i) + 1, values[i]));
  sink->fact("nan", std::nan(""));
  sink->fact("inf", inf);
  must(store->flush());
  auto reader = must(open_store_reader(folder.path()));
  const auto points = must(reader->series(test_id(1), "loss", 0, 100));
  ASSERT_EQ(points.size(), values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i]))
      EXPECT_TRUE(std::isnan(points[i].value));
    else
      EXPECT_EQ(points[i].value, values[i]);
  }
  const auto run = must(reader->run(test_id(1)));
  ASSERT_EQ(run.facts.size(), 2u);
  EXPECT_EQ(run.facts[0].second, inf);
  EXPECT_TRUE(std::isnan(run.facts[1].second));
}

TEST(Writer, ALossThatIsNotANumberIsNotAMissingLoss) {
  const TemporaryFolder folder;
  auto store = must(Store::open(folder.path()));
  const auto claim = must(store->claim(test_request(1), {}));
  auto reader = must(open_store_reader(folder.path()));
  EXPECT_FALSE(must(reader->run(test_id(1))).last_loss.has_value());
  store->sink(claim)->metrics(test_metrics(1, std::nan("")));
  must(store->flush());
  const auto run = must(reader->run(test_id(1)));
  ASSERT_TRUE(run.last_loss.has_value());
  EXPECT_TRUE(std::isnan(*run.last_loss));
  EXPECT_FALSE(run.val_loss.has_value());
}

TEST(Writer, RowsAreCommittedWithoutAFlush) {
  const TemporaryFolder folder;
  StoreOptions options;
  options.commit_interval = std::chrono::milliseconds(5);
  auto store = must(Store::open(folder.path(), options));
  const auto claim = must(store->claim(test_request(1), {}));
  store->sink(claim)->metrics(test_metrics(1, 2));
  auto reader = must(open_store_reader(folder.path()));
  while (must(reader->series(test_id(1), "loss", 0, 1)).empty()) std::this_thread::yield();
}

TEST(Writer, TheDestructorCommitsWhatIsQueued) {
  const TemporaryFolder folder;
  {
    auto store = must(Store::open(folder.path()));
    const auto claim = must(store->claim(test_request(1), {}));
    const auto sink = store->sink(claim);
    for (int step = 1; step <= 5000; ++step) sink->metrics(test_metrics(step, 1));
  }
  auto reader = must(open_store_reader(folder.path()));
  EXPECT_EQ(must(reader->series(test_id(1), "loss", 0, 10000)).size(), 5000u);
}

TEST(Writer, AResumeSupersedesLaterRows) {
  const TemporaryFolder folder;
  auto store = must(Store::open(folder.path()));
  auto reader = must(open_store_reader(folder.path()));
  {
    const auto claim = must(store->claim(test_request(1), {}));
    const auto sink = store->sink(claim);
    for (int step = 1; step <= 15; ++step) sink->metrics(test_metrics(step, step));
    sink->event({RunEvent::Kind::checkpoint, 10, "ckpt_step10"});
    sink->event({RunEvent::Kind::spike, 14, "spike"});
    sink->event({RunEvent::Kind::info, 15, "note"});
    must(store->end(claim, {.state = RunState::paused, .cause = "stopped"}));
  }
  const auto before = must(reader->series_epoch(test_id(1)));
  const auto claim = must(store->claim(test_request(1, true), {}));
  EXPECT_EQ(claim.kind, Claim::Kind::continued);
  EXPECT_EQ(claim.step, 15);
  const auto sink = store->sink(claim);
  sink->resumed_after(10);
  for (int step = 11; step <= 12; ++step) sink->metrics(test_metrics(step, 100 + step));
  must(store->flush());
  EXPECT_GT(must(reader->series_epoch(test_id(1))), before);
  const auto points = must(reader->series(test_id(1), "loss", 0, 100));
  ASSERT_EQ(points.size(), 12u);
  for (const auto& p : points)
    EXPECT_EQ(p.value, p.step <= 10 ? static_cast<double>(p.step) : 100.0 + static_cast<double>(p.step));
  EXPECT_EQ(must(reader->steps(test_id(1), 0, 100)).size(), 12u);
  EXPECT_EQ(must(reader->run(test_id(1))).step, 12);
  // The spike belongs to a step that is no more; the checkpoint and the note stay.
  std::vector<std::string> texts;
  for (const auto& row : must(reader->events(test_id(1), 0, 100))) texts.push_back(row.event.text);
  EXPECT_EQ(texts, (std::vector<std::string>{"ckpt_step10", "note"}));
}

TEST(Writer, AResumeFromTheStartLeavesNothing) {
  const TemporaryFolder folder;
  auto store = must(Store::open(folder.path()));
  {
    const auto claim = must(store->claim(test_request(1), {}));
    for (int step = 1; step <= 3; ++step) store->sink(claim)->metrics(test_metrics(step, step));
    must(store->end(claim, {.state = RunState::paused, .cause = "stopped"}));
  }
  const auto claim = must(store->claim(test_request(1, true), {}));
  store->sink(claim)->resumed_after(0);
  must(store->flush());
  const auto run = must(must(open_store_reader(folder.path()))->run(test_id(1)));
  EXPECT_EQ(run.step, 0);
  EXPECT_FALSE(run.first_loss.has_value());
}

TEST(Writer, AProcessThatGoesOnWithoutAWordSupersedesFromItsFirstStep) {
  const TemporaryFolder folder;
  auto store = must(Store::open(folder.path()));
  {
    const auto claim = must(store->claim(test_request(1), {}));
    for (int step = 1; step <= 5; ++step) store->sink(claim)->metrics(test_metrics(step, step));
    must(store->end(claim, {.state = RunState::paused, .cause = "stopped"}));
  }
  const auto claim = must(store->claim(test_request(1, true), {}));
  store->sink(claim)->metrics(test_metrics(3, 30));
  must(store->flush());
  const auto points = must(must(open_store_reader(folder.path()))->series(test_id(1), "loss", 0, 100));
  ASSERT_EQ(points.size(), 3u);
  EXPECT_EQ(points[2].value, 30);
}

TEST(Writer, ProgressAndBeatsAreCoalescedNotQueued) {
  const TemporaryFolder folder;
  auto store = must(Store::open(folder.path()));
  const auto claim = must(store->claim(test_request(1), {}));
  const auto sink = store->sink(claim);
  for (int i = 0; i < 100000; ++i) {
    sink->beat(10);
    sink->progress({"text", {}, i, 100000});
  }
  EXPECT_EQ(store->health().held_rows, 0);
  must(store->flush());
  EXPECT_EQ(must(must(open_store_reader(folder.path()))->run(test_id(1))).progress.done, 99999);
}

TEST(Writer, AStopAskedForByAnotherProcessArrives) {
  const TemporaryFolder folder;
  ChildProcess child({"hold", folder.path().string(), test_id(1)});
  ASSERT_EQ(child.line(), "holding");
  auto store = must(Store::open(folder.path()));
  store->request_stop(test_id(1));
  EXPECT_EQ(child.line(), "stop");
  EXPECT_EQ(must(must(open_store_reader(folder.path()))->run(test_id(1))).state, RunState::stopping);
  child.close_input();
  EXPECT_EQ(child.line(), "ended");
  EXPECT_EQ(child.wait(), 0);
}

TEST(Writer, ALockedDatabaseDelaysRowsAndLosesNone) {
  const TemporaryFolder folder;
  StoreOptions options;
  options.busy_timeout = std::chrono::milliseconds(20);
  auto store = must(Store::open(folder.path(), options));
  const auto claim = must(store->claim(test_request(1), {}));
  const auto sink = store->sink(claim);
  ChildProcess child({"lock", folder.path().string()});
  ASSERT_EQ(child.line(), "locked");
  for (int step = 1; step <= 2000; ++step) sink->metrics(test_metrics(step, step));
  while (store->health().available) std::this_thread::yield();
  EXPECT_NE(store->health().problem.find("locked"), std::string::npos) << store->health().problem;
  EXPECT_EQ(store->health().lost_rows, 0);
  child.close_input();
  EXPECT_EQ(child.wait(), 0);
  must(store->flush());
  EXPECT_TRUE(store->health().available);
  EXPECT_EQ(store->health().held_rows, 0);
  EXPECT_EQ(must(must(open_store_reader(folder.path()))->series(test_id(1), "loss", 0, 10000)).size(), 2000u);
}

// Training's own thread waits for the disk at most, and for nobody's lock: patience here is longer than any test.
TEST(Writer, WhatACheckpointNeedsIsSafeWithoutTheDatabase) {
  const TemporaryFolder folder;
  StoreOptions options;
  options.busy_timeout = std::chrono::milliseconds(20);
  options.patience = std::chrono::hours(24);
  {
    auto store = must(Store::open(folder.path(), options));
    const auto claim = must(store->claim(test_request(1), {}));
    const auto sink = store->sink(claim);
    ChildProcess child({"lock", folder.path().string()});
    ASSERT_EQ(child.line(), "locked");
    for (int step = 1; step <= 100; ++step) {
      sink->metrics(test_metrics(step, step));
      sink->settle();
      EXPECT_EQ(store->health().held_rows, 0) << step;
    }
    EXPECT_GT(store->health().spilled_rows, 0);
    child.close_input();
    EXPECT_EQ(child.wait(), 0);
    must(store->flush());
  }
  auto reader = must(open_store_reader(folder.path()));
  EXPECT_EQ(must(reader->series(test_id(1), "loss", 0, 1000)).size(), 100u);
  EXPECT_TRUE(must(reader->events(test_id(1), 0, 10)).empty()) << "a short lock is nothing to tell";
}

TEST(Writer, ARequestWaitsForALockedDatabase) {
  const TemporaryFolder folder;
  ChildProcess child({"hold", folder.path().string(), test_id(1)});
  ASSERT_EQ(child.line(), "holding");
  StoreOptions options;
  options.busy_timeout = options.claim_timeout = std::chrono::milliseconds(20);
  auto store = must(Store::open(folder.path(), options));
  {
    ChildProcess lock({"lock", folder.path().string()});
    ASSERT_EQ(lock.line(), "locked");
    const auto refused = store->stop_by_request(test_id(1), StopKind::pause);
    ASSERT_FALSE(refused) << "who waits is told";
    EXPECT_NE(refused.error().what.find("locked"), std::string::npos) << refused.error().message();
    store->request_stop(test_id(1));
    must(store->flush());  // it was tried
    EXPECT_EQ(must(must(open_store_reader(folder.path()))->run(test_id(1))).state, RunState::running);
    lock.close_input();
    EXPECT_EQ(lock.wait(), 0);
  }
  EXPECT_EQ(child.line(), "stop");
  child.close_input();
  EXPECT_EQ(child.line(), "ended");
  EXPECT_EQ(child.wait(), 0);
  EXPECT_FALSE(must(store->stop_by_request(test_id(1), StopKind::stop))) << "nobody trains it any more";
}

TEST(Writer, ARunThatWasDeletedIsStoppedAndItsRowsAreCounted) {
  const TemporaryFolder folder;
  auto store = must(Store::open(folder.path()));
  std::promise<std::string> stopped;
  const auto claim =
      must(store->claim(test_request(1), {[&](const std::string& why, StopKind) { stopped.set_value(why); }, {}}));
  {
    auto db = must(store::open_for_writing(folder.path(), {}));
    db->exec("DELETE FROM runs");
  }
  store->sink(claim)->metrics(test_metrics(1, 2));
  EXPECT_EQ(stopped.get_future().get(), "the run was deleted");
  must(store->flush());
  EXPECT_GT(store->health().lost_rows, 0);
}

}  // namespace
}  // namespace stacklab
