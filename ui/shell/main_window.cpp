#include "ui/shell/main_window.h"

#include <QActionGroup>
#include <QApplication>
#include <QCloseEvent>
#include <QDir>
#include <QDockWidget>
#include <QFileDialog>
#include <QMessageBox>
#include <QStackedWidget>
#include <QStatusBar>
#include <QToolBar>

#include "ui/theme/icons.h"
#include "ui/theme/numbers.h"

namespace stacklab::ui {
namespace {

constexpr int dock_width = 300;
constexpr int slow_close_ms = 500;
constexpr int dock_needs_width = 1280, list_needs_width = 1100;

QString text(const std::string& s) { return QString::fromStdString(s); }

}  // namespace

MainWindow::MainWindow(WindowOptions options, QWidget* parent) : QMainWindow(parent), options_(std::move(options)) {
  QString note;
  settings_ = Settings::load(options_.settings_file, &note);
  if (!options_.for_pictures) {
    look().set_mode(settings_.theme);
    look().set_zoom(settings_.zoom);
  }
  const QString name = QDir(options_.workspace_path).dirName();
  setWindowTitle(tr("%1 – Stacklab").arg(name));
  setWindowIcon(QIcon(QStringLiteral(":/icons/stacklab.svg")));
  setAccessibleName(tr("Stacklab"));
  setMinimumSize(760, 520);

  link_ = std::make_unique<WorkspaceLink>(options_.link);
  monitor_ = new MonitorPage(link_.get(), this);
  monitor_->set_looks_steerable(options_.for_pictures);
  monitor_->charts()->view()->set_smoothing(settings_.smoothing);
  settings_page_ = new SettingsPage(this);
  problem_ = new Notice(this);
  pages_ = new QStackedWidget(this);
  pages_->addWidget(monitor_);
  pages_->addWidget(settings_page_);
  pages_->addWidget(problem_);
  setCentralWidget(pages_);
  // Nothing is focused at first: a ring appears with the first use of Tab.
  pages_->setFocusPolicy(Qt::ClickFocus);
  pages_->setFocus();
  status_ = new StatusStrip(name, QDir(options_.workspace_path).absolutePath(), this);
  statusBar()->addWidget(status_, 1);
  statusBar()->setSizeGripEnabled(false);
  statusBar()->setFixedHeight(metrics().status());
  build_rail();
  build_dock();
  build_menus();
  connect_link();

  connect(settings_page_, &SettingsPage::theme_chosen, this, &MainWindow::set_theme);
  connect(settings_page_, &SettingsPage::zoom_chosen, this, &MainWindow::set_zoom);
  connect(settings_page_, &SettingsPage::layout_reset, this, &MainWindow::reset_layout);
  connect(problem_->button(), &QPushButton::clicked, this, [this] {
    show_page(page_names().front());
    open();
  });
  connect(monitor_, &MonitorPage::message, status_, &StatusStrip::show_message);
  connect(monitor_, &MonitorPage::emptiness_changed, this, &MainWindow::fit_dock);
  connect(monitor_, &MonitorPage::start_requested, this, [this] {
    if (options_.first_run)
      submit_first_run();
    else
      choose_config();
  });
  connect(monitor_, &MonitorPage::steering_changed, this, [this] {
    stop_->setEnabled(monitor_->can_stop());
    resume_->setEnabled(monitor_->can_resume());
  });
  monitor_->set_start_texts(
      options_.first_run ? tr("The first run trains a small model on this computer in a few minutes, and shows how.")
                         : tr("A run is described by a config: a JSON file like those in experiments."),
      options_.first_run ? tr("Start the first run") : tr("Start a run from a config…"));

  resize(1400, 900);
  if (!settings_.geometry.isEmpty()) restoreGeometry(settings_.geometry);
  if (!settings_.layout.isEmpty()) restoreState(settings_.layout, Settings::version);
  if (!note.isEmpty()) status_->show_message(note);
}

MainWindow::~MainWindow() = default;

void MainWindow::connect_link() {
  connect(link_.get(), &WorkspaceLink::opened, this, &MainWindow::opened);
  connect(link_.get(), &WorkspaceLink::open_failed, this, [this](const QString& what, const QString& remedy) {
    open_error_ = remedy.isEmpty() ? what : tr("%1 (%2)").arg(what, remedy);
    show_problem(what, remedy);
    emit open_failed(open_error_);
  });
  connect(link_.get(), &WorkspaceLink::snapshot_ready, this, &MainWindow::take_snapshot);
  connect(link_.get(), &WorkspaceLink::system_ready, this, [this](const SystemInfoPtr& info) {
    system_ = info;
    status_->show_system(*info);
    settings_page_->show_system(*info);
  });
  connect(link_.get(), &WorkspaceLink::closed, this, [this] {
    done_ = true;
    if (farewell_) farewell_->hide();
    close();
    emit finished();
  });
}

void MainWindow::open() {
  open_error_.clear();
  link_->open();
}

void MainWindow::take_snapshot(const WorkspaceSnapshotPtr& snapshot) {
  snapshot_ = snapshot;
  status_->show_snapshot(*snapshot);
  if (first_run_decided_ || !snapshot->read_error.isEmpty()) return;
  first_run_decided_ = true;
  if (options_.first_run && options_.start_first_run && snapshot->runs.empty() && snapshot->jobs.empty())
    submit_first_run();
}

void MainWindow::submit_first_run() {
  monitor_->set_introduction(true, options_.first_run->data.corpus);
  monitor_->select_what_runs();
  link_->submit(*options_.first_run, options_.first_run_options);
}

void MainWindow::choose_config() {
  auto* dialog = new QFileDialog(this, tr("Start a run from a config"), QDir::currentPath(),
                                 tr("Configs (*.json);;All files (*)"));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setFileMode(QFileDialog::ExistingFile);
  connect(dialog, &QFileDialog::fileSelected, this, &MainWindow::start_config);
  dialog->open();
}

void MainWindow::start_config(const QString& file) {
  if (!options_.load_config) return;
  auto result = std::make_shared<Result<RunConfig>>(failed("not read"));
  link_->in_background([load = options_.load_config, path = file.toStdString(), result] { *result = load(path); },
                       [this, result] {
                         if (*result) {
                           SubmitOptions submit;
                           submit.resume = true;  // the same config goes on where it was
                           monitor_->select_what_runs();
                           link_->submit(**result, submit);
                         } else {
                           show_error(text(result->error().what), text(result->error().remedy));
                         }
                       });
}

void MainWindow::show_error(const QString& title, const QString& what) {
  auto* box = new QMessageBox(QMessageBox::NoIcon, tr("Stacklab"), title, QMessageBox::Ok, this);
  box->setAttribute(Qt::WA_DeleteOnClose);
  box->setInformativeText(what);
  box->open();
}

void MainWindow::show_problem(const QString& what, const QString& remedy) {
  problem_->set_texts(tr("The workspace cannot be opened."),
                      remedy.isEmpty() ? what : what + QStringLiteral("\n") + remedy, tr("Try again"));
  pages_->setCurrentWidget(problem_);
  fit_dock();
  problem_->button()->setFocus();
}

QStringList MainWindow::page_names() const { return {QStringLiteral("monitor"), QStringLiteral("settings")}; }

void MainWindow::show_page(const QString& name) {
  const int index = static_cast<int>(page_names().indexOf(name));
  if (index < 0) return;
  page_actions_->actions().at(index)->setChecked(true);
  pages_->setCurrentIndex(index);
  fit_dock();
}

void MainWindow::fit_dock() {
  dock_->setVisible(pages_->currentWidget() == monitor_ && !monitor_->is_empty() && inspector_shown_->isChecked() &&
                    !dock_hidden_by_width_);
}

QString MainWindow::trouble() const { return monitor_->trouble(); }

bool MainWindow::settled() const {
  if (!snapshot_ || (options_.link.system_info && !system_)) return false;
  return pages_->currentWidget() != monitor_ || monitor_->settled();
}

bool MainWindow::work_in_flight() const { return snapshot_ && !snapshot_->jobs.empty(); }

void MainWindow::closeEvent(QCloseEvent* event) {
  if (done_) {
    event->accept();
    return;
  }
  event->ignore();
  if (closing_) return;
  if (work_in_flight())
    ask_to_close();
  else
    begin_close();
}

void MainWindow::ask_to_close() {
  if (question_) {
    question_->raise();
    return;
  }
  const QString name = text(snapshot_->jobs.front()->name);
  question_ = new QMessageBox(QMessageBox::NoIcon, tr("Close Stacklab"),
                              tr("%1 is training. Stop it and close?").arg(name), QMessageBox::NoButton, this);
  question_->setObjectName(QStringLiteral("closeQuestion"));
  question_->setAttribute(Qt::WA_DeleteOnClose);
  question_->setInformativeText(tr("It finishes its step and saves; it can be resumed from there."));
  QPushButton* stop = question_->addButton(tr("Stop and close"), QMessageBox::AcceptRole);
  QPushButton* cancel = question_->addButton(tr("Cancel"), QMessageBox::RejectRole);
  question_->setDefaultButton(cancel);
  question_->setEscapeButton(cancel);
  for (QPushButton* button : {stop, cancel}) button->setAccessibleName(button->text());
  connect(stop, &QPushButton::clicked, this, &MainWindow::begin_close);
  question_->open();
}

void MainWindow::close_without_asking() { begin_close(); }

void MainWindow::begin_close() {
  if (closing_ || done_) return;
  closing_ = true;
  // Nothing modal may be in the way of the end.
  for (QWidget* top : QApplication::topLevelWidgets())
    if (top != this && top->isVisible() && qobject_cast<QDialog*>(top)) top->close();
  if (!options_.for_pictures) {
    settings_.zoom = look().zoom();
    settings_.smoothing = monitor_->charts()->view()->smoothing();
    settings_.geometry = saveGeometry();
    settings_.layout = saveState(Settings::version);
    settings_.save(options_.settings_file);
  }
  if (work_in_flight())
    show_farewell(tr("Finishing the step and saving…"),
                  tr("The window closes by itself when the checkpoint is written."));
  else
    QTimer::singleShot(slow_close_ms, this, [this] {
      if (!done_) show_farewell(tr("Closing the workspace…"), tr("Something there still takes its time."));
    });
  link_->close();
}

void MainWindow::show_farewell(const QString& fact, const QString& help) {
  farewell_ = new QDialog(this, Qt::Dialog | Qt::CustomizeWindowHint | Qt::WindowTitleHint);
  farewell_->setObjectName(QStringLiteral("farewell"));
  farewell_->setWindowTitle(tr("Closing"));
  farewell_->setWindowModality(Qt::WindowModal);
  auto* column = new QVBoxLayout(farewell_);
  column->setContentsMargins(24, 20, 24, 20);
  auto* fact_label = new TextLabel(TextRole::body, Token::text, true, farewell_);
  fact_label->set_full_text(fact);
  auto* help_label = new TextLabel(TextRole::body, Token::text2, false, farewell_);
  help_label->set_full_text(help);
  column->addWidget(fact_label);
  column->addWidget(help_label);
  farewell_->show();
}

void MainWindow::set_theme(ThemeMode mode) {
  settings_.theme = mode;
  override_theme(mode);
}

void MainWindow::override_theme(ThemeMode mode) {
  look().set_mode(mode);
  theme_actions_[mode]->setChecked(true);
  settings_page_->show_look();
}

void MainWindow::set_zoom(int percent) {
  look().set_zoom(percent);
  statusBar()->setFixedHeight(metrics().status());
}

void MainWindow::reset_layout() {
  look().set_zoom(100);
  inspector_shown_->setChecked(true);
  list_shown_->setChecked(true);
  resizeDocks({dock_}, {metrics().scaled(dock_width)}, Qt::Horizontal);
  status_->show_message(tr("The layout is as it was at first."));
}

void MainWindow::resizeEvent(QResizeEvent* event) {
  QMainWindow::resizeEvent(event);
  fit_to_width(event->size().width());
}

void MainWindow::fit_to_width(int width) {
  if (!dock_ || !inspector_shown_) return;
  const bool narrow = width < dock_needs_width;
  if (narrow != dock_hidden_by_width_) {
    dock_hidden_by_width_ = narrow;
    fit_dock();
  }
  const bool very_narrow = width < list_needs_width;
  if (very_narrow != list_hidden_by_width_) {
    list_hidden_by_width_ = very_narrow;
    monitor_->set_list_visible(!very_narrow && list_shown_->isChecked());
  }
}

void MainWindow::build_rail() {
  rail_ = new QToolBar(tr("Pages"), this);
  rail_->setObjectName(QStringLiteral("rail"));
  rail_->setMovable(false);
  rail_->setFloatable(false);
  rail_->setContextMenuPolicy(Qt::PreventContextMenu);
  rail_->setOrientation(Qt::Vertical);
  rail_->setToolButtonStyle(Qt::ToolButtonTextUnderIcon);
  rail_->setAccessibleName(tr("Pages"));
  page_actions_ = new QActionGroup(this);
  const auto page = [this](const QString& name, const QString& title, const QString& icon_name,
                           const QKeySequence& keys) {
    auto* action = new QAction(icon(icon_name, Token::text2), title, this);
    action->setCheckable(true);
    action->setShortcut(keys);
    action->setToolTip(tr("%1 (%2)").arg(title, keys.toString(QKeySequence::NativeText)));
    page_actions_->addAction(action);
    rail_->addAction(action);
    connect(action, &QAction::triggered, this, [this, name] { show_page(name); });
    return action;
  };
  page(QStringLiteral("monitor"), tr("Monitor"), QStringLiteral("monitor"), QKeySequence(tr("Ctrl+1")))
      ->setChecked(true);
  auto* spacer = new QWidget(rail_);
  spacer->setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Expanding);
  rail_->addWidget(spacer);
  page(QStringLiteral("settings"), tr("Settings"), QStringLiteral("preferences-system"), QKeySequence(tr("Ctrl+,")));
  const auto sizes = [this] {
    rail_->setIconSize(QSize(1, 1) * metrics().scaled(18));
    for (QAction* action : page_actions_->actions())
      if (QWidget* button = rail_->widgetForAction(action)) {
        button->setFixedSize(metrics().scaled(64), metrics().scaled(50));
        button->setAccessibleName(action->text());
        button->setFocusPolicy(Qt::TabFocus);
      }
    rail_->setFixedWidth(metrics().scaled(76));
  };
  sizes();
  connect(&look(), &Look::changed, this, sizes);
  addToolBar(Qt::LeftToolBarArea, rail_);
}

void MainWindow::build_dock() {
  dock_ = new QDockWidget(tr("Inspector"), this);
  dock_->setObjectName(QStringLiteral("inspectorDock"));
  dock_->setFeatures(QDockWidget::NoDockWidgetFeatures);
  dock_->setTitleBarWidget(new QWidget(dock_));  // the tabs are its title
  dock_->setWidget(monitor_->inspector());
  dock_->setMinimumWidth(240);
  dock_->setAccessibleName(tr("Inspector"));
  addDockWidget(Qt::RightDockWidgetArea, dock_);
  setCorner(Qt::TopRightCorner, Qt::RightDockWidgetArea);
  setCorner(Qt::BottomRightCorner, Qt::RightDockWidgetArea);
  resizeDocks({dock_}, {metrics().scaled(dock_width)}, Qt::Horizontal);
}

}  // namespace stacklab::ui

#include <moc_main_window.cpp>
