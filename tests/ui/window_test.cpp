// What the window does: starting, steering, failing, closing, remembering.
#include <QDialog>
#include <QFile>
#include <QMessageBox>
#include <QSignalSpy>
#include <QTemporaryDir>

#include "tests/ui/window_testing.h"

namespace stacklab::ui {
namespace {

TEST_F(WindowTest, StopAndResumeReachTheService) {
  const RunSummary run = put_running();
  MonitorPage* page = open().monitor();
  ASSERT_TRUE(wait_until([&] { return page->can_stop(); }));
  EXPECT_FALSE(page->can_resume());
  EXPECT_FALSE(page->inspector()->resume_button()->toolTip().isEmpty()) << "a disabled button says why";
  QTest::mouseClick(page->inspector()->stop_button(), Qt::LeftButton);
  EXPECT_EQ(workspace->stopped(), std::vector<RunId>{run.id});
  RunSummary paused = run;
  paused.state = RunState::paused;
  paused.cause = "stopped at step 215 by the user";
  workspace->put_run(paused);
  workspace->set_jobs({});
  ASSERT_TRUE(wait_until([&] { return page->can_resume() && !page->can_stop(); }));
  QTest::mouseClick(page->inspector()->resume_button(), Qt::LeftButton);
  EXPECT_EQ(workspace->resumed(), std::vector<RunId>{run.id});
}

TEST_F(WindowTest, FirstRunStartsOnlyInAnEmptyStore) {
  WindowOptions options = options_for(workspace);
  options.first_run = sample_config();
  open(options);
  ASSERT_TRUE(wait_until([&] { return workspace->submitted().size() == 1; }));
  EXPECT_TRUE(window->monitor()->introduction());
  const std::int64_t reads = workspace->reads();
  ASSERT_TRUE(wait_until([&] { return workspace->reads() > reads + 5; }));
  EXPECT_EQ(workspace->submitted().size(), 1u) << "once";
  window.reset();

  auto second = std::make_shared<FakeWorkspace>();
  second->put_run(sample_run(0, RunState::finished, 400));
  options = options_for(second);
  options.first_run = sample_config();
  workspace = second;
  open(options);
  ASSERT_TRUE(wait_until([&] { return window->settled(); }));
  EXPECT_TRUE(second->submitted().empty());
}

TEST_F(WindowTest, EmptyWorkspaceOffersTheFirstRun) {
  WindowOptions options = options_for(workspace);
  options.first_run = sample_config();
  options.start_first_run = false;
  open(options);
  ASSERT_TRUE(wait_until([&] { return window->monitor()->notice()->isVisible(); }));
  QTest::mouseClick(window->monitor()->notice()->button(), Qt::LeftButton);
  EXPECT_EQ(workspace->submitted().size(), 1u);
}

TEST_F(WindowTest, AWorkspaceThatCannotBeOpenedIsExplained) {
  WindowOptions options = options_for(workspace);
  int tries = 0;
  options.link.open = [&tries, fallback = options.link.open]() -> Result<OpenedWorkspace> {
    if (++tries == 1)
      return failed("/data/demo/stacklab.db is of a newer version (7, this build knows 1)", "use a newer Stacklab");
    return fallback();
  };
  put(0, RunState::finished, 400);
  open(options);
  QSignalSpy failed_to_open(window.get(), &MainWindow::open_failed);
  ASSERT_TRUE(wait_until([&] { return !window->open_error().isEmpty(); }));
  QString words;
  for (const QLabel* label : window->findChildren<QLabel*>())
    if (label->isVisible()) words += label->text();
  EXPECT_TRUE(words.contains(QLatin1String("newer version (7")));
  EXPECT_TRUE(words.contains(QLatin1String("use a newer Stacklab")));
  QTest::mouseClick(button_of(window.get(), QStringLiteral("Try again")), Qt::LeftButton);
  EXPECT_TRUE(wait_until([&] { return window->settled(); }));
  EXPECT_TRUE(window->monitor()->isVisible());
}

TEST_F(WindowTest, ClosingWithoutWorkAsksNothing) {
  put(0, RunState::finished, 400);
  open();
  ASSERT_TRUE(wait_until([&] { return window->settled(); }));
  QSignalSpy finished(window.get(), &MainWindow::finished);
  window->close();
  ASSERT_TRUE(wait_until([&] { return finished.count() == 1; }));
  EXPECT_FALSE(window->isVisible());
  EXPECT_FALSE(workspace->service_alive());
}

TEST_F(WindowTest, ClosingWithARunInFlightAsksThenWaits) {
  put_running();
  workspace->set_stops_at_once(false);
  open();
  ASSERT_TRUE(wait_until([&] { return window->monitor()->can_stop(); }));
  QSignalSpy finished(window.get(), &MainWindow::finished);
  window->close();
  auto* question = window->findChild<QMessageBox*>(QStringLiteral("closeQuestion"));
  ASSERT_NE(question, nullptr);
  EXPECT_TRUE(window->isVisible());
  EXPECT_EQ(workspace->stop_alls(), 0);
  keep_picture(question->grab().toImage(), QStringLiteral("close-question"));
  window->close();
  EXPECT_EQ(window->findChildren<QMessageBox*>(QStringLiteral("closeQuestion")).size(), 1) << "asked once";
  QTest::mouseClick(button_of(question, QStringLiteral("Cancel")), Qt::LeftButton);
  ASSERT_TRUE(wait_until([&] { return window->findChild<QMessageBox*>(QStringLiteral("closeQuestion")) == nullptr; }));
  EXPECT_FALSE(window->is_closing());

  window->close();
  question = window->findChild<QMessageBox*>(QStringLiteral("closeQuestion"));
  ASSERT_NE(question, nullptr);
  QTest::mouseClick(button_of(question, QStringLiteral("Stop and close")), Qt::LeftButton);
  EXPECT_TRUE(window->is_closing());
  EXPECT_GE(workspace->stop_alls(), 1);
  auto* farewell = window->findChild<QDialog*>(QStringLiteral("farewell"));
  ASSERT_NE(farewell, nullptr);
  EXPECT_TRUE(farewell->isVisible());
  keep_picture(farewell->grab().toImage(), QStringLiteral("farewell"));
  window->close();  // again, while it waits: harmless
  window->close_without_asking();
  EXPECT_TRUE(window->isVisible());
  EXPECT_EQ(finished.count(), 0);
  workspace->set_jobs({});
  ASSERT_TRUE(wait_until([&] { return finished.count() == 1; }));
  EXPECT_FALSE(window->isVisible());
  EXPECT_FALSE(workspace->service_alive());
}

TEST_F(WindowTest, ClosingWithADialogOpenClosesIt) {
  put_running();
  open();
  ASSERT_TRUE(wait_until([&] { return window->monitor()->can_stop(); }));
  QTest::keyClick(window.get(), Qt::Key_F1);
  ASSERT_TRUE(wait_until([&] { return window->findChild<QDialog*>(QStringLiteral("cheatSheet")) != nullptr; }));
  keep_picture(window->findChild<QDialog*>(QStringLiteral("cheatSheet"))->grab().toImage(),
               QStringLiteral("cheat-sheet"));
  QSignalSpy finished(window.get(), &MainWindow::finished);
  window->close_without_asking();  // what a signal does
  ASSERT_TRUE(wait_until([&] { return finished.count() == 1; }));
}

TEST_F(WindowTest, FailureBeforeTheRunHadARowIsShown) {
  JobSnapshot job;
  job.job = 1;
  job.name = "first-run";
  job.progress.phase = "text";
  workspace->set_jobs({job});
  MonitorPage* page = open().monitor();
  ASSERT_TRUE(wait_until([&] { return page->can_stop(); }));
  JobOutcome outcome;
  outcome.job = 1;
  outcome.error =
      Error{Error::Kind::failed, "the corpus kjv cannot be had: no network", "name another with data.corpus"};
  workspace->end_job(outcome);
  ASSERT_TRUE(wait_until([&] { return page->failure_strip()->isVisible(); }));
  QString words;
  for (const QLabel* label : page->failure_strip()->findChildren<QLabel*>()) words += label->text();
  EXPECT_TRUE(words.contains(QLatin1String("no network")));
  EXPECT_TRUE(words.contains(QLatin1String("data.corpus")));
  QTest::mouseClick(button_of(page->failure_strip(), QStringLiteral("Dismiss")), Qt::LeftButton);
  const std::int64_t reads = workspace->reads();
  ASSERT_TRUE(wait_until([&] { return workspace->reads() > reads + 3; }));
  EXPECT_FALSE(page->failure_strip()->isVisible());
}

TEST_F(WindowTest, ARefusedResumeIsShownUntilSomethingNewStarts) {
  const RunSummary run = put(0, RunState::running, 100);  // by another process
  MonitorPage* page = open().monitor();
  ASSERT_TRUE(wait_until([&] { return window->settled(); }));
  JobSnapshot job;
  job.job = 1;
  job.run = run.id;
  workspace->set_jobs({job});
  ASSERT_TRUE(wait_until([&] { return page->runs()->run_at(0).job == 1; }));
  JobOutcome outcome;
  outcome.job = 1;
  outcome.run = run.id;
  outcome.error = Error{Error::Kind::refused, "process 4711 trains this run", "stop it there first"};
  workspace->end_job(outcome);
  ASSERT_TRUE(wait_until([&] { return page->failure_strip()->isVisible(); }));
  job.job = 2;
  workspace->set_jobs({job});
  EXPECT_TRUE(wait_until([&] { return !page->failure_strip()->isVisible(); }));
}

TEST_F(WindowTest, ARunThatHasBeenToItsEndIsSelectedWhenAskedForAgain) {
  const RunSummary old = put(0, RunState::finished, 400);
  put(1, RunState::finished, 400);
  MonitorPage* page = open().monitor();
  ASSERT_TRUE(wait_until([&] { return window->settled(); }));
  EXPECT_NE(page->selected(), old.id);
  QSignalSpy messages(page, &MonitorPage::message);
  JobSnapshot job;
  job.job = 1;
  job.name = old.name;
  workspace->set_jobs({job});
  ASSERT_TRUE(wait_until([&] { return page->journey_strip()->isVisible(); }));
  JobOutcome outcome;
  outcome.job = 1;
  outcome.run = old.id;
  outcome.state = RunState::finished;
  outcome.already_finished = true;
  workspace->end_job(outcome);
  ASSERT_TRUE(wait_until([&] { return page->selected() == old.id; }));
  EXPECT_EQ(messages.count(), 1);
}

TEST_F(WindowTest, HidingARunTakesItsCurveAway) {
  put(0, RunState::finished, 400);
  const RunSummary second = put(1, RunState::finished, 400);
  MonitorPage* page = open().monitor();
  ASSERT_TRUE(wait_until([&] { return window->settled(); }));
  CurveChart* chart = page->charts()->panel(QStringLiteral("loss"))->chart();
  EXPECT_GT(count_pixels(chart->viewport()->grab().toImage(), theme().run_color(1), {}, 30), 200);
  const QRect row = page->run_list()->visualRect(page->run_list()->order()->index_of(second.id));
  QTest::mouseClick(page->run_list()->viewport(), Qt::LeftButton, {}, row.topLeft() + QPoint(16, 16));
  EXPECT_FALSE(page->runs()->is_shown(second.id));
  ASSERT_TRUE(wait_until([&] { return page->settled(); }));
  EXPECT_EQ(count_pixels(chart->viewport()->grab().toImage(), theme().run_color(1), {}, 10), 0);
  QTest::mouseClick(page->run_list()->viewport(), Qt::LeftButton, Qt::AltModifier, row.center());
  EXPECT_EQ(page->runs()->shown_runs().size(), 1u);
  ASSERT_TRUE(wait_until([&] { return page->settled(); }));
  EXPECT_GT(count_pixels(chart->viewport()->grab().toImage(), theme().run_color(1), {}, 30), 200);
}

TEST_F(WindowTest, ChoosingAnEventGoesToItsStep) {
  const RunSummary run = put(0, RunState::finished, 400);
  MonitorPage* page = open().monitor();
  auto* list = page->inspector()->findChild<QListView*>();
  ASSERT_TRUE(wait_until([&] { return window->settled() && list->model()->rowCount() == 4; }));
  QTest::mouseClick(list->viewport(), Qt::LeftButton, {}, list->visualRect(list->model()->index(1, 0)).center());
  EXPECT_EQ(page->charts()->view()->crosshair(), 300);
}

TEST_F(WindowTest, RemembersItsSettingsAndSetsBrokenOnesAside) {
  QTemporaryDir folder;
  WindowOptions options = options_for(workspace);
  options.settings_file = folder.filePath(QStringLiteral("sub/workbench.json"));
  open(options, QSize(1500, 900));
  ASSERT_TRUE(wait_until([&] { return window->settled(); }));
  window->set_theme(ThemeMode::dark);
  look().set_zoom(120);
  QSignalSpy finished(window.get(), &MainWindow::finished);
  window->close();
  ASSERT_TRUE(wait_until([&] { return finished.count() == 1; }));
  Settings read = Settings::load(options.settings_file);
  EXPECT_EQ(read.theme, ThemeMode::dark);
  EXPECT_EQ(read.zoom, 120);
  EXPECT_FALSE(Layouts::load(Layouts::file_beside(options.settings_file)).geometry.isEmpty());
  look().set_mode(ThemeMode::light);
  look().set_zoom(100);

  for (const QByteArray& broken : {QByteArray("{\"version\": 1, \"zo"), QByteArray(), QByteArray("{\"version\": 99}"),
                                   QByteArray("\xff\xfe\x00", 3)}) {
    QFile file(options.settings_file);
    ASSERT_TRUE(file.open(QIODevice::WriteOnly | QIODevice::Truncate));
    file.write(broken);
    file.close();
    QString note;
    read = Settings::load(options.settings_file, &note);
    EXPECT_EQ(read.zoom, 100);
    EXPECT_FALSE(note.isEmpty());
    EXPECT_TRUE(QFile::exists(options.settings_file + QStringLiteral(".broken")));
    EXPECT_FALSE(QFile::exists(options.settings_file));
  }
  // Garbage where geometry and layout should be leaves a window that opens.
  Layouts odd;
  odd.geometry = "garbage";
  odd.last.docks = "more garbage";
  odd.last.page = QStringLiteral("no such page");
  QFile layout(Layouts::file_beside(options.settings_file));
  ASSERT_TRUE(layout.open(QIODevice::WriteOnly | QIODevice::Truncate));
  layout.write(odd.to_bytes());
  layout.close();
  workspace = std::make_shared<FakeWorkspace>();
  options.link = fake_link(workspace);
  open(options);
  EXPECT_TRUE(wait_until([&] { return window->settled(); }));
}

TEST_F(WindowTest, ALongPauseIsMarkedAndTheLogOfTheStoreWatched) {
  RunSummary run = put(0, RunState::running, 100);
  run.stalled = true;
  run.last_beat -= 240;
  workspace->put_run(run);
  MonitorPage* page = open().monitor();
  ASSERT_TRUE(wait_until([&] { return page->runs()->rowCount() == 1; }));
  const QModelIndex row = page->runs()->index(0);
  EXPECT_EQ(row.data(RunListModel::state_role).toString(), "stalled");
  EXPECT_TRUE(row.data(RunListModel::cause_role).toString().contains(QLatin1String("4 min")))
      << row.data(RunListModel::cause_role).toString().toStdString();
}

}  // namespace
}  // namespace stacklab::ui
