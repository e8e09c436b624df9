// The shell where things are odd: names of a thousand letters, scripts from right to left, another locale, thousands of
// runs; and used without a mouse.
#include <QAbstractButton>
#include <QAccessible>
#include <QDialog>
#include <QJsonDocument>
#include <QLineEdit>
#include <QListView>
#include <QLocale>
#include <QMenuBar>
#include <QScrollArea>
#include <QSignalSpy>
#include <QStackedWidget>
#include <QStatusBar>
#include <QTemporaryDir>
#include <QToolButton>
#include <clocale>
#include <set>

#include "tests/ui/reachable.h"
#include "tests/ui/watchdog.h"
#include "tests/ui/window_testing.h"
#include "ui/shell/command_palette.h"
#include "ui/shell/dialogs.h"
#include "ui/shell/dropped.h"
#include "ui/shell/notice_panel.h"
#include "ui/shell/shortcut_editor.h"

namespace stacklab::ui {
namespace {

class ShellFaults : public WindowTest {
 protected:
  void open_settled(const WindowOptions& options, QSize size = QSize(1280, 800)) {
    open(options, size);
    ASSERT_TRUE(wait_until([&] { return window->settled(); }));
  }
  // Nothing wider than the window, nothing of the status bar pushed out of it.
  void expect_it_fits(const char* what) {
    EXPECT_LE(window->minimumSizeHint().width(), 1100) << what;
    EXPECT_EQ(window->width(), 1280) << what;
    for (const QWidget* part : window->status()->findChildren<QWidget*>(QString(), Qt::FindDirectChildrenOnly)) {
      if (!part->isVisible()) continue;
      EXPECT_GE(part->x(), 0) << what;
      EXPECT_LE(part->geometry().right(), window->status()->width()) << what;
    }
  }
};

TEST_F(ShellFaults, NamesOfAThousandLettersDoNotWidenTheWindow) {
  RunSummary run = put(0, RunState::running, 215);
  run.name = std::string(1000, 'w');
  run.cause = std::string(1000, 'c');
  workspace->put_run(run);
  workspace->add_event(run.id, {RunEvent::Kind::warning, 20, std::string(1000, 'e')});
  WindowOptions options = options_for(workspace);
  options.workspace_path = QStringLiteral("/tmp/") + QString(200, QLatin1Char('d'));
  open_settled(options);
  ASSERT_TRUE(wait_until([&] { return window->notices()->rowCount() == 1; }));
  expect_it_fits("long names");
  keep_picture(window->grab().toImage(), QStringLiteral("long-names"));
  QTest::keyClick(window.get(), Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier);
  window->palette_sheet()->field()->setText(QStringLiteral("wwww"));
  keep_picture(window->grab().toImage(), QStringLiteral("long-names-palette"));
  QTest::keyClick(window->palette_sheet()->field(), Qt::Key_Return);
  EXPECT_EQ(window->monitor()->selected(), run.id);
  window->save_perspective(QString(1000, QLatin1Char('p')));
  EXPECT_LE(window->keeper()->layouts().perspectives.front().name.size(), 80);
  window->close();
  Dropped dropped;
  dropped.path = QStringLiteral("/") + QString(1000, QLatin1Char('f'));
  dropped.kind = Dropped::Kind::text;
  const DropAnswer answer = answer_for(dropped);
  EXPECT_LT(answer.fact.size(), 300);
}

TEST_F(ShellFaults, NamesFromRightToLeftAreShownAndFound) {
  RunSummary run = put(0, RunState::running, 215);
  run.name = "تجربة أولى";
  workspace->put_run(run);
  put(1, RunState::finished, 400);
  open_settled(options_for(workspace));
  expect_it_fits("right to left");
  QTest::keyClick(window.get(), Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier);
  window->palette_sheet()->field()->setText(QStringLiteral("أولى"));
  ASSERT_GE(window->palette_sheet()->model()->rowCount(), 1);
  keep_picture(window->grab().toImage(), QStringLiteral("right-to-left-name"));
  QTest::keyClick(window->palette_sheet()->field(), Qt::Key_Return);
  EXPECT_EQ(window->monitor()->selected(), run.id);
}

TEST_F(ShellFaults, AWholeDesktopFromRightToLeft) {
  put_running();
  QApplication::setLayoutDirection(Qt::RightToLeft);
  open_settled(options_for(workspace));
  expect_it_fits("right to left desktop");
  keep_picture(window->grab().toImage(), QStringLiteral("right-to-left"));
  auto* bell = window->findChild<QToolButton*>(QStringLiteral("bell"));
  QTest::mouseClick(bell, Qt::LeftButton);
  EXPECT_TRUE(window->rect().contains(window->notice_sheet()->geometry()));
  QTest::keyClick(window.get(), Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier);
  EXPECT_TRUE(window->rect().contains(window->palette_sheet()->geometry()));
  QApplication::setLayoutDirection(Qt::LeftToRight);
}

TEST_F(ShellFaults, AGermanLocaleStaysOnTheScreen) {
  QTemporaryDir folder;
  const QLocale before;
  QLocale::setDefault(QLocale(QLocale::German, QLocale::Germany));
  put_running();
  WindowOptions options = options_for(workspace);
  options.settings_file = folder.filePath(QStringLiteral("workbench.json"));
  open_settled(options);
  QString words;
  for (const QLabel* label : window->status()->findChildren<QLabel*>()) words += label->text() + QLatin1Char('\n');
  EXPECT_TRUE(words.contains(QLatin1String("5,9 GB"))) << words.toStdString();
  window->monitor()->charts()->view()->set_smoothing(0.5);
  QSignalSpy finished(window.get(), &MainWindow::finished);
  window->close_without_asking();
  ASSERT_TRUE(wait_until([&] { return finished.count() == 1; }));
  QFile file(options.settings_file);
  ASSERT_TRUE(file.open(QIODevice::ReadOnly));
  EXPECT_TRUE(file.readAll().contains("\"smoothing\": 0.5"));
  EXPECT_STREQ(std::localeconv()->decimal_point, ".");
  QLocale::setDefault(before);
}

TEST_F(ShellFaults, TextZoomMovesEveryHeight) {
  put_running();
  open_settled(options_for(workspace), QSize(1600, 1000));
  const int menu = window->menuBar()->height(), status = window->statusBar()->height();
  for (int i = 0; i < 10; ++i) QTest::keyClick(window.get(), Qt::Key_Plus, Qt::ControlModifier);
  EXPECT_EQ(look().zoom(), 200);
  QCoreApplication::processEvents();
  EXPECT_EQ(window->menuBar()->height(), metrics().menu());
  EXPECT_EQ(window->statusBar()->height(), metrics().status());
  EXPECT_GT(window->menuBar()->height(), menu * 3 / 2);
  EXPECT_GT(window->statusBar()->height(), status * 3 / 2);
  keep_picture(window->grab().toImage(), QStringLiteral("zoom-200"));
  window->show_page(QStringLiteral("settings"));
  QCoreApplication::processEvents();
  keep_picture(window->grab().toImage(), QStringLiteral("zoom-200-settings"));
  for (const QAbstractButton* button : window->findChildren<QAbstractButton*>()) {
    if (!button->isVisible() || button->text().isEmpty()) continue;
    EXPECT_GE(button->height(), button->fontMetrics().height()) << button->text().toStdString();
  }
  QTest::keyClick(window.get(), Qt::Key_Minus, Qt::ControlModifier);
  EXPECT_EQ(look().zoom(), 190);
  QTest::keyClick(window.get(), Qt::Key_0, Qt::ControlModifier);
  EXPECT_EQ(look().zoom(), 100);
}

TEST_F(ShellFaults, EverythingHasANameAndIsReachedWithoutAMouse) {
  put_running();
  const RunId id = workspace->run(sample_run(0, RunState::running, 1).id).id;
  workspace->add_event(id, {RunEvent::Kind::spike, 50, "Loss spike"});
  open_settled(options_for(workspace), QSize(1600, 1000));
  ASSERT_TRUE(wait_until([&] { return window->notices()->rowCount() == 1; }));
  for (const QString& name : window->page_names()) {
    window->show_page(name);
    QCoreApplication::processEvents();
    expect_names(window.get(), name.toUtf8().constData());
    expect_tab_reaches_all(window.get(), name.toUtf8().constData());
  }
  window->resize(1000, 760);
  QCoreApplication::processEvents();
  window->show_page(QStringLiteral("monitor"));
  expect_names(window.get(), "narrow");
  expect_tab_reaches_all(window.get(), "narrow");
  for (const char* action : {"tools.shortcuts", "help.keys", "help.about", "view.save_perspective"}) {
    window->actions_by_name()->action(QLatin1String(action))->trigger();
    QDialog* dialog = nullptr;
    for (QDialog* one : window->findChildren<QDialog*>())
      if (one->isVisible()) dialog = one;
    ASSERT_NE(dialog, nullptr) << action;
    expect_names(dialog, action);
    QTest::keyClick(dialog, Qt::Key_Escape);
    ASSERT_TRUE(wait_until([&] { return window->findChildren<QDialog*>().isEmpty(); })) << action;
  }
  window->activateWindow();
  ASSERT_TRUE(wait_until([&] { return QApplication::activeWindow() == window.get(); }));
  QTest::keyClick(window.get(), Qt::Key_N, Qt::ControlModifier | Qt::ShiftModifier);
  expect_names(window->notice_sheet(), "notices");
  QTest::keyClick(window->notice_sheet()->list(), Qt::Key_Space);
  EXPECT_EQ(window->notices()->unread(), 0);
  QTest::keyClick(window->notice_sheet()->list(), Qt::Key_Space);
  EXPECT_EQ(window->notices()->unread(), 1);
  QTest::keyClick(window->notice_sheet()->list(), Qt::Key_Escape);
  QTest::keyClick(window.get(), Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier);
  expect_names(window->palette_sheet(), "palette");
}

TEST_F(ShellFaults, TheShellNeverBlocksWithAThousandRuns) {
  for (int n = 0; n < 1000; ++n) {
    RunSummary run = sample_run(n, n % 7 == 0 ? RunState::failed : RunState::finished, 20);
    workspace->put_run(run);
    if (n % 10 == 0) workspace->add_event(run.id, {RunEvent::Kind::spike, 5, "Loss spike"});
  }
  open_settled(options_for(workspace), QSize(1600, 1000));
  ASSERT_TRUE(wait_until([&] { return window->notices()->rowCount() == 100; }));
  std::map<std::string, double> worst;
  const auto measure = [&](const char* what, const std::function<void()>& call) {
    Watchdog dog;
    call();
    bool turned = false;  // to the end of what it has set off
    QTimer::singleShot(0, [&] { turned = true; });
    ASSERT_TRUE(wait_until([&] { return turned && window->settled(); }));
    worst[what] = std::max(worst[what], dog.worst_cpu);
  };
  for (int round = 0; round < 3; ++round) {
    measure("page", [&] { window->show_page(QStringLiteral("settings")); });
    measure("page", [&] { window->show_page(QStringLiteral("monitor")); });
    measure("palette", [&] { window->actions_by_name()->action("tools.palette")->trigger(); });
    measure("typing", [&] { window->palette_sheet()->field()->setText(QStringLiteral("variant9")); });
    measure("choosing", [&] { QTest::keyClick(window->palette_sheet()->field(), Qt::Key_Return); });
    measure("notices", [&] { window->actions_by_name()->action("tools.notifications")->trigger(); });
    measure("closing a sheet", [&] { window->notice_sheet()->dismiss(); });
    measure("resizing", [&] { window->resize(1200 + 100 * round, 900); });
  }
  for (const auto& [what, ms] : worst) {
    std::printf("%s: %.1f ms\n", what.c_str(), ms);
    EXPECT_LT(ms, longest_block_ms) << what;
  }
}

}  // namespace
}  // namespace stacklab::ui
