// The page of runs, used as a person would, over a real store.
#include <QAbstractItemModelTester>
#include <QHeaderView>
#include <QLineEdit>
#include <QListView>
#include <QPlainTextEdit>
#include <QScrollBar>
#include <QTableWidget>
#include <ctime>

#include "tests/ui/runs_testing.h"

namespace stacklab::ui {
namespace {

using Tester = QAbstractItemModelTester;

TEST_F(RunsTest, ShowsRunsAndSortsByTypedValues) {
  open(60);
  const Tester tester(page->model(), Tester::FailureReportingMode::Fatal);
  EXPECT_EQ(page->model()->run_count(), 60);
  EXPECT_EQ(page->model()->number_at(0), 59) << "the newest is on top";
  EXPECT_EQ(cell(59, "name"), "run-00059");
  EXPECT_EQ(cell(52, "state"), "failed");
  EXPECT_TRUE(page->model()
                  ->index(loaded_row(52), page->model()->column_of("state"))
                  .data(Qt::AccessibleTextRole)
                  .toString()
                  .contains("out of memory"));
  EXPECT_EQ(cell(56, "loss"), "NaN");
  EXPECT_EQ(cell(56, "lr"), "1.0e-3");
  page->sort_by("val_loss", false);
  ASSERT_TRUE(settle());
  const auto places = page->model()->rowCount();
  ASSERT_EQ(places, 60);
  double last = 0;
  for (int row = 0; row < 25; ++row) {
    const RunRowPtr run = page->model()->run_at(row);
    ASSERT_TRUE(run) << row;
    EXPECT_GE(*run->summary.val_loss, last);
    last = *run->summary.val_loss;
  }
  // A click on the header turns it round.
  QHeaderView* header = page->view()->header();
  const int section = page->model()->column_of("val_loss");
  QTest::mouseClick(header->viewport(), Qt::LeftButton, {},
                    QPoint(header->sectionViewportPosition(section) + 20, header->height() / 2));
  ASSERT_TRUE(settle());
  EXPECT_EQ(header->sortIndicatorOrder(), Qt::DescendingOrder);
  EXPECT_GT(*page->model()->run_at(0)->summary.val_loss, *page->model()->run_at(10)->summary.val_loss);
  keep_picture(page->grab().toImage(), "runs-60");
}

TEST_F(RunsTest, TheFilterCompletesSaysWhatIsWrongAndHolds) {
  open(60);
  QLineEdit* edit = page->filter()->edit();
  edit->setFocus();
  QTest::keyClicks(edit, "tag:abl");
  ASSERT_TRUE(page->filter()->offers()->isVisible());
  QTest::keyClick(edit, Qt::Key_Tab);
  EXPECT_EQ(edit->text(), "tag:ablation ");
  ASSERT_TRUE(shows(15));
  QTest::keyClicks(edit, "and lr > 1e-3 and not state:failed");
  ASSERT_TRUE(wait_until([&] { return page->model()->run_count() < 15 && page->settled(); }));
  for (int row = 0; row < page->model()->rowCount(); ++row) {
    const RunRowPtr run = page->model()->run_at(row);
    ASSERT_TRUE(run);
    EXPECT_EQ(run->summary.number % 4, 0);
    EXPECT_NE(run->summary.state, RunState::failed);
  }
  const int before = page->model()->run_count();
  QTest::keyClicks(edit, " and los < 3");
  EXPECT_TRUE(page->filter()->problem().contains("did you mean \"loss\"", Qt::CaseInsensitive))
      << page->filter()->problem().toStdString();
  EXPECT_TRUE(page->filter()->problem_label()->isVisible());
  EXPECT_EQ(page->model()->run_count(), before) << "what is not whole changes nothing";
  keep_picture(page->grab().toImage(), "runs-filter-wrong");
  edit->clear();
  ASSERT_TRUE(shows(60));
  QTest::keyClicks(edit, "no such name");
  ASSERT_TRUE(shows(0));
  keep_picture(page->grab().toImage(), "runs-none-like-that");
}

TEST_F(RunsTest, WhatIsNoFilterYetKeepsTheRowsAndTheSelection) {
  open(60);
  page->filter()->set_text("tag:ablation");
  ASSERT_TRUE(shows(15));
  choose({8, 12});
  page->filter()->set_text("tag:ablation and los");  // a filter too: of names
  ASSERT_TRUE(shows(0));
  EXPECT_TRUE(page->notice()->isVisible());
  page->filter()->set_text("tag:ablation and los <");
  ASSERT_TRUE(shows(15));
  EXPECT_TRUE(page->filter()->problem_label()->isVisible());
  EXPECT_FALSE(page->notice()->isVisible());
  EXPECT_EQ(page->view()->selected_numbers().size(), 2u);
  page->filter()->set_text("tag:ablation and los");
  ASSERT_TRUE(shows(0)) << "what is a filter again holds again";
  page->filter()->set_text({});
  ASSERT_TRUE(shows(60));
  EXPECT_EQ(page->view()->selected_numbers().size(), 2u);
}

TEST_F(RunsTest, WhenTheLastRunIsDeletedItCanBeBroughtBack) {
  open(1);
  choose({0});
  page->actions().remove->trigger();
  ASSERT_TRUE(shows(0));
  ASSERT_TRUE(page->notice()->isVisible());
  EXPECT_EQ(page->notice()->button()->text(), "Undo");
  keep_picture(page->grab().toImage(), "runs-all-deleted");
  page->notice()->button()->click();
  ASSERT_TRUE(shows(1));
  EXPECT_FALSE(page->notice()->isVisible());
  EXPECT_EQ(page->view()->selected_numbers(), std::vector<std::int64_t>{0});
}

TEST_F(RunsTest, TheSmallLossNamesItsValuesInFull) {
  MiniLoss mini;
  mini.resize(300, 140);
  MiniLoss::Curve curve;
  for (int i = 0; i < 40; ++i) curve.points.emplace_back(i, 223376.66 - 5000 * i);
  curve.points.emplace_back(40, std::nan(""));
  curve.gaps.emplace_back(40, 223376.66 - 5000 * 39);
  mini.set_curves({curve});
  const MiniLoss::Axis axis = mini.axis();
  ASSERT_GE(axis.ticks.size(), 3u);
  ASSERT_LE(axis.ticks.size(), 5u);
  const QFontMetrics font(look().number_font(TextRole::small));
  for (const Tick& tick : axis.ticks) EXPECT_LE(font.horizontalAdvance(tick.label), mini.plot().left() - 6);
  EXPECT_FALSE(axis.cut);
  // Red stands at the end alone.
  const QImage image = mini.grab().toImage();
  keep_picture(image, "mini-loss");
  int crosses = 0;
  for (int x = 0; x < image.width(); ++x)
    for (int y = 0; y < image.height(); ++y)
      if (const QColor seen = image.pixelColor(x, y); seen.red() > seen.green() + 60 && seen.red() > seen.blue() + 60) {
        ++crosses;
        EXPECT_GT(x, image.width() * 0.8);
      }
  EXPECT_GT(crosses, 3);
  curve.points.front().setY(1e9);
  mini.set_curves({curve});
  EXPECT_TRUE(mini.axis().cut) << "and said";
  // One value is one, too.
  mini.set_curves({{0, {{1, 5.0}}, {}}});
  EXPECT_GE(mini.axis().ticks.size(), 3u);
}

TEST_F(RunsTest, GroupsFoldAndSumUpTheirSeeds) {
  open(60);
  const Tester tester(page->model(), Tester::FailureReportingMode::Fatal);
  page->set_group("train.seed");
  ASSERT_TRUE(wait_until([&] { return page->model()->rowCount() == 63 && page->settled(); }));
  ASSERT_TRUE(page->model()->is_group(0));
  const RunGroup* group = page->model()->group_at(0);
  EXPECT_EQ(group->numbers.size(), 20u);
  double sum = 0, squares = 0;
  for (int n = 0; n < 60; n += 3) sum += 2.9 + 0.001 * ((n * 37) % 500);
  for (int n = 0; n < 60; n += 3) squares += std::pow(2.9 + 0.001 * ((n * 37) % 500) - sum / 20, 2);
  EXPECT_EQ(group->value, "0");
  EXPECT_NEAR(group->mean, sum / 20, 1e-9);
  EXPECT_NEAR(group->spread, std::sqrt(squares / 19), 1e-9);
  EXPECT_TRUE(page->model()->group_text(*group).contains(QStringLiteral("±")));
  keep_picture(page->grab().toImage(), "runs-groups");
  page->view()->setFocus();
  page->view()->setCurrentIndex(page->model()->index(0, 0));
  QTest::keyClick(page->view(), Qt::Key_Left);
  EXPECT_EQ(page->model()->rowCount(), 43);
  EXPECT_FALSE(page->model()->group_at(0)->open);
  QTest::keyClick(page->view(), Qt::Key_Right);
  EXPECT_EQ(page->model()->rowCount(), 63);
  page->set_group({});
  ASSERT_TRUE(wait_until([&] { return page->model()->rowCount() == 60; }));
}

TEST_F(RunsTest, TagsAndNotesAreEditedInPlaceAndUndone) {
  open(20);
  choose({19});
  page->actions().tags->trigger();
  auto* editor = qobject_cast<QLineEdit*>(QApplication::focusWidget());
  if (!editor) editor = page->view()->findChild<QLineEdit*>();
  ASSERT_TRUE(editor);
  editor->setText("good, new");
  QTest::keyClick(editor, Qt::Key_Return);
  ASSERT_TRUE(wait_until([&] { return cell(19, "tags") == "good new"; }));
  EXPECT_EQ(undo.undoText(), "Tags of run-00019");
  page->panel()->note()->setPlainText("it fell\nvery well");
  QFocusEvent out(QEvent::FocusOut);
  QApplication::sendEvent(page->panel()->note(), &out);
  ASSERT_TRUE(wait_until([&] { return cell(19, "note") == "it fell"; }));
  undo.undo();
  ASSERT_TRUE(wait_until([&] { return cell(19, "note").isEmpty(); }));
  undo.undo();
  ASSERT_TRUE(wait_until([&] { return cell(19, "tags").isEmpty(); }));
  undo.redo();
  ASSERT_TRUE(wait_until([&] { return cell(19, "tags") == "good new"; }));
}

TEST_F(RunsTest, ArchiveAndDeleteGoThroughUndo) {
  open(20);
  choose({19, 18});
  page->actions().archive->trigger();
  ASSERT_TRUE(shows(18));
  choose({17});
  page->actions().remove->trigger();
  ASSERT_TRUE(shows(17));
  page->filter()->set_text("is:archived");
  ASSERT_TRUE(shows(2));
  page->filter()->set_text("is:deleted");
  ASSERT_TRUE(shows(1));
  page->filter()->set_text({});
  ASSERT_TRUE(shows(17));
  undo.undo();
  ASSERT_TRUE(shows(18));
  undo.undo();
  ASSERT_TRUE(shows(20));
}

TEST_F(RunsTest, SelectionStaysWithItsRunsAndDiffShowsWhatDiffers) {
  open(30);
  choose({5, 8});
  page->sort_by("val_loss", true);
  ASSERT_TRUE(settle());
  auto numbers = page->view()->selected_numbers();
  std::sort(numbers.begin(), numbers.end());
  EXPECT_EQ(numbers, (std::vector<std::int64_t>{5, 8}));
  page->actions().compare->trigger();
  QTableWidget* table = page->panel()->difference();
  ASSERT_GT(table->rowCount(), 2);
  QStringList keys;
  for (int row = 0; row < table->rowCount(); ++row) keys << table->item(row, 0)->text();
  EXPECT_TRUE(keys.contains("model.n_layers"));
  EXPECT_TRUE(keys.contains("optim.muon_lr"));
  EXPECT_FALSE(keys.contains("train.seed")) << "both have seed 2";
  EXPECT_FALSE(keys.contains("model.d_model"));
  choose({8});
  page->actions().baseline->trigger();
  choose({5});
  EXPECT_EQ(page->model()->baseline(), 8);
  undo.undo();
  EXPECT_EQ(page->model()->baseline(), -1);
}

TEST_F(RunsTest, ActionsSayWhyTheyCannot) {
  open(20);
  choose({19});
  EXPECT_FALSE(page->actions().stop->isEnabled());
  EXPECT_EQ(page->actions().stop->toolTip(), "It is not running.");
  EXPECT_FALSE(page->actions().resume->isEnabled());
  EXPECT_EQ(page->actions().resume->toolTip(), "It has reached its end.");
  choose({5});
  EXPECT_TRUE(page->actions().resume->isEnabled()) << "it is paused";
  page->view()->clearSelection();
  page->view()->setCurrentIndex({});
  ASSERT_TRUE(wait_until([&] { return !page->actions().clone->isEnabled(); }));
  EXPECT_EQ(page->actions().clone->toolTip(), "Choose a run first.");
}

TEST_F(RunsTest, ViewsAreKeptInTheWorkspace) {
  open(30);
  page->set_columns({"name", "val_loss", "optim.muon_lr", "state"});
  page->filter()->set_text("tag:ablation");
  page->sort_by("optim.muon_lr", false);
  ASSERT_TRUE(settle());
  EXPECT_EQ(cell(28, "optim.muon_lr"), "0.001");
  page->save_view("Ablations");
  ASSERT_TRUE(wait_until([&] { return std::filesystem::exists(folder.path() / SavedViews::file_name); }));
  page.reset();
  link.reset();
  link = nullptr;
  LinkOptions options;
  options.open = [path = folder.path()]() -> Result<OpenedWorkspace> {
    auto service = open_job_service(path, idle_steps());
    if (!service) return tl::unexpected(service.error());
    return OpenedWorkspace{std::shared_ptr<JobService>(std::move(*service)), nullptr};
  };
  link = std::make_unique<WorkspaceLink>(std::move(options));
  page = std::make_unique<RunsPage>(link.get(), &undo);
  page->resize(1400, 900);
  page->show();
  link->open();
  ASSERT_TRUE(wait_until([&] { return page->views().named.size() == 1 && page->settled(); }));
  EXPECT_EQ(page->state().columns, (QStringList{"name", "val_loss", "optim.muon_lr", "state"}));
  EXPECT_EQ(page->state().filter, "tag:ablation");
  EXPECT_EQ(page->state().sort, "optim.muon_lr");
  EXPECT_EQ(page->model()->run_count(), 8);
  const SavedViews broken =
      SavedViews::from_bytes("{\"version\":1,\"last\":{\"columns\":[\"nothing\",3],\"widths\":{\"name\":-5}}}");
  EXPECT_EQ(broken.last.columns, default_run_columns());
  EXPECT_TRUE(broken.last.widths.isEmpty());
}

// The most processor time that the window's thread took between two turns of its loop: what others do to the machine
// does not count.
class Watchdog : public QObject {
 public:
  Watchdog() : last_(now()) { startTimer(0); }
  double worst = 0;  // seconds

