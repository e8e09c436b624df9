// What people do to runs beside training them, and how lists of runs are asked for.
#include <cmath>

#include <thread>

#include "engine/store/database.h"
#include "tests/engine/store/store_testing.h"

namespace stacklab {
namespace {

class Runs : public testing::Test {
 protected:
  Runs() : store_(must(Store::open(folder_.path()))), reader_(must(open_store_reader(folder_.path()))) {}

  // Run n has adam_lr n * 1e-3 and ends with this loss.
  void add(int n, RunState state, std::optional<double> loss = {}) {
    ClaimRequest request = test_request(n);
    request.config_json =
        "{\"optim\": {\"adam_lr\": " + std::to_string(n * 1e-3) + "}, \"train\": {\"precision\": \"bf16\"}}";
    const auto claim = must(store_->claim(request, {}));
    if (loss) store_->sink(claim)->metrics(test_metrics(1, *loss));
    must(store_->end(claim, {.state = state, .cause = {}}));
  }
  std::string listed(const RunQuery& query) {
    std::string numbers;
    for (const RunSummary& run : must(reader_->runs(query))) numbers += run.name.substr(4);
    return numbers;
  }

  static RunFilter filter(std::string_view text) {
    auto parsed = parse_run_filter(text);
    EXPECT_TRUE(parsed) << text;
    return parsed.value_or(RunFilter{});
  }

