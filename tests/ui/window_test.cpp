#include <time.h>

#include <QAccessible>
#include <QAction>
#include <QDialog>
#include <QDockWidget>
#include <QElapsedTimer>
#include <QFile>
#include <QMessageBox>
#include <QScrollArea>
#include <QSignalSpy>
#include <QStackedWidget>
#include <QTemporaryDir>
#include <cmath>
#include <set>

#include "tests/ui/fake_service.h"
#include "tests/ui/ui_test.h"
#include "ui/shell/main_window.h"

namespace stacklab::ui {
namespace {

WindowOptions options_for(const FakeWorkspacePtr& workspace) {
  WindowOptions options;
  options.workspace_path = QStringLiteral("/tmp/demo");
  options.link = fake_link(workspace);
  return options;
}

std::unique_ptr<MainWindow> shown(const WindowOptions& options, QSize size = QSize(1600, 1000)) {
  auto window = std::make_unique<MainWindow>(options);
  window->resize(size);
  window->show();
  window->open();
  return window;
}

struct Scene {
  const char* name;
  std::function<void(FakeWorkspace&, WindowOptions&)> fill;
};

void running(FakeWorkspace& w, int number) {
  RunSummary run = sample_run(number, RunState::running, 215);
  w.put_run(run);
  add_sample_curves(w, run);
  JobSnapshot job;
  job.job = 1;
  job.run = run.id;
  job.name = run.name;
  job.progress = run.progress;
  w.set_jobs({job});
}

const std::vector<Scene>& scenes() {
  static const std::vector<Scene> all = {
      {"empty",
       [](FakeWorkspace&, WindowOptions& o) {
         o.first_run = sample_config();
         o.start_first_run = false;
       }},
      {"preparing",
       [](FakeWorkspace& w, WindowOptions&) {
         JobSnapshot job;
         job.job = 1;
         job.name = "first-run";
         job.progress = {"text", "King James Bible, from the distribution's packages: unpacking the text", 2'100'000,
                         4'400'000};
         w.set_jobs({job});
       }},
      {"running", [](FakeWorkspace& w, WindowOptions&) { running(w, 0); }},
      {"finished",
       [](FakeWorkspace& w, WindowOptions&) {
         RunSummary run = sample_run(0, RunState::finished, 400);
         w.put_run(run);
         add_sample_curves(w, run);
       }},
      {"many",
       [](FakeWorkspace& w, WindowOptions&) {
         for (int n = 0; n < 7; ++n) {
           RunSummary run = sample_run(n,
                                       n == 3   ? RunState::failed
                                       : n == 4 ? RunState::paused
                                       : n == 5 ? RunState::lost
                                                : RunState::finished,
                                       n == 3   ? 170
                                       : n == 4 ? 260
                                                : 400);
           if (n == 3)
             run.cause =
                 "the gradient was not finite in 5 steps in a row, the last of them step 170 (resume from an earlier "
                 "checkpoint with a smaller optim.adam_lr)";
           if (n == 4) run.cause = "stopped at step 260 by the user";
           w.put_run(run);
           add_sample_curves(w, run);
           if (n == 3) {
             std::vector<SeriesPoint> bad;
             for (int s = 171; s < 176; ++s) bad.push_back({s, std::nan("")});
             w.add_points(run.id, "loss", bad);
             w.add_event(run.id, {RunEvent::Kind::spike, 120, "Loss spike to 3.94"});
             w.add_event(run.id,
                         {RunEvent::Kind::non_finite, 171, "Step skipped: the gradient norm is nan, the loss nan"});
           }
         }
         running(w, 7);
       }},
      {"failed",
       [](FakeWorkspace& w, WindowOptions&) {
         RunSummary run = sample_run(0, RunState::failed, 170);
         run.cause =
             "the gradient was not finite in 5 steps in a row, the last of them step 170 (resume from an earlier "
             "checkpoint with a smaller optim.adam_lr)";
         w.put_run(run);
         add_sample_curves(w, run);
         std::vector<SeriesPoint> bad;
         for (int s = 171; s < 176; ++s) bad.push_back({s, std::nan("")});
         w.add_points(run.id, "loss", bad);
         w.add_points(run.id, "grad_norm", bad);
         w.add_event(run.id, {RunEvent::Kind::non_finite, 171, "Step skipped: the gradient norm is nan, the loss nan"});
       }},
  };
  return all;
}

TEST(Window, DrawsEveryScene) {
  for (const bool dark : {false, true}) {
    look().set_mode(dark ? ThemeMode::dark : ThemeMode::light);
    for (const Scene& scene : scenes()) {
      const std::string name = scene.name;
      auto workspace = std::make_shared<FakeWorkspace>();
      WindowOptions options = options_for(workspace);
      options.for_pictures = true;
      scene.fill(*workspace, options);
      auto window = shown(options);
      window->monitor()->set_introduction(name == "running" || name == "preparing", "kjv");
      ASSERT_TRUE(wait_until([&] { return window->settled(); })) << name;
      QTest::qWait(150);  // layouts come to rest
      const QImage image = window->grab().toImage();
      keep_picture(image, QString::fromLatin1(scene.name) + (dark ? "-dark" : "-light"));
      EXPECT_GT(count_pixels(image, theme()[Token::window], {}, 2), 100'000) << name;
      MonitorPage* page = window->monitor();
      EXPECT_EQ(page->notice()->isVisible(), name == "empty");
      EXPECT_EQ(page->journey_strip()->isVisible(), name == "preparing" || name == "running");
      EXPECT_EQ(page->failure_strip()->isVisible(), name == "failed");
      const bool has_curves = name != "empty" && name != "preparing";
      EXPECT_EQ(page->charts()->raw_points() > 0, has_curves);
      if (has_curves) {
        CurveChart* chart = page->charts()->panel(QStringLiteral("loss"))->chart();
        const int number = name == "many" ? 7 : 0;
        EXPECT_GT(count_pixels(chart->viewport()->grab().toImage(), theme().run_color(number), {}, 50), 200) << name;
      }
    }
  }
  look().set_mode(ThemeMode::light);
}

class WindowTest : public testing::Test {
 protected:
  WindowTest() : workspace(std::make_shared<FakeWorkspace>()) { look().set_mode(ThemeMode::light); }
  MainWindow& open(QSize size = QSize(1600, 1000)) { return open(options_for(workspace), size); }
  MainWindow& open(const WindowOptions& options, QSize size = QSize(1600, 1000)) {
    window = shown(options, size);
    return *window;
  }
  RunSummary put(int number, RunState state, std::int64_t step) {
    const RunSummary run = sample_run(number, state, step);
    workspace->put_run(run);
    add_sample_curves(*workspace, run);
    return workspace->run(run.id);
  }
  RunSummary put_running() {
    running(*workspace, 0);
    return workspace->run(sample_run(0, RunState::running, 1).id);
  }
  QPushButton* button_of(QWidget* in, const QString& text) {
    for (QPushButton* button : in->findChildren<QPushButton*>())
      if (button->text() == text) return button;
    return nullptr;
  }
  FakeWorkspacePtr workspace;
  std::unique_ptr<MainWindow> window;
};

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

TEST_F(WindowTest, HidingARunTakesItsCurveAway) {
  put(0, RunState::finished, 400);
  const RunSummary second = put(1, RunState::finished, 400);
  MonitorPage* page = open().monitor();
  ASSERT_TRUE(wait_until([&] { return window->settled(); }));
  CurveChart* chart = page->charts()->panel(QStringLiteral("loss"))->chart();
  EXPECT_GT(count_pixels(chart->viewport()->grab().toImage(), theme().run_color(1), {}, 30), 200);
  const QRect row = page->run_list()->visualRect(page->runs()->index(page->runs()->row_of(second.id)));
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

TEST_F(WindowTest, EveryControlHasAName) {
  put_running();
  open();
  ASSERT_TRUE(wait_until([&] { return window->settled(); }));
  for (const QString& page : window->page_names()) {
    window->show_page(page);
    QCoreApplication::processEvents();
    for (const QWidget* widget : window->findChildren<QWidget*>()) {
      if (!widget->isVisible() || widget->focusPolicy() == Qt::NoFocus) continue;
      if (qobject_cast<const QStackedWidget*>(widget) || qobject_cast<const QScrollArea*>(widget)) continue;
      const QAccessibleInterface* face = QAccessible::queryAccessibleInterface(const_cast<QWidget*>(widget));
      ASSERT_NE(face, nullptr);
      EXPECT_FALSE(face->text(QAccessible::Name).isEmpty())
          << page.toStdString() << ": " << widget->metaObject()->className() << " "
          << widget->objectName().toStdString();
    }
  }
  // What Tab reaches in turn has names, and comes back to where it began.
  window->show_page(QStringLiteral("monitor"));
  std::set<QWidget*> seen;
  QWidget* at = window->monitor();
  for (int i = 0; i < 500 && seen.insert(at).second; ++i) at = at->nextInFocusChain();
  EXPECT_GT(seen.size(), 20u);
}

TEST_F(WindowTest, ActionsHaveShortcutsThatDoNotClash) {
  open();
  std::map<QString, QString> taken;
  int with_shortcut = 0;
  for (const QAction* action : window->findChildren<QAction*>())
    for (const QKeySequence& keys : action->shortcuts()) {
      if (keys.isEmpty()) continue;
      ++with_shortcut;
      const auto [at, fresh] = taken.emplace(keys.toString(), action->text());
      EXPECT_TRUE(fresh) << keys.toString().toStdString() << ": " << at->second.toStdString() << " and "
                         << action->text().toStdString();
    }
  EXPECT_GT(with_shortcut, 15);
}

TEST_F(WindowTest, TextZoomKeepsEverythingReadable) {
  put_running();
  open();
  ASSERT_TRUE(wait_until([&] { return window->settled(); }));
  const int before = window->monitor()->run_list()->sizeHintForRow(0);
  for (int i = 0; i < 5; ++i) QTest::keyClick(window.get(), Qt::Key_Plus, Qt::ControlModifier);
  EXPECT_EQ(look().zoom(), 150);
  QTest::qWait(200);
  EXPECT_GT(window->monitor()->run_list()->sizeHintForRow(0), before);
  keep_picture(window->grab().toImage(), QStringLiteral("zoom-150"));
  // Buttons are at least as wide and high as what they say.
  for (const QPushButton* button : window->findChildren<QPushButton*>()) {
    if (!button->isVisible()) continue;
    EXPECT_GE(button->height(), button->fontMetrics().height()) << button->text().toStdString();
    EXPECT_GE(button->width(), button->fontMetrics().horizontalAdvance(button->text())) << button->text().toStdString();
  }
  QTest::keyClick(window.get(), Qt::Key_0, Qt::ControlModifier);
  EXPECT_EQ(look().zoom(), 100);
}

TEST_F(WindowTest, NarrowWindowsGiveUpTheDockThenTheList) {
  put_running();
  open();
  ASSERT_TRUE(wait_until([&] { return window->settled(); }));
  auto* dock = window->findChild<QDockWidget*>();
  EXPECT_TRUE(dock->isVisible());
  window->resize(1200, 800);
  QCoreApplication::processEvents();
  EXPECT_FALSE(dock->isVisible());
  EXPECT_TRUE(window->monitor()->run_list()->isVisible());
  keep_picture(window->grab().toImage(), QStringLiteral("narrow-1200"));
  window->resize(900, 700);
  QCoreApplication::processEvents();
  EXPECT_FALSE(window->monitor()->run_list()->isVisible());
  window->resize(1600, 1000);
  QCoreApplication::processEvents();
  EXPECT_TRUE(dock->isVisible());
  EXPECT_TRUE(window->monitor()->run_list()->isVisible());
}

TEST_F(WindowTest, RemembersItsSettingsAndSetsBrokenOnesAside) {
  QTemporaryDir folder;
  WindowOptions options = options_for(workspace);
  options.settings_file = folder.filePath(QStringLiteral("sub/workbench.json"));
  open(options, QSize(1500, 900));
  ASSERT_TRUE(wait_until([&] { return window->settled(); }));
  look().set_mode(ThemeMode::dark);
  look().set_zoom(120);
  QSignalSpy finished(window.get(), &MainWindow::finished);
  window->close();
  ASSERT_TRUE(wait_until([&] { return finished.count() == 1; }));
  Settings read = Settings::load(options.settings_file);
  EXPECT_EQ(read.theme, ThemeMode::dark);
  EXPECT_EQ(read.zoom, 120);
  EXPECT_FALSE(read.geometry.isEmpty());
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
  Settings odd;
  odd.geometry = "garbage";
  odd.layout = "more garbage";
  ASSERT_TRUE(odd.save(options.settings_file));
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

// The thread of the window: how long it was away between two turns, in processor time of its own (which a busy machine
// does not stretch) and by the clock.
class Watchdog {
 public:
  Watchdog() {
    QObject::connect(&timer_, &QTimer::timeout, [this] { beat(); });
    timer_.start(1);
    beat();
    worst_cpu = worst_wall = 0;
  }
  double worst_cpu = 0, worst_wall = 0;  // milliseconds

 private:
  static double clock_ms(clockid_t clock) {
    timespec t{};
    clock_gettime(clock, &t);
    return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
  }
  void beat() {
    const double cpu = clock_ms(CLOCK_THREAD_CPUTIME_ID), wall = clock_ms(CLOCK_MONOTONIC);
    worst_cpu = std::max(worst_cpu, cpu - cpu_);
    worst_wall = std::max(worst_wall, wall - wall_);
    cpu_ = cpu;
    wall_ = wall;
  }
  QTimer timer_;
  double cpu_ = 0, wall_ = 0;
};

TEST_F(WindowTest, AMillionPointsNeverBlockTheWindow) {
  constexpr std::int64_t n = 1'000'000;
  RunSummary run = sample_run(0, RunState::finished, n, n);
  workspace->put_run(run);
  for (const char* name : {"loss", "adam_lr", "grad_norm", "tokens_per_second"}) {
    std::vector<SeriesPoint> points;
    points.reserve(n);
    for (std::int64_t s = 1; s <= n; ++s)
      points.push_back({s, 1 + 1.0 / static_cast<double>(s) + 0.1 * static_cast<double>(s * 2654435761 % 1000) / 1000});
    workspace->add_points(run.id, name, points);
  }
  open();
  ASSERT_TRUE(wait_until([&] { return window->isVisible() && window->link()->can_steer(); }));
  Watchdog dog;
  QElapsedTimer clock;
  clock.start();
  ASSERT_TRUE(
      wait_until([&] { return window->settled() && window->monitor()->charts()->raw_points() == 4 * n; }, 120000));
  const qint64 loading = clock.elapsed();
  // Looking around in it must be as light.
  CurveChart* chart = window->monitor()->charts()->panel(QStringLiteral("loss"))->chart();
  for (int i = 0; i < 10; ++i) {
    window->monitor()->charts()->view()->push({AxisRange{1000.0 * i, 900'000.0 - 5000 * i}, {}});
    ASSERT_TRUE(wait_until([&] { return window->settled(); }));
  }
  window->monitor()->charts()->view()->set_smoothing(0.97);
  ASSERT_TRUE(wait_until([&] { return window->settled(); }));
  RecordProperty("worst_cpu_ms", std::to_string(dog.worst_cpu));
  RecordProperty("worst_wall_ms", std::to_string(dog.worst_wall));
  std::printf(
      "4 x %lld points: loaded in %lld ms; longest turn of the window %.1f ms of its own time, %.1f ms by the clock\n",
      static_cast<long long>(n), static_cast<long long>(loading), dog.worst_cpu, dog.worst_wall);
  EXPECT_LE(chart->facts().drawn, 4u * 2000u);
  // The rule is 100 ms; sanitizers make everything several times as slow.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  EXPECT_LT(dog.worst_cpu, 1500);
#else
  EXPECT_LT(dog.worst_cpu, 100);
#endif
}

}  // namespace
}  // namespace stacklab::ui
