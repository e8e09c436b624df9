// The shell's own actions; and menus, palette and corner, which are read off all actions.
#include <QActionGroup>
#include <QApplication>
#include <QHBoxLayout>
#include <QMenu>
#include <QMenuBar>
#include <QMetaMethod>
#include <QUndoStack>

#include "ui/models/state_look.h"
#include "ui/shell/command_palette.h"
#include "ui/shell/dialogs.h"
#include "ui/shell/main_window.h"
#include "ui/shell/notice_panel.h"
#include "ui/shell/recents_model.h"
#include "ui/shell/shortcut_editor.h"
#include "ui/theme/icons.h"

namespace stacklab::ui {
namespace {

constexpr int zoom_step = 10;
const char* const recents_after = "file.open_workspace";
const char* const perspectives_after = "view.save_perspective";

}  // namespace

void MainWindow::build_actions() {
  const QString file = tr("&File"), edit = tr("&Edit"), view = tr("&View"), tools = tr("&Tools"),
                window = tr("&Window"), help = tr("&Help");
  const auto add = [this](const char* id, const QString& menu, const QString& text, const char* keys,
                          std::function<void()> call) {
    return actions_->add(QLatin1String(id), menu, text, QLatin1String(keys), std::move(call));
  };
  const auto add_switch = [&](const char* id, const QString& menu, const QString& text, const char* keys) {
    QAction* action = add(id, menu, text, keys, {});
    action->setCheckable(true);
    action->setChecked(true);
    return action;
  };

  add("file.start_config", file, tr("Start a run from a &config…"), "Ctrl+O", [this] {
    choose_config();
  })->setEnabled(static_cast<bool>(options_.load_config));
  add("file.train_text", file, tr("&Train on my own text…"), "Ctrl+Shift+T", [this] { choose_text(); });
  add("file.open_workspace", file, tr("Open a &workspace…"), "Ctrl+Shift+O", [this] { choose_workspace(); });

  const auto undoing = [this, edit](const char* id, const QString& plain, const QString& with, const char* keys,
                                    void (QUndoStack::*go)(), bool (QUndoStack::*can)() const,
                                    QString (QUndoStack::*what)() const) {
    QAction* action =
        actions_->add(QLatin1String(id), edit, plain, QLatin1String(keys), [this, go] { (undo_->*go)(); });
    const auto update = [this, action, plain, with, can, what] {
      action->setEnabled((undo_->*can)());
      action->setText(action->isEnabled() ? with.arg((undo_->*what)().left(60).replace(QLatin1Char('&'), "&&"))
                                          : plain);
    };
    update();
    connect(undo_, &QUndoStack::indexChanged, action, update);
    connect(undo_, &QUndoStack::cleanChanged, action, update);
  };
  undoing("edit.undo", tr("&Undo"), tr("&Undo: %1"), "Ctrl+Z", &QUndoStack::undo, &QUndoStack::canUndo,
          &QUndoStack::undoText);
  undoing("edit.redo", tr("&Redo"), tr("&Redo: %1"), "Ctrl+Shift+Z", &QUndoStack::redo, &QUndoStack::canRedo,
          &QUndoStack::redoText);

  // After the pages, which the rail has added.
  actions_->add_gap(view);
  inspector_shown_ = add_switch("view.inspector", view, tr("&Inspector"), "Ctrl+I");
  connect(inspector_shown_, &QAction::toggled, this, [this](bool on) {
    // Asked for by hand, it also shows in a narrow window.
    if (on) dock_opened_ = true;
    fit_dock();
  });
  list_shown_ = add_switch("view.list", view, tr("&Run list"), "Ctrl+B");
  connect(list_shown_, &QAction::toggled, this, [this](bool on) {
    for (Page* page : page_list_) page->set_list_visible(on);
  });
  add("view.save_perspective", view, tr("Save &perspective…"), "", [this] { ask_perspective_name(); });
  actions_->add_gap(view);
  const QString themes = view + QLatin1Char('|') + tr("&Theme");
  auto* group = new QActionGroup(this);
  for (const auto& [mode, id, name] : {std::tuple{ThemeMode::follow, "view.theme.follow", tr("&Follow the desktop")},
                                       {ThemeMode::light, "view.theme.light", tr("&Light")},
                                       {ThemeMode::dark, "view.theme.dark", tr("&Dark")}}) {
    QAction* action = add(id, themes, name, "", [this, chosen = mode] { set_theme(chosen); });
    action->setCheckable(true);
    action->setChecked(look().mode() == mode);
    group->addAction(action);
    theme_actions_[mode] = action;
  }
  // Another window may have changed it.
  connect(&look(), &Look::changed, this, [this] { theme_actions_[look().mode()]->setChecked(true); });
  add("view.larger_text", view, tr("&Larger text"), "Ctrl++ Ctrl+=", [this] { set_zoom(look().zoom() + zoom_step); });
  add("view.smaller_text", view, tr("&Smaller text"), "Ctrl+-", [this] { set_zoom(look().zoom() - zoom_step); });
  add("view.normal_text", view, tr("&Normal text"), "Ctrl+0", [this] { set_zoom(100); });
  actions_->add_gap(view);
  add("view.reset_layout", view, tr("Layout as at &first"), "", [this] { reset_layout(); });

  for (Page* page : page_list_) page->add_actions(*actions_);

  add("tools.palette", tools, tr("&Search runs and actions…"), "Ctrl+Shift+P", [this] { open_palette(); });
  add("tools.notifications", tools, tr("&Notifications"), "Ctrl+Shift+N", [this] { notice_panel_->open(bell_); });
  add("tools.shortcuts", tools, tr("&Keyboard shortcuts…"), "", [this] { edit_shortcuts(); });
  add("window.new", window, tr("&New window"), "Ctrl+N", [this] { emit window_wanted(); });
  add("window.close", window, tr("&Close window"), "Ctrl+W", [this] { close(); });
  add("help.keys", help, tr("&Keys and gestures"), "F1", [this] {
    QStringList menus;
    for (const QAction* menu : menuBar()->actions()) menus << menu->text();
    make_cheat_sheet(*actions_, menus, this)->open();
  });
  add("help.about", help, tr("&About Stacklab"), "", [this] { make_about(system_.get(), this)->open(); });
  actions_->add_gap(file);
  add("file.quit", file, tr("&Quit"), "Ctrl+Q", [this] {
    if (isSignalConnected(QMetaMethod::fromSignal(&MainWindow::quit_wanted)))
      emit quit_wanted();
    else
      close();
  });
  connect(actions_, &ActionSet::edited, this,
          [this] { keeper()->change([this](Settings& s) { s.shortcuts = actions_->overrides(); }); });
}

void MainWindow::build_menus() {
  QMap<QString, QMenu*> menus;
  for (const char* title : {QT_TR_NOOP("&File"), QT_TR_NOOP("&Edit"), QT_TR_NOOP("&View"), QT_TR_NOOP("&Run"),
                            QT_TR_NOOP("&Chart"), QT_TR_NOOP("&Tools"), QT_TR_NOOP("&Window"), QT_TR_NOOP("&Help")}) {
    const QString text = tr(title);
    const auto& all = actions_->entries();
    if (std::none_of(all.begin(), all.end(), [&](const auto& e) { return e.menu.split('|').front() == text; }))
      continue;
    menus[text] = menuBar()->addMenu(text);
  }
  for (const ActionSet::Entry& entry : actions_->entries()) {
    const QStringList path = entry.menu.split(QLatin1Char('|'));
    QMenu* menu = menus.value(path.front());
    if (!menu) menu = menus[path.front()] = menuBar()->addMenu(path.front());  // a page's own
    if (entry.gap) menu->addSeparator();
    if (path.size() > 1) {
      QMenu*& below = menus[entry.menu];
      if (!below) below = menu->addMenu(path.back());
      menu = below;
    }
    menu->addAction(entry.action);
    if (entry.id == QLatin1String(recents_after)) {
      QMenu* recent = menu->addMenu(tr("Open &recent"));
      connect(recent, &QMenu::aboutToShow, this, [this, recent] { fill_recents(recent); });
    } else if (entry.id == QLatin1String(perspectives_after)) {
      QMenu* named = menu->addMenu(tr("Perspecti&ves"));
      connect(named, &QMenu::aboutToShow, this, [this, named] { fill_perspectives(named); });
    }
  }
}

void MainWindow::fill_recents(QMenu* menu) {
  menu->clear();
  menu->setToolTipsVisible(true);
  for (int row = 0; row < recents_->rowCount(); ++row) {
    const Recent recent = recents_->at(row);
    const QString title = recents_->index(row).data().toString().left(80).replace(QLatin1Char('&'), "&&");
    QAction* action = menu->addAction(row < 9 ? QStringLiteral("&%1  %2").arg(row + 1).arg(title) : title);
    action->setToolTip(recent.path);
    connect(action, &QAction::triggered, this, [this, recent] { open_recent(recent); });
  }
  if (menu->isEmpty()) menu->addAction(tr("Nothing has been opened yet"))->setEnabled(false);
  menu->addSeparator();
  QAction* clear = menu->addAction(tr("&Forget all of them"));
  clear->setEnabled(recents_->rowCount() > 0);
  connect(clear, &QAction::triggered, recents_, &RecentsModel::clear);
}

void MainWindow::fill_perspectives(QMenu* menu) {
  menu->clear();
  const auto offer = [&](const QString& name, const Arrangement& to) {
    QString title = name;
    connect(menu->addAction(title.replace(QLatin1Char('&'), "&&")), &QAction::triggered, this,
            [this, to] { arrange(to); });
  };
  offer(tr("Everything"), {});
  Arrangement panels;
  panels.inspector = panels.list = false;
  offer(tr("Panels alone"), panels);
  const QList<Perspective> named = keeper()->layouts().perspectives;
  if (named.isEmpty()) return;
  menu->addSeparator();
  for (const Perspective& one : named) offer(one.name, one.arrangement);
  QMenu* remove = menu->addMenu(tr("&Delete"));
  for (const Perspective& one : named) {
    QString title = one.name;
    connect(remove->addAction(title.replace(QLatin1Char('&'), "&&")), &QAction::triggered, this,
            [this, name = one.name] { remove_perspective(name); });
  }
}

void MainWindow::build_corner() {
  auto* corner = new QWidget(menuBar());
  auto* row = new QHBoxLayout(corner);
  row->setContentsMargins(0, 2, 8, 2);
  row->setSpacing(6);
  auto* field = new QPushButton(corner);
  field->setObjectName(QStringLiteral("paletteField"));
  field->setAccessibleName(tr("Search runs and actions"));
  field->setFocusPolicy(Qt::TabFocus);
  auto* inside = new QHBoxLayout(field);
  inside->setContentsMargins(8, 0, 8, 0);
  auto* lens = new QLabel(field);
  auto* words = new TextLabel(TextRole::secondary, Token::text3, false, field);
  words->set_full_text(tr("Search runs and actions"));
  auto* keys = new TextLabel(TextRole::small, Token::text3, false, field);
  inside->addWidget(lens);
  inside->addWidget(words);
  inside->addStretch();
  inside->addWidget(keys);
  for (QWidget* widget : std::initializer_list<QWidget*>{lens, words, keys})
    widget->setAttribute(Qt::WA_TransparentForMouseEvents);
  palette_field_ = field;
  bell_ = new Bell(notices_, corner);
  row->addWidget(field);
  row->addWidget(bell_);
  palette_ = new CommandPalette(this);
  notice_panel_ = new NoticePanel(notices_, this);
  connect(field, &QPushButton::clicked, this, &MainWindow::open_palette);
  connect(bell_, &QToolButton::clicked, this, [this] { notice_panel_->open(bell_); });
  const auto restyle = [this, field, lens, keys] {
    const QIcon glass = icon(QStringLiteral("edit-find"), Token::text3);
    lens->setPixmap(glass.pixmap(QSize(1, 1) * metrics().scaled(14), devicePixelRatioF()));
    field->setFixedSize(metrics().scaled(300), metrics().small_control());
    bell_->setFixedSize(metrics().scaled(54), metrics().small_control());
    keys->set_full_text(keys_text(actions_->action(QStringLiteral("tools.palette"))));
    menuBar()->setFixedHeight(metrics().menu());
  };
  restyle();
  connect(&look(), &Look::changed, this, restyle);
  connect(actions_, &ActionSet::keys_changed, this, restyle);
  menuBar()->setCornerWidget(corner);
}

std::vector<PaletteItem> MainWindow::palette_items() {
  std::vector<PaletteItem> items;
  for (const ActionSet::Entry& entry : actions_->entries()) {
    if (entry.id == QLatin1String("tools.palette")) continue;
    PaletteItem item;
    item.id = entry.id;
    item.title = plain_text(entry.action->text());
    item.note = menu_text(entry.menu);
    if (entry.action->isCheckable() && !entry.action->actionGroup())
      item.note += entry.action->isChecked() ? tr(", on") : tr(", off");
    if (!entry.action->isEnabled() && !entry.action->statusTip().isEmpty()) item.note = entry.action->statusTip();
    item.keys = keys_text(entry.action);
    item.enabled = entry.action->isEnabled();
    item.call = [action = QPointer<QAction>(entry.action)] {
      if (action) action->trigger();
    };
    items.push_back(std::move(item));
  }
  for (const Perspective& one : keeper()->layouts().perspectives)
    items.push_back({PaletteItem::Kind::action,
                     QStringLiteral("perspective.") + one.name,
                     tr("Perspective: %1").arg(one.name),
                     tr("View"),
                     {},
                     true,
                     -1,
                     [this, to = one.arrangement] { arrange(to); }});
  for (int row = 0; row < recents_->rowCount(); ++row) {
    const Recent recent = recents_->at(row);
    items.push_back({PaletteItem::Kind::action,
                     QStringLiteral("recent.") + recent.path,
                     recent.kind == Recent::Kind::workspace
                         ? tr("Open the workspace %1").arg(recents_->index(row).data().toString())
                         : tr("Start a run from %1").arg(recents_->index(row).data().toString()),
                     recent.path,
                     {},
                     true,
                     -1,
                     [this, recent] { open_recent(recent); }});
  }
  for (const SettingsPage::Item& setting : settings_page_->items())
    items.push_back({PaletteItem::Kind::setting,
                     QStringLiteral("setting.") + setting.title,
                     setting.title,
                     tr("Settings, %1").arg(setting.section),
                     {},
                     true,
                     -1,
                     [this, title = setting.title] {
                       show_page(QStringLiteral("settings"));
                       settings_page_->reveal(title);
                     }});
  // The newest first.
  if (snapshot_) {
    for (auto run = snapshot_->runs.rbegin(); run != snapshot_->runs.rend(); ++run) {
      const QString id = QString::fromStdString(run->summary.id);
      items.push_back({PaletteItem::Kind::run,
                       QStringLiteral("run.") + id,
                       QString::fromStdString(run->summary.name) + QStringLiteral(" \u200E") + id.left(8),
                       look_of(*run).word,
                       {},
                       true,
                       run->summary.number,
                       [this, run_id = run->summary.id] { monitor_->show_run(run_id, std::nullopt); }});
    }
  }
  return items;
}

void MainWindow::open_palette() { palette_->open(palette_field_, palette_items()); }

void MainWindow::edit_shortcuts() {
  auto* editor = new ShortcutEditor(actions_, this);
  editor->setAttribute(Qt::WA_DeleteOnClose);
  editor->open();
}

}  // namespace stacklab::ui
