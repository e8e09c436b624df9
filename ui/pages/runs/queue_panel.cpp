#include "ui/pages/runs/queue_panel.h"

#include <QHeaderView>
#include <QMimeData>
#include <QVBoxLayout>
#include <algorithm>

#include "ui/models/run_columns.h"
#include "ui/pages/runs/run_control.h"
#include "ui/theme/icons.h"
#include "ui/theme/numbers.h"

namespace stacklab::ui {
namespace {
const char* mime_type = "application/x-stacklab-queue-entry";
}

void QueueModel::update(const std::vector<QueueEntry>& entries) {
  const auto same = [&] {
    return entries.size() == entries_.size() &&
           std::equal(entries.begin(), entries.end(), entries_.begin(),
                      [](const QueueEntry& a, const QueueEntry& b) { return a.id == b.id && a.process == b.process; });
  };
  if (same()) return;
  const auto ids = [](const std::vector<QueueEntry>& from) {
    std::vector<std::int64_t> sorted;
    for (const QueueEntry& e : from) sorted.push_back(e.id);
    std::sort(sorted.begin(), sorted.end());
    return sorted;
  };
  if (ids(entries) != ids(entries_)) {
    beginResetModel();
    entries_ = entries;
    endResetModel();
    return;
  }
  // The same ones in another order: what is chosen stays chosen.
  emit layoutAboutToBeChanged();
  const QModelIndexList before = persistentIndexList();
  QModelIndexList after;
  for (const QModelIndex& index : before) {
    const std::int64_t id = entries_[static_cast<std::size_t>(index.row())].id;
    const auto at = std::find_if(entries.begin(), entries.end(), [id](const QueueEntry& e) { return e.id == id; });
    after << this->index(static_cast<int>(at - entries.begin()), index.column());
  }
  entries_ = entries;
  changePersistentIndexList(before, after);
  emit layoutChanged();
}

void QueueModel::set_forecast(const RunId& run, const Forecast& forecast) {
  forecasts_[run] = forecast;
  for (std::size_t i = 0; i < entries_.size(); ++i)
    if (const int row = static_cast<int>(i); entries_[i].run == run)
      emit dataChanged(index(row, needs_column), index(row, cost_column));
}

int QueueModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(entries_.size());
}
int QueueModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : column_count; }

QVariant QueueModel::data(const QModelIndex& index, int role) const {
  if (!checkIndex(index, CheckIndexOption::IndexIsValid | CheckIndexOption::ParentIsInvalid)) return {};
  const QueueEntry& entry = entries_[static_cast<std::size_t>(index.row())];
  if (role == Qt::ForegroundRole && index.column() != run_column_) return theme()[Token::text2];
  if (role == Qt::ToolTipRole)
    return tr("%1\nconfig %2, added %3")
        .arg(QString::fromStdString(entry.name), QString::fromStdString(entry.run).left(8), format_clock(entry.added));
  if (role != Qt::DisplayRole && role != Qt::AccessibleTextRole) return {};
  const auto known = forecasts_.find(entry.run);
  const Forecast forecast = known == forecasts_.end() ? Forecast{} : known->second;
  switch (index.column()) {
    case place_column:
      return QStringLiteral("⠿  %1").arg(index.row() + 1);
    case run_column_:
      return QString::fromStdString(entry.name);
    case needs_column:
      return forecast.needs;
    case time_column:
      return forecast.time;
    case cost_column:
      return forecast.cost;
    case starts_column:
      return entry.process == 0 ? tr("waits for you to start it")
             : index.row() == 0
                 ? tr("next")
                 : tr("after %1").arg(QString::fromStdString(entries_[static_cast<std::size_t>(index.row()) - 1].name));
  }
  return {};
}

QVariant QueueModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
  switch (section) {
    case place_column:
      return tr("Place");
    case run_column_:
      return tr("Run");
    case needs_column:
      return tr("Needs");
    case time_column:
      return tr("Predicted time");
    case cost_column:
      return tr("Predicted cost");
    case starts_column:
      return tr("Starts");
  }
  return {};
}

Qt::ItemFlags QueueModel::flags(const QModelIndex& index) const {
  if (!index.isValid()) return Qt::ItemIsDropEnabled;
  return Qt::ItemIsEnabled | Qt::ItemIsSelectable | Qt::ItemIsDragEnabled | Qt::ItemNeverHasChildren;
}

QStringList QueueModel::mimeTypes() const { return {QLatin1String(mime_type)}; }

QMimeData* QueueModel::mimeData(const QModelIndexList& indexes) const {
  auto* data = new QMimeData;
  if (!indexes.isEmpty())
    data->setData(QLatin1String(mime_type),
                  QByteArray::number(static_cast<qlonglong>(entries_[static_cast<std::size_t>(indexes[0].row())].id)));
  return data;
}

bool QueueModel::dropMimeData(const QMimeData* data, Qt::DropAction, int row, int, const QModelIndex& parent) {
  if (!data->hasFormat(QLatin1String(mime_type))) return false;
  const std::int64_t id = data->data(QLatin1String(mime_type)).toLongLong();
  const auto at = std::find_if(entries_.begin(), entries_.end(), [id](const QueueEntry& e) { return e.id == id; });
  if (at == entries_.end()) return false;
  const auto from = at - entries_.begin();
  std::int64_t place = parent.isValid() ? parent.row() : row < 0 ? rowCount() : row;
  if (place > from) --place;  // it leaves its own place first
  if (place != from) emit move_requested(id, place);
  return false;  // the store moves it; nothing is taken from here
}

