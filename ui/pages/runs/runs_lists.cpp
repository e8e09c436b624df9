// Actions, menus, and the views that the workspace keeps.
#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QFile>
#include <QFileDialog>
#include <QHeaderView>
#include <QInputDialog>
#include <QJsonArray>
#include <QMenu>
#include <algorithm>

#include "engine/base/atomic_file.h"
#include "engine/config/config_io.h"
#include "engine/service/launch_facts.h"
#include "ui/pages/runs/presets.h"
#include "ui/pages/runs/runs_page.h"
#include "ui/theme/numbers.h"

namespace stacklab::ui {
namespace {

constexpr std::int64_t largest_views = 1 << 20;

QString text(const std::string& s) { return QString::fromStdString(s); }

QJsonArray to_array(const QSet<std::int64_t>& numbers) {
  QJsonArray array;
  for (const std::int64_t n : numbers) array << static_cast<double>(n);
  return array;
}
QSet<std::int64_t> to_numbers(const QJsonArray& array) {
  QSet<std::int64_t> numbers;
  for (const QJsonValue& value : array) numbers.insert(static_cast<std::int64_t>(value.toDouble(-1)));
  return numbers;
}

QString counted(const QString& what, const std::vector<RunRowPtr>& rows) {
  return rows.size() == 1 ? RunsPage::tr("%1 %2").arg(what, text(rows[0]->summary.name))
                          : RunsPage::tr("%1 %2 runs").arg(what).arg(rows.size());
}

// Changes a set of numbers, and changes it back.
class MarkCommand : public QUndoCommand {
 public:
  MarkCommand(const QString& title, std::function<void()> forth, std::function<void()> back)
      : QUndoCommand(title), forth_(std::move(forth)), back_(std::move(back)) {}
  void redo() override { forth_(); }
  void undo() override { back_(); }

