#include "engine/store/claims.h"

#include <SQLiteCpp/Statement.h>

#include <future>

#include "engine/store/applier.h"
#include "engine/store/database.h"
#include "tests/engine/store/store_testing.h"

namespace stacklab {
namespace {

constexpr double now = 1.7e9;

TEST(Claims, ARunThatLivesElsewhereIsRefusedWithItsProcess) {
  const TemporaryFolder folder;
  ChildProcess child({"hold", folder.path().string(), test_id(1)});
  ASSERT_EQ(child.line(), "holding");
  auto store = must(Store::open(folder.path()));
  for (const bool resume : {false, true}) {
    const auto claim = store->claim(test_request(1, resume), {});
    ASSERT_FALSE(claim);
    EXPECT_EQ(claim.error().kind, Error::Kind::refused);
    EXPECT_NE(claim.error().what.find("is already running in process " + std::to_string(child.pid())),
              std::string::npos)
        << claim.error().message();
  }
  EXPECT_EQ(must(must(open_store_reader(folder.path()))->run(test_id(1))).state, RunState::running);
}

TEST(Claims, ADeadOwnersRunReadsLostAndCanBeContinued) {
  const TemporaryFolder folder;
  auto store = must(Store::open(folder.path()));
  ChildProcess child({"hold", folder.path().string(), test_id(1)});
  ASSERT_EQ(child.line(), "holding");
  child.send(SIGKILL);
  EXPECT_EQ(child.wait(), 128 + SIGKILL);

  // Nobody wrote it down: the reader sees for itself.
  auto reader = must(open_store_reader(folder.path()));
  const auto run = must(reader->run(test_id(1)));
  EXPECT_EQ(run.state, RunState::lost);
  EXPECT_TRUE(run.cause.starts_with("process " + std::to_string(child.pid()) + " ended without a completion record"))
      << run.cause;

  const auto refused = store->claim(test_request(1), {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Error::Kind::refused);
  EXPECT_NE(refused.error().message().find("--resume"), std::string::npos) << refused.error().message();
  EXPECT_NE(refused.error().what.find("lost"), std::string::npos) << refused.error().message();
  EXPECT_EQ(must(store->claim(test_request(1, true), {})).kind, Claim::Kind::continued);
  EXPECT_EQ(must(reader->run(test_id(1))).state, RunState::running);
}

TEST(Claims, OpeningTheStoreWritesLostDownOnce) {
  const TemporaryFolder folder;
  {
    ChildProcess child({"hold", folder.path().string(), test_id(1)});
    ASSERT_EQ(child.line(), "holding");
  }  // killed
  for (int i = 0; i < 2; ++i) must(Store::open(folder.path()));
  auto db = must(store::open_for_writing(folder.path(), {}));
  EXPECT_EQ(db->execAndGet("SELECT state FROM runs").getString(), "lost");
  const auto events = must(must(open_store_reader(folder.path()))->events(test_id(1), 0, 10));
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].event.kind, RunEvent::Kind::warning);
}

TEST(Claims, AFinishedRunIsNotDoneAgain) {
  const TemporaryFolder folder;
  auto store = must(Store::open(folder.path()));
  must(store->end(must(store->claim(test_request(1), {})), {.state = RunState::finished, .cause = {}}));
  for (const bool resume : {false, true}) {
    EXPECT_EQ(must(store->look(test_request(1, resume))), Claim::Kind::already_finished);
    const auto claim = must(store->claim(test_request(1, resume), {}));
    EXPECT_EQ(claim.kind, Claim::Kind::already_finished);
    EXPECT_EQ(claim.hold, nullptr);
  }
}

TEST(Claims, APausedOrFailedRunNeedsResume) {
  const TemporaryFolder folder;
  auto store = must(Store::open(folder.path()));
  int n = 0;
  for (const RunState state : {RunState::paused, RunState::failed, RunState::killed}) {
    ++n;
    must(store->end(must(store->claim(test_request(n), {})), {.state = state, .cause = "a cause"}));
    const auto again = store->claim(test_request(n), {});
    ASSERT_FALSE(again);
    EXPECT_NE(again.error().what.find(std::string(to_string(state)) + " at step 0: a cause"), std::string::npos)
        << again.error().message();
    EXPECT_EQ(must(store->claim(test_request(n, true), {})).kind, Claim::Kind::continued);
  }
}

TEST(Claims, LookingChangesNothing) {
  const TemporaryFolder folder;
  auto store = must(Store::open(folder.path()));
  EXPECT_EQ(must(store->look(test_request(1))), Claim::Kind::created);
  EXPECT_TRUE(must(must(open_store_reader(folder.path()))->runs()).empty());
  must(store->end(must(store->claim(test_request(1), {})), {.state = RunState::paused, .cause = "stopped"}));
  EXPECT_EQ(must(store->look(test_request(1, true))), Claim::Kind::continued);
  EXPECT_EQ(must(must(open_store_reader(folder.path()))->run(test_id(1))).state, RunState::paused);
}

TEST(Claims, ARenamedConfigIsTheSameRun) {
  const TemporaryFolder folder;
  auto store = must(Store::open(folder.path()));
  must(store->end(must(store->claim(test_request(1), {})), {.state = RunState::paused, .cause = "stopped"}));
  ClaimRequest renamed = test_request(1, true);
  renamed.name = "a new name";
  renamed.folder = "elsewhere";
  const auto claim = must(store->claim(renamed, {}));
  EXPECT_EQ(claim.name, "run 1");
  EXPECT_EQ(claim.folder, test_request(1).folder);
}

TEST(Claims, WhatWasChangedOfARunsConfigStays) {
  const TemporaryFolder folder;
  auto store = must(Store::open(folder.path()));
  must(store->end(must(store->claim(test_request(1), {})), {.state = RunState::paused, .cause = "stopped"}));
  ClaimRequest changed = test_request(1, true);
  changed.config_json = R"({"run": {"threads": 7}})";
  must(store->look(changed));
  EXPECT_EQ(must(must(open_store_reader(folder.path()))->run(test_id(1))).config_json, test_request(1).config_json);
  must(store->claim(changed, {}));
  EXPECT_EQ(must(must(open_store_reader(folder.path()))->run(test_id(1))).config_json, changed.config_json);
}

// Earlier versions stored the SHA-256 of the text in full.
TEST(Claims, DataNamedInAnotherWayAreNoReasonToRefuse) {
  const TemporaryFolder folder;
  auto store = must(Store::open(folder.path()));
  ClaimRequest earlier = test_request(1);
  earlier.corpus_sha256 = std::string(64, 'a');
  auto claim = must(store->claim(earlier, {}));
  store->sink(claim)->metrics(test_metrics(1, 2));
  must(store->end(claim, {.state = RunState::paused, .cause = "stopped"}));
  ClaimRequest later = test_request(1, true);
  later.corpus_sha256 = std::string(16, 'b');
  must(store->end(must(store->claim(later, {})), {.state = RunState::paused, .cause = "stopped"}));
  later.corpus_sha256 = std::string(16, 'c');
  EXPECT_FALSE(store->claim(later, {})) << "from now on they can be compared";
}

TEST(Claims, OtherDataAreRefusedOnceThereAreSteps) {
  const TemporaryFolder folder;
  auto store = must(Store::open(folder.path()));
  const auto pause = [&](const Claim& claim) {
    must(store->end(claim, {.state = RunState::paused, .cause = "stopped"}));
  };
  pause(must(store->claim(test_request(1), {})));
  ClaimRequest other = test_request(1, true);
  other.corpus_sha256 = std::string(64, 'd');
  auto claim = must(store->claim(other, {}));
  store->sink(claim)->metrics(test_metrics(1, 2));
  pause(claim);
  const auto refused = store->claim(test_request(1, true), {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Error::Kind::refused);
  EXPECT_NE(refused.error().what.find("other data"), std::string::npos) << refused.error().message();
  pause(must(store->claim(other, {})));
}

TEST(Claims, NumbersCountFromZeroInOrder) {
  const TemporaryFolder folder;
  auto store = must(Store::open(folder.path()));
  for (int n = 5; n > 0; --n) must(store->claim(test_request(n), {}));
  const auto runs = must(must(open_store_reader(folder.path()))->runs());
  ASSERT_EQ(runs.size(), 5u);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(runs[static_cast<std::size_t>(i)].number, i);
    EXPECT_EQ(runs[static_cast<std::size_t>(i)].id, test_id(5 - i));
  }
}

TEST(Claims, OfManyWhoClaimAtOnceOneGetsIt) {
  const TemporaryFolder folder;
  must(Store::open(folder.path()));
  std::vector<std::unique_ptr<ChildProcess>> children;
  for (int i = 0; i < 6; ++i) {
    children.push_back(
        std::make_unique<ChildProcess>(std::vector<std::string>{"hold", folder.path().string(), test_id(1)}));
  }
  int holders = 0;
  for (auto& child : children) {
    const std::string line = child->line();
    if (line == "holding")
      ++holders;
    else
      EXPECT_NE(line.find("is already running in process"), std::string::npos) << line;
  }
  EXPECT_EQ(holders, 1);
}

TEST(Claims, WhoeverWasTakenOverIsToldAndChangesNothing) {
  const TemporaryFolder folder;
  auto store = must(Store::open(folder.path()));
  std::promise<std::string> told;
  const auto claim =
      must(store->claim(test_request(1), {[&](const std::string& why, StopKind) { told.set_value(why); }, {}}));
  const auto sink = store->sink(claim);
  for (int step = 1; step <= 5; ++step) sink->metrics(test_metrics(step, step));
  must(store->flush());
  {
    // As another computer does when this one was silent too long.
    auto db = must(store::open_for_writing(folder.path(), {}));
    db->exec("UPDATE sessions SET boot_id = 'x', host = 'y', last_beat = 1, next_by = 2");
    store::Owner elsewhere = store::this_owner();
    elsewhere.host = "elsewhere";
    const auto row = must(store::claim_run(*db, test_request(1, true), elsewhere, now));
    EXPECT_EQ(row.session, 2);
    store::Applier applier(*db);
    applier.apply({{test_id(1), 2}, store::ResumedRecord{3}});
    applier.apply({{test_id(1), 2}, store::StepRecord{4, 40, 4, 4, {{"loss", 400}}}});
  }
  EXPECT_EQ(told.get_future().get(), "another process took the run over");
  // What the first still says: too late for steps that the second does, and for the state.
  sink->metrics(test_metrics(4, -1));
  sink->metrics(test_metrics(6, -1));
  sink->resumed_after(1);
  must(store->end(claim, {.state = RunState::finished, .cause = "not so"}));
  auto reader = must(open_store_reader(folder.path()));
  const auto points = must(reader->series(test_id(1), "loss", 0, 100));
  ASSERT_EQ(points.size(), 4u);
  EXPECT_EQ(points[3].value, 400);
  EXPECT_EQ(must(reader->run(test_id(1))).state, RunState::running);
}

}  // namespace
}  // namespace stacklab
