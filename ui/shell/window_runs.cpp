// The table of runs and the monitor beside it: what is asked for in one shows in the other.
#include "ui/shell/first_start.h"
#include "ui/shell/main_window.h"

namespace stacklab::ui {

void MainWindow::connect_runs() {
  RunListModel* list = monitor_->runs();
  const auto ids = [list](const QSet<std::int64_t>& numbers) {
    std::set<RunId> found;
    for (int row = 0; row < list->rowCount(); ++row)
      if (const RunSummary& run = list->run_at(row).summary; numbers.contains(run.number)) found.insert(run.id);
    return found;
  };
  connect(runs_page_, &RunsPage::run_chosen, this, [this](const RunId& run) { monitor_->show_run(run, std::nullopt); });
  connect(runs_page_, &RunsPage::event_chosen, this,
          [this](const RunId& run, qint64 step) { monitor_->show_run(run, step); });
  connect(runs_page_, &RunsPage::show_wanted, this, [this, list, ids](const QSet<std::int64_t>& numbers, bool shown) {
    std::set<RunId> next = list->shown();
    for (const RunId& id : ids(numbers)) {
      if (shown)
        next.insert(id);
      else
        next.erase(id);
    }
    monitor_->run_list()->change(shown ? tr("show curves") : tr("hide curves"), [&] { list->set_all_shown(next); });
  });
  connect(runs_page_, &RunsPage::overlay_wanted, this, [this, list, ids](const QSet<std::int64_t>& numbers) {
    const std::set<RunId> chosen = ids(numbers);
    if (chosen.empty()) return;
    monitor_->run_list()->change(tr("compare %1 runs").arg(chosen.size()), [&] { list->set_all_shown(chosen); });
    if (!chosen.contains(monitor_->selected())) monitor_->select(*chosen.begin());
    show_page(monitor_->objectName());
  });
  connect(runs_page_, &RunsPage::shown_restored, this, [this](const QSet<std::int64_t>& shown, std::int64_t highest) {
    restored_ = {shown, highest};
    if (snapshot_) restore_shown();
  });
  connect(list, &RunListModel::shown_changed, this, &MainWindow::tell_shown);
  // What is pinned, and which run others are held against, is the table's to know and to keep.
  connect(runs_page_, &RunsPage::marks_changed, this, [this, list] {
    const QSet<std::int64_t>& pinned = runs_page_->model()->pinned();
    list->set_marks({pinned.begin(), pinned.end()}, runs_page_->model()->baseline());
  });
  connect(monitor_, &MonitorPage::pin_wanted, runs_page_,
          [this](qint64 number) { runs_page_->toggle_pinned({number}); });
  connect(monitor_, &MonitorPage::clone_wanted, this, [this, list](const RunId& id) {
    const RunInfo* run = list->find(id);
    if (!run) return;
    show_page(runs_page_->objectName());
    runs_page_->clone(run->summary);
  });
  connect(monitor_, &MonitorPage::baseline_wanted, runs_page_, &RunsPage::toggle_baseline);
}

// The first run explains itself where the table will be.
void MainWindow::introduce() {
  if (first_start_) return;
  first_start_ = new FirstStart(link_.get(), monitor_->charts()->panel(QStringLiteral("loss"))->chart(), runs_page_);
  const auto offer = [this](const char* icon, const char* action, const QString& title, const QString& help) {
    QPushButton* link = first_start_->add_link(QLatin1String(icon), title, help);
    connect(link, &QPushButton::clicked, actions_->action(QLatin1String(action)), &QAction::trigger);
  };
  offer("document-open", "file.train_text", tr("Train on my own text"),
        tr("Choose a file. Tokenizer and tokens are made on the way."));
  offer("runs", "runs.new", tr("New run from a preset"),
        tr("Small ones for this computer, Stack-100M for a GPU, and the rungs of the ladder."));
  offer("document-send", "file.start_config", tr("Start a run from a config"),
        tr("A JSON file like those in experiments; a run that was stopped goes on."));
  offer("drive-harddisk", "file.open_workspace", tr("Open another workspace"),
        tr("A workspace is a folder that can be moved and copied."));
  offer("help-keyboard", "help.keys", tr("Keys and gestures"), tr("Everything can be done without a mouse."));
  const auto first = [this]() -> const RunInfo* {
    return snapshot_ && !snapshot_->runs.empty() ? &snapshot_->runs.front() : nullptr;
  };
  connect(first_start_->pause_button(), &QPushButton::clicked, this, [this, first] {
    if (const RunInfo* run = first()) runs_page_->control()->pause(run->summary.id);
  });
  connect(first_start_->stop_button(), &QPushButton::clicked, this, [this, first] {
    if (const RunInfo* run = first()) link_->stop(run->summary.id);
  });
  connect(first_start_->monitor_button(), &QPushButton::clicked, this, [this] { show_page(monitor_->objectName()); });
  connect(monitor_, &MonitorPage::journey_told, first_start_,
          [this](const Journey& journey, const QString& title, const QString& sentence, double left, double speed) {
            first_start_->show_journey(journey, title, sentence, monitor_->runs()->now(), left, speed);
          });
  connect(monitor_, &MonitorPage::introduction_closed, first_start_, [this] { runs_page_->close_cover(); });
  connect(runs_page_, &RunsPage::cover_closed, first_start_, [this] {
    first_start_->deleteLater();
    first_start_ = nullptr;
    monitor_->set_introduction(false);
  });
  if (system_) first_start_->show_system(*system_);
  runs_page_->set_cover(first_start_, tr("first start"));
  show_page(runs_page_->objectName());
}

// Runs that came since are on show as any new one.
void MainWindow::restore_shown() {
  RunListModel* list = monitor_->runs();
  std::set<RunId> next;
  for (int row = 0; row < list->rowCount(); ++row) {
    const RunSummary& run = list->run_at(row).summary;
    if (run.number <= restored_->highest ? restored_->shown.contains(run.number) : list->is_shown(run.id))
      next.insert(run.id);
  }
  restored_.reset();
  list->set_all_shown(next);
  tell_shown();
}

void MainWindow::tell_shown() {
  if (restored_) return;
  RunListModel* list = monitor_->runs();
  QSet<std::int64_t> shown, hidden;
  for (int row = 0; row < list->rowCount(); ++row) {
    const RunSummary& run = list->run_at(row).summary;
    (list->is_shown(run.id) ? shown : hidden).insert(run.number);
  }
  runs_page_->follow_shown(shown, hidden);
}

}  // namespace stacklab::ui
