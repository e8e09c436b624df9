#include "ui/shell/main_window.h"

#include <QActionGroup>
#include <QCoreApplication>
#include <QDialog>
#include <QDir>
#include <QDockWidget>
#include <QStackedWidget>
#include <QStatusBar>
#include <QToolBar>
#include <QUndoStack>

#include "ui/shell/command_palette.h"
#include "ui/shell/dock_rail.h"
#include "ui/shell/first_start.h"
#include "ui/shell/notice_panel.h"
#include "ui/shell/pages.h"
#include "ui/shell/recents_model.h"
#include "ui/theme/icons.h"

namespace stacklab::ui {
namespace {

constexpr int least_width = 760, least_height = 520;

}  // namespace

MainWindow::MainWindow(WindowOptions options, QWidget* parent) : QMainWindow(parent), options_(std::move(options)) {
  if (!options_.keeper) options_.keeper = std::make_shared<SettingsKeeper>(options_.settings_file);
  const Settings& settings = keeper()->settings();
  if (!options_.for_pictures) {
    look().set_mode(settings.theme);
    look().set_zoom(settings.zoom);
  }
  const QString name = QDir(options_.workspace_path).dirName();
  setWindowTitle(tr("%1 – Stacklab").arg(name));
  setWindowIcon(QIcon(QStringLiteral(":/icons/stacklab.svg")));
  setAccessibleName(tr("Stacklab"));
  setMinimumSize(least_width, least_height);
  setAcceptDrops(true);

  link_ = std::make_unique<WorkspaceLink>(options_.link);
  actions_ = new ActionSet(this);
  undo_ = new QUndoStack(this);
  notices_ = new NoticeModel(this);
  notices_->set_quiet_kinds(settings.quiet_kinds);
  notices_->restore(settings.read_notices[QDir(options_.workspace_path).absolutePath()].toObject());
  recents_ = new RecentsModel(keeper(), this);
  status_ = new StatusStrip(name, QDir(options_.workspace_path).absolutePath(), this);
  statusBar()->addWidget(status_, 1);
  statusBar()->setSizeGripEnabled(false);
  statusBar()->setFixedHeight(metrics().status());
  connect(&look(), &Look::changed, this, [this] { statusBar()->setFixedHeight(metrics().status()); });
  build_pages();
  build_rail();
  build_dock();
  build_actions();
  build_menus();
  build_corner();
  actions_->restore(settings.shortcuts);
  connect_link();
  connect_pages();
  restore_layout();
  if (const QString note = keeper()->take_note(); !note.isEmpty()) status_->show_message(note);
}

MainWindow::~MainWindow() = default;

void MainWindow::build_pages() {
  pages_ = new QStackedWidget(this);
  for (const PageEntry& entry : page_entries()) {
    Page* page = entry.make(this);
    page->setObjectName(QLatin1String(entry.id));
    page_list_.push_back(page);
    pages_->addWidget(page);
    if (auto* monitor = qobject_cast<MonitorPage*>(page)) monitor_ = monitor;
    if (auto* runs = qobject_cast<RunsPage*>(page)) runs_page_ = runs;
    if (auto* settings = qobject_cast<SettingsPage*>(page)) settings_page_ = settings;
  }
  problem_ = new Notice(this);
  pages_->addWidget(problem_);
  setCentralWidget(pages_);
  // Nothing is focused at first: a ring appears with the first use of Tab.
  pages_->setFocusPolicy(Qt::ClickFocus);
  pages_->setFocus();
  drop_hint_ = new QLabel(this);
  drop_hint_->setObjectName(QStringLiteral("dropHint"));
  drop_hint_->setAlignment(Qt::AlignCenter);
  drop_hint_->hide();
}

void MainWindow::connect_pages() {
  for (Page* page : page_list_) {
    connect(page, &Page::message, status_, &StatusStrip::show_message);
    connect(page, &Page::dock_wanted_changed, this, &MainWindow::fit_dock);
    connect(page, &Page::shown_requested, this, [this, page] { show_page(page->objectName()); });
  }
  connect_runs();
  monitor_->set_looks_steerable(options_.for_pictures);
  monitor_->charts()->view()->set_smoothing(keeper()->settings().smoothing);
  restore_monitor();
  connect(monitor_, &MonitorPage::start_requested, this, [this] {
    if (options_.first_run)
      submit_first_run();
    else
      choose_config();
  });
  monitor_->set_start_texts(
      options_.first_run ? tr("The first run trains a small model on this computer in a few minutes, and shows how.")
                         : tr("A run is described by a config: a JSON file like those in experiments."),
      options_.first_run ? tr("Start the first run") : tr("Start a run from a config…"));
  connect(settings_page_, &SettingsPage::theme_chosen, this, &MainWindow::set_theme);
  connect(settings_page_, &SettingsPage::zoom_chosen, this, &MainWindow::set_zoom);
  connect(settings_page_, &SettingsPage::layout_reset, this, &MainWindow::reset_layout);
  connect(settings_page_, &SettingsPage::shortcuts_wanted, this, &MainWindow::edit_shortcuts);
  connect(problem_->button(), &QPushButton::clicked, this, [this] {
    for (const QString& name : page_names())  // the one that was on show
      if (actions_->action(QStringLiteral("page.") + name)->isChecked()) show_page(name);
    open();
  });
  connect(keeper(), &SettingsKeeper::changed, this, [this] {
    const Settings& now = keeper()->settings();
    notices_->set_quiet_kinds(now.quiet_kinds);
    // Another window may have changed them.
    if (now.shortcuts != actions_->overrides()) actions_->restore(now.shortcuts);
  });
  connect(keeper()->files(), &FileKeeper::failed, this, [this](const QString& what) {
    status_->show_message(what);
    Notification notice;
    notice.key = what;
    notice.kind = QStringLiteral("window");
    notice.glyph = Glyph::triangle_down;
    notice.color = Token::warn;
    notice.text = what;
    notice.unix_time = static_cast<double>(QDateTime::currentMSecsSinceEpoch()) / 1000;
    notices_->add({notice});
  });
  connect(notices_, &NoticeModel::unread_changed, this, [this] {
    const QString workspace = QDir(options_.workspace_path).absolutePath();
    const QJsonObject state = notices_->read_state();
    if (keeper()->settings().read_notices[workspace].toObject() == state) return;
    keeper()->change([&](Settings& s) { s.read_notices[workspace] = state; });
  });
  connect(notice_panel_, &NoticePanel::chosen, monitor_,
          [this](const RunId& run, qint64 step) { monitor_->show_run(run, step); });
}

void MainWindow::connect_link() {
  connect(link_.get(), &WorkspaceLink::opened, this, [this] {
    keeper()->add_recent({Recent::Kind::workspace, QDir(options_.workspace_path).absolutePath()});
    emit opened();
  });
  connect(link_.get(), &WorkspaceLink::open_failed, this, [this](const QString& what, const QString& remedy) {
    open_error_ = remedy.isEmpty() ? what : tr("%1 (%2)").arg(what, remedy);
    show_problem(what, remedy);
    emit open_failed(open_error_);
  });
  connect(link_.get(), &WorkspaceLink::snapshot_ready, this, &MainWindow::take_snapshot);
  connect(link_.get(), &WorkspaceLink::notices_ready, this, [this](const NoticesChunkPtr& chunk) {
    std::vector<Notification> all;
    for (const NoticesChunk::Row& row : chunk->rows) all.push_back(notice_of(row));
    notices_->add(std::move(all));
  });
  connect(link_.get(), &WorkspaceLink::system_ready, this, [this](const SystemInfoPtr& info) {
    system_ = info;
    status_->show_system(*info);
    settings_page_->show_system(*info);
    if (first_start_) first_start_->show_system(*info);
  });
  connect(link_.get(), &WorkspaceLink::closed, this, [this] {
    keeper()->files()->flush([self = QPointer<MainWindow>(this)] {
      if (!self) return;  // the keeper outlives its windows
      self->done_ = true;
      if (self->farewell_) self->farewell_->hide();
      self->close();
      emit self->finished();
    });
  });
}

void MainWindow::open() {
  open_error_.clear();
  link_->open();
}

void MainWindow::take_snapshot(const WorkspaceSnapshotPtr& snapshot) {
  if (snapshot_) {
    std::map<RunId, const RunInfo*> before;
    for (const RunInfo& run : snapshot_->runs)
      if (is_active(run.summary.state)) before[run.summary.id] = &run;
    std::vector<Notification> ended;
    for (const RunInfo& run : snapshot->runs)
      if (const auto was = before.find(run.summary.id); was != before.end())
        if (auto notice = notice_of_change(*was->second, run, snapshot->unix_time)) ended.push_back(std::move(*notice));
    for (std::size_t i = snapshot_->ended.size(); i < snapshot->ended.size(); ++i)
      if (auto notice = notice_of_outcome(snapshot->ended[i], snapshot->unix_time)) ended.push_back(std::move(*notice));
    notices_->add(std::move(ended));
  }
  snapshot_ = snapshot;
  if (restored_) restore_shown();
  // What went wrong is explained beside the curves.
  if (first_start_ && !snapshot->ended.empty() && snapshot->ended.back().error &&
      snapshot->ended.back().error->kind != Error::Kind::stopped) {
    runs_page_->close_cover();
    show_page(monitor_->objectName());
  }
  if (first_start_ && !snapshot->runs.empty())
    first_start_->show_run(snapshot->runs.front(), snapshot->unix_time, link_->can_steer());
  status_->show_snapshot(*snapshot);
  if (first_run_decided_ || !snapshot->read_error.isEmpty()) return;
  first_run_decided_ = true;
  if (options_.first_run && options_.start_first_run && snapshot->runs.empty() && snapshot->jobs.empty())
    submit_first_run();
}

void MainWindow::submit_first_run() {
  monitor_->set_introduction(true, options_.first_run->data.corpus);
  monitor_->select_what_runs();
  introduce();
  link_->submit(*options_.first_run, options_.first_run_options);
}

QStringList MainWindow::page_names() const {
  QStringList names;
  for (const PageEntry& entry : page_entries()) names << QLatin1String(entry.id);
  return names;
}

Page* MainWindow::page(const QString& name) const {
  const auto index = page_names().indexOf(name);
  return index < 0 ? nullptr : page_list_[static_cast<std::size_t>(index)];
}

QString MainWindow::shown_page() const {
  const auto* shown = qobject_cast<Page*>(pages_->currentWidget());
  return shown ? shown->objectName() : QString();
}

void MainWindow::show_page(const QString& name) {
  Page* const shown = page(name);
  if (!shown) return;
  actions_->action(QStringLiteral("page.") + name)->setChecked(true);
  pages_->setCurrentWidget(shown);
  fit_dock();
}

QString MainWindow::trouble() const { return monitor_->trouble(); }

bool MainWindow::settled() const {
  if (!snapshot_ || (options_.link.system_info && !system_)) return false;
  const auto* shown = qobject_cast<Page*>(pages_->currentWidget());
  return !shown || shown->settled();
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
  int group = page_entries().front().group;
  for (const PageEntry& entry : page_entries()) {
    if (entry.group != group && entry.group == bottom_group) {
      auto* spacer = new QWidget(rail_);
      spacer->setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Expanding);
      rail_->addWidget(spacer);
    } else if (entry.group != group) {
      rail_->addSeparator();
    }
    group = entry.group;
    const QString id = QLatin1String(entry.id);
    auto* action = new QAction(icon(QLatin1String(entry.icon), Token::text2),
                               QCoreApplication::translate("pages", entry.title), this);
    action->setCheckable(true);
    page_actions_->addAction(action);
    rail_->addAction(action);
    actions_->adopt(QStringLiteral("page.") + id, tr("&View"), action, keys_from(QLatin1String(entry.keys)));
    connect(action, &QAction::triggered, this, [this, id] { show_page(id); });
  }
  page_actions_->actions().front()->setChecked(true);
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
  dock_pages_ = new QStackedWidget(dock_);
  for (Page* page : page_list_)
    if (page->dock()) dock_pages_->addWidget(page->dock());
  dock_->setWidget(dock_pages_);
  dock_->setMinimumWidth(240);
  dock_->setAccessibleName(tr("Inspector"));
  addDockWidget(Qt::RightDockWidgetArea, dock_);
  setCorner(Qt::TopRightCorner, Qt::RightDockWidgetArea);
  setCorner(Qt::BottomRightCorner, Qt::RightDockWidgetArea);
  dock_rail_ = new DockRail(this);
  addToolBar(Qt::RightToolBarArea, dock_rail_);
  connect(dock_rail_, &DockRail::chosen, this, &MainWindow::open_dock_tab);
}

}  // namespace stacklab::ui

#include <moc_main_window.cpp>
