#include "ui/pages/runs/runs_page.h"

#include <QClipboard>
#include <QComboBox>
#include <QGuiApplication>
#include <QHeaderView>
#include <QMenu>
#include <QScrollBar>
#include <QSplitter>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "engine/config/config_io.h"
#include "ui/models/state_look.h"
#include "ui/pages/runs/presets.h"
#include "ui/theme/icons.h"
#include "ui/theme/numbers.h"

namespace stacklab::ui {
namespace {

constexpr int keep_after_ms = 400, choice_after_ms = 0;
constexpr std::int64_t mini_points = 240, most_events = 2000;

QString text(const std::string& s) { return QString::fromStdString(s); }

}  // namespace

RunsPage::RunsPage(WorkspaceLink* link, QUndoStack* undo, QWidget* parent)
    : Page(parent),
      link_(link),
      control_(new RunControl(link, undo, this)),
      source_(new RunSource(link, this)),
      model_(new RunTableModel(source_, this)),
      actions_(this) {
  setObjectName(QStringLiteral("runs"));
  for (const Preset& preset : presets()) {
    auto* action = new QAction(tr("New run from %1…").arg(preset.title), this);
    connect(action, &QAction::triggered, this, [this, &preset] {
      show_me();
      launch({preset.config, tr("preset %1").arg(preset.id), {}, {}});
    });
    preset_actions_.push_back(action);
  }
  build();
  connect_actions();
  keep_timer_.setSingleShot(true);
  choice_timer_.setSingleShot(true);
  connect(&keep_timer_, &QTimer::timeout, this, &RunsPage::keep_views);
  connect(&choice_timer_, &QTimer::timeout, this, &RunsPage::choice_moved);
  connect(source_, &RunSource::answered, this, &RunsPage::take);
  connect(link, &WorkspaceLink::opened, this, &RunsPage::load_views);
  connect(control_, &RunControl::failed, this, &Page::message);
  connect(control_, &RunControl::started, this,
          [this](const QString& name) { emit message(tr("%1 was started.").arg(name)); });
  connect(control_, &RunControl::done, this, [this] { source_->poll(true); });
  connect(model_, &RunTableModel::edit_requested, this,
          [this](std::int64_t number, const QString& column, const QString& value) {
            const RunRowPtr row = model_->run(number);
            if (!row) return;
            if (column == QLatin1String("tags"))
              control_->set_tags(*row, value);
            else
              control_->set_note(*row, value);
          });
  apply(RunsViewState{{}, default_run_columns(), {}, QStringLiteral("number"), true, {}});
}

void RunsPage::build() {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  auto* header = new QWidget(this);
  header->setObjectName(QStringLiteral("pageHeader"));
  header->setAttribute(Qt::WA_StyledBackground);
  auto* head = new QHBoxLayout(header);
  head->setContentsMargins(16, 9, 16, 5);
  head->setSpacing(10);
  auto* title = new TextLabel(TextRole::title, Token::text, true, header);
  title->set_full_text(tr("Runs"));
  facts_ = new TextLabel(TextRole::secondary, Token::text2, false, header);
  facts_->set_elided(true);
  facts_->set_numbers(true);
  new_run_ = make_button(tr("New run"), QStringLiteral("list-add"), header);
  make_primary(new_run_);
  new_run_->setIcon(icon(QStringLiteral("list-add"), Token::on_accent));
  auto* new_menu = new QMenu(new_run_);
  new_menu->addActions({actions_.start, actions_.from_file});
  QMenu* preset_menu = new_menu->addMenu(tr("From a preset"));
  for (QAction* action : preset_actions_) preset_menu->addAction(action);
  new_menu->addSeparator();
  new_menu->addActions({actions_.clone, actions_.fork});
  new_run_->setMenu(new_menu);
  new_run_->setProperty("menu", true);
  head->addWidget(title);
  head->addWidget(facts_, 1);
  overlay_ = make_button(tr("Compare"), QStringLiteral("compare"), header);
  const auto follow = [this] {
    overlay_->setEnabled(actions_.overlay->isEnabled());
    overlay_->setToolTip(actions_.overlay->toolTip());
    overlay_->setAccessibleDescription(actions_.overlay->statusTip());
  };
  connect(actions_.overlay, &QAction::changed, overlay_, follow);
  connect(overlay_, &QPushButton::clicked, actions_.overlay, &QAction::trigger);
  follow();
  close_cover_ = make_button(tr("Close introduction"), {}, header);
  close_cover_->hide();
  connect(close_cover_, &QPushButton::clicked, this, &RunsPage::close_cover);
  head->addWidget(close_cover_);
  head->addWidget(overlay_);
  head->addWidget(new_run_);
  column->addWidget(header);

  auto* tools = tools_ = new QWidget(this);
  tools->setObjectName(QStringLiteral("toolRow"));
  tools->setAttribute(Qt::WA_StyledBackground);
  auto* row = new QHBoxLayout(tools);
  row->setContentsMargins(16, 5, 16, 8);
  row->setSpacing(8);
  const auto label = [&](const QString& words) {
    auto* made = new TextLabel(TextRole::secondary, Token::text2, false, tools);
    made->set_full_text(words);
    return made;
  };
  filter_ = new FilterField(this);
  view_button_ = new QToolButton(tools);
  view_button_->setProperty("toggle", true);
  view_button_->setText(tr("All runs"));
  view_button_->setAccessibleName(tr("View"));
  view_button_->setPopupMode(QToolButton::InstantPopup);
  view_button_->setMenu(new QMenu(view_button_));
  connect(view_button_->menu(), &QMenu::aboutToShow, this, &RunsPage::fill_view_menu);
  group_ = new QComboBox(tools);
  group_->setAccessibleName(tr("Group by"));
  group_->addItem(tr("nothing"), QString());
  for (const char* key : {"state", "commit", "tokenizer", "corpus_sha256", "parent"})
    group_->addItem(run_column(QLatin1String(key)).title.isEmpty() ? QLatin1String(key)
                                                                   : run_column(QLatin1String(key)).title.toLower(),
                    QLatin1String(key));
  group_->insertSeparator(group_->count());
  for (const QString& key : config_column_ids()) group_->addItem(key, key);
  group_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  group_->setMinimumContentsLength(12);
  baseline_ = new TextLabel(TextRole::secondary, Token::text3, false, tools);
  baseline_->set_shrinking();
  columns_button_ = new QToolButton(tools);
  columns_button_->setProperty("toggle", true);
  columns_button_->setText(tr("Columns"));
  columns_button_->setAccessibleName(tr("Columns"));
  columns_button_->setPopupMode(QToolButton::InstantPopup);
  columns_button_->setMenu(new QMenu(columns_button_));
  connect(columns_button_->menu(), &QMenu::aboutToShow, this, [this] { fill_column_menu(columns_button_->menu()); });
  row->addWidget(filter_, 3);
  row->addWidget(label(tr("View")), 0, Qt::AlignTop);
  row->addWidget(view_button_, 0, Qt::AlignTop);
  row->addWidget(label(tr("Group by")), 0, Qt::AlignTop);
  row->addWidget(group_, 0, Qt::AlignTop);
  row->addStretch(1);
  row->addWidget(baseline_, 0, Qt::AlignTop);
  row->addWidget(columns_button_, 0, Qt::AlignTop);
  for (QWidget* lined : tools->findChildren<TextLabel*>(QString(), Qt::FindDirectChildrenOnly))
    lined->setMinimumHeight(metrics().control());
  column->addWidget(tools);

  view_ = new RunsView(model_, this);
  queue_ = new QueuePanel(control_, this);
  empty_ = new Notice(this);
  empty_->hide();
  column->addWidget(view_, 1);
  column->addWidget(empty_, 1);
  column->addWidget(queue_);
  panel_ = new RunPanel(actions_, this);
  panel_->hide();  // until a dock takes it

  connect(filter_, &FilterField::changed, this, [this](const RunFilter& filter) {
    filter_tree_ = filter;
    ask_store();
  });
  connect(filter_, &FilterField::broken, this, &RunsPage::keep_rows);
  connect(group_, &QComboBox::currentIndexChanged, this, [this] {
    model_->set_group_title(group_->currentData().toString().isEmpty() ? QString() : group_->currentText());
    ask_store();
  });
  connect(view_->header(), &QHeaderView::sectionClicked, this, [this](int section) {
    const RunColumn& clicked = model_->columns()[static_cast<std::size_t>(section)];
    if (clicked.order.isEmpty()) return;
    // Names from a to z at first, everything else from the largest.
    const bool down = clicked.kind == RunColumn::Kind::number && clicked.id != QLatin1String("loss") &&
                      clicked.id != QLatin1String("val_loss");
    sort_by(clicked.id, sort_ == clicked.id ? !descending_ : down);
  });
  for (const auto signal : {&QHeaderView::sectionResized, &QHeaderView::sectionMoved})
    connect(view_->header(), signal, this, [this] {
      if (!applying_) keep_timer_.start(keep_after_ms);
    });
  connect(view_->header(), &QWidget::customContextMenuRequested, this, [this](const QPoint& at) {
    auto* menu = new QMenu(this);
    menu->setAttribute(Qt::WA_DeleteOnClose);
    fill_column_menu(menu);
    menu->popup(view_->header()->mapToGlobal(at));
  });
  connect(view_, &QWidget::customContextMenuRequested, this, &RunsPage::show_context_menu);
  connect(view_, &RunsView::selection_moved, this, [this] { choice_timer_.start(choice_after_ms); });
  connect(view_, &RunsView::eye_clicked, this, [this](std::int64_t number) { toggle_shown({number}); });
  connect(view_, &QAbstractItemView::activated, this, [this](const QModelIndex& index) {
    if (const RunRowPtr run = model_->run_at(index.row())) emit run_chosen(run->summary.id);
  });
  connect(panel_, &RunPanel::note_edited, this, [this](const QString& note) {
    if (const RunRowPtr run = model_->run(view_->current_number())) control_->set_note(*run, note);
  });
  connect(panel_, &RunPanel::event_chosen, this, [this](qint64 step) {
    if (const RunRowPtr run = model_->run(view_->current_number())) emit event_chosen(run->summary.id, step);
  });
  connect(panel_, &RunPanel::tags_wanted, this, [this] { edit_cell(QStringLiteral("tags")); });
  connect(empty_->button(), &QPushButton::clicked, this, [this] {
    if (undo_offered_)
      control_->undo_stack()->undo();
    else if (all_ > 0 || !filter_tree_.matches_all())
      filter_->set_text({});
    else
      actions_.start->trigger();
  });
}

void RunsPage::ask_store() {
  RunQuery query;
  query.filter = filter_tree_;
  const RunColumn sorted = run_column(sort_);
  query.order = sorted.order.isEmpty() ? "number" : sorted.order.toStdString();
  query.descending = descending_;
  source_->set_query(query, group_->currentData().toString().toStdString());
  if (!applying_) keep_timer_.start(keep_after_ms);
}

void RunsPage::sort_by(const QString& column, bool descending) {
  sort_ = column;
  descending_ = descending;
  const int section = model_->column_of(column);
  view_->header()->setSortIndicator(section, descending ? Qt::DescendingOrder : Qt::AscendingOrder);
  ask_store();
}

void RunsPage::set_group(const QString& key) {
  const int at = group_->findData(key);
  group_->setCurrentIndex(std::max(0, at));
}

void RunsPage::take(const RunListAnswerPtr& answer) {
  const bool first = all_ < 0;
  counts_ = answer->counts;
  if (error_ != answer->error) {
    error_ = answer->error;
    if (!error_.isEmpty()) emit message(error_);
  }
  if (answer->error.isEmpty()) all_ = answer->all;
  if (answer->words) filter_->set_words(*answer->words);
  if (answer->queue) {
    queue_->update_queue(*answer->queue);
    if (cover_) queue_->hide();
    forecast_queue();
  }
  QStringList parts{all_ == 1 ? tr("1 run") : tr("%1 runs").arg(format_count(std::max<std::int64_t>(0, all_)))};
  for (const RunState state :
       {RunState::running, RunState::queued, RunState::stopping, RunState::paused, RunState::lost})
    if (const auto at = counts_.find(state); at != counts_.end() && at->second > 0)
      parts << QStringLiteral("%1 %2").arg(format_count(at->second), look_of(state, false).word);
  if (cover_) parts << cover_facts_;
  facts_->set_full_text(parts.join(QStringLiteral(", ")));
  filter_->set_count(model_->run_count(), all_);
  if (model_->run_count() > 0 && answer->places) filter_with_rows_ = filter_tree_;
  keep_rows();
  show_emptiness();
  if (first && all_ > 0 && !view_->currentIndex().isValid() && model_->rowCount() > 0)
    for (int row = 0; row < model_->rowCount(); ++row)
      if (!model_->is_group(row)) {
        view_->select_numbers({model_->number_at(row)}, model_->number_at(row));
        break;
      }
  if (!answer->rows.empty() || answer->places) choice_timer_.start(choice_after_ms);
}

// Half of a filter on the way to a whole one may have matched no run: while what stands there is no filter, the table
// holds what it held last.
void RunsPage::keep_rows() {
  if (filter_->problem().isEmpty() || model_->run_count() > 0 || !filter_with_rows_ || !source_->is_idle()) return;
  filter_tree_ = *std::exchange(filter_with_rows_, std::nullopt);
  ask_store();
}

void RunsPage::set_cover(QWidget* cover, const QString& facts) {
  cover_ = cover;
  cover_facts_ = facts;
  static_cast<QVBoxLayout*>(layout())->addWidget(cover, 1);
  cover->show();
  for (QWidget* under : std::initializer_list<QWidget*>{tools_, view_, empty_, queue_, overlay_}) under->hide();
  close_cover_->show();
  emit dock_wanted_changed();
}

void RunsPage::close_cover() {
  if (!cover_) return;
  cover_->hide();
  cover_ = nullptr;
  for (QWidget* under : std::initializer_list<QWidget*>{tools_, overlay_}) under->show();
  queue_->setVisible(queue_->model()->rowCount() > 0);
  close_cover_->hide();
  show_emptiness();
  emit dock_wanted_changed();
  emit cover_closed();
}

void RunsPage::show_emptiness() {
  if (cover_) return;
  const bool none = all_ == 0 && model_->run_count() == 0,
             unlike = all_ > 0 && model_->run_count() == 0 && source_->is_idle() && filter_->problem().isEmpty();
  empty_->setVisible(none || unlike);
  // One button that is meant to be pressed, not two.
  new_run_->setVisible(!none && !unlike);
  if (none != is_empty_) {
    is_empty_ = none;
    emit dock_wanted_changed();
  }
  view_->setVisible(!none && !unlike);
  undo_offered_ = none && filter_tree_.matches_all() && put_away_ && control_->undo_stack()->canUndo();
  if (undo_offered_)
    empty_->set_texts(tr("All runs were put away."),
                      tr("What was deleted or archived can be brought back: at once by Undo, later from the lists of "
                         "the filters is:deleted and is:archived."),
                      tr("Undo"));
  else if (none && filter_tree_.matches_all())
    empty_->set_texts(
        tr("No run has been made here yet."),
        tr("A run trains one model by one config. Its curves, checkpoints and notes are kept in this workspace."),
        tr("New run…"));
  else if (none || unlike)
    empty_->set_texts(tr("No run is like that."), tr("The filter leaves out all runs of this workspace."),
                      tr("Clear the filter"));
}

std::vector<RunRowPtr> RunsPage::chosen() const {
  std::vector<RunRowPtr> rows;
  for (const std::int64_t n : view_->selected_numbers())
    if (const RunRowPtr row = model_->run(n)) rows.push_back(row);
  return rows;
}

void RunsPage::choice_moved() {
  const std::vector<RunRowPtr> rows = chosen();
  RunRowPtr current = model_->run(view_->current_number());
  if (rows.size() == 1) current = rows.front();
  const RunRowPtr baseline = model_->run(model_->baseline());
  actions_.update(rows, model_->baseline(), control_->can_steer());
  overlay_->setText(rows.size() > 1 ? tr("Compare %1").arg(rows.size()) : tr("Compare"));
  panel_->show_run(current, baseline, model_->now(), control_->can_steer());
  std::vector<RunRowPtr> compared = rows;
  if (baseline && std::none_of(rows.begin(), rows.end(),
                               [&](const RunRowPtr& r) { return r->summary.number == model_->baseline(); }))
    compared.push_back(baseline);
  panel_->show_difference(compared, model_->baseline());
  baseline_->set_full_text(baseline ? tr("baseline: %1").arg(text(baseline->summary.name)) : QString());
  read_mini();
}

// The loss of the chosen run and of the baseline, in few points.
void RunsPage::read_mini() {
  std::vector<std::pair<RunId, std::int64_t>> wanted;
  QString key;
  for (const std::int64_t n : {view_->current_number(), model_->baseline()})
    if (const RunRowPtr row = model_->run(n); row && (wanted.empty() || wanted[0].second != n)) {
      wanted.emplace_back(row->summary.id, n);
      key += text(row->summary.id) + QString::number(row->summary.step) + QLatin1Char(' ');
    }
  if (key == mini_key_ || mini_busy_) return;
  mini_key_ = key;
  mini_busy_ = true;
  auto curves = std::make_shared<std::vector<MiniLoss::Curve>>();
  auto events = std::make_shared<std::vector<RunEventRow>>();
  link_->with_store(
      [curves, events, wanted](StoreReader* reader, JobService*) {
        if (reader == nullptr || wanted.empty()) return;
        if (auto rows = reader->events(wanted.front().first, 0, most_events)) *events = std::move(*rows);
        for (const auto& [run, number] : wanted) {
          const auto buckets = reader->decimated(run, std::string(metric::loss), 0,
                                                 std::numeric_limits<std::int64_t>::max() / 2, mini_points);
          if (!buckets) continue;
          MiniLoss::Curve& curve = curves->emplace_back();
          curve.number = number;
          for (const SeriesBucket& b : *buckets) {
            // A gap is where nothing in the bucket is a number.
            const double mean =
                std::isfinite(b.min.value) ? (b.min.value + b.max.value) / 2 : std::numeric_limits<double>::quiet_NaN();
            curve.points.emplace_back(static_cast<double>(b.last.step), mean);
            if (b.non_finite == 0) continue;
            const QPointF before =
                curve.points.size() > 1 && std::isnan(mean) ? curve.points[curve.points.size() - 2] : QPointF(0, mean);
            curve.gaps.emplace_back(static_cast<double>(b.gap_step), before.y());
          }
        }
      },
      [self = QPointer<RunsPage>(this), curves, events, key] {
        if (!self) return;
        self->mini_busy_ = false;
        if (self->mini_key_ == key) {
          self->panel_->mini_loss()->set_curves(std::move(*curves));
          self->panel_->show_events(*events);
        }
        self->read_mini();
      });
}

void RunsPage::show_run(const RunId& run, std::optional<std::int64_t>) {
  const std::int64_t number = model_->number_of(run);
  const int row = model_->row_of(number);
  if (row < 0) return;
  show_me();
  view_->select_numbers({number}, number);
  view_->scrollTo(model_->index(row, 0));
  view_->setFocus();
}

bool RunsPage::settled() const {
  if (all_ < 0 || !views_loaded_) return !error_.isEmpty();
  if (cover_) return source_->is_idle();
  const int first = view_->indexAt(QPoint(1, 1)).row();
  const int count = view_->viewport()->height() / std::max(1, metrics().row());
  return source_->is_idle() && !mini_busy_ && !choice_timer_.isActive() &&
         model_->loaded(std::max(0, first), std::max(0, first) + count);
}

void RunsPage::toggle_shown(const std::vector<std::int64_t>& numbers) {
  const bool hide = std::any_of(numbers.begin(), numbers.end(), [&](std::int64_t n) { return !model_->is_hidden(n); });
  emit show_wanted({numbers.begin(), numbers.end()}, !hide);
}

void RunsPage::follow_shown(const QSet<std::int64_t>& shown, const QSet<std::int64_t>& hidden) {
  if (shown == shown_ && hidden == model_->hidden()) return;
  const bool moved = shown != shown_;
  shown_ = shown;
  model_->set_hidden(hidden);
  if (moved && views_loaded_) keep_timer_.start(keep_after_ms);
}

void RunsPage::edit_cell(const QString& column) {
  const int row = model_->row_of(view_->current_number());
  if (row < 0) return;
  if (model_->column_of(column) < 0) set_columns(state().columns << column);
  const QModelIndex index = model_->index(model_->row_of(view_->current_number()), model_->column_of(column));
  view_->scrollTo(index);
  view_->setFocus();
  view_->edit(index);
}

}  // namespace stacklab::ui

#include <moc_runs_page.cpp>
