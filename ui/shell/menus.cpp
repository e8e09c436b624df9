// The menus of the window. Every action is here with its shortcut; the cheat sheet is read off them.
#include <QActionGroup>
#include <QApplication>
#include <QDialog>
#include <QDockWidget>
#include <QGridLayout>
#include <QMenuBar>
#include <QMessageBox>
#include <QScrollArea>
#include <QStackedWidget>

#include "ui/shell/main_window.h"

namespace stacklab::ui {

QAction* MainWindow::add_action(QMenu* menu, const QString& text, const QKeySequence& shortcut,
                                std::function<void()> call) {
  QAction* action = menu->addAction(text);
  if (!shortcut.isEmpty()) action->setShortcut(shortcut);
  if (call) connect(action, &QAction::triggered, this, [call = std::move(call)] { call(); });
  return action;
}

void MainWindow::build_menus() {
  SharedView* view = monitor_->charts()->view();
  const auto keys = [](const char* text) { return QKeySequence(QString::fromLatin1(text)); };

  QMenu* file = menuBar()->addMenu(tr("&File"));
  QAction* start = add_action(file, tr("Start a run from a &config…"), QKeySequence::Open, [this] { choose_config(); });
  start->setEnabled(static_cast<bool>(options_.load_config));
  file->addSeparator();
  add_action(file, tr("Save panels as &picture…"), keys("Ctrl+Shift+S"), [this] { monitor_->ask_export_picture(); });
  add_action(file, tr("Save visible &values…"), keys("Ctrl+Shift+E"), [this] { monitor_->ask_export_values(); });
  file->addSeparator();
  add_action(file, tr("&Quit"), QKeySequence::Quit, [this] { close(); });

  QMenu* view_menu = menuBar()->addMenu(tr("&View"));
  view_menu->addActions(page_actions_->actions());
  view_menu->addSeparator();
  inspector_shown_ = add_action(view_menu, tr("&Inspector"), keys("Ctrl+I"), {});
  inspector_shown_->setCheckable(true);
  inspector_shown_->setChecked(true);
  connect(inspector_shown_, &QAction::toggled, this, [this](bool on) {
    // Asked for by hand, it also shows in a narrow window.
    dock_hidden_by_width_ = dock_hidden_by_width_ && !on;
    fit_dock();
  });
  list_shown_ = add_action(view_menu, tr("&Run list"), keys("Ctrl+B"), {});
  list_shown_->setCheckable(true);
  list_shown_->setChecked(true);
  connect(list_shown_, &QAction::toggled, monitor_, &MonitorPage::set_list_visible);
  view_menu->addSeparator();
  QMenu* themes = view_menu->addMenu(tr("&Theme"));
  auto* group = new QActionGroup(this);
  for (const auto& [mode, name] : {std::pair{ThemeMode::follow, tr("&Follow the desktop")},
                                   {ThemeMode::light, tr("&Light")},
                                   {ThemeMode::dark, tr("&Dark")}}) {
    QAction* action = add_action(themes, name, {}, [this, chosen = mode] { set_theme(chosen); });
    action->setCheckable(true);
    action->setChecked(look().mode() == mode);
    group->addAction(action);
    theme_actions_[mode] = action;
  }
  QAction* larger = add_action(view_menu, tr("&Larger text"), {}, [this] { set_zoom(look().zoom() + 10); });
  larger->setShortcuts({keys("Ctrl++"), keys("Ctrl+=")});
  add_action(view_menu, tr("&Smaller text"), keys("Ctrl+-"), [this] { set_zoom(look().zoom() - 10); });
  add_action(view_menu, tr("&Normal text"), keys("Ctrl+0"), [this] { set_zoom(100); });

  QMenu* run = menuBar()->addMenu(tr("&Run"));
  stop_ = add_action(run, tr("&Stop"), keys("Ctrl+."), [this] { monitor_->stop_selected(); });
  resume_ = add_action(run, tr("&Resume"), keys("Ctrl+R"), [this] { monitor_->resume_selected(); });
  stop_->setEnabled(false);
  resume_->setEnabled(false);

  QMenu* chart = menuBar()->addMenu(tr("&Chart"));
  add_action(chart, tr("&Back to the view before"), keys("Alt+Left"), [view] { view->back(); });
  add_action(chart, tr("&Forward to the next view"), keys("Alt+Right"), [view] { view->forward(); });
  add_action(chart, tr("Show &everything"), keys("Ctrl+Home"), [view] { view->reset(); });
  chart->addSeparator();
  QAction* log_x = add_action(chart, tr("Logarithmic &x axis"), keys("Ctrl+Shift+X"), {});
  QAction* log_y = add_action(chart, tr("Logarithmic &y axis of the loss"), keys("Ctrl+Shift+Y"), {});
  QAction* raw = add_action(chart, tr("&Raw values behind the smoothed"), keys("Ctrl+Shift+R"), {});
  QAction* robust = add_action(chart, tr("Ro&bust range"), keys("Ctrl+Shift+B"), {});
  for (QAction* action : {log_x, log_y, raw, robust}) action->setCheckable(true);
  raw->setChecked(view->raw_shown());
  ChartPanel* loss = monitor_->charts()->panels().front();
  connect(log_x, &QAction::toggled, view, &SharedView::set_log_x);
  connect(log_y, &QAction::toggled, loss, &ChartPanel::set_log_y);
  connect(raw, &QAction::toggled, view, &SharedView::set_raw_shown);
  connect(robust, &QAction::toggled, view, &SharedView::set_robust);
  connect(view, &SharedView::changed, this, [view, log_x, raw, robust] {
    log_x->setChecked(view->log_x());
    raw->setChecked(view->raw_shown());
    robust->setChecked(view->robust());
  });
  connect(loss, &ChartPanel::log_y_changed, log_y, &QAction::setChecked);
  chart->addSeparator();
  add_action(chart, tr("&Go to the first non-finite value"), keys("Ctrl+G"),
             [this] { monitor_->go_to_first_non_finite(); });

  QMenu* help = menuBar()->addMenu(tr("&Help"));
  add_action(help, tr("&Keys and gestures"), QKeySequence::HelpContents, [this] { show_cheat_sheet(); });
  add_action(help, tr("&About Stacklab"), {}, [this] { show_about(); });
}

void MainWindow::show_cheat_sheet() {
  auto* dialog = new QDialog(this);
  dialog->setObjectName(QStringLiteral("cheatSheet"));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setWindowTitle(tr("Keys and gestures"));
  auto* outer = new QVBoxLayout(dialog);
  auto* scroll = new QScrollArea(dialog);
  scroll->setWidgetResizable(true);
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  auto* body = new QWidget(scroll);
  auto* grid = new QGridLayout(body);
  grid->setHorizontalSpacing(24);
  grid->setVerticalSpacing(4);
  grid->setColumnStretch(1, 1);
  int line = 0;
  const auto heading = [&](const QString& text) {
    auto* label = new TextLabel(TextRole::body, Token::text, true, body);
    label->set_full_text(text);
    grid->addWidget(label, line++, 0, 1, 2);
  };
  const auto entry = [&](const QString& keys, const QString& what) {
    auto* left = new TextLabel(TextRole::body, Token::text2, false, body);
    left->set_full_text(keys);
    auto* right = new TextLabel(TextRole::body, Token::text, false, body);
    right->set_full_text(what);
    grid->addWidget(left, line, 0);
    grid->addWidget(right, line++, 1);
  };
  for (const QAction* menu : menuBar()->actions()) {
    bool titled = false;
    for (const QAction* action : menu->menu()->actions()) {
      if (action->shortcut().isEmpty()) continue;
      if (!titled) heading(menu->text().remove(QLatin1Char('&')));
      titled = true;
      entry(action->shortcut().toString(QKeySequence::NativeText), action->text().remove(QLatin1Char('&')));
    }
    if (titled) grid->setRowMinimumHeight(line++, 8);
  }
  heading(tr("In a panel"));
  entry(tr("Drag"), tr("zoom into the rectangle; a flat drag zooms along x"));
  entry(tr("Wheel"), tr("zoom along x at the cursor; with Shift along y"));
  entry(tr("Double click, Home"), tr("show everything"));
  entry(tr("Left, Right"), tr("move the crosshair by a point; with Shift by ten"));
  entry(tr("Plus, minus"), tr("zoom along x"));
  entry(tr("Right click, Menu"), tr("export, table, axes"));
  grid->setRowMinimumHeight(line++, 8);
  heading(tr("In the run list"));
  entry(tr("Click the line, Space"), tr("show or hide the run"));
  entry(tr("Alt+click, Alt+Space"), tr("show it alone; again: all"));
  grid->setRowStretch(line, 1);
  scroll->setWidget(body);
  outer->addWidget(scroll);
  auto* close = make_button(tr("Close"), {}, dialog);
  close->setDefault(true);
  connect(close, &QPushButton::clicked, dialog, &QDialog::close);
  outer->addWidget(close, 0, Qt::AlignRight);
  dialog->resize(metrics().scaled(600), metrics().scaled(660));
  dialog->open();
}

void MainWindow::show_about() {
  const QString version =
      system_ ? QString::fromStdString(system_->version + (system_->commit.empty() ? "" : ", " + system_->commit))
              : QString();
  auto* box =
      new QMessageBox(QMessageBox::NoIcon, tr("About Stacklab"), tr("Stacklab %1").arg(version), QMessageBox::Ok, this);
  box->setAttribute(Qt::WA_DeleteOnClose);
  box->setInformativeText(
      tr("A workbench to plan, train and understand small language models on the computer you have.\nQt %1")
          .arg(QLatin1String(qVersion())));
  box->open();
}

}  // namespace stacklab::ui
