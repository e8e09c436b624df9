// The item models and the link to the service, over a workspace in memory.
#include <QAbstractItemModelTester>
#include <QSignalSpy>
#include <cmath>

#include "tests/ui/fake_service.h"
#include "tests/ui/ui_test.h"
#include "ui/models/event_list_model.h"
#include "ui/models/run_list_model.h"
#include "ui/models/run_source.h"
#include "ui/models/state_look.h"

namespace stacklab::ui {
namespace {

using Tester = QAbstractItemModelTester;

WorkspaceSnapshotPtr snapshot_of(const std::vector<RunSummary>& runs, const QString& error = {}) {
  static std::uint64_t generation = 0;
  auto snapshot = std::make_shared<WorkspaceSnapshot>();
  snapshot->generation = ++generation;
  snapshot->unix_time = 1e9;
  for (const RunSummary& run : runs) snapshot->runs.push_back({run, config_facts(run.config_json), -1});
  snapshot->read_error = error;
  return snapshot;
}

TEST(RunListModel, FollowsTheStore) {
  RunListModel model;
  const Tester tester(&model, Tester::FailureReportingMode::Fatal);
  QSignalSpy inserted(&model, &QAbstractItemModel::rowsInserted), removed(&model, &QAbstractItemModel::rowsRemoved),
      changed(&model, &QAbstractItemModel::dataChanged), reset(&model, &QAbstractItemModel::modelReset);
  std::vector<RunSummary> runs;
  model.update(snapshot_of(runs));
  EXPECT_EQ(model.rowCount(), 0);
  for (int n = 0; n < 3; ++n) runs.push_back(sample_run(n, RunState::finished, 400));
  model.update(snapshot_of(runs));
  ASSERT_EQ(model.rowCount(), 3);
  EXPECT_EQ(model.run_at(0).summary.number, 2) << "the newest is on top";
  runs.push_back(sample_run(3, RunState::running, 10));
  runs.push_back(sample_run(4, RunState::queued, 0));
  model.update(snapshot_of(runs));
  ASSERT_EQ(model.rowCount(), 5);
  EXPECT_EQ(model.run_at(0).summary.number, 4);
  EXPECT_EQ(model.run_at(4).summary.number, 0);
  changed.clear();
  model.update(snapshot_of(runs));
  EXPECT_EQ(changed.count(), 0) << "nothing moved, nothing is redrawn";
  runs[3].last_loss = 2.5;
  model.update(snapshot_of(runs));
  ASSERT_EQ(changed.count(), 1);
  EXPECT_EQ(changed[0][0].toModelIndex().row(), 1);
  runs.erase(runs.begin() + 1);
  runs.push_back(sample_run(5, RunState::queued, 0));
  model.update(snapshot_of(runs));
  ASSERT_EQ(model.rowCount(), 5);
  std::vector<std::int64_t> numbers;
  for (int row = 0; row < 5; ++row) numbers.push_back(model.run_at(row).summary.number);
  EXPECT_EQ(numbers, (std::vector<std::int64_t>{5, 4, 3, 2, 0}));
  EXPECT_EQ(reset.count(), 0);
  std::swap(runs[0], runs[1]);  // never happens in a store; must not break the list
  model.update(snapshot_of(runs));
  EXPECT_EQ(model.run_at(4).summary.number, 2);
  model.update(snapshot_of({}, QStringLiteral("the store is locked")));
  EXPECT_EQ(model.rowCount(), 5) << "what was known stays while the store cannot be read";
}

TEST(RunListModel, ShowsHidesAndSolos) {
  RunListModel model;
  const Tester tester(&model, Tester::FailureReportingMode::Fatal);
  std::vector<RunSummary> runs;
  for (int n = 0; n < 14; ++n) runs.push_back(sample_run(n, RunState::finished, 400));
  QSignalSpy shown(&model, &RunListModel::shown_changed);
  model.update(snapshot_of(runs));
  EXPECT_EQ(model.shown_runs().size(), 10u);
  EXPECT_FALSE(model.is_shown(runs[0].id));
  EXPECT_EQ(shown.count(), 1);
  EXPECT_TRUE(model.setData(model.index(13), Qt::Checked, Qt::CheckStateRole));
  EXPECT_TRUE(model.is_shown(runs[0].id));
  model.set_shown(runs[13].id, false);
  EXPECT_EQ(model.shown_runs().size(), 10u);
  model.update(snapshot_of(runs));
  EXPECT_FALSE(model.is_shown(runs[13].id)) << "what the user hid stays hidden";
  model.solo(runs[5].id);
  ASSERT_EQ(model.shown_runs().size(), 1u);
  EXPECT_EQ(model.shown_runs()[0]->summary.id, runs[5].id);
  model.solo(runs[5].id);
  EXPECT_EQ(model.shown_runs().size(), 10u);
}

TEST(RunListModel, SaysAStateInWordsAndWhy) {
  RunListModel model;
  RunSummary run = sample_run(0, RunState::failed, 10);
  run.cause = "out of memory";
  run.last_loss = std::nan("");
  model.update(snapshot_of({run}));
  const QString said = model.index(0).data(Qt::AccessibleTextRole).toString();
  for (const char* part : {"first-run", "failed", "out of memory", "NaN", "on show"})
    EXPECT_TRUE(said.contains(QLatin1String(part))) << said.toStdString();
}

TEST(States, ALimitOfStepsIsSaidInWordsOfTheWindow) {
  RunSummary run = sample_run(0, RunState::paused, 10);
  run.cause = "reached --max-steps 40";
  EXPECT_EQ(cause_of({run, {}, -1}, 0), "paused at its limit of 40 steps");
}

TEST(States, EveryStateHasShapeWordAndColourOfItsOwn) {
  std::set<QString> words;
  std::set<Glyph> glyphs;
  for (const RunState state : {RunState::queued, RunState::running, RunState::paused, RunState::stopping,
                               RunState::finished, RunState::failed, RunState::killed, RunState::lost}) {
    const StateLook look_ = look_of(state, false);
    words.insert(look_.word);
    glyphs.insert(look_.glyph);
  }
  const StateLook stalled = look_of(RunState::running, true);
  words.insert(stalled.word);
  glyphs.insert(stalled.glyph);
  EXPECT_EQ(words.size(), 9u);
  EXPECT_EQ(glyphs.size(), 9u);
}

TEST(States, TimeLeftFollowsFromTheSpeedSoFar) {
  RunSummary run = sample_run(0, RunState::running, 100, 400);
  run.seconds = 50;
  EXPECT_DOUBLE_EQ(seconds_left(run), 150);
  run.state = RunState::finished;
  EXPECT_LT(seconds_left(run), 0);
  run.state = RunState::running;
  run.step = 0;
  EXPECT_LT(seconds_left(run), 0);
}

TEST(EventListModel, PutsTheNewestOnTop) {
  EventListModel model;
  const Tester tester(&model, Tester::FailureReportingMode::Fatal);
  EventsChunk chunk;
  chunk.rows = {{1, 10, {RunEvent::Kind::info, 5, "began"}}, {2, 11, {RunEvent::Kind::checkpoint, 100, "saved"}}};
  model.update(chunk);
  chunk.rows = {{3, 12, {RunEvent::Kind::spike, 120, "spike"}}};
  model.update(chunk);
  ASSERT_EQ(model.rowCount(), 3);
  EXPECT_EQ(model.index(0).data().toString(), "spike");
  EXPECT_EQ(model.index(2).data(EventListModel::step_role).toLongLong(), 5);
  chunk.restart = true;
  model.update(chunk);
  EXPECT_EQ(model.rowCount(), 1);
  chunk.restart = false;
  chunk.rows.assign(EventListModel::most_rows + 10, {4, 12, {RunEvent::Kind::info, 1, "again"}});
  model.update(chunk);
  EXPECT_EQ(model.rowCount(), EventListModel::most_rows);
}

TEST(ConfigFacts, AreReadOffTheStoredConfig) {
  const ConfigFacts facts = config_facts(sample_run(0, RunState::running, 1).config_json);
  EXPECT_EQ(facts.vocab_size, 256);
  EXPECT_EQ(facts.batch_tokens, 4096);
  EXPECT_EQ(facts.corpus, "kjv");
  EXPECT_EQ(config_facts("not json").vocab_size, 0);
}

class Link : public testing::Test {
 protected:
  Link() : workspace(std::make_shared<FakeWorkspace>()) {}
  void open(std::int64_t chunk_points = 20000) {
    LinkOptions options = fake_link(workspace);
    options.chunk_points = chunk_points;
    link = std::make_unique<WorkspaceLink>(options);
    QObject::connect(link.get(), &WorkspaceLink::snapshot_ready,
                     [this](const WorkspaceSnapshotPtr& s) { snapshot = s; });
    QObject::connect(link.get(), &WorkspaceLink::chunk_ready, [this](const SeriesChunkPtr& c) {
      auto& to = read[c->key];
      if (c->restart) {
        to.clear();
        ++restarts[c->key];
      }
      for (std::size_t i = 0; i < c->steps.size(); ++i)
        to.push_back({static_cast<std::int64_t>(c->steps[i]), c->values[i]});
      complete[c->key] = c->complete;
      ++chunks;
    });
    link->open();
    ASSERT_TRUE(wait_until([&] { return snapshot != nullptr; }));
  }
  FakeWorkspacePtr workspace;
  std::unique_ptr<WorkspaceLink> link;
  WorkspaceSnapshotPtr snapshot;
  std::map<SeriesKey, std::vector<SeriesPoint>> read;
  std::map<SeriesKey, int> restarts;
  std::map<SeriesKey, bool> complete;
  int chunks = 0;
};

TEST_F(Link, ReadsOnlyWhatIsNew) {
  const RunSummary run = sample_run(0, RunState::running, 50);
  workspace->put_run(run);
  add_sample_curves(*workspace, run);
  open(7);  // many chunks, more than may be under way at once
  const SeriesKey key{run.id, "loss"};
  link->follow({key});
  ASSERT_TRUE(wait_until([&] { return read[key].size() == 50; }));
  workspace->add_points(run.id, "loss", {{51, 1.25}});
  ASSERT_TRUE(wait_until([&] { return read[key].size() == 51; }));
  EXPECT_EQ(read[key].back().value, 1.25);
  EXPECT_EQ(restarts[key], 1);
  for (std::size_t i = 0; i < read[key].size(); ++i) EXPECT_EQ(read[key][i].step, static_cast<std::int64_t>(i + 1));
}

TEST_F(Link, TheTableSaysWhatAWorkingRunDoesNow) {
  RunSummary working = sample_run(0, RunState::running, 50), ended = sample_run(1, RunState::paused, 50);
  for (RunSummary* run : {&working, &ended}) {
    run->tokens_per_second = 77;
    run->peak_bytes = 1000;
    workspace->put_run(*run);
    workspace->add_points(run->id, std::string(metric::tokens_per_second), {{10, 1.0}, {49, 900.0}, {50, 1100.0}});
    workspace->add_points(run->id, std::string(metric::process_bytes), {{10, 5000.0}, {50, 4000.0}});
  }
  open();
  RunSource source(link.get());
  std::map<RunState, RunSummary> rows;
  QObject::connect(&source, &RunSource::answered, [&](const RunListAnswerPtr& answer) {
    for (const RunRowPtr& row : answer->rows) rows[row->summary.state] = row->summary;
  });
  source.set_watched({working.number, ended.number});
  source.poll(true);
  ASSERT_TRUE(wait_until([&] { return rows.size() == 2; }));
  EXPECT_EQ(rows[RunState::running].tokens_per_second, 1000) << "of its last steps";
  EXPECT_EQ(rows[RunState::running].peak_bytes, 5000);
  EXPECT_EQ(rows[RunState::paused].tokens_per_second, 77) << "of its last process";
  EXPECT_EQ(rows[RunState::paused].peak_bytes, 1000);
}

TEST_F(Link, SaysWhenAllIsReadEvenWhenTheLastChunkIsFull) {
  const RunSummary run = sample_run(0, RunState::running, 40);
  workspace->put_run(run);
  add_sample_curves(*workspace, run);
  open(10);
  const SeriesKey key{run.id, "loss"};
  link->follow({key});
  ASSERT_TRUE(wait_until([&] { return complete[key]; }));
  EXPECT_EQ(read[key].size(), 40u);
}

TEST_F(Link, TellsOfEmptySeriesToo) {
  const RunSummary run = sample_run(0, RunState::running, 0);
  workspace->put_run(run);
  open();
  std::vector<SeriesKey> keys;
  for (int i = 0; i < 12; ++i) keys.push_back({run.id, "metric" + std::to_string(i)});
  link->follow(keys);
  EXPECT_TRUE(wait_until(
      [&] { return std::all_of(keys.begin(), keys.end(), [&](const SeriesKey& k) { return complete[k]; }); }));
}

TEST_F(Link, StartsAnewWhenRowsWereSuperseded) {
  const RunSummary run = sample_run(0, RunState::running, 100);
  workspace->put_run(run);
  add_sample_curves(*workspace, run);
  open();
  const SeriesKey key{run.id, "loss"}, seconds{run.id, seconds_series};
  link->follow({key, seconds});
  ASSERT_TRUE(wait_until([&] { return read[key].size() == 100 && read[seconds].size() == 100; }));
  workspace->supersede(run.id, 60);
  workspace->add_points(run.id, "loss", {{61, 9}});
  ASSERT_TRUE(wait_until([&] { return restarts[key] == 2 && read[key].size() == 61; }));
  EXPECT_EQ(read[key].back().value, 9);
}

TEST_F(Link, FollowingAgainReadsAgain) {
  const RunSummary run = sample_run(0, RunState::running, 30);
  workspace->put_run(run);
  add_sample_curves(*workspace, run);
  open();
  const SeriesKey key{run.id, "loss"}, other{run.id, "grad_norm"};
  link->follow({key});
  ASSERT_TRUE(wait_until([&] { return read[key].size() == 30; }));
  link->follow({key, other});
  ASSERT_TRUE(wait_until([&] { return read[other].size() == 30; }));
  EXPECT_EQ(restarts[key], 1) << "what is still wanted is not read twice";
  link->follow({other});
  link->follow({key, other});
  ASSERT_TRUE(wait_until([&] { return restarts[key] == 2 && read[key].size() == 30; }));
}

TEST_F(Link, SnapshotsCarryGenerationsAndJobs) {
  const RunSummary run = sample_run(0, RunState::running, 30);
  workspace->put_run(run);
  JobSnapshot job;
  job.job = 1;
  job.run = run.id;
  job.name = run.name;
  workspace->set_jobs({job});
  open();
  const std::uint64_t first = snapshot->generation;
  ASSERT_TRUE(wait_until([&] { return snapshot->generation > first + 2; }));
  ASSERT_EQ(snapshot->runs.size(), 1u);
  EXPECT_EQ(snapshot->runs[0].job, 1);
  JobOutcome outcome;
  outcome.job = 1;
  outcome.run = run.id;
  outcome.state = RunState::finished;
  workspace->end_job(outcome);
  ASSERT_TRUE(wait_until([&] { return snapshot->ended.size() == 1; }));
  EXPECT_EQ(snapshot->runs[0].job, -1);
}

TEST_F(Link, ReportsWhatCannotBeRead) {
  open();
  workspace->set_read_error("database is locked");
  ASSERT_TRUE(wait_until([&] { return !snapshot->read_error.isEmpty(); }));
  EXPECT_TRUE(snapshot->read_error.contains(QLatin1String("locked")));
  workspace->set_read_error({});
  EXPECT_TRUE(wait_until([&] { return snapshot->read_error.isEmpty(); }));
}

TEST_F(Link, PassesIntentsOn) {
  open();
  EXPECT_TRUE(link->can_steer());
  link->stop("abc");
  link->resume("def");
  EXPECT_GE(link->submit(sample_config(), {}), 1);
  EXPECT_EQ(workspace->stopped(), std::vector<RunId>{"abc"});
  EXPECT_EQ(workspace->resumed(), std::vector<RunId>{"def"});
  ASSERT_EQ(workspace->submitted().size(), 1u);
  EXPECT_EQ(workspace->submitted()[0].name, "first-run");
}

TEST_F(Link, ClosesWhenTheJobsHaveEnded) {
  JobSnapshot job;
  job.job = 1;
  workspace->set_jobs({job});
  workspace->set_stops_at_once(false);
  open();
  QSignalSpy closed(link.get(), &WorkspaceLink::closed);
  link->close();
  link->close();
  EXPECT_FALSE(link->can_steer());
  const std::uint64_t then = snapshot->generation;
  ASSERT_TRUE(wait_until([&] { return snapshot->generation > then + 3; })) << "it keeps looking while it waits";
  EXPECT_EQ(closed.count(), 0);
  EXPECT_TRUE(workspace->service_alive());
  EXPECT_GE(workspace->stop_alls(), 1);
  workspace->set_jobs({});
  ASSERT_TRUE(wait_until([&] { return closed.count() == 1; }));
  EXPECT_FALSE(workspace->service_alive());
}

TEST_F(Link, EndsInOrderWhenDestroyedInTheMiddle) {
  const RunSummary run = sample_run(0, RunState::running, 400);
  workspace->put_run(run);
  add_sample_curves(*workspace, run);
  open(3);
  link->follow({{run.id, "loss"}, {run.id, "grad_norm"}});
  link.reset();
  EXPECT_FALSE(workspace->service_alive());
  EXPECT_GE(workspace->stop_alls(), 1);
}

TEST_F(Link, SaysWhyItCouldNotOpen) {
  LinkOptions options;
  options.open = []() -> Result<OpenedWorkspace> { return failed("the folder /x is not writable", "choose another"); };
  WorkspaceLink broken(options);
  QSignalSpy failed_to_open(&broken, &WorkspaceLink::open_failed), closed(&broken, &WorkspaceLink::closed);
  broken.open();
  ASSERT_TRUE(wait_until([&] { return failed_to_open.count() == 1; }));
  EXPECT_EQ(failed_to_open[0][0].toString(), "the folder /x is not writable");
  EXPECT_FALSE(broken.can_steer());
  EXPECT_EQ(broken.submit(sample_config(), {}), -1);
  broken.close();
  EXPECT_TRUE(wait_until([&] { return closed.count() == 1; }));
}

TEST_F(Link, WorksInTheBackground) {
  open();
  QThread* where = nullptr;
  bool done = false;
  link->in_background([&] { where = QThread::currentThread(); }, [&] { done = true; });
  ASSERT_TRUE(wait_until([&] { return done; }));
  EXPECT_NE(where, QThread::currentThread());
}

}  // namespace
}  // namespace stacklab::ui
