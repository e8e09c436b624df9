// The launch dialog: fields from the config's own list, judged while one types, and what follows from them.
#include <QComboBox>
#include <QLineEdit>
#include <QListWidget>
#include <QMimeData>
#include <set>

#include "engine/config/fields.h"
#include "tests/ui/runs_testing.h"

namespace stacklab::ui {
namespace {

class LaunchTest : public RunsTest {
 protected:
  LaunchDialog* launch(const LaunchStart& start) {
    LaunchDialog* dialog = page->launch(start);
    wait_until([&] { return !dialog->is_planning() && dialog->plan(); });
    return dialog;
  }
};

TEST_F(LaunchTest, EveryKeyOfTheConfigHasItsField) {
  open(1);
  LaunchDialog* dialog = launch({runs_config(500), {}, {}, {}});
  std::set<QString> titles;
  for (const FieldInfo& field : field_infos()) {
    const QString key = QString::fromStdString(field.key);
    QWidget* control = dialog->form()->control(key);
    ASSERT_TRUE(control) << field.key;
    EXPECT_FALSE(control->accessibleName().isEmpty()) << field.key;
    EXPECT_FALSE(dialog->form()->hint_of(key).isEmpty()) << field.key;
    EXPECT_TRUE(titles.insert(QString::number(dialog->form()->section_of(key)) + field_title(key)).second)
        << field.key << ": two fields of one section have one title";
  }
  EXPECT_TRUE(dialog->start_button()->isEnabled());
  keep_picture(dialog->grab().toImage(), "launch");
}

TEST_F(LaunchTest, WhatIsWrongStandsAtItsFieldAndDisablesStart) {
  open(1);
  LaunchDialog* dialog = launch({runs_config(500), {}, {}, {}});
  LaunchForm* form = dialog->form();
  form->type("optim.muon_lr", "-1");
  EXPECT_TRUE(form->error_of("optim.muon_lr").contains("out of range"))
      << form->error_of("optim.muon_lr").toStdString();
  EXPECT_FALSE(dialog->start_button()->isEnabled());
  EXPECT_TRUE(dialog->start_button()->toolTip().contains("out of range"));
  QTest::keyClick(dialog, Qt::Key_Return);
  EXPECT_TRUE(dialog->isVisible()) << "what is wrong is not started";
  EXPECT_EQ(form->currentIndex(), form->section_of("optim.muon_lr")) << "but brought before the eyes";
  keep_picture(dialog->grab().toImage(), "launch-wrong");
  form->type("optim.muon_lr", "cheese");
  EXPECT_FALSE(form->error_of("optim.muon_lr").isEmpty());
  form->type("optim.muon_lr", "0.002");
  EXPECT_TRUE(form->error_of("optim.muon_lr").isEmpty());
  EXPECT_TRUE(dialog->start_button()->isEnabled());
  EXPECT_TRUE(form->hint_of("optim.muon_lr").startsWith("was ")) << "it says what it was";
  EXPECT_EQ(form->sections()[static_cast<std::size_t>(form->section_of("optim.muon_lr"))].changed, 1);
  // What no field is to blame for alone is said as well.
  form->type("model.n_kv_heads", "3");
  EXPECT_FALSE(dialog->start_button()->isEnabled());
  EXPECT_FALSE(dialog->start_button()->toolTip().isEmpty());
  form->type("model.n_kv_heads", "1");
  EXPECT_TRUE(dialog->start_button()->isEnabled());
}

TEST_F(LaunchTest, FactsFollowTheConfig) {
  open(1);
  LaunchDialog* dialog = launch({runs_config(500), {}, {}, {}});
  ASSERT_TRUE(dialog->plan());
  const LaunchFacts before = dialog->plan()->facts;
  EXPECT_EQ(before.hash, config_hash(runs_config(500)));
  EXPECT_GT(before.memory_peak, 0);
  EXPECT_GT(before.checkpoint_bytes, 0);
  EXPECT_GT(before.seconds, 0);
  EXPECT_LT(before.seconds_least, before.seconds_most);
  EXPECT_TRUE(before.known_as.empty());
  std::int64_t sum = 0;
  for (const auto& [name, bytes] : before.memory_parts) sum += bytes;
  EXPECT_EQ(sum, before.memory_peak) << "the parts are the whole";
  dialog->form()->type("model.n_layers", "6");
  ASSERT_TRUE(wait_until([&] { return !dialog->is_planning() && dialog->plan()->facts.hash != before.hash; }));
  EXPECT_GT(dialog->plan()->facts.parameters, before.parameters);
  EXPECT_GT(dialog->plan()->facts.checkpoint_bytes, before.checkpoint_bytes);
  EXPECT_TRUE(dialog->footer().contains(QString::fromStdString(config_hash(dialog->form()->config()))));
}

TEST_F(LaunchTest, EnterStartsTheRunAndItCanBeStoppedAndResumed) {
  open(3);
  choose({2});
  page->actions().clone->trigger();
  LaunchDialog* dialog = page->launch_dialog();
  ASSERT_TRUE(dialog);
  dialog->form()->type("name", "my-clone");
  dialog->form()->type("train.seed", "77");
  auto* name = qobject_cast<QLineEdit*>(dialog->form()->control("name"));
  QTest::keyClick(name, Qt::Key_Return);
  ASSERT_TRUE(shows(4));
  const std::int64_t number = 3;
  ASSERT_TRUE(wait_until([&] { return cell(number, "state") == "running"; }));
  EXPECT_EQ(cell(number, "name"), "my-clone");
  choose({number});
  ASSERT_TRUE(wait_until([&] { return page->actions().stop->isEnabled(); }));
  page->actions().stop->trigger();
  ASSERT_TRUE(wait_until([&] { return cell(number, "state") == "paused"; }));
  ASSERT_TRUE(wait_until([&] { return page->actions().resume->isEnabled(); }));
  page->actions().resume->trigger();
  ASSERT_TRUE(wait_until([&] { return cell(number, "state") == "running"; }));
  ASSERT_TRUE(wait_until([&] { return page->actions().pause->isEnabled(); }));
  page->actions().pause->trigger();
  ASSERT_TRUE(wait_until([&] { return cell(number, "state") == "paused"; }));
}

TEST_F(LaunchTest, WhatIsAddedToTheQueueWaitsAndMoves) {
  open(1);
  for (int n = 0; n < 3; ++n) {
    LaunchDialog* dialog = page->launch({runs_config(100 + n), {}, {}, {}});
    ASSERT_TRUE(dialog->queue_button()->isEnabled());
    QTest::mouseClick(dialog->queue_button(), Qt::LeftButton);
    ASSERT_TRUE(wait_until([&] { return page->queue()->model()->rowCount() == n + 1; }));
  }
  EXPECT_TRUE(page->queue()->isVisible());
  const auto names = [&] {
    QStringList all;
    for (const QueueEntry& e : page->queue()->model()->entries()) all << QString::fromStdString(e.name);
    return all;
  };
  EXPECT_EQ(names(), (QStringList{"run-00100", "run-00101", "run-00102"}));
  page->queue()->view()->setCurrentIndex(page->queue()->model()->index(2, 0));
  page->queue()->up_action->trigger();
  ASSERT_TRUE(wait_until([&] { return names() == QStringList{"run-00100", "run-00102", "run-00101"}; }));
  EXPECT_EQ(page->queue()->view()->currentIndex().row(), 1) << "what is moved stays chosen";
  // Dragged to the front.
  std::unique_ptr<QMimeData> dragged(page->queue()->model()->mimeData({page->queue()->model()->index(2, 0)}));
  page->queue()->model()->dropMimeData(dragged.get(), Qt::MoveAction, 0, 0, {});
  ASSERT_TRUE(wait_until([&] { return names() == QStringList{"run-00101", "run-00100", "run-00102"}; }));
  keep_picture(page->grab().toImage(), "runs-queue");
  page->queue()->view()->setCurrentIndex(page->queue()->model()->index(0, 0));
  page->queue()->remove_action->trigger();
  ASSERT_TRUE(wait_until([&] { return names() == QStringList{"run-00100", "run-00102"}; }));
}

}  // namespace
}  // namespace stacklab::ui