 private:
  std::function<void()> forth_, back_;
};

}  // namespace

void RunsPage::add_actions(ActionSet& actions) {
  const QString menu = tr("&Run");
  for (const RunActions::Entry& entry : actions_.entries()) {
    if (entry.gap) actions.add_gap(menu);
    QList<QKeySequence> keys = keys_from(QLatin1String(entry.keys));
    // Keys that somebody has already stay with them.
    keys.erase(
        std::remove_if(keys.begin(), keys.end(), [&](const QKeySequence& k) { return actions.holder(k) != nullptr; }),
        keys.end());
    actions.adopt(QLatin1String(entry.id), menu, entry.action, keys);
    if (entry.action == actions_.from_file) add_preset_actions(actions);
  }
}

void RunsPage::add_preset_actions(ActionSet& actions) {
  for (std::size_t i = 0; i < preset_actions_.size(); ++i)
    actions.adopt(QStringLiteral("runs.preset.") + presets()[i].id, tr("&Run|&Preset"), preset_actions_[i], {});
}

void RunsPage::connect_actions() {
  // Keys work on every page. What is chosen here is seen before anything is done to it.
  const auto on = [this](QAction* action, std::function<void()> call) {
    const bool anywhere = action == actions_.start || action == actions_.from_file || action == actions_.select_filter;
    connect(action, &QAction::triggered, this, [this, anywhere, call = std::move(call)] {
      const bool seen = isVisible();
      if (!seen) show_me();
      if (seen || anywhere) call();
    });
  };
  const auto each = [this](auto&& holds, auto&& call) {
    for (const RunRowPtr& row : chosen())
      if (holds(row->summary)) call(row->summary.id);
  };
  on(actions_.start, [this] {
    LaunchStart start;
    // What was done last is what one goes on from most often.
    if (const RunRowPtr row = model_->run(view_->current_number()))
      if (const auto config = parse_config(row->summary.config_json, row->summary.name))
        start = {*config, tr("a copy of %1").arg(text(row->summary.name)), {}, {}};
    launch(start);
  });
  on(actions_.from_file, [this] { open_file(); });
  on(actions_.clone, [this] {
    const auto rows = chosen();
    if (rows.size() == 1) clone(rows[0]->summary);
  });
  on(actions_.fork, [this] { fork_chosen(); });
  on(actions_.pause, [this, each] {
    each([](const RunSummary& s) { return s.state == RunState::running; },
         [this](const RunId& id) { control_->pause(id); });
  });
  on(actions_.stop, [this, each] {
    each([](const RunSummary& s) { return s.state == RunState::running || s.state == RunState::queued; },
         [this](const RunId& id) { control_->stop(id); });
  });
  on(actions_.checkpoint, [this, each] {
    each([](const RunSummary& s) { return s.state == RunState::running; },
         [this](const RunId& id) { control_->checkpoint(id); });
  });
  on(actions_.resume, [this, each] {
    each(
        [](const RunSummary& s) {
          return !is_active(s.state) && s.state != RunState::finished && s.state != RunState::queued;
        },
        [this](const RunId& id) { control_->resume(id); });
  });
  on(actions_.tags, [this] { edit_cell(QStringLiteral("tags")); });
  on(actions_.note, [this] { edit_cell(QStringLiteral("note")); });
  on(actions_.show, [this] { toggle_shown(view_->selected_numbers()); });
  on(actions_.pin, [this] { toggle_pinned(view_->selected_numbers()); });
  on(actions_.baseline, [this] {
    if (const auto rows = chosen(); rows.size() == 1) toggle_baseline(rows[0]->summary.number);
  });
  on(actions_.overlay, [this] {
    const auto numbers = view_->selected_numbers();
    if (numbers.size() > 1) emit overlay_wanted({numbers.begin(), numbers.end()});
  });
  on(actions_.compare, [this] {
    show_me();
    panel_->setCurrentIndex(1);
  });
  on(actions_.copy_id, [this] {
    if (const auto rows = chosen(); rows.size() == 1) QApplication::clipboard()->setText(text(rows[0]->summary.id));
  });
  on(actions_.archive, [this] { put_away(false); });
  on(actions_.remove, [this] { put_away(true); });
  on(actions_.select_filter, [this] {
    show_me();
    filter_->edit()->setFocus();
    filter_->edit()->selectAll();
  });
}

void RunsPage::put_away(bool trash) {
  const std::vector<RunRowPtr> rows = chosen();
  const bool back = std::all_of(rows.begin(), rows.end(), [&](const RunRowPtr& r) {
    return trash ? r->summary.deleted > 0 : r->summary.archived > 0;
  });
  std::vector<std::pair<RunId, RunEdit>> edits;
  for (const RunRowPtr& row : rows) {
    RunEdit edit;
    (trash ? edit.deleted : edit.archived) = !back;
    edits.emplace_back(row->summary.id, std::move(edit));
  }
  const QString what = trash ? (back ? tr("Bring back") : tr("Delete")) : (back ? tr("Bring back") : tr("Archive"));
  control_->edit(counted(what, rows), std::move(edits));
  put_away_ = put_away_ || !back;
  if (!back) emit message(tr("%1. Undo brings it back.").arg(counted(trash ? tr("Deleted") : tr("Archived"), rows)));
}

void RunsPage::open_file() {
  auto* dialog =
      new QFileDialog(this, tr("Start a run from a config"), QString(), tr("Configs (*.json);;All files (*)"));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setFileMode(QFileDialog::ExistingFile);
  connect(dialog, &QFileDialog::fileSelected, this, [this](const QString& file) {
    auto config = std::make_shared<Result<RunConfig>>(failed("not read"));
    link_->in_background([config, path = file.toStdString()] { *config = load_config(path); },
                         [self = QPointer<RunsPage>(this), config, file] {
                           if (!self) return;
                           if (!*config) return emit self->message(text(config->error().message()));
                           self->launch({**config, file.section(QLatin1Char('/'), -1), {}, {}});
                         });
  });
  dialog->open();
}

void RunsPage::clone(const RunSummary& run) {
  const auto config = parse_config(run.config_json, run.name);
  if (!config) return emit message(text(config.error().message()));
  launch({*config, tr("clone of %1").arg(text(run.name)), {}, {}});
}

void RunsPage::fork_chosen() {
  const auto rows = chosen();
  if (rows.size() != 1) return;
  const RunRowPtr row = rows[0];
  const auto config = parse_config(row->summary.config_json, row->summary.name);
  if (!config) return emit message(text(config.error().message()));
  LaunchStart start{*config, tr("fork of %1").arg(text(row->summary.name)), row->summary.id, {}};
  start.config.name += "-fork";
  auto steps = std::make_shared<std::vector<std::int64_t>>();
  link_->with_store(
      [steps, folder = row->summary.folder](StoreReader*, JobService* service) {
        if (service) *steps = checkpoint_steps(service->workspace(), folder);
      },
      [self = QPointer<RunsPage>(this), steps, start]() mutable {
        if (!self) return;
        if (steps->empty()) return emit self->message(tr("This run has no checkpoint to go on from."));
        start.checkpoints = *steps;
        self->launch(start);
      });
}

LaunchPlanner::Work RunsPage::plan_work() const {
  // A reader of its own: the planner's thread is not the link's.
  return [folder = workspace_](const RunConfig& config, const std::function<bool()>& given_up) -> Result<LaunchFacts> {
    if (folder.empty()) return failed("the workspace is not open");
    auto reader = JobService::open_reader(folder);
    return launch_facts(config, folder, reader ? reader->get() : nullptr, given_up);
  };
}

// One after the other, on a thread of its own: what those that wait will need.
void RunsPage::forecast_queue() {
  if (workspace_.empty() || (forecaster_ && forecaster_->is_busy())) return;
  QueueModel* queue = queue_->model();
  for (const QueueEntry& entry : queue->entries()) {
    if (queue->has_forecast(entry.run)) continue;
    const auto config = parse_config(entry.config_json, entry.name);
    if (!config) {
      queue->set_forecast(entry.run, {missing(), missing(), missing()});
      continue;
    }
    if (!forecaster_) {
      forecaster_ = new LaunchPlanner(plan_work(), this);
      connect(forecaster_, &LaunchPlanner::planned, this, [this](const LaunchPlanPtr& plan) {
        const LaunchFacts& f = plan->facts;
        const bool timed = !plan->error && f.seconds > 0;
        const auto range = [](const QString& least, const QString& most) {
          return least == most ? least : tr("%1 to %2").arg(least, most);
        };
        const double price = forecast_of_.run.budget.usd_per_hour / 3600;
        queue_->model()->set_forecast(
            forecast_run_,
            {plan->error || f.memory_error ? missing() : tr("%1 RAM").arg(format_bytes(f.memory_peak)),
             timed ? range(format_duration(f.seconds_least), format_duration(f.seconds_most)) : missing(),
             timed ? range(format_money(price * f.seconds_least), format_money(price * f.seconds_most)) : missing()});
        forecast_queue();
      });
    }
    forecast_of_ = *config;
    forecast_run_ = entry.run;
    return forecaster_->plan(*config);
  }
}

LaunchDialog* RunsPage::launch(LaunchStart start) {
  if (launch_) launch_->close();
  start.workspace = workspace_;
  launch_ = new LaunchDialog(control_, start, plan_work(), window());
  launch_->open();
  return launch_;
}

RunsViewState RunsPage::state() const {
  RunsViewState state;
  state.filter = filter_->text();
  const QHeaderView* header = view_->header();
  for (int visual = 0; visual < header->count(); ++visual) {
    const int logical = header->logicalIndex(visual);
    if (logical < 0 || logical >= model_->columnCount()) continue;
    const RunColumn& column = model_->columns()[static_cast<std::size_t>(logical)];
    state.columns << column.id;
    if (visual + 1 < header->count() && header->sectionSize(logical) != metrics().scaled(column.width))
      state.widths[column.id] = header->sectionSize(logical);
  }
  state.sort = sort_;
  state.descending = descending_;
  state.group = group_->currentData().toString();
  return state;
}

void RunsPage::apply(const RunsViewState& state) {
  applying_ = true;
  QStringList columns = state.columns.isEmpty() ? default_run_columns() : state.columns;
  if (!columns.contains(QStringLiteral("name"))) columns.prepend(QStringLiteral("name"));
  model_->set_columns(columns);
  for (int i = 0; i < view_->header()->count(); ++i) view_->header()->moveSection(view_->header()->visualIndex(i), i);
  view_->lay_out(state.widths);
  filter_->set_text(state.filter);
  set_group(state.group);
  sort_by(state.sort, state.descending);
  applying_ = false;
}

void RunsPage::set_columns(const QStringList& ids) {
  RunsViewState next = state();
  next.columns = ids;
  apply(next);
  keep_timer_.start(400);
}

void RunsPage::fill_column_menu(QMenu* menu) {
  menu->clear();
  const QStringList shown = state().columns;
  const auto add = [&](QMenu* to, const QString& id, const QString& title) {
    QAction* action = to->addAction(title);
    action->setCheckable(true);
    action->setChecked(shown.contains(id));
    action->setEnabled(id != QLatin1String("name"));
    connect(action, &QAction::toggled, this, [this, id](bool on) {
      QStringList ids = state().columns;
      if (on)
        ids << id;
      else
        ids.removeAll(id);
      set_columns(ids);
    });
  };
  for (const RunColumn& column : run_columns()) add(menu, column.id, column.title);
  QMenu* config = menu->addMenu(tr("Keys of the config"));
  std::map<QString, QMenu*> sections;
  for (const QString& key : config_column_ids()) {
    const QString section = key.section(QLatin1Char('.'), 0, 0);
    QMenu*& under = sections[section];
    if (!under) under = config->addMenu(section);
    add(under, key, key);
  }
  menu->addSeparator();
  connect(menu->addAction(tr("As at first")), &QAction::triggered, this, [this] {
    RunsViewState next = state();
    next.columns = default_run_columns();
    next.widths.clear();
    apply(next);
    keep_timer_.start(400);
  });
}

void RunsPage::fill_view_menu() {
  QMenu* menu = view_button_->menu();
  menu->clear();
  connect(menu->addAction(tr("All runs")), &QAction::triggered, this, [this] {
    RunsViewState next = state();
    next.filter.clear();
    next.group.clear();
    apply(next);
    view_button_->setText(tr("All runs"));
  });
  for (const auto& [name, view] : views_.named)
    connect(menu->addAction(QString(name).replace(QLatin1Char('&'), QStringLiteral("&&"))), &QAction::triggered, this,
            [this, name = name, view = view] {
              apply(view);
              view_button_->setText(name);
              keep_timer_.start(400);
            });
  menu->addSeparator();
  connect(menu->addAction(tr("Save this view…")), &QAction::triggered, this, [this] {
    auto* dialog = new QInputDialog(this);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setWindowTitle(tr("Save this view"));
    dialog->setLabelText(tr("Filter, columns, order and groups under the name:"));
    connect(dialog, &QInputDialog::textValueSelected, this, &RunsPage::save_view);
    dialog->open();
  });
  if (views_.named.empty()) return;
  QMenu* remove = menu->addMenu(tr("Remove"));
  for (const auto& view : views_.named)
    connect(remove->addAction(QString(view.first).replace(QLatin1Char('&'), QStringLiteral("&&"))), &QAction::triggered,
            this, [this, name = view.first] { remove_view(name); });
}

void RunsPage::save_view(const QString& name) {
  if (name.trimmed().isEmpty()) return;
  std::erase_if(views_.named, [&](const auto& view) { return view.first == name; });
  views_.named.emplace_back(name.trimmed(), state());
  view_button_->setText(name.trimmed());
  keep_views();
}

void RunsPage::remove_view(const QString& name) {
  const auto before = views_.named;
  const auto set = [self = QPointer<RunsPage>(this)](const auto& named) {
    if (!self) return;
    self->views_.named = named;
    self->keep_views();
  };
  auto after = before;
  std::erase_if(after, [&](const auto& view) { return view.first == name; });
  control_->undo_stack()->push(new MarkCommand(
      tr("Remove the view %1").arg(name), [set, after] { set(after); }, [set, before] { set(before); }));
}

void RunsPage::load_views() {
  struct Found {
    std::string workspace;
    QByteArray bytes;
  };
  auto found = std::make_shared<Found>();
  link_->with_store(
      [found](StoreReader*, JobService* service) {
        if (service == nullptr) return;
        found->workspace = service->workspace().string();
        QFile file(QString::fromStdString((service->workspace() / SavedViews::file_name).string()));
        if (file.size() <= largest_views && file.open(QIODevice::ReadOnly)) found->bytes = file.readAll();
      },
      [self = QPointer<RunsPage>(this), found] {
        if (!self) return;
        self->workspace_ = found->workspace;
        if (!found->bytes.isEmpty()) {
          self->views_ = SavedViews::from_bytes(found->bytes);
          const QJsonObject& marks = self->views_.marks;
          if (marks.contains(QStringLiteral("shown")))
            emit self->shown_restored(to_numbers(marks[QStringLiteral("shown")].toArray()),
                                      static_cast<std::int64_t>(marks[QStringLiteral("shown_of")].toDouble(-1)));
          self->model_->set_pinned(to_numbers(marks[QStringLiteral("pinned")].toArray()));
          self->model_->set_baseline(static_cast<std::int64_t>(marks[QStringLiteral("baseline")].toDouble(-1)));
          emit self->marks_changed();
          self->apply(self->views_.last);
        }
        self->views_loaded_ = true;
        self->source_->poll(true);
      });
}

void RunsPage::toggle_pinned(const std::vector<std::int64_t>& numbers) {
  const QSet<std::int64_t> before = model_->pinned();
  QSet<std::int64_t> after = before;
  for (const std::int64_t n : numbers)
    if (!after.remove(n)) after.insert(n);
  const auto set = [self = QPointer<RunsPage>(this)](const QSet<std::int64_t>& pinned) {
    if (!self) return;
    self->model_->set_pinned(pinned);
    self->keep_timer_.start(100);
    emit self->marks_changed();
  };
  control_->undo_stack()->push(new MarkCommand(
      tr("Pin"), [set, after] { set(after); }, [set, before] { set(before); }));
}

void RunsPage::toggle_baseline(std::int64_t number) {
  const std::int64_t before = model_->baseline(), after = before == number ? -1 : number;
  const auto set = [self = QPointer<RunsPage>(this)](std::int64_t baseline) {
    if (!self) return;
    self->model_->set_baseline(baseline);
    self->choice_timer_.start(0);
    self->keep_timer_.start(100);
    emit self->marks_changed();
  };
  control_->undo_stack()->push(new MarkCommand(
      tr("Baseline"), [set, after] { set(after); }, [set, before] { set(before); }));
}

void RunsPage::leave() {
  if (!keep_timer_.isActive()) return;
  keep_timer_.stop();
  keep_views();
}

void RunsPage::keep_views() {
  if (!views_loaded_ || !control_->can_steer()) return;
  views_.last = state();
  std::int64_t highest = -1;
  for (const auto* set : std::initializer_list<const QSet<std::int64_t>*>{&shown_, &model_->hidden()})
    for (const std::int64_t n : *set) highest = std::max(highest, n);
  views_.marks = QJsonObject{{QStringLiteral("shown"), to_array(shown_)},
                             {QStringLiteral("shown_of"), static_cast<double>(highest)},
                             {QStringLiteral("pinned"), to_array(model_->pinned())},
                             {QStringLiteral("baseline"), static_cast<double>(model_->baseline())}};
  auto written = std::make_shared<Status>();
  link_->with_store(
      [written, bytes = views_.to_bytes().toStdString()](StoreReader*, JobService* service) {
        if (service) *written = write_file_atomically(service->workspace() / SavedViews::file_name, bytes);
      },
      [self = QPointer<RunsPage>(this), written] {
        if (self && !*written) emit self->message(text(written->error().message()));
      });
}

void RunsPage::show_context_menu(const QPoint& at) {
  const QModelIndex index = view_->indexAt(at);
  if (!index.isValid() || model_->is_group(index.row())) return;
  choice_moved();
  auto* menu = new QMenu(this);
  menu->setAttribute(Qt::WA_DeleteOnClose);
  menu->setToolTipsVisible(true);
  menu->addActions({actions_.pause, actions_.resume, actions_.stop, actions_.checkpoint});
  menu->addSeparator();
  menu->addActions({actions_.clone, actions_.fork, actions_.overlay, actions_.compare});
  menu->addSeparator();
  menu->addActions({actions_.tags, actions_.note, actions_.show, actions_.pin, actions_.baseline, actions_.copy_id});
  menu->addSeparator();
  menu->addActions({actions_.archive, actions_.remove});
  menu->popup(view_->viewport()->mapToGlobal(at));
}

}  // namespace stacklab::ui
