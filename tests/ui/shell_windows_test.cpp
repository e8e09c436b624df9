// Notices, drops, perspectives, narrow windows, and several windows at once.
#include <QDialog>
#include <QDockWidget>
#include <QDragEnterEvent>
#include <QDropEvent>
#include <QInputDialog>
#include <QLineEdit>
#include <QMenu>
#include <QMessageBox>
#include <QMimeData>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QToolButton>
#include <QUndoStack>

#include "engine/config/config_io.h"
#include "tests/temporary_folder.h"
#include "tests/ui/window_testing.h"
#include "ui/shell/dialogs.h"
#include "ui/shell/dock_rail.h"
#include "ui/shell/notice_panel.h"
#include "ui/shell/recents_model.h"
#include "ui/shell/workbench.h"

namespace stacklab::ui {
namespace {

class ShellWindows : public WindowTest {
 protected:
  WindowOptions kept_options() {
    WindowOptions options = options_for(workspace);
    options.settings_file = folder_.filePath(QStringLiteral("workbench.json"));
    options.load_config = load_config;
    return options;
  }
  void open_settled(const WindowOptions& options, QSize size = QSize(1600, 1000)) {
    open(options, size);
    ASSERT_TRUE(wait_until([&] { return window->settled(); }));
  }
  void shut() {
    QSignalSpy finished(window.get(), &MainWindow::finished);
    window->close_without_asking();
    ASSERT_TRUE(wait_until([&] { return finished.count() == 1; }));
  }
  QDialog* question() { return window->findChild<QDialog*>(QStringLiteral("question")); }
  QString words_of(QWidget* widget) {
    QStringList words;
    for (const QLabel* label : widget->findChildren<QLabel*>()) words << label->text();
    return words.join(QLatin1Char('\n'));
  }
  void drop(const QString& path) {
    QMimeData data;
    data.setUrls({QUrl::fromLocalFile(path)});
    QDragEnterEvent enter(QPoint(400, 400), Qt::CopyAction, &data, Qt::LeftButton, {});
    QApplication::sendEvent(window.get(), &enter);
    EXPECT_TRUE(enter.isAccepted());
    keep_picture(window->grab().toImage(), QStringLiteral("drag-over"));
    QDropEvent dropped(QPointF(400, 400), Qt::CopyAction, &data, Qt::LeftButton, {});
    QApplication::sendEvent(window.get(), &dropped);
  }
  QTemporaryDir folder_;
};

TEST_F(ShellWindows, NoticesAreCountedShownAndStayRead) {
  const RunSummary run = put(0, RunState::finished, 400);
  put(1, RunState::finished, 400);
  workspace->add_event(run.id, {RunEvent::Kind::spike, 120, "Loss spike to 3.94"});
  workspace->add_event(run.id, {RunEvent::Kind::non_finite, 171, "Step skipped: the gradient norm is nan"});
  open_settled(kept_options());
  auto* bell = window->findChild<QToolButton*>(QStringLiteral("bell"));
  ASSERT_TRUE(wait_until([&] { return window->notices()->unread() == 2; }));
  EXPECT_EQ(bell->text(), "2");
  EXPECT_TRUE(bell->accessibleName().contains(QLatin1String("2 unread")));
  QTest::mouseClick(bell, Qt::LeftButton);
  NoticePanel* panel = window->notice_sheet();
  ASSERT_TRUE(panel->isVisible());
  keep_picture(window->grab().toImage(), QStringLiteral("notices"));
  QTest::mouseClick(bell, Qt::LeftButton);
  EXPECT_FALSE(panel->isVisible()) << "the bell closes what it has opened";
  QTest::keyClick(window.get(), Qt::Key_N, Qt::ControlModifier | Qt::ShiftModifier);
  ASSERT_TRUE(panel->isVisible());
  QTest::keyClick(panel->list(), Qt::Key_Down);
  window->show_page(QStringLiteral("settings"));
  QTest::keyClick(panel->list(), Qt::Key_Return);
  EXPECT_FALSE(panel->isVisible());
  EXPECT_EQ(window->shown_page(), "monitor");
  EXPECT_EQ(window->monitor()->selected(), run.id);
  EXPECT_EQ(window->monitor()->charts()->view()->crosshair(), 120);
  EXPECT_EQ(bell->text(), "1");
  // An alert says whether it is over, and its step is brought before the eyes in every chart.
  workspace->add_event(run.id, {RunEvent::Kind::logit, 333, "Largest logit 140", RunEvent::Severity::warning, 140});
  ASSERT_TRUE(wait_until([&] { return window->notices()->rowCount() == 3; }));
  const auto detail = [&] { return window->notices()->index(0).data(NoticeModel::detail_role).toString(); };
  EXPECT_TRUE(detail().contains(QLatin1String("open"))) << detail().toStdString();
  workspace->resolve_alerts(run.id, 340);
  ASSERT_TRUE(wait_until([&] { return detail().contains(QLatin1String("over at step 340")); }));
  EXPECT_EQ(window->notices()->unread(), 2) << "that it is over is no news";
  window->notice_sheet()->open(bell);
  panel->list()->setCurrentIndex(window->notices()->index(0));
  QTest::keyClick(panel->list(), Qt::Key_Return);
  ASSERT_TRUE(wait_until([&] { return window->settled(); }));
  for (const ChartPanel* shown : window->monitor()->charts()->panels())
    if (shown->isVisible()) {
      EXPECT_EQ(shown->chart()->shared()->crosshair(), 333);
    }
  EXPECT_EQ(bell->text(), "1");
  shut();
  WindowOptions options = kept_options();
  const FakeWorkspacePtr same = workspace;
  open_settled(options);
  ASSERT_TRUE(wait_until([&] { return window->notices()->rowCount() == 3; }));
  EXPECT_EQ(window->notices()->unread(), 1) << "what was read stays read";
  bell = window->findChild<QToolButton*>(QStringLiteral("bell"));
  window->notice_sheet()->open(bell);
  QTest::mouseClick(window->notice_sheet()->all_read_button(), Qt::LeftButton);
  EXPECT_EQ(window->notices()->unread(), 0);
  QTest::keyClick(window->notice_sheet()->list(), Qt::Key_Escape);
  EXPECT_FALSE(window->notice_sheet()->isVisible());
  // What happens while the window is open arrives.
  RunSummary other = put(1, RunState::running, 10);
  ASSERT_TRUE(wait_until([&] { return window->monitor()->runs()->run_at(0).summary.state == RunState::running; }));
  other.state = RunState::failed;
  other.cause = "out of memory";
  workspace->put_run(other);
  ASSERT_TRUE(wait_until([&] { return window->notices()->unread() == 1; }));
  EXPECT_TRUE(window->notices()->at(0).text.contains(QLatin1String("out of memory")));
}

TEST_F(ShellWindows, ADroppedConfigStartsARunWhenAsked) {
  TemporaryFolder files;
  put_file(files / "wide.json", to_json(sample_config()));
  put(0, RunState::finished, 400);
  open_settled(kept_options());
  drop(QString::fromStdString((files / "wide.json").string()));
  ASSERT_TRUE(wait_until([&] { return question() != nullptr; }));
  keep_picture(question()->grab().toImage(), QStringLiteral("drop-config"));
  EXPECT_TRUE(workspace->submitted().empty());
  QTest::mouseClick(button_of(question(), QStringLiteral("Start the run")), Qt::LeftButton);
  ASSERT_TRUE(wait_until([&] { return workspace->submitted().size() == 1; }));
  EXPECT_EQ(workspace->submitted().front().name, sample_config().name);
  EXPECT_EQ(window->recents()->at(0).kind, Recent::Kind::config);
  ASSERT_TRUE(wait_until([&] { return question() == nullptr; }));
  // One that cannot be read says why, and starts nothing.
  put_file(files / "odd.json", R"({"model": {"d_modle": 64}})");
  drop(QString::fromStdString((files / "odd.json").string()));
  ASSERT_TRUE(wait_until([&] { return question() != nullptr; }));
  QTest::keyClick(question(), Qt::Key_Return);
  ASSERT_TRUE(wait_until([&] { return question() && words_of(question()).contains(QLatin1String("d_model")); }));
  EXPECT_EQ(workspace->submitted().size(), 1u);
}

TEST_F(ShellWindows, OtherDropsHaveAClearAnswer) {
  TemporaryFolder files;
  put_file(files / "story.txt", "Once upon a time.");
  put_file(files / "w/stacklab.db", "SQLite format 3");
  const RunSummary run = put(0, RunState::finished, 400);
  put(1, RunState::finished, 400);
  open_settled(kept_options());
  QSignalSpy wanted(window.get(), &MainWindow::workspace_wanted);
  drop(QString::fromStdString((files / "w").string()));
  ASSERT_TRUE(wait_until([&] { return question() != nullptr; }));
  QTest::mouseClick(button_of(question(), QStringLiteral("Open the workspace")), Qt::LeftButton);
  EXPECT_EQ(wanted.count(), 1);
  ASSERT_TRUE(wait_until([&] { return question() == nullptr; }));
  // A checkpoint of a run that is here shows the run.
  const std::filesystem::path checkpoint = files / ("runs/first-run-" + run.id + "/ckpt_step200");
  std::filesystem::create_directories(checkpoint);
  window->show_page(QStringLiteral("settings"));
  drop(QString::fromStdString(checkpoint.string()));
  ASSERT_TRUE(wait_until([&] { return window->monitor()->selected() == run.id; }));
  EXPECT_EQ(window->shown_page(), "monitor");
  EXPECT_EQ(window->monitor()->charts()->view()->crosshair(), 200);
}

TEST_F(ShellWindows, PerspectivesAreSavedAppliedAndDeletedWithUndo) {
  put(0, RunState::finished, 400);
  open_settled(kept_options());
  QAction* inspector = window->actions_by_name()->action("view.inspector");
  inspector->setChecked(false);
  window->actions_by_name()->action("view.save_perspective")->trigger();
  auto* dialog = window->findChild<QInputDialog*>(QStringLiteral("perspectiveName"));
  ASSERT_NE(dialog, nullptr);
  QTest::keyClicks(dialog->findChild<QLineEdit*>(), QStringLiteral("  wide   & quiet "));
  QTest::keyClick(dialog->findChild<QLineEdit*>(), Qt::Key_Return);
  ASSERT_NE(window->keeper()->layouts().find("wide & quiet"), nullptr);
  inspector->setChecked(true);
  window->show_page(QStringLiteral("settings"));
  window->arrange(window->keeper()->layouts().find("wide & quiet")->arrangement);
  EXPECT_FALSE(inspector->isChecked());
  EXPECT_EQ(window->shown_page(), "monitor");
  window->remove_perspective(QStringLiteral("wide & quiet"));
  EXPECT_EQ(window->keeper()->layouts().find("wide & quiet"), nullptr);
  QTest::keyClick(window.get(), Qt::Key_Z, Qt::ControlModifier);
  EXPECT_NE(window->keeper()->layouts().find("wide & quiet"), nullptr);
  // As it stood when it was closed, so it opens.
  window->show_page(QStringLiteral("settings"));
  shut();
  workspace = std::make_shared<FakeWorkspace>();
  put(0, RunState::finished, 400);
  open_settled(kept_options());
  EXPECT_EQ(window->shown_page(), "settings");
  EXPECT_FALSE(window->actions_by_name()->action("view.inspector")->isChecked());
  window->actions_by_name()->action("view.reset_layout")->trigger();
  EXPECT_TRUE(window->actions_by_name()->action("view.inspector")->isChecked());
  EXPECT_NE(window->keeper()->layouts().find("wide & quiet"), nullptr) << "perspectives stay";
}

TEST_F(ShellWindows, InANarrowWindowTheDockIsItsTabs) {
  put_running();
  open_settled(kept_options(), QSize(1200, 800));
  auto* dock = window->findChild<QDockWidget*>();
  DockRail* rail = window->dock_rail();
  EXPECT_FALSE(dock->isVisible());
  ASSERT_TRUE(rail->isVisible());
  const auto buttons = rail->findChildren<QAbstractButton*>();
  QAbstractButton* config = nullptr;
  for (QAbstractButton* button : buttons)
    if (button->text() == QLatin1String("Config")) config = button;
  ASSERT_NE(config, nullptr);
  QTest::mouseClick(config, Qt::LeftButton);
  EXPECT_TRUE(dock->isVisible());
  EXPECT_TRUE(config->isChecked());
  EXPECT_EQ(window->monitor()->inspector()->tabText(window->monitor()->inspector()->currentIndex()), "Config");
  keep_picture(window->grab().toImage(), QStringLiteral("narrow-dock-open"));
  QTest::keyClick(config, Qt::Key_Space);
  EXPECT_FALSE(dock->isVisible());
  EXPECT_FALSE(config->isChecked());
  window->show_page(QStringLiteral("settings"));
  EXPECT_FALSE(rail->isVisible()) << "nothing to inspect here";
  window->show_page(QStringLiteral("monitor"));
  EXPECT_EQ(rail->findChildren<QAbstractButton*>().size(), buttons.size()) << "made anew, not once more";
  window->resize(1500, 900);
  QCoreApplication::processEvents();
  EXPECT_FALSE(rail->isVisible());
  EXPECT_TRUE(dock->isVisible());
}

TEST_F(ShellWindows, SettingsAreFoundAndLive) {
  put_running();
  open_settled(kept_options());
  window->show_page(QStringLiteral("settings"));
  SettingsPage* page = window->settings_page();
  const auto shown = [&] {
    return std::count_if(page->items().begin(), page->items().end(),
                         [](const SettingsPage::Item& item) { return item.control->isVisible(); });
  };
  const auto all = shown();
  EXPECT_GT(all, 6);
  QTest::keyClicks(page->search(), QStringLiteral("text"));
  EXPECT_LT(shown(), all);
  EXPECT_GT(shown(), 0);
  page->search()->setText(QStringLiteral("no such setting"));
  EXPECT_EQ(shown(), 0);
  page->search()->clear();
  EXPECT_EQ(shown(), all);
  // A kind of notice that is silenced comes no more, in this window and in others.
  page->reveal(QStringLiteral("Spikes of the loss"));
  QTest::keyClick(window->focusWidget(), Qt::Key_Space);
  EXPECT_EQ(window->keeper()->settings().quiet_kinds, QStringList{"spike"});
  const RunId id = workspace->run(sample_run(0, RunState::running, 1).id).id;
  workspace->add_event(id, {RunEvent::Kind::spike, 50, "Loss spike"});
  workspace->add_event(id, {RunEvent::Kind::warning, 51, "Something else"});
  RunSummary beat = workspace->run(id);
  beat.last_beat += 1;
  workspace->put_run(beat);
  ASSERT_TRUE(wait_until([&] { return window->notices()->rowCount() == 1; }));
  EXPECT_EQ(window->notices()->at(0).text, "Something else");
}

TEST_F(ShellWindows, SettingsThatCannotBeWrittenAreANotice) {
  TemporaryFolder files;
  put_file(files / "afile", "x");
  put(0, RunState::finished, 400);
  WindowOptions options = options_for(workspace);
  options.settings_file = QString::fromStdString((files / "afile/workbench.json").string());
  open_settled(options);
  window->set_theme(ThemeMode::dark);
  ASSERT_TRUE(wait_until([&] { return window->notices()->unread() >= 1; }));
  EXPECT_TRUE(window->notices()->at(0).text.contains(QLatin1String("workbench.json")));
  shut();
}

TEST_F(ShellWindows, AboutTellsVersionsAndLicences) {
  put(0, RunState::finished, 400);
  open_settled(kept_options());
  window->actions_by_name()->action("help.about")->trigger();
  auto* about = window->findChild<QDialog*>(QStringLiteral("about"));
  ASSERT_NE(about, nullptr);
  keep_picture(about->grab().toImage(), QStringLiteral("about"));
  const QString words = words_of(about);
  for (const char* part : {"0.1.0", "0123456789ab", "0123456789abcdef", "SQLite", "MIT", "LGPL"})
    EXPECT_TRUE(words.contains(QLatin1String(part))) << part;
  EXPECT_TRUE(about_text(fake_system()).contains(QLatin1String("Fingerprint: 0123456789abcdef")));
}

TEST(Workbench, WindowsShareAServiceAndRunsEndWithTheLast) {
  look().set_mode(ThemeMode::light);
  std::map<QString, FakeWorkspacePtr> spaces;
  for (const char* name : {"/tmp/one", "/tmp/two"}) {
    spaces[QLatin1String(name)] = std::make_shared<FakeWorkspace>();
    put_running_job(*spaces[QLatin1String(name)], 0);
  }
  auto keeper = std::make_shared<SettingsKeeper>(QString());
  Workbench workbench(
      [&](const QString& path) {
        WindowOptions options = options_for(spaces.at(path));
        options.workspace_path = path;
        return options;
      },
      keeper);
  QSignalSpy last(&workbench, &Workbench::last_closed);
  MainWindow* first = workbench.open(QStringLiteral("/tmp/one"));
  ASSERT_TRUE(wait_until([&] { return first->monitor()->can_stop(); }));
  EXPECT_EQ(workbench.open(QStringLiteral("/tmp/one/")), first) << "a workspace that is open is raised";
  first->actions_by_name()->action("window.new")->trigger();
  ASSERT_EQ(workbench.windows().size(), 2u);
  MainWindow* second = workbench.windows().back();
  MainWindow* other = workbench.open(QStringLiteral("/tmp/two"));
  EXPECT_NE(other, first);
  ASSERT_TRUE(wait_until([&] { return second->monitor()->can_stop() && other->monitor()->can_stop(); }));
  // The theme is one for all.
  first->set_theme(ThemeMode::dark);
  EXPECT_TRUE(theme().is_dark());
  look().set_mode(ThemeMode::light);
  // Closing one of two asks nothing and stops nothing.
  first->close();
  ASSERT_TRUE(wait_until([&] { return workbench.windows().size() == 2; }));
  EXPECT_EQ(spaces.at("/tmp/one")->stop_alls(), 0);
  EXPECT_TRUE(second->monitor()->can_stop());
  // The last one on the workspace asks.
  second->close();
  auto* question = second->findChild<QMessageBox*>(QStringLiteral("closeQuestion"));
  ASSERT_NE(question, nullptr);
  const QStringList open = keeper->settings().windows;
  EXPECT_EQ(open, (QStringList{"/tmp/one", "/tmp/two"})) << "the one that was closed is not opened again";
  workbench.close_all_without_asking();
  ASSERT_TRUE(wait_until([&] { return last.count() == 1; }));
  EXPECT_EQ(keeper->settings().windows, open) << "what closes together is opened together";
  EXPECT_GE(spaces.at("/tmp/one")->stop_alls(), 1);
  EXPECT_GE(spaces.at("/tmp/two")->stop_alls(), 1);
  EXPECT_TRUE(workbench.windows().empty());
}

TEST(Workbench, AServiceIsOpenedOnceForAWorkspace) {
  TemporaryFolder folder;
  int opened = 0;
  SharedServices services([&](const std::filesystem::path& path) {
    ++opened;
    return JobService::open(path);
  });
  auto one = services.get(folder / "w");
  ASSERT_TRUE(one) << one.error().message();
  auto two = services.get(folder / "w" / "." / ".." / "w");
  ASSERT_TRUE(two);
  EXPECT_EQ(one->get(), two->get());
  EXPECT_EQ(opened, 1);
  one->reset();
  two->reset();
  auto again = services.get(folder / "w");
  ASSERT_TRUE(again);
  EXPECT_EQ(opened, 2) << "nobody held it any more";
}

}  // namespace
}  // namespace stacklab::ui
