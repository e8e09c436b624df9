// Actions, their shortcuts, the palette and the undo stack, used as a person does: with keys and mouse.
#include <QAbstractItemModelTester>
#include <QAction>
#include <QDialog>
#include <QJsonArray>
#include <QKeySequenceEdit>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QMenuBar>
#include <QSignalSpy>
#include <QTableView>
#include <QTemporaryDir>
#include <QUndoStack>

#include "tests/ui/window_testing.h"
#include "ui/shell/command_palette.h"
#include "ui/shell/fuzzy.h"
#include "ui/shell/shortcut_editor.h"

namespace stacklab::ui {
namespace {

int score(const char* typed, const char* title) {
  const auto match = fuzzy_match(QString::fromUtf8(typed), QString::fromUtf8(title));
  return match ? match->score : -1;
}

TEST(Fuzzy, LettersInOrderFitAndWordBeginningsCountMore) {
  EXPECT_EQ(score("xz", "Monitor"), -1);
  EXPECT_EQ(score("rom", "Monitor"), -1) << "order matters";
  EXPECT_GT(score("mon", "Monitor"), 0);
  EXPECT_GT(score("lt", "Larger text"), score("lt", "Default values"));
  EXPECT_GT(score("text", "Larger text"), score("text", "the extra tint"));
  EXPECT_GT(score("start run", "Start a run from a config"), 0) << "spaces between letters do not matter";
  EXPECT_GT(score("GRÖSSE", "größe der Schrift"), -2);
  EXPECT_GT(score("größe", "GRÖßE der Schrift"), 0);
  const auto match = fuzzy_match(QStringLiteral("lt"), QStringLiteral("Larger text"));
  ASSERT_TRUE(match);
  EXPECT_EQ(match->at, (std::vector<int>{0, 7}));
}

TEST(Fuzzy, EveryMatchNamesItsLettersAndTheBestIsFoundAsBySearchingAll) {
  // Against the plain definition: the best over all ways to place the letters.
  std::uint32_t seed = 7;
  const auto next = [&seed](std::uint32_t below) {
    return (seed = seed * 1664525u + 1013904223u) >> 16 & 0xff ? (seed >> 16) % below : 0;
  };
  for (int round = 0; round < 400; ++round) {
    QString title, typed;
    for (std::uint32_t i = 0, n = 3 + next(9); i < n; ++i) title += QChar("ab A"[next(4)]);
    for (std::uint32_t i = 0, n = 1 + next(3); i < n; ++i) typed += QChar("ab"[next(2)]);
    const auto match = fuzzy_match(typed, title);
    std::vector<int> at(static_cast<std::size_t>(typed.size()));
    bool any = false;
    const std::function<void(int, int)> place = [&](int letter, int from) {
      if (letter == typed.size()) {
        any = true;
        return;
      }
      for (int j = from; j < title.size(); ++j)
        if (title[j].toLower() == typed[letter]) place(letter + 1, j + 1);
    };
    place(0, 0);
    ASSERT_EQ(match.has_value(), any) << typed.toStdString() << " in " << title.toStdString();
    if (!match) continue;
    for (std::size_t i = 0; i < match->at.size(); ++i) {
      EXPECT_EQ(title[match->at[i]].toLower(), typed[static_cast<int>(i)]);
      EXPECT_TRUE(i == 0 || match->at[i - 1] < match->at[i]);
    }
  }
}

TEST(Fuzzy, LongTitlesAreCutNotSlow) {
  const QString title(100'000, QLatin1Char('a'));
  ASSERT_TRUE(fuzzy_match(QStringLiteral("aaa"), title));
  EXPECT_FALSE(fuzzy_match(QStringLiteral("b"), title + QLatin1Char('b')));
}

TEST(PaletteModel, OrdersByFitAndByLastUse) {
  PaletteModel model;
  QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::Fatal);
  const auto item = [](const char* id, const char* title, bool enabled = true) {
    PaletteItem made;
    made.id = QLatin1String(id);
    made.title = QLatin1String(title);
    made.enabled = enabled;
    return made;
  };
  model.set_items({item("a", "Larger text"), item("b", "Normal text"), item("c", "Stop"), item("d", "Export", false)},
                  {});
  EXPECT_EQ(model.rowCount(), 4);
  EXPECT_EQ(model.index(0).data().toString(), "Larger text") << "without letters, in the order of the menus";
  model.set_typed(QStringLiteral("text"));
  EXPECT_EQ(model.rowCount(), 2);
  model.set_typed(QStringLiteral("nt"));
  EXPECT_EQ(model.index(0).data().toString(), "Normal text");
  model.set_typed(QStringLiteral("zzz"));
  EXPECT_EQ(model.rowCount(), 0);
  model.set_items({item("a", "Larger text"), item("b", "Normal text"), item("d", "Export", false)},
                  {QStringLiteral("b")});
  EXPECT_EQ(model.index(0).data().toString(), "Normal text") << "what was used last stands first";
  EXPECT_FALSE(model.flags(model.index(2)) & Qt::ItemIsEnabled);
  EXPECT_EQ(model.index(2).data().toString(), "Export");
}

TEST(ActionSet, KeysClashAreTakenAndComeBack) {
  QWidget window;
  ActionSet actions(&window);
  QAction* one =
      actions.add(QStringLiteral("one"), QStringLiteral("&File"), QStringLiteral("&One…"), QStringLiteral("Ctrl+1"));
  actions.add(QStringLiteral("two"), QStringLiteral("&File"), QStringLiteral("Two"),
              QStringLiteral("Ctrl+2 Ctrl+Alt+2"));
  EXPECT_EQ(plain_text(one->text()), "One");
  EXPECT_EQ(plain_text(QStringLiteral("This && &that")), "This & that");
  ASSERT_NE(actions.holder(QKeySequence("Ctrl+2")), nullptr);
  EXPECT_EQ(actions.holder(QKeySequence("Ctrl+2"))->id, "two");
  EXPECT_EQ(actions.holder(QKeySequence("Ctrl+2"), "two"), nullptr);
  EXPECT_NE(actions.holder(QKeySequence("Ctrl+2, Ctrl+3")), nullptr) << "keys that begin with those of another";
  EXPECT_EQ(actions.holder(QKeySequence("Ctrl+9")), nullptr);
  QSignalSpy edited(&actions, &ActionSet::edited);
  actions.set_keys("one", {QKeySequence("Ctrl+2")});
  EXPECT_EQ(edited.count(), 1);
  EXPECT_EQ(one->shortcut(), QKeySequence("Ctrl+2"));
  EXPECT_EQ(actions.action("two")->shortcuts(), QList<QKeySequence>{QKeySequence("Ctrl+Alt+2")})
      << "the other keeps the rest";
  const QJsonObject kept = actions.overrides();
  EXPECT_EQ(kept.size(), 2);

  QWidget second;
  ActionSet again(&second);
  again.restore(kept);  // before the actions are there
  again.add(QStringLiteral("one"), QStringLiteral("&File"), QStringLiteral("One"), QStringLiteral("Ctrl+1"));
  EXPECT_EQ(again.action("one")->shortcut(), QKeySequence("Ctrl+2"));
  EXPECT_EQ(again.overrides(), kept) << "what is not known here is kept";
  again.restore(QJsonObject{{"one", QJsonArray{"nonsense+&", 17}}});
  EXPECT_TRUE(again.action("one")->shortcut().isEmpty());
  again.reset_all();
  EXPECT_EQ(again.action("one")->shortcut(), QKeySequence("Ctrl+1"));
  EXPECT_TRUE(again.overrides().isEmpty());
}

class ShellActions : public WindowTest {
 protected:
  void open_settled() {
    open();
    ASSERT_TRUE(wait_until([&] { return window->settled(); }));
    window->activateWindow();
  }
};

TEST_F(ShellActions, EveryActionIsInAMenuAndInThePalette) {
  put_running();
  open_settled();
  QSet<QAction*> in_menus;
  const std::function<void(QMenu*)> walk = [&](QMenu* menu) {
    for (QAction* action : menu->actions()) {
      in_menus.insert(action);
      if (action->menu()) walk(action->menu());
    }
  };
  for (QAction* action : window->menuBar()->actions()) walk(action->menu());
  for (const ActionSet::Entry& entry : window->actions_by_name()->entries()) {
    EXPECT_TRUE(in_menus.contains(entry.action)) << entry.id.toStdString();
    EXPECT_FALSE(plain_text(entry.action->text()).isEmpty()) << entry.id.toStdString();
  }
  QTest::keyClick(window.get(), Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier);
  ASSERT_TRUE(window->palette_sheet()->isVisible());
  for (const ActionSet::Entry& entry : window->actions_by_name()->entries()) {
    if (entry.id == QLatin1String("tools.palette")) continue;
    const QString title = plain_text(entry.action->text());
    window->palette_sheet()->field()->setText(title);
    EXPECT_EQ(window->palette_sheet()->model()->index(0).data().toString(), title) << entry.id.toStdString();
  }
}

TEST_F(ShellActions, ThePaletteWorksWithTheKeyboardAlone) {
  put_running();
  const RunSummary other = put(1, RunState::finished, 400);
  open_settled();
  QAbstractItemModelTester tester(window->palette_sheet()->model(),
                                  QAbstractItemModelTester::FailureReportingMode::Fatal);
  CommandPalette* palette = window->palette_sheet();
  const auto type = [&](const char* words) {
    QTest::keyClick(window.get(), Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier);
    ASSERT_TRUE(palette->isVisible());
    QTest::keyClicks(palette->field(), QString::fromUtf8(words));
  };
  type("settings");
  keep_picture(window->grab().toImage(), QStringLiteral("palette"));
  QTest::keyClick(palette->field(), Qt::Key_Return);
  EXPECT_FALSE(palette->isVisible());
  EXPECT_EQ(window->shown_page(), "settings");
  // A run is shown on the page that shows runs.
  type("variant-1");
  QTest::keyClick(palette->field(), Qt::Key_Return);
  EXPECT_EQ(window->shown_page(), "monitor");
  EXPECT_EQ(window->monitor()->selected(), other.id);
  // A setting gets the focus.
  type("text size");
  QTest::keyClick(palette->field(), Qt::Key_Return);
  EXPECT_EQ(window->shown_page(), "settings");
  ASSERT_NE(window->focusWidget(), nullptr);
  EXPECT_EQ(window->focusWidget()->accessibleName(), "Smaller");
  // An action of another page brings its page.
  type("logarithmic x");
  QTest::keyClick(palette->field(), Qt::Key_Return);
  EXPECT_EQ(window->shown_page(), "monitor");
  EXPECT_TRUE(window->monitor()->charts()->view()->log_x());
  // Arrows go round and pass over what cannot be done; Escape changes nothing.
  type("do");
  const int rows = palette->model()->rowCount();
  QTest::keyClick(palette->field(), Qt::Key_Up);
  int last = rows - 1;
  while (!palette->model()->item(last)->enabled) --last;
  EXPECT_EQ(palette->list()->currentIndex().row(), last);
  QTest::keyClick(palette->field(), Qt::Key_Down);
  QSet<int> passed;
  for (int i = 0; i < rows; ++i) {
    passed.insert(palette->list()->currentIndex().row());
    EXPECT_TRUE(palette->model()->item(palette->list()->currentIndex().row())->enabled);
    QTest::keyClick(palette->field(), Qt::Key_Down);
  }
  EXPECT_LT(passed.size(), rows) << "undo cannot be done here";
  QTest::keyClick(palette->field(), Qt::Key_Escape);
  EXPECT_FALSE(palette->isVisible());
  type("no such thing at all");
  EXPECT_EQ(palette->model()->rowCount(), 0);
  QTest::keyClick(palette->field(), Qt::Key_Return);
  EXPECT_TRUE(palette->isVisible());
  QTest::mouseClick(window->monitor(), Qt::LeftButton);
  EXPECT_FALSE(palette->isVisible()) << "a click beside it closes it";
}

TEST_F(ShellActions, TenThousandRunsInThePaletteAreFound) {
  for (int n = 0; n < 10'000; ++n) workspace->put_run(sample_run(n, RunState::finished, 10));
  open();
  ASSERT_TRUE(wait_until([&] { return window->monitor()->runs()->rowCount() == 10'000; }, 120000));
  QTest::keyClick(window.get(), Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier);
  window->palette_sheet()->field()->setText(QStringLiteral("variant-9876"));
  EXPECT_TRUE(window->palette_sheet()->model()->index(0).data().toString().startsWith(QLatin1String("variant-9876 ")));
  EXPECT_LE(window->palette_sheet()->model()->rowCount(), PaletteModel::most_rows);
}

TEST_F(ShellActions, ShortcutsAreEditedWithAWarningAndRemembered) {
  QTemporaryDir folder;
  WindowOptions options = options_for(workspace);
  options.settings_file = folder.filePath(QStringLiteral("workbench.json"));
  put_running();
  open(options);
  ASSERT_TRUE(wait_until([&] { return window->settled(); }));
  window->actions_by_name()->action("tools.shortcuts")->trigger();
  auto* editor = window->findChild<ShortcutEditor*>();
  ASSERT_NE(editor, nullptr);
  QAbstractItemModelTester tester(editor->table()->model(), QAbstractItemModelTester::FailureReportingMode::Fatal);
  editor->choose("view.list");
  EXPECT_EQ(editor->chosen(), "view.list");
  EXPECT_FALSE(editor->assign_button()->isEnabled());
  EXPECT_FALSE(editor->reset_button()->isEnabled());
  QTest::keyClick(editor->keys(), Qt::Key_L, Qt::ControlModifier);
  // The field waits a moment whether more keys follow.
  EXPECT_TRUE(wait_until([&] { return editor->verdict().contains(QLatin1String("free")); }));
  editor->keys()->clear();
  QTest::keyClick(editor->keys(), Qt::Key_I, Qt::ControlModifier);
  EXPECT_TRUE(wait_until([&] { return editor->verdict().contains(QLatin1String("Inspector")); }));
  keep_picture(editor->grab().toImage(), QStringLiteral("shortcut-editor"));
  QTest::mouseClick(editor->assign_button(), Qt::LeftButton);
  ActionSet* actions = window->actions_by_name();
  EXPECT_EQ(actions->action("view.list")->shortcut(), QKeySequence("Ctrl+I"));
  EXPECT_TRUE(actions->action("view.inspector")->shortcut().isEmpty());
  editor->filter()->setText(QStringLiteral("changed"));
  EXPECT_EQ(editor->table()->model()->rowCount(), 2);
  editor->close();
  // The new keys work at once. Without a desktop nobody hands the focus back.
  window->activateWindow();
  ASSERT_TRUE(wait_until([&] { return QApplication::activeWindow() == window.get(); }));
  EXPECT_TRUE(window->monitor()->run_list()->isVisible());
  QTest::keyClick(window.get(), Qt::Key_I, Qt::ControlModifier);
  EXPECT_FALSE(window->monitor()->run_list()->isVisible());
  QTest::keyClick(window.get(), Qt::Key_I, Qt::ControlModifier);
  QSignalSpy finished(window.get(), &MainWindow::finished);
  window->close_without_asking();
  ASSERT_TRUE(wait_until([&] { return finished.count() == 1; }));
  workspace = std::make_shared<FakeWorkspace>();
  options.link = fake_link(workspace);
  options.keeper = nullptr;
  open(options);
  actions = window->actions_by_name();
  EXPECT_EQ(actions->action("view.list")->shortcut(), QKeySequence("Ctrl+I"));
  actions->action("tools.shortcuts")->trigger();
  editor = window->findChild<ShortcutEditor*>();
  QTest::mouseClick(editor->reset_all_button(), Qt::LeftButton);
  EXPECT_EQ(actions->action("view.list")->shortcut(), QKeySequence("Ctrl+B"));
  EXPECT_EQ(actions->action("view.inspector")->shortcut(), QKeySequence("Ctrl+I"));
}

TEST_F(ShellActions, HidingRunsIsUndone) {
  const RunSummary run = put(0, RunState::finished, 400);
  put(1, RunState::finished, 400);
  open_settled();
  RunListModel* runs = window->monitor()->runs();
  QAction* undo = window->actions_by_name()->action("edit.undo");
  QAction* redo = window->actions_by_name()->action("edit.redo");
  EXPECT_FALSE(undo->isEnabled());
  RunListView* list = window->monitor()->run_list();
  list->setCurrentIndex(list->order()->mapFromSource(runs->index(runs->row_of(run.id))));
  QTest::keyClick(list, Qt::Key_Space);
  EXPECT_FALSE(runs->is_shown(run.id));
  EXPECT_TRUE(undo->isEnabled());
  EXPECT_TRUE(plain_text(undo->text()).contains(QLatin1String("hide first-run"))) << undo->text().toStdString();
  QTest::keyClick(list, Qt::Key_Space, Qt::AltModifier);
  EXPECT_EQ(runs->shown().size(), 1u);
  QTest::keyClick(window.get(), Qt::Key_Z, Qt::ControlModifier);
  EXPECT_FALSE(runs->is_shown(run.id));
  EXPECT_EQ(runs->shown().size(), 1u);
  QTest::keyClick(window.get(), Qt::Key_Z, Qt::ControlModifier);
  EXPECT_EQ(runs->shown().size(), 2u);
  EXPECT_FALSE(undo->isEnabled());
  EXPECT_TRUE(redo->isEnabled());
  QTest::keyClick(window.get(), Qt::Key_Z, Qt::ControlModifier | Qt::ShiftModifier);
  EXPECT_FALSE(runs->is_shown(run.id));
}

TEST_F(ShellActions, TheCheatSheetNamesEveryKey) {
  put_running();
  open_settled();
  QTest::keyClick(window.get(), Qt::Key_F1);
  auto* sheet = window->findChild<QDialog*>(QStringLiteral("cheatSheet"));
  ASSERT_NE(sheet, nullptr);
  QStringList words;
  for (const QLabel* label : sheet->findChildren<QLabel*>()) words << label->text();
  EXPECT_LT(words.indexOf("File"), words.indexOf("View")) << "in the order of the menu bar";
  for (const ActionSet::Entry& entry : window->actions_by_name()->entries()) {
    if (entry.action->shortcut().isEmpty()) continue;
    EXPECT_TRUE(words.contains(plain_text(entry.action->text()))) << entry.id.toStdString();
    EXPECT_TRUE(words.contains(QKeySequence::listToString(entry.action->shortcuts(), QKeySequence::NativeText)));
  }
}

}  // namespace
}  // namespace stacklab::ui