 protected:
  void timerEvent(QTimerEvent*) override {
    const double at = now();
    worst = std::max(worst, at - last_);
    last_ = at;
  }

 private:
  static double now() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  }
  double last_;
};

TEST_F(RunsTest, TenThousandRunsAreReadAsTheyAreLookedAt) {
  open(10000);
  EXPECT_EQ(page->model()->run_count(), 10000);
  const auto kept = [&] {
    int loaded = 0;
    for (int row = 0; row < 10000; ++row) loaded += page->model()->run_at(row) != nullptr;
    return loaded;
  };
  EXPECT_LT(kept(), 400) << "what nobody looks at is not read";
  page->view()->verticalScrollBar()->setValue(page->view()->verticalScrollBar()->maximum() / 2);
  ASSERT_TRUE(settle());
  EXPECT_LT(kept(), 800);
  const QModelIndex top = page->view()->indexAt(QPoint(5, 5));
  ASSERT_TRUE(top.isValid());
  EXPECT_GT(top.row(), 4000);
  EXPECT_TRUE(page->model()->run_at(top.row())) << "what is looked at is";
  choose({page->model()->number_at(top.row())});
  Watchdog watchdog;
  const std::int64_t chosen = page->view()->selected_numbers().at(0);
  page->sort_by("loss", true);
  ASSERT_TRUE(settle());
  EXPECT_EQ(page->view()->selected_numbers(), std::vector<std::int64_t>{chosen});
  page->filter()->set_text("loss < 3 and n_layers = 2");
  ASSERT_TRUE(wait_until([&] { return page->model()->run_count() < 5000 && page->settled(); }));
  page->filter()->set_text({});
  ASSERT_TRUE(shows(10000));
  // Something changes in the store, and the table follows.
  choose({page->model()->number_at(0)});
  RunEdit edit;
  edit.note = "new";
  page->control()->edit("Note", {{page->chosen().at(0)->summary.id, edit}});
  const std::int64_t first = page->model()->number_at(0);
  ASSERT_TRUE(wait_until([&] { return cell(first, "note") == "new"; }));
  EXPECT_LT(watchdog.worst, 0.1) << "seconds of this thread at once";
  keep_picture(page->grab().toImage(), "runs-10000");
}

TEST_F(RunsTest, NothingIsShownAsNothing) {
  open(0);
  keep_picture(page->grab().toImage(), "runs-empty");
  EXPECT_EQ(page->facts_text(), "0 runs");
}

}  // namespace
}  // namespace stacklab::ui
