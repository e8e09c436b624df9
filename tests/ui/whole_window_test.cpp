// What goes through several parts of the window at once, driven as a person would.
#include <QCheckBox>
#include <QComboBox>
#include <QDialog>
#include <QDragEnterEvent>
#include <QDropEvent>
#include <QMimeData>
#include <QSignalSpy>
#include <QUndoStack>

#include "tests/story.h"
#include "tests/ui/real_window.h"
#include "ui/pages/runs/presets.h"
#include "ui/shell/first_start.h"
#include "ui/shell/own_text_dialog.h"
#include "ui/theme/numbers.h"

namespace stacklab::ui {
namespace {

std::string paragraphs(int sentences) {
  return story(sentences, [](int i) { return i % 20 == 19 ? " \n\n" : " "; });
}

class WholeWindow : public RealWindow {
 protected:
  void drop(const std::filesystem::path& file) {
    QMimeData data;
    data.setUrls({QUrl::fromLocalFile(QString::fromStdString(file.string()))});
    QDragEnterEvent enter(QPoint(400, 400), Qt::CopyAction, &data, Qt::LeftButton, {});
    QApplication::sendEvent(window.get(), &enter);
    ASSERT_TRUE(enter.isAccepted());
    QDropEvent dropped(QPointF(400, 400), Qt::CopyAction, &data, Qt::LeftButton, {});
    QApplication::sendEvent(window.get(), &dropped);
  }
};

TEST_F(WholeWindow, ATextThatIsDroppedIsTrainedOn) {
  put_file(folder / "my story.txt", paragraphs(4000));
  open();
  drop(folder / "my story.txt");
  ASSERT_TRUE(wait_until([&] { return child<OwnTextDialog>("ownText") != nullptr; }));
  auto* dialog = child<OwnTextDialog>("ownText");
  EXPECT_TRUE(dialog->words().contains(QLatin1String("my story.txt"))) << dialog->words().toStdString();
  EXPECT_TRUE(dialog->words().contains(QLatin1String("1,024 tokens"))) << dialog->words().toStdString();
  ASSERT_TRUE(wait_until([&] { return dialog->words().contains(QLatin1String("about ")); })) << "how long it will take";
  EXPECT_TRUE(stored().empty()) << "nothing before one has said so";
  keep_picture(dialog->grab().toImage(), QStringLiteral("own-text"));
  QTest::mouseClick(dialog->train_button(), Qt::LeftButton);
  EXPECT_TRUE(dialog->is_preparing());
  EXPECT_FALSE(dialog->train_button()->isEnabled());
  keep_picture(dialog->grab().toImage(), QStringLiteral("own-text-preparing"));
  ASSERT_TRUE(wait_until([&] { return !stored().empty() && stored()[0].state == RunState::running; }));
  EXPECT_TRUE(wait_until([&] { return child<OwnTextDialog>("ownText") == nullptr; }));
  EXPECT_EQ(window->shown_page(), "monitor");
  const auto config = parse_config(stored()[0].config_json, "stored");
  ASSERT_TRUE(config);
  EXPECT_TRUE(std::filesystem::exists(workspace() / "data" / config->data.corpus));
  EXPECT_TRUE(std::filesystem::exists(workspace() / "tokenizers" / config->data.tokenizer / "tokenizer.json"));
  EXPECT_LE(config->model.vocab_size, 1024);
  EXPECT_GT(config->model.vocab_size, 256);
  EXPECT_TRUE(validate(*config));
}

TEST_F(WholeWindow, PreparingATextCanBeStoppedAndGoesWithTheWindow) {
  put_file(folder / "long.txt", paragraphs(400'000));  // long enough to be met in the middle
  open();
  for (const bool with_window : {false, true}) {
    drop(folder / "long.txt");
    ASSERT_TRUE(wait_until([&] { return child<OwnTextDialog>("ownText") != nullptr; }));
    auto* dialog = child<OwnTextDialog>("ownText");
    QTest::mouseClick(dialog->train_button(), Qt::LeftButton);
    ASSERT_TRUE(dialog->is_preparing());
    if (with_window) {
      QSignalSpy finished(window.get(), &MainWindow::finished);
      window->close_without_asking();
      ASSERT_TRUE(wait_until([&] { return finished.count() == 1; }));
    } else {
      QTest::keyClick(dialog, Qt::Key_Escape);
      ASSERT_TRUE(wait_until([&] { return child<OwnTextDialog>("ownText") == nullptr; }));
    }
  }
  window.reset();
  EXPECT_TRUE(stored().empty());
}

TEST_F(WholeWindow, ATextThatTeachesNothingSaysSo) {
  put_file(folder / "short.txt", "Hm.");
  open();
  drop(folder / "short.txt");
  ASSERT_TRUE(wait_until([&] { return child<OwnTextDialog>("ownText") != nullptr; }));
  auto* dialog = child<OwnTextDialog>("ownText");
  QTest::mouseClick(dialog->train_button(), Qt::LeftButton);
  ASSERT_TRUE(wait_until([&] { return !dialog->is_preparing(); }));
  ASSERT_NE(child<OwnTextDialog>("ownText"), nullptr);
  EXPECT_TRUE(dialog->train_button()->isEnabled()) << "to be tried again";
  EXPECT_TRUE(stored().empty());
}

TEST_F(WholeWindow, TheFirstRunStartsByItselfAndExplainsItself) {
  WindowOptions options = real_options();
  options.first_run = runs_config(0);
  open(options, 0);
  ASSERT_TRUE(wait_until([&] { return !stored().empty() && stored()[0].state == RunState::running; }));
  EXPECT_EQ(window->shown_page(), "runs");
  ASSERT_NE(window->first_start(), nullptr);
  ASSERT_TRUE(wait_until([&] { return window->first_start()->pause_button()->isEnabled(); }));
  ASSERT_TRUE(wait_until([&] { return !window->first_start()->chart()->curves().empty(); }));
  QString all;
  ASSERT_TRUE(wait_until([&] {
    all.clear();
    for (const QLabel* label : window->first_start()->findChildren<QLabel*>())
      if (label->isVisible()) all += label->text() + QLatin1Char('\n');
    return all.contains(QLatin1String("model is training"));
  })) << all.toStdString();
  for (const char* said : {"Your first model is training", "It started by itself", "run-00000", "Training"})
    EXPECT_TRUE(all.contains(QLatin1String(said))) << said << " in " << all.toStdString();
  EXPECT_FALSE(window->runs_page()->view()->isVisible());
  keep_picture(window->grab().toImage(), QStringLiteral("first-start"));
  QTest::mouseClick(window->first_start()->pause_button(), Qt::LeftButton);
  ASSERT_TRUE(wait_until([&] { return stored()[0].state == RunState::paused; }));
  window->runs_page()->close_cover();
  EXPECT_EQ(window->first_start(), nullptr);
  EXPECT_TRUE(wait_until([&] { return window->runs_page()->view()->isVisible() && settle(); }));
  EXPECT_EQ(window->runs_page()->model()->run_count(), 1);
}

TEST_F(WholeWindow, SeveralRunsAreLaidOverOneAnother) {
  open(30);
  RunsPage* runs = window->runs_page();
  const RunListModel* list = window->monitor()->runs();
  choose({2});
  EXPECT_FALSE(runs->actions().overlay->isEnabled());
  choose({2, 5, 9});
  ASSERT_TRUE(runs->actions().overlay->isEnabled());
  const auto before = list->shown();
  runs->actions().overlay->trigger();
  EXPECT_EQ(window->shown_page(), "monitor");
  std::set<std::int64_t> numbers;
  for (const RunInfo* run : list->shown_runs()) numbers.insert(run->summary.number);
  EXPECT_EQ(numbers, (std::set<std::int64_t>{2, 5, 9}));
  EXPECT_FALSE(runs->model()->is_hidden(5));
  EXPECT_TRUE(runs->model()->is_hidden(6));
  ASSERT_TRUE(settle());
  EXPECT_EQ(window->monitor()->charts()->panel("loss")->chart()->curves().size() % 3, 0u);
  window->undo_stack()->undo();
  EXPECT_EQ(list->shown(), before);
  EXPECT_FALSE(runs->model()->is_hidden(29)) << "the newest are on show at first";
}

TEST_F(WholeWindow, TheEyeHidesACurveInTheMonitorAndIsRemembered) {
  open(12);
  RunsPage* runs = window->runs_page();
  choose({11});
  runs->actions().show->trigger();
  EXPECT_TRUE(runs->model()->is_hidden(11));
  const auto shown = [&](std::int64_t number) {
    for (const RunInfo* run : window->monitor()->runs()->shown_runs())
      if (run->summary.number == number) return true;
    return false;
  };
  EXPECT_FALSE(shown(11));
  window->undo_stack()->undo();
  EXPECT_TRUE(shown(11));
  window->undo_stack()->redo();
  EXPECT_FALSE(shown(11));
  QSignalSpy finished(window.get(), &MainWindow::finished);
  window->close_without_asking();
  ASSERT_TRUE(wait_until([&] { return finished.count() == 1; }));
  window.reset();
  open();
  EXPECT_TRUE(wait_until([&] { return window->runs_page()->model()->is_hidden(11); }));
  EXPECT_FALSE(shown(11));
  EXPECT_TRUE(shown(10));
}

TEST_F(WholeWindow, ADoubleClickShowsTheRunInTheMonitor) {
  open(12);
  RunsPage* runs = window->runs_page();
  const int row = runs->model()->row_of(4);
  const QRect cell = runs->view()->visualRect(runs->model()->index(row, runs->model()->column_of("state")));
  QTest::mouseClick(runs->view()->viewport(), Qt::LeftButton, {}, cell.center());
  QTest::mouseDClick(runs->view()->viewport(), Qt::LeftButton, {}, cell.center());
  EXPECT_EQ(window->shown_page(), "monitor");
  EXPECT_EQ(window->monitor()->selected(), runs->model()->run(4)->summary.id);
}

TEST_F(WholeWindow, PresetsAreBegunFromAndRunsMayOutliveTheWindow) {
  open(2);
  ASSERT_GE(presets().size(), 5u);
  RunsPage* runs = window->runs_page();
  EXPECT_EQ(runs->preset_actions().size(), presets().size());
  window->actions_by_name()->action("runs.preset.stack-100m")->trigger();
  LaunchDialog* dialog = runs->launch_dialog();
  ASSERT_NE(dialog, nullptr);
  EXPECT_EQ(dialog->form()->config().name, "stack-100m");
  ASSERT_NE(dialog->from_box(), nullptr);
  EXPECT_FALSE(dialog->detached_box()->isChecked());
  for (int i = 1; i < dialog->from_box()->count(); ++i) {
    dialog->from_box()->setCurrentIndex(i);
    emit dialog->from_box()->activated(i);
    EXPECT_EQ(config_hash(dialog->form()->config()), config_hash(presets()[static_cast<std::size_t>(i) - 1].config));
  }
}

TEST_F(WholeWindow, TheMonitorsListIsFilteredPinnedAndHeldAgainstABaseline) {
  open(30);
  window->show_page(QStringLiteral("monitor"));
  ASSERT_TRUE(settle());
  MonitorPage* page = window->monitor();
  RunOrder* order = page->run_list()->order();
  RunFilterBox* box = page->run_filter();
  const RunId looked_at = page->selected();
  EXPECT_EQ(order->rowCount(), 30);
  box->setFocus();
  QTest::keyClicks(box, QStringLiteral("name = run-00007"));
  ASSERT_TRUE(wait_until([&] { return box->is_idle() && order->rowCount() == 1; }));
  EXPECT_EQ(order->run_at(order->index(0, 0)).summary.number, 7);
  EXPECT_EQ(page->selected(), looked_at) << "a filter chooses no run";
  keep_picture(window->grab().toImage(), QStringLiteral("monitor-filtered"));
  // What is no filter says so, and the list stays.
  box->setText(QStringLiteral("loss <"));
  ASSERT_TRUE(wait_until([&] { return box->is_idle(); }));
  EXPECT_FALSE(box->problem().isEmpty());
  EXPECT_EQ(order->rowCount(), 1);
  box->setText(QStringLiteral("name = run-00007"));
  ASSERT_TRUE(wait_until([&] { return box->is_idle() && box->problem().isEmpty(); }));
  // P pins it, here and in the table of runs; then it is on top and passes every filter.
  page->run_list()->setCurrentIndex(order->index(0, 0));
  QTest::keyClick(page->run_list(), Qt::Key_P);
  EXPECT_TRUE(window->runs_page()->model()->pinned().contains(7));
  box->clear();
  ASSERT_TRUE(wait_until([&] { return box->is_idle() && order->rowCount() == 30; }));
  EXPECT_EQ(order->run_at(order->index(0, 0)).summary.number, 7);
  EXPECT_EQ(order->run_at(order->index(1, 0)).summary.number, 29);
  box->setText(QStringLiteral("name = run-00011"));
  ASSERT_TRUE(wait_until([&] { return box->is_idle() && order->rowCount() == 2; }));
  box->clear();
  ASSERT_TRUE(wait_until([&] { return box->is_idle() && order->rowCount() == 30; }));
  // B makes it the baseline: the others say how far they are from it.
  page->run_list()->setCurrentIndex(order->index(0, 0));
  QTest::keyClick(page->run_list(), Qt::Key_B);
  EXPECT_EQ(window->runs_page()->model()->baseline(), 7);
  const auto mark = [&](int row) { return order->index(row, 0).data(RunListModel::mark_role).toString(); };
  EXPECT_TRUE(mark(0).contains(QLatin1String("baseline")) && mark(0).contains(QLatin1String("pinned")));
  const RunSummary base = order->run_at(order->index(0, 0)).summary, other = order->run_at(order->index(1, 0)).summary;
  ASSERT_TRUE(base.last_loss && other.last_loss);
  EXPECT_EQ(mark(1), format_loss_difference(*other.last_loss - *base.last_loss));
  keep_picture(window->grab().toImage(), QStringLiteral("monitor-baseline"));
  window->undo_stack()->undo();
  EXPECT_EQ(page->runs()->baseline(), -1);
  EXPECT_EQ(mark(1), QString());
  window->undo_stack()->undo();
  EXPECT_EQ(order->run_at(order->index(0, 0)).summary.number, 29);
}

}  // namespace
}  // namespace stacklab::ui