QueuePanel::QueuePanel(RunControl* control, QWidget* parent) : QWidget(parent), control_(control) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  auto* bar = new QWidget(this);
  bar->setObjectName(QStringLiteral("sunkenBar"));
  bar->setAttribute(Qt::WA_StyledBackground);
  auto* row = new QHBoxLayout(bar);
  row->setContentsMargins(12, 4, 12, 4);
  auto* title = new TextLabel(TextRole::body, Token::text, true, bar);
  title->set_full_text(tr("Queue"));
  count_ = new TextLabel(TextRole::body, Token::text3, false, bar);
  row->addWidget(title);
  row->addWidget(count_);
  row->addStretch();
  model_ = new QueueModel(this);
  view_ = new QTreeView(this);
  const auto add = [&](const QString& text, const QKeySequence& keys) {
    auto* action = new QAction(text, this);
    action->setShortcut(keys);
    action->setShortcutContext(Qt::WidgetShortcut);
    view_->addAction(action);
    auto* button = new QToolButton(bar);
    button->setDefaultAction(action);
    button->setAccessibleName(text);
    row->addWidget(button);
    return action;
  };
  up_action = add(tr("Earlier"), QKeySequence(Qt::ALT | Qt::Key_Up));
  down_action = add(tr("Later"), QKeySequence(Qt::ALT | Qt::Key_Down));
  start_action = add(tr("Start"), QKeySequence(Qt::Key_Return));
  remove_action = add(tr("Remove"), QKeySequence(Qt::ALT | Qt::Key_Delete));
  column->addWidget(bar);
  view_->setModel(model_);
  view_->setRootIsDecorated(false);
  view_->setUniformRowHeights(true);
  view_->setFrameShape(QFrame::NoFrame);
  view_->setDragDropMode(QAbstractItemView::InternalMove);
  view_->setDropIndicatorShown(true);
  view_->setSelectionMode(QAbstractItemView::SingleSelection);
  view_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  view_->setAccessibleName(tr("Queue"));
  view_->setAccessibleDescription(
      tr("Alt with up and down moves an entry, Return starts it, Alt with Delete takes it out."));
  view_->header()->setStretchLastSection(true);
  column->addWidget(view_, 1);
  connect(model_, &QueueModel::move_requested, control, &RunControl::queue_move);
  connect(up_action, &QAction::triggered, this, [this] {
    if (const QueueEntry* entry = current()) control_->queue_move(entry->id, view_->currentIndex().row() - 1);
  });
  connect(down_action, &QAction::triggered, this, [this] {
    if (const QueueEntry* entry = current()) control_->queue_move(entry->id, view_->currentIndex().row() + 1);
  });
  connect(start_action, &QAction::triggered, this, [this] {
    if (const QueueEntry* entry = current()) control_->queue_start(entry->id);
  });
  connect(remove_action, &QAction::triggered, this, [this] {
    if (const QueueEntry* entry = current()) control_->queue_remove(*entry);
  });
  connect(view_->selectionModel(), &QItemSelectionModel::currentChanged, this, [this] { judge(); });
  connect(&look(), &Look::changed, this, &QueuePanel::restyle);
  restyle();
  update_queue({});
}

void QueuePanel::restyle() {
  view_->header()->setMinimumHeight(metrics().row());
  view_->setStyleSheet(QStringLiteral("QTreeView::item{height:%1px;padding:0 5px;}").arg(metrics().row() - 1));
  const int widths[] = {58, 240, 120, 190, 120};
  for (int i = 0; i < 5; ++i) view_->header()->resizeSection(i, metrics().scaled(widths[i]));
  const int rows = std::clamp(model_->rowCount(), 1, 4);
  view_->setFixedHeight((rows + 1) * metrics().row() + 4);
}

const QueueEntry* QueuePanel::current() const {
  const int row = view_->currentIndex().row();
  return row >= 0 && row < model_->rowCount() ? &model_->entries()[static_cast<std::size_t>(row)] : nullptr;
}

void QueuePanel::judge() {
  const QueueEntry* entry = current();
  const bool can = entry != nullptr && control_->can_steer();
  const int row = view_->currentIndex().row();
  const auto allow = [](QAction* action, bool enabled, const QString& why_not) {
    action->setEnabled(enabled);
    action->setToolTip(enabled ? action->text() : why_not);
  };
  const QString none =
      entry ? tr("This workspace is open for reading only.") : tr("Choose an entry of the queue first.");
  allow(up_action, can && row > 0, can ? tr("It is the first.") : none);
  allow(down_action, can && row + 1 < model_->rowCount(), can ? tr("It is the last.") : none);
  allow(start_action, can && entry->process == 0, can ? tr("It starts by itself in its turn.") : none);
  allow(remove_action, can, none);
}

void QueuePanel::update_queue(const std::vector<QueueEntry>& entries) {
  model_->update(entries);
  count_->set_full_text(entries.empty() ? QString()
                                        : tr("%1 waiting").arg(format_count(static_cast<qint64>(entries.size()))));
  setVisible(!entries.empty());
  restyle();
  judge();
}

}  // namespace stacklab::ui

#include <moc_queue_panel.cpp>
