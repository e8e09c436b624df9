// What of the window is shown and where: dock and list by the width there is, perspectives, theme and text size.
#include <QDir>
#include <QDockWidget>
#include <QFileInfo>
#include <QInputDialog>
#include <QJsonDocument>
#include <QLineEdit>
#include <QResizeEvent>
#include <QStackedWidget>
#include <QUndoStack>

#include "ui/shell/dock_rail.h"
#include "ui/shell/main_window.h"

namespace stacklab::ui {
namespace {

constexpr int dock_width = 300;
constexpr int dock_needs_width = 1280, list_needs_width = 1100;
// What of these is text, and grows with it; and what charts need beside a dock that was opened all the same.
constexpr int side_width = 226 + 76, charts_need_width = 320;

int with_text(int width, int of_it_text) { return width + metrics().scaled(of_it_text) - of_it_text; }
constexpr QSize first_size(1400, 900);

// The list of perspectives before and after.
class PerspectivesCommand : public QUndoCommand {
 public:
  PerspectivesCommand(SettingsKeeper* keeper, const QString& what, QList<Perspective> after)
      : QUndoCommand(what), keeper_(keeper), before_(keeper->layouts().perspectives), after_(std::move(after)) {}
  void undo() override { put(before_); }
  void redo() override { put(after_); }

 private:
  void put(const QList<Perspective>& list) {
    keeper_->change_layouts([&](Layouts& l) { l.perspectives = list; });
  }
  SettingsKeeper* keeper_;  // outlives every window
  QList<Perspective> before_, after_;
};

}  // namespace

void MainWindow::restore_monitor() {
  const QString settings = keeper()->file();
  const QString file = settings.isEmpty() ? QString() : QFileInfo(settings).path() + QStringLiteral("/monitor.json");
  QString note;
  monitor_->restore(read_versioned(file, {MonitorPage::state_version}, &note));
  if (!note.isEmpty()) status_->show_message(note);
  connect(monitor_, &MonitorPage::state_changed, this, [this, file] {
    keeper()->files()->keep(file, [bytes = QJsonDocument(monitor_->state()).toJson()] { return bytes; });
  });
}

void MainWindow::restore_layout() {
  resize(first_size);
  resizeDocks({dock_}, {metrics().scaled(dock_width)}, Qt::Horizontal);
  const Layouts& layouts = keeper()->layouts();
  if (!layouts.geometry.isEmpty()) restoreGeometry(layouts.geometry);
  if (!options_.for_pictures) arrange(layouts.last);
}

Arrangement MainWindow::arrangement() const {
  return {shown_page(), saveState(Layouts::docks_version), inspector_shown_->isChecked(), list_shown_->isChecked()};
}

void MainWindow::arrange(const Arrangement& to) {
  if (!to.docks.isEmpty()) restoreState(to.docks, Layouts::docks_version);
  inspector_shown_->setChecked(to.inspector);
  list_shown_->setChecked(to.list);
  if (!to.page.isEmpty()) show_page(to.page);
  fit_to_width(width());
  fit_dock();
}

void MainWindow::save_perspective(const QString& name) {
  const QString trimmed = name.simplified().left(80);
  if (trimmed.isEmpty()) return;
  QList<Perspective> after = keeper()->layouts().perspectives;
  after.removeIf([&](const Perspective& p) { return p.name == trimmed; });
  while (after.size() >= Layouts::most_perspectives) after.removeFirst();
  after.append({trimmed, arrangement()});
  undo_->push(new PerspectivesCommand(keeper(), tr("save the perspective %1").arg(trimmed), after));
  status_->show_message(tr("The perspective %1 is in the View menu.").arg(trimmed));
}

void MainWindow::remove_perspective(const QString& name) {
  QList<Perspective> after = keeper()->layouts().perspectives;
  if (after.removeIf([&](const Perspective& p) { return p.name == name; }) == 0) return;
  undo_->push(new PerspectivesCommand(keeper(), tr("delete the perspective %1").arg(name), after));
  status_->show_message(tr("The perspective %1 is deleted; Undo brings it back.").arg(name));
}

void MainWindow::ask_perspective_name() {
  auto* dialog = new QInputDialog(this);
  dialog->setObjectName(QStringLiteral("perspectiveName"));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setWindowTitle(tr("Save perspective"));
  dialog->setLabelText(tr("Name of what is shown now (an existing one is replaced):"));
  dialog->setInputMode(QInputDialog::TextInput);
  for (QLineEdit* field : dialog->findChildren<QLineEdit*>()) field->setAccessibleName(tr("Name"));
  connect(dialog, &QInputDialog::textValueSelected, this, &MainWindow::save_perspective);
  dialog->open();
}

void MainWindow::set_theme(ThemeMode mode) {
  override_theme(mode);
  keeper()->change([mode](Settings& s) { s.theme = mode; });
}

void MainWindow::override_theme(ThemeMode mode) {
  look().set_mode(mode);
  theme_actions_[mode]->setChecked(true);
  settings_page_->show_look();
}

void MainWindow::set_zoom(int percent) {
  look().set_zoom(percent);
  fit_to_width(width());
  if (!options_.for_pictures) keeper()->change([](Settings& s) { s.zoom = look().zoom(); });
}

void MainWindow::reset_layout() {
  set_zoom(100);
  inspector_shown_->setChecked(true);
  list_shown_->setChecked(true);
  dock_opened_ = false;
  addToolBar(Qt::RightToolBarArea, dock_rail_);
  addDockWidget(Qt::RightDockWidgetArea, dock_);
  fit_dock();
  resizeDocks({dock_}, {metrics().scaled(dock_width)}, Qt::Horizontal);
  monitor_->charts()->grid()->set_layout(MonitorCharts::perspectives().front().second);
  keeper()->change_layouts([](Layouts& l) {
    l.geometry.clear();
    l.last = {};
  });
  status_->show_message(tr("The layout is as it was at first."));
}

void MainWindow::resizeEvent(QResizeEvent* event) {
  QMainWindow::resizeEvent(event);
  fit_to_width(event->size().width());
}

void MainWindow::fit_to_width(int width) {
  if (!dock_ || !inspector_shown_) return;
  narrow_ = width < with_text(dock_needs_width, side_width + dock_width);
  if (!narrow_) dock_opened_ = false;
  very_narrow_ = width < with_text(list_needs_width, side_width);
  fit_dock();
}

void MainWindow::fit_dock() {
  if (!dock_ || !inspector_shown_) return;
  auto* shown = qobject_cast<Page*>(pages_->currentWidget());
  const bool wanted = shown && shown->dock() && shown->dock_wanted() && inspector_shown_->isChecked();
  const bool open = wanted && (!narrow_ || dock_opened_);
  if (wanted) dock_pages_->setCurrentWidget(shown->dock());
  dock_->setVisible(open);
  dock_rail_->set_tabs(wanted ? shown->dock() : nullptr);
  dock_rail_->setVisible(wanted && narrow_);
  dock_rail_->show_open(open);
  const bool list_fits =
      !very_narrow_ && !(narrow_ && open && width() < metrics().scaled(side_width + dock_width + charts_need_width));
  for (Page* page : page_list_) page->set_list_visible(list_fits && list_shown_->isChecked());
}

void MainWindow::open_dock_tab(int tab) {
  auto* shown = qobject_cast<Page*>(pages_->currentWidget());
  if (!shown || !shown->dock()) return;
  // The tab that is open closes; another one takes its place.
  dock_opened_ = !(dock_opened_ && shown->dock()->currentIndex() == tab);
  shown->dock()->setCurrentIndex(tab);
  fit_dock();
}

}  // namespace stacklab::ui
