// What goes wrong around a window: locked and full disks, processes that are killed; and dialogs without a mouse.
#include <signal.h>
#include <sys/resource.h>

#include <QCheckBox>
#include <QComboBox>
#include <QDialog>
#include <QElapsedTimer>
#include <QLineEdit>
#include <QListWidget>
#include <QMessageBox>
#include <QPlainTextEdit>
#include <QProcess>
#include <QSignalSpy>
#include <QTreeWidget>

#include "engine/service/launch_facts.h"
#include "tests/ui/reachable.h"
#include "tests/ui/real_window.h"
#include "tests/ui/watchdog.h"
#include "ui/shell/notice_model.h"
#include "ui/shell/own_text_dialog.h"

namespace stacklab::ui {
namespace {

// A long run of a tiny model on a text of its own.
RunConfig long_run(const std::filesystem::path& folder) {
  std::string documents;
  for (int i = 0; i < 200; ++i)
    documents += R"({"text": "The fox number )" + std::to_string(i) + " went over the hill.\"}\n";
  put_file(folder / "foxes.jsonl", documents);
  RunConfig config = runs_config(0);
  config.name = "long";
  config.data.corpus = (folder / "foxes.jsonl").string();
  config.train.tokens = 256 * 1'000'000;
  config.run.eval_every = 0, config.run.checkpoint_every = 1'000'000;  // only those that are asked for
  config.run.threads = 1;
  return config;
}

class WindowFaults : public RealWindow {
 protected:
  WindowOptions training_options() {
    WindowOptions options = real_options();
    options.link.open = [this]() -> Result<OpenedWorkspace> {
      auto service = JobService::open(workspace());
      if (!service) return tl::unexpected(service.error());
      return OpenedWorkspace{std::shared_ptr<JobService>(std::move(*service)), nullptr};
    };
    return options;
  }
  RunState state_of(std::size_t run) const {
    const auto runs = stored();
    return run < runs.size() ? runs[run].state : RunState::queued;
  }
  QString shown_state(std::int64_t number) {
    const RunTableModel* model = window->runs_page()->model();
    const int row = model->row_of(number);
    return row < 0 ? QString() : model->index(row, model->column_of(QStringLiteral("state"))).data().toString();
  }
};

TEST_F(WindowFaults, ARunIsCheckpointedAndForkedFromTheWindow) {
  open(training_options(), 0);
  window->link()->submit(long_run(folder.path()), {});
  RunsPage* runs = window->runs_page();
  ASSERT_TRUE(wait_until([&] { return !stored().empty() && stored()[0].step >= 3; }, 120000));
  ASSERT_TRUE(wait_until([&] { return runs->model()->row_of(0) >= 0; }));
  choose({0});
  ASSERT_TRUE(wait_until([&] { return runs->actions().checkpoint->isEnabled(); }));
  EXPECT_TRUE(checkpoint_steps(workspace(), stored()[0].folder).empty());
  runs->actions().checkpoint->trigger();
  ASSERT_TRUE(wait_until([&] { return !checkpoint_steps(workspace(), stored()[0].folder).empty(); }, 60000));
  const std::int64_t at = checkpoint_steps(workspace(), stored()[0].folder).back();
  EXPECT_EQ(state_of(0), RunState::running) << "it went on";
  // What happened is told beside the run.
  ASSERT_TRUE(wait_until([&] { return runs->panel()->events()->topLevelItemCount() > 0; }));
  ASSERT_TRUE(wait_until([&] { return runs->actions().fork->isEnabled(); }));
  runs->actions().fork->trigger();
  ASSERT_TRUE(wait_until([&] { return runs->launch_dialog() != nullptr; }));
  LaunchDialog* dialog = runs->launch_dialog();
  ASSERT_NE(dialog->checkpoint_box(), nullptr);
  EXPECT_GE(dialog->checkpoint_box()->findData(static_cast<qlonglong>(at)), 0);
  keep_picture(dialog->grab().toImage(), QStringLiteral("launch-fork"));
  QTest::keyClick(dialog, Qt::Key_Return);
  ASSERT_TRUE(wait_until([&] { return stored().size() == 2; }, 60000));
  EXPECT_EQ(stored()[1].parent, stored()[0].id);
  EXPECT_EQ(stored()[1].fork_step, at);
  // It waits for its parent, and is trained when that one stops.
  choose({0});
  ASSERT_TRUE(wait_until([&] { return runs->actions().stop->isEnabled(); }));
  runs->actions().stop->trigger();
  ASSERT_TRUE(wait_until([&] { return state_of(1) == RunState::running && stored()[1].step > at; }, 120000));
  QSignalSpy finished(window.get(), &MainWindow::finished);
  window->close_without_asking();
  ASSERT_TRUE(wait_until([&] { return finished.count() == 1; }, 60000));
  EXPECT_EQ(state_of(1), RunState::paused) << "stopped cleanly, with the window";
}

TEST_F(WindowFaults, ALockedStoreBlocksNothing) {
  open(20);
  SQLite::Database locker((workspace() / "stacklab.db").string(), SQLite::OPEN_READWRITE);
  locker.exec("BEGIN EXCLUSIVE");
  RunsPage* runs = window->runs_page();
  choose({3});
  QSignalSpy failures(runs->control(), &RunControl::failed);
  Watchdog dog;
  runs->control()->set_note(*runs->chosen()[0], QStringLiteral("while locked"));
  // It waits on the reading thread; the window does not.
  for (int i = 0; i < 20; ++i) {
    window->show_page(i % 2 ? QStringLiteral("runs") : QStringLiteral("monitor"));
    QApplication::processEvents();
  }
  QElapsedTimer locked;
  locked.start();
  int turn = 0;
  ASSERT_TRUE(wait_until(
      [&] {
        if (++turn % 20 == 0) window->show_page(turn % 40 ? QStringLiteral("runs") : QStringLiteral("monitor"));
        return failures.count() > 0 && locked.elapsed() > 30'000;
      },
      90'000))
      << "and then says so";
  EXPECT_FALSE(failures.front().front().toString().isEmpty());
  EXPECT_LT(dog.worst_cpu, longest_block_ms);
  locker.exec("COMMIT");
  window->show_page(QStringLiteral("runs"));
  runs->control()->set_note(*runs->chosen()[0], QStringLiteral("afterwards"));
  EXPECT_TRUE(wait_until([&] { return stored()[3].note == "afterwards"; }));
}

TEST_F(WindowFaults, AFullDiskIsSaidAndOutlived) {
  open(20);
  RunsPage* runs = window->runs_page();
  choose({3});
  QSignalSpy failures(runs->control(), &RunControl::failed);
  // No file may grow: what a full disk does to all that is written.
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 1;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &none), 0);
  runs->control()->set_note(*runs->chosen()[0], QStringLiteral("on a full disk"));
  const bool said = wait_until([&] { return failures.count() > 0; });
  window->show_page(QStringLiteral("monitor"));
  window->show_page(QStringLiteral("runs"));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  ASSERT_TRUE(said);
  EXPECT_NE(stored()[3].note, "on a full disk");
  ASSERT_TRUE(settle());
  runs->control()->set_note(*runs->chosen()[0], QStringLiteral("with room again"));
  EXPECT_TRUE(wait_until([&] { return stored()[3].note == "with room again"; }));
}

#ifdef STACKLAB_TEST_CLI
TEST_F(WindowFaults, ATrainerThatIsKilledIsSeenAsSuch) {
  const RunConfig config = long_run(folder.path());
  put_file(folder / "run.json", to_json(config));
  open();
  QProcess trainer;
  trainer.start(QStringLiteral(STACKLAB_BIN_DIR "/stacklab"),
                {"train", QString::fromStdString((folder / "run.json").string()), "--workspace",
                 QString::fromStdString(workspace().string())});
  ASSERT_TRUE(trainer.waitForStarted(30000));
  ASSERT_TRUE(wait_until([&] { return shown_state(0) == QLatin1String("running"); }, 120000))
      << trainer.readAllStandardError().toStdString();
  ASSERT_TRUE(wait_until([&] { return stored()[0].step >= 3; }, 60000));
  ::kill(static_cast<pid_t>(trainer.processId()), SIGKILL);
  trainer.waitForFinished();
  ASSERT_TRUE(wait_until([&] { return !is_active(stored()[0].state); }));
  EXPECT_TRUE(wait_until([&] { return shown_state(0) == QLatin1String("lost"); })) << shown_state(0).toStdString();
  choose({0});
  EXPECT_TRUE(wait_until([&] { return window->runs_page()->actions().resume->isEnabled(); }));
  ASSERT_TRUE(wait_until([&] { return window->notices()->unread() > 0; }));
}
// The run of a process of its own, ended with the test whatever comes of that.
struct EndsProcess {
  const std::filesystem::path& workspace;
  ~EndsProcess() {
    const auto reader = JobService::open_reader(workspace);
    const auto runs = reader ? (*reader)->runs() : failed("none");
    for (const RunSummary& run : runs ? *runs : std::vector<RunSummary>())
      if (run.detached && is_active(run.state) && run.process > 1 && run.process != getpid())
        ::kill(static_cast<pid_t>(run.process), SIGKILL);
  }
};

TEST_F(WindowFaults, ADetachedRunIsStartedByItsBoxWatchedPausedAndResumed) {
  const std::filesystem::path where = workspace();
  const EndsProcess guard{where};
  open(training_options(), 0);
  RunsPage* runs = window->runs_page();
  LaunchDialog* dialog = runs->launch({long_run(folder.path()), {}, {}, {}});
  ASSERT_TRUE(wait_until([&] { return dialog->plan() != nullptr; }));
  QCheckBox* box = dialog->detached_box();
  QTest::mouseClick(box, Qt::LeftButton, {}, QPoint(box->height() / 2, box->height() / 2));
  ASSERT_TRUE(box->isChecked());
  QTest::mouseClick(dialog->start_button(), Qt::LeftButton);
  ASSERT_TRUE(wait_until([&] { return !stored().empty() && stored()[0].step >= 3; }, 120000));
  EXPECT_TRUE(stored()[0].detached);
  EXPECT_NE(stored()[0].process, getpid());
  ASSERT_TRUE(wait_until([&] { return shown_state(0) == QLatin1String("running"); }));
  const RunListModel* list = window->monitor()->runs();
  ASSERT_TRUE(wait_until([&] { return list->rowCount() == 1 && list->run_at(0).summary.step >= 3; })) << "watched";
  choose({0});
  ASSERT_TRUE(wait_until([&] { return runs->actions().pause->isEnabled(); }));
  const auto process = static_cast<pid_t>(stored()[0].process);
  runs->actions().pause->trigger();
  ASSERT_TRUE(wait_until([&] { return state_of(0) == RunState::paused; }, 60000));
  ASSERT_TRUE(wait_until([&] { return ::kill(process, 0) != 0; }, 60000)) << "its process has ended";
  const std::int64_t at = stored()[0].step;
  ASSERT_TRUE(wait_until([&] { return runs->actions().resume->isEnabled(); }));
  runs->actions().resume->trigger();
  ASSERT_TRUE(wait_until([&] { return state_of(0) == RunState::running && stored()[0].step > at; }, 120000));
  QSignalSpy finished(window.get(), &MainWindow::finished);
  window->close_without_asking();
  ASSERT_TRUE(wait_until([&] { return finished.count() == 1; }, 60000));
  // Nothing of how it was started is left.
  for (const auto& entry : std::filesystem::directory_iterator(workspace() / "runs"))
    EXPECT_EQ(entry.path().filename().string(), stored()[0].folder);
}

TEST_F(WindowFaults, ADetachedRunOutlivesTheWindowThatStartedIt) {
  const std::filesystem::path where = workspace();
  const EndsProcess guard{where};
  open(training_options(), 0);
  LaunchDialog* dialog = window->runs_page()->launch({long_run(folder.path()), {}, {}, {}});
  dialog->detached_box()->setChecked(true);
  QTest::mouseClick(dialog->start_button(), Qt::LeftButton);
  ASSERT_TRUE(wait_until([&] { return !stored().empty() && stored()[0].step >= 3; }, 120000));
  QSignalSpy finished(window.get(), &MainWindow::finished);
  window->close();  // asks nothing: nothing of the window's own runs
  ASSERT_TRUE(wait_until([&] { return finished.count() == 1; }, 60000));
  const std::int64_t at = stored()[0].step;
  ASSERT_TRUE(wait_until([&] { return stored()[0].step > at + 2; }, 60000)) << "it trains on";
  // The next window watches it, and stops it.
  open(training_options(), 0);
  ASSERT_TRUE(wait_until([&] { return shown_state(0) == QLatin1String("running"); }));
  choose({0});
  ASSERT_TRUE(wait_until([&] { return window->runs_page()->actions().stop->isEnabled(); }));
  window->runs_page()->actions().stop->trigger();
  ASSERT_TRUE(wait_until([&] { return state_of(0) == RunState::paused; }, 60000));
}

#endif

TEST_F(WindowFaults, AWindowThatIsClosedWithARealRunSavesIt) {
  // At once, when it has claimed its run, and in the middle of it.
  for (const int instant : {0, 1, 2}) {
    open(training_options(), 0);
    RunConfig config = long_run(folder.path());
    config.train.seed = 100 + instant;
    window->link()->submit(config, {});
    const auto of = [&]() -> std::optional<RunSummary> {
      for (const RunSummary& run : stored())  // the text that is taken in gives it another id
        if (const auto its = parse_config(run.config_json, run.id); its && its->train.seed == config.train.seed)
          return run;
      return std::nullopt;
    };
    if (instant > 0) {
      ASSERT_TRUE(wait_until([&] { return of() && (instant == 1 || of()->step >= 3); }, 120000));
    }
    QSignalSpy finished(window.get(), &MainWindow::finished);
    window->close();
    window->close();  // twice is as once
    if (auto* question = window->findChild<QMessageBox*>(QStringLiteral("closeQuestion"))) {
      for (QAbstractButton* button : question->buttons())
        if (question->buttonRole(button) == QMessageBox::AcceptRole) QTest::mouseClick(button, Qt::LeftButton);
    } else {
      EXPECT_EQ(instant, 0) << "a run in flight is asked for";
    }
    ASSERT_TRUE(wait_until([&] { return finished.count() == 1; }, 60000)) << instant;
    window.reset();
    if (const auto run = of()) {
      EXPECT_EQ(run->state, RunState::paused) << instant << " " << run->cause;
      if (run->step > 0) {
        EXPECT_EQ(checkpoint_steps(workspace(), run->folder).back(), run->step) << instant;
      }
    } else {
      EXPECT_EQ(instant, 0);
    }
  }
}

TEST_F(WindowFaults, DialogsAreHeardAndReachedWithoutAMouse) {
  put_file(folder / "story.txt", "Once upon a time.");
  open(3);
  LaunchDialog* launch = window->runs_page()->launch({runs_config(0), {}, {}, {}});
  for (int section = 0; section < launch->sections()->count(); ++section) {
    launch->sections()->setCurrentRow(section);
    expect_names(launch, "launch");
    expect_tab_reaches_all(launch, "launch");
  }
  launch->close();
  auto* own =
      new OwnTextDialog(QString::fromStdString((folder / "story.txt").string()), 17,
                        QString::fromStdString(workspace().string()), window->runs_page()->plan_work(), window.get());
  own->open();
  expect_names(own, "own text");
  expect_tab_reaches_all(own, "own text");
  own->close();
}

TEST_F(WindowFaults, DialogsFromRightToLeft) {
  open(3);
  for (const auto direction : {Qt::RightToLeft, Qt::LeftToRight}) {
    QApplication::setLayoutDirection(direction);
    LaunchDialog* launch = window->runs_page()->launch({runs_config(0), {}, {}, {}});
    ASSERT_TRUE(wait_until([&] { return launch->plan() != nullptr; }));
    const int list = launch->sections()->mapTo(launch, QPoint()).x(),
              form = launch->form()->mapTo(launch, QPoint()).x();
    EXPECT_EQ(list > form, direction == Qt::RightToLeft);
    keep_picture(launch->grab().toImage(), QStringLiteral("launch-%1").arg(direction));
    launch->close();
  }
}

}  // namespace
}  // namespace stacklab::ui
