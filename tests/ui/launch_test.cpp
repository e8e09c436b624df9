// The launch dialog: fields from the config's own list, judged while one types, and what follows from them.
#include <QApplication>
#include <QCheckBox>
#include <QClipboard>
#include <QComboBox>
#include <QLineEdit>
#include <QListWidget>
#include <QMimeData>
#include <set>

#include "engine/config/fields.h"
#include "engine/service/planning.h"
#include "tests/ui/runs_testing.h"

namespace stacklab::ui {
namespace {

// By its batch, which levers can mend; a small model of a million tokens at once.
RunConfig too_large() {
  RunConfig config = runs_config(500);
  config.train.seq_len = config.model.max_seq_len = 1024;
  config.train.batch_tokens = 1 << 20;
  config.train.tokens = 100 << 20;
  config.run.micro_batch = 1024;
  config.model.d_model = 512;
  config.model.intermediate = 16384;
  return config;
}

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

TEST_F(LaunchTest, NumbersAreReadAsTheyAreWrittenHere) {
  open(1);
  LaunchForm* form = launch({runs_config(500), {}, {}, {}})->form();
  const QLocale before;
  struct Written {
    QLocale locale;
    const char* key;
    QString text;
    double number;  // 0: refused
  };
  const QLocale english(QLocale::English, QLocale::UnitedStates), german(QLocale::German, QLocale::Germany),
      french(QLocale::French, QLocale::France), egyptian(QLocale::Arabic, QLocale::Egypt);
  for (const Written& one : std::vector<Written>{{english, "optim.muon_lr", "3e-4", 3e-4},
                                                 {german, "optim.muon_lr", "3e-4", 3e-4},
                                                 {german, "optim.muon_lr", "0.0003", 3e-4},
                                                 {german, "optim.muon_lr", "0,0003", 3e-4},
                                                 {french, "optim.muon_lr", "0,0003", 3e-4},
                                                 {egyptian, "optim.muon_lr", egyptian.toString(0.0003, 'g', 6), 3e-4},
                                                 {english, "optim.muon_lr", "0,0003", 0},
                                                 {english, "train.tokens", "104,857,600", 104857600},
                                                 {german, "train.tokens", "104.857.600", 104857600},
                                                 {french, "train.tokens", french.toString(104857600), 104857600},
                                                 {egyptian, "train.tokens", egyptian.toString(104857600), 104857600},
                                                 {english, "train.tokens", "10,48,576", 0},
                                                 {german, "train.tokens", "0,5", 0}}) {
    form->set_config(runs_config(500), runs_config(500));
    QLocale::setDefault(one.locale);
    form->type(one.key, one.text);
    QLocale::setDefault(before);
    const std::string said = one.locale.name().toStdString() + ": " + one.text.toStdString();
    EXPECT_EQ(form->error_of(one.key).isEmpty(), one.number != 0) << said;
    const RunConfig& config = form->config();
    if (one.number != 0)
      EXPECT_EQ(QLatin1String(one.key) == QLatin1String("train.tokens") ? static_cast<double>(config.train.tokens)
                                                                        : config.optim.muon_lr,
                one.number)
          << said;
    else
      EXPECT_EQ(to_json(config), to_json(runs_config(500))) << said;
  }
  // A list of steps keeps its commas.
  form->type("run.keep_milestones", "100,200");
  EXPECT_EQ(form->config().run.keep_milestones, "100,200");
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

TEST_F(LaunchTest, WhatDoesNotFitSaysWhatWouldHelpAsARefusalDoes) {
  open(1);
  const RunConfig config = too_large();
  ASSERT_TRUE(check_step(config)) << check_step(config).error().message();
  LaunchDialog* dialog = launch({config, {}, {}, {}});
  ASSERT_TRUE(dialog->plan());
  const LaunchFacts facts = dialog->plan()->facts;
  ASSERT_FALSE(facts.memory_fits) << facts.memory_peak << " of " << facts.memory_free;
  const auto levers = memory_levers(config, facts.memory_free);
  ASSERT_TRUE(levers);
  EXPECT_EQ(facts.memory_remedy, to_text(*levers)) << "the words of a run that is refused";
  EXPECT_TRUE(dialog->facts_text().contains(QString::fromStdString(facts.memory_remedy)));
  for (int i = 0; i < 5; ++i) QCoreApplication::processEvents();  // laid out
  keep_picture(dialog->grab().toImage(), "launch-too-large");
  ASSERT_FALSE(facts.memory_settings.empty());
  ASSERT_TRUE(dialog->remedy_button()->isVisible());
  EXPECT_TRUE(dialog->anyway_button()->isVisible());
  QTest::mouseClick(dialog->remedy_button(), Qt::LeftButton);
  ASSERT_TRUE(wait_until([&] { return !dialog->is_planning() && dialog->plan()->facts.memory_fits; }));
  RunConfig expected = config;
  for (const std::string& setting : facts.memory_settings) ASSERT_TRUE(set_field(expected, setting));
  EXPECT_EQ(to_json(dialog->form()->config()), to_json(expected));
  EXPECT_FALSE(dialog->remedy_button()->isVisible());
  EXPECT_FALSE(dialog->anyway_button()->isVisible());
}

TEST_F(LaunchTest, RunAnywayTurnsTheGuardOff) {
  open(1);
  const RunConfig config = too_large();
  LaunchDialog* dialog = launch({config, {}, {}, {}});
  ASSERT_TRUE(dialog->anyway_button()->isVisible());
  QTest::mouseClick(dialog->anyway_button(), Qt::LeftButton);
  EXPECT_FALSE(dialog->form()->config().run.memory_guard);
  ASSERT_TRUE(wait_until([&] { return !dialog->is_planning() && !dialog->anyway_button()->isVisible(); }));
  EXPECT_TRUE(dialog->start_button()->isEnabled());
  EXPECT_TRUE(dialog->facts_text().contains("memory guard is off")) << dialog->facts_text().toStdString();
}

TEST_F(LaunchTest, ACommandForTheTerminalStandsForTheSameRun) {
  open(1);
  RunConfig config = runs_config(500);
  config.data.corpus = "/texts/it's mine.jsonl";
  LaunchDialog* dialog = launch({config, {}, {}, {}});
  dialog->form()->type("name", "my-clone");
  dialog->form()->type("optim.muon_lr", "0.00035");
  QTest::mouseClick(dialog->copy_button(), Qt::LeftButton);
  const QString command = QApplication::clipboard()->text();
  EXPECT_EQ(command, dialog->command());
  const QStringList lines = command.split('\n');
  EXPECT_EQ(lines.first(), "cat > my-clone.json <<'END_OF_CONFIG'");
  const auto end = lines.indexOf("END_OF_CONFIG");
  ASSERT_GT(end, 0);
  const auto config_there = parse_config(lines.mid(1, end - 1).join('\n').toStdString(), "the command");
  ASSERT_TRUE(config_there) << config_there.error().message();
  EXPECT_EQ(to_json(*config_there), to_json(dialog->form()->config()));
  EXPECT_EQ(lines[end + 1],
            "stacklab train my-clone.json --workspace " + QString::fromStdString(folder.path().string()));
  dialog->detached_box()->setChecked(true);
  EXPECT_TRUE(dialog->command().trimmed().endsWith(" --detach"));
  dialog->form()->type("optim.muon_lr", "-1");
  EXPECT_FALSE(dialog->copy_button()->isEnabled()) << "what is wrong is not handed on";
}

TEST_F(LaunchTest, ACommandForAForkNamesWhatDiffers) {
  open(1);
  const RunConfig parent = runs_config(500);
  LaunchStart start{parent, "fork of it", "0123456789ab", {40, 80}};
  start.config.name += "-fork";
  LaunchDialog* dialog = launch(start);
  dialog->form()->type("data.corpus", "it's");
  EXPECT_EQ(dialog->command(), "stacklab fork 0123456789ab --at 80 --workspace " +
                                   QString::fromStdString(folder.path().string()) +
                                   " --name run-00500-fork --set 'data.corpus=it'\\''s' --start\n");
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
  // Its config once more: what starting does is said in full, and by the button.
  choose({number});
  const RunRowPtr run = page->model()->run(number);
  ASSERT_TRUE(run);
  const auto config = parse_config(run->summary.config_json, "of the run");
  ASSERT_TRUE(config);
  dialog = launch({*config, {}, {}, {}});
  ASSERT_TRUE(dialog->plan());
  EXPECT_EQ(dialog->start_button()->text(), "Resume");
  for (QLabel* found : dialog->findChildren<QLabel*>())
    if (auto* label = dynamic_cast<TextLabel*>(found); label && label->full_text().contains("goes on with that run")) {
      EXPECT_EQ(label->text(), label->full_text());
    }
  EXPECT_TRUE(dialog->footer().contains("my-clone has it and is paused"));
  dialog->form()->type("train.seed", "78");
  ASSERT_TRUE(wait_until([&] { return !dialog->is_planning() && dialog->start_button()->text() == "Start now"; }));
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