  TemporaryFolder folder_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<StoreReader> reader_;
};

TEST_F(Runs, AreFilteredAndSortedByTheStore) {
  add(1, RunState::finished, 3.0);
  add(2, RunState::paused, 1.0);
  add(3, RunState::finished, 2.0);
  add(4, RunState::failed);
  using Op = RunFilter::Op;
  const auto compare = RunFilter::compare;
  RunFilter both, precision;
  both.parts = {compare("optim.adam_lr", Op::less, 3e-3), compare("loss", Op::less, 2.0)};
  precision.kind = RunFilter::Kind::text;
  precision.key = "train.precision";
  precision.text = "bf16";
  EXPECT_EQ(listed({}), "1234");
  EXPECT_EQ(listed({.filter = filter("state:finished")}), "13");
  EXPECT_EQ(listed({.filter = filter("state:finished or state:failed")}), "134");
  EXPECT_EQ(listed({.order = "loss"}), "2314") << "without a value comes last";
  EXPECT_EQ(listed({.order = "loss", .descending = true}), "1324");
  EXPECT_EQ(listed({.order = "metric.grad_norm", .descending = true, .limit = 2, .offset = 1}), "32");
  EXPECT_EQ(listed({.filter = compare("optim.adam_lr", Op::at_least, 3e-3)}), "34");
  EXPECT_EQ(listed({.filter = both}), "2");
  EXPECT_EQ(listed({.filter = precision}), "1234");
  EXPECT_EQ(listed({.filter = compare("no.such.key", Op::equal, 1.0)}), "");
  EXPECT_EQ(listed({.filter = filter("\"RUN 3\"")}), "3");
  EXPECT_EQ(listed({.filter = filter("\"%\"")}), "");
  for (const char* odd : {"loss; DROP TABLE runs", "x'.y", "Loss", "", "nothing"}) {
    const auto wrong = reader_->runs({.order = odd});
    ASSERT_FALSE(wrong) << odd;
    EXPECT_EQ(wrong.error().kind, Error::Kind::usage);
  }
  const auto counts = must(reader_->counts_by_state());
  EXPECT_EQ(counts.at(RunState::finished), 2);
  EXPECT_EQ(counts.at(RunState::failed), 1);
}

TEST_F(Runs, ADeadProcessIsNeverCountedAsRunning) {
  {
    ChildProcess child({"hold", folder_.path().string(), test_id(1)});
    ASSERT_EQ(child.line(), "holding");
    EXPECT_EQ(must(reader_->counts_by_state()).at(RunState::running), 1);
    EXPECT_EQ(must(reader_->runs({.filter = filter("state:running")})).size(), 1u);
    child.send(SIGKILL);
    child.wait();
  }  // nobody wrote it down
  EXPECT_FALSE(must(reader_->counts_by_state()).contains(RunState::running));
  EXPECT_EQ(must(reader_->counts_by_state()).at(RunState::lost), 1);
  EXPECT_TRUE(must(reader_->runs({.filter = filter("state:running")})).empty());
  EXPECT_EQ(must(reader_->runs({.filter = filter("state:lost")})).size(), 1u);
}

TEST_F(Runs, EveryEditCanBeTakenBack) {
  add(1, RunState::finished, 3.0);
  const auto before = must(reader_->run(test_id(1)));
  RunEdit edit;
  edit.note = "a note; with 'quotes'";
  edit.add_tags = {"ablation", "baseline", "ablation"};
  edit.archived = true;
  const RunEdit back = must(store_->edit(test_id(1), edit));
  auto run = must(reader_->run(test_id(1)));
  EXPECT_EQ(run.note, *edit.note);
  EXPECT_EQ(run.tags, (std::vector<std::string>{"ablation", "baseline"}));
  EXPECT_GT(run.archived, 0);
  EXPECT_EQ(listed({}), "");
  EXPECT_EQ(listed({.filter = filter("tag:baseline"), .archived = true}), "1");
  EXPECT_EQ(listed({.filter = filter("tag:baseline and tag:other"), .archived = true}), "");
  const RunEdit again = must(store_->edit(test_id(1), back));
  run = must(reader_->run(test_id(1)));
  EXPECT_EQ(run.note, before.note);
  EXPECT_TRUE(run.tags.empty());
  EXPECT_EQ(run.archived, 0);
  must(store_->edit(test_id(1), again));
  EXPECT_EQ(must(reader_->run(test_id(1))).tags.size(), 2u);
  EXPECT_TRUE(must(store_->edit(test_id(1), {})).empty());
  for (const char* odd : {"", "two words", "a,b"}) {
    RunEdit wrong;
    wrong.note = "must not stay";
    wrong.add_tags = {odd};
    EXPECT_FALSE(store_->edit(test_id(1), wrong)) << odd;
  }
  EXPECT_EQ(must(reader_->run(test_id(1))).note, *edit.note);
  EXPECT_FALSE(store_->edit("nothing", edit));
}

TEST_F(Runs, ADeletedRunIsRefusedUntilItIsBackOrGone) {
  add(1, RunState::paused, 3.0);
  RunEdit away;
  away.deleted = true;
  EXPECT_FALSE(store_->purge(test_id(1))) << "only what is in the trash";
  const RunEdit back = must(store_->edit(test_id(1), away));
  EXPECT_EQ(listed({}), "");
  const auto claim = store_->claim(test_request(1, true), {});
  ASSERT_FALSE(claim);
  EXPECT_EQ(claim.error().kind, Error::Kind::refused);
  EXPECT_NE(claim.error().message().find("runs restore"), std::string::npos) << claim.error().message();
  must(store_->edit(test_id(1), back));
  EXPECT_EQ(listed({}), "1");
  must(store_->edit(test_id(1), away));
  must(store_->purge(test_id(1)));
  EXPECT_TRUE(must(reader_->runs()).empty());
  auto db = must(store::open_for_writing(folder_.path(), {}));
  for (const char* table : {"metrics", "steps", "pyramids", "events", "facts", "tags", "sessions"})
    EXPECT_EQ(db->execAndGet(std::string("SELECT count(*) FROM ") + table).getInt(), 0) << table;
}

TEST_F(Runs, ARunThatIsTrainedIsNeitherArchivedNorDeleted) {
  const auto claim = must(store_->claim(test_request(1), {}));
  RunEdit away;
  away.deleted = true;
  EXPECT_EQ(store_->edit(test_id(1), away).error().kind, Error::Kind::refused);
  away = {};
  away.archived = true;
  EXPECT_EQ(store_->edit(test_id(1), away).error().kind, Error::Kind::refused);
}

TEST_F(Runs, APollTellsWhatChangedAndNoMore) {
  for (int n = 1; n <= 3; ++n) add(n, RunState::finished, 3.0);
  auto changes = must(reader_->changes(0));
  EXPECT_TRUE(changes.everything);
  EXPECT_EQ(changes.runs.size(), 3u);
  auto next = must(reader_->changes(changes.counter));
  EXPECT_FALSE(next.everything);
  EXPECT_TRUE(next.runs.empty());
  EXPECT_EQ(next.counter, changes.counter);
  RunEdit edit;
  edit.add_tags = {"new"};
  must(store_->edit(test_id(2), edit));
  next = must(reader_->changes(changes.counter));
  ASSERT_EQ(next.runs.size(), 1u);
  EXPECT_EQ(next.runs[0].tags, std::vector<std::string>{"new"});
  // A run that is trained is looked at each time: whether its process lives is no matter of rows.
  const auto claim = must(store_->claim(test_request(4), {}));
  const auto sink = store_->sink(claim);
  sink->beat(10);
  must(store_->flush());
  changes = must(reader_->changes(next.counter));
  ASSERT_EQ(changes.runs.size(), 1u);
  next = must(reader_->changes(changes.counter));
  ASSERT_EQ(next.runs.size(), 1u);
  EXPECT_EQ(next.runs[0].state, RunState::running);
  sink->metrics(test_metrics(1, 2.5));
  must(store_->flush());
  EXPECT_EQ(must(reader_->changes(next.counter)).runs.at(0).last_loss, 2.5);
  // What is gone cannot be told row by row.
  edit = {};
  edit.deleted = true;
  must(store_->edit(test_id(1), edit));
  must(store_->purge(test_id(1)));
  EXPECT_TRUE(must(reader_->changes(next.counter)).everything);
}

TEST_F(Runs, AlertsAreOpenUntilTheyAreResolved) {
  const auto claim = must(store_->claim(test_request(1), {}));
  const auto sink = store_->sink(claim);
  sink->metrics(test_metrics(1, 2.5));
  sink->event({RunEvent::Kind::spike, 1, "first", RunEvent::Severity::warning, 6.5});
  sink->event({RunEvent::Kind::logit, 1, "other", RunEvent::Severity::critical});
  sink->resolved(RunEvent::Kind::spike, 3);
  sink->event({RunEvent::Kind::spike, 5, "second", RunEvent::Severity::warning});
  sink->event({RunEvent::Kind::info, 5, "no alert"});
  must(store_->flush());
  const auto open = must(reader_->alerts(true, 10));
  ASSERT_EQ(open.size(), 2u);
  EXPECT_EQ(open[0].row.event.text, "second");
  EXPECT_EQ(open[1].row.event.text, "other");
  EXPECT_EQ(open[0].name, "run 1");
  const auto all = must(reader_->alerts(false, 10));
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[2].row.resolved_step, 3);
  EXPECT_GT(all[2].row.resolved, 0);
  EXPECT_EQ(all[2].row.event.value, 6.5);
  EXPECT_EQ(must(reader_->run(test_id(1))).open_alerts, 2);
  must(store_->end(claim, {.state = RunState::paused, .cause = "stopped"}));
  // Training goes on after step 2: what came later is no more, nor is the end of the first.
  const auto second = must(store_->claim(test_request(1, true), {}));
  store_->sink(second)->resumed_after(2);
  must(store_->flush());
  const auto now = must(reader_->alerts(true, 10));
  ASSERT_EQ(now.size(), 2u);
  EXPECT_EQ(now[0].row.event.text, "other");
  EXPECT_EQ(now[1].row.event.text, "first");
}

TEST_F(Runs, AStallIsAnAlertWhileItLasts) {
  const auto claim = must(store_->claim(test_request(1), {}));
  const auto sink = store_->sink(claim);
  sink->beat(-100);  // promised long ago
  while (must(reader_->alerts(true, 10)).empty()) std::this_thread::yield();
  EXPECT_EQ(must(reader_->alerts(true, 10)).at(0).row.event.kind, RunEvent::Kind::stall);
  sink->beat(100);
  while (!must(reader_->alerts(true, 10)).empty()) std::this_thread::yield();
  EXPECT_EQ(must(reader_->alerts(false, 10)).size(), 1u) << "said once";
}

TEST_F(Runs, ConfigsAreComparedKeyByKey) {
  const auto differences =
      config_differences({R"({"a": {"x": 1, "y": 2.5}, "name": "one", "same": true})",
                          R"({"a": {"x": 1, "y": 3}, "name": "two", "same": true, "new": "k"})", "not JSON"});
  std::string text;
  for (const auto& d : differences) text += d.key + ":" + d.values[0] + "/" + d.values[1] + "/" + d.values[2] + " ";
  EXPECT_EQ(text, "a.x:1/1/ a.y:2.5/3/ name:one/two/ new:/k/ same:true/true/ ");
}

TEST_F(Runs, AMovedWorkspaceIsNoticed) {
  EXPECT_TRUE(store_->check_place());
  const auto elsewhere = folder_.path().string() + "-moved";
  std::filesystem::rename(folder_.path(), elsewhere);
  const Status gone = store_->check_place();
  std::filesystem::rename(elsewhere, folder_.path());
  ASSERT_FALSE(gone);
  EXPECT_NE(gone.error().what.find(folder_.path().string()), std::string::npos) << gone.error().message();
  EXPECT_TRUE(store_->check_place());
}

}  // namespace
}  // namespace stacklab
