#include "ui/models/event_list_model.h"

#include <algorithm>

#include "ui/theme/numbers.h"

namespace stacklab::ui {

void EventListModel::reset() {
  beginResetModel();
  rows_.clear();
  endResetModel();
}

void EventListModel::update(const EventsChunk& chunk) {
  if (chunk.restart && !rows_.empty()) reset();
  if (!chunk.rows.empty()) {
    beginInsertRows({}, 0, static_cast<int>(chunk.rows.size()) - 1);
    rows_.insert(rows_.end(), chunk.rows.begin(), chunk.rows.end());
    endInsertRows();
    if (const int surplus = rowCount() - most_rows; surplus > 0) {
      beginRemoveRows({}, most_rows, rowCount() - 1);
      rows_.erase(rows_.begin(), rows_.begin() + surplus);
      endRemoveRows();
    }
  }
  for (const RunEventRow& alert : chunk.alerts) {
    const auto known = std::lower_bound(rows_.begin(), rows_.end(), alert.id,
                                        [](const RunEventRow& row, std::int64_t id) { return row.id < id; });
    if (known == rows_.end() || known->id != alert.id || known->resolved == alert.resolved) continue;
    *known = alert;
    const QModelIndex at = index(static_cast<int>(rows_.end() - known) - 1);
    emit dataChanged(at, at);
  }
}

QString EventListModel::alert_word(const RunEventRow& row) {
  if (!row.event.is_alert()) return {};
  return row.resolved > 0 ? tr("over at step %1").arg(format_count(row.resolved_step)) : tr("open");
}

int EventListModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}

QVariant EventListModel::data(const QModelIndex& index, int role) const {
  if (!checkIndex(index, CheckIndexOption::IndexIsValid | CheckIndexOption::ParentIsInvalid)) return {};
  const RunEventRow& row = row_at(index.row());
  const QString text = QString::fromStdString(row.event.text), alert = alert_word(row);
  const QString whole = alert.isEmpty() ? text : tr("%1 (%2)").arg(text, alert);
  switch (role) {
    case Qt::DisplayRole:
      return text;
    case Qt::ToolTipRole:
      return tr("%1\nstep %2, %3").arg(whole, format_count(row.event.step), format_clock(row.unix_time));
    case Qt::AccessibleTextRole:
      return tr("%1, step %2").arg(whole, format_count(row.event.step));
    case step_role:
      return static_cast<qlonglong>(row.event.step);
    case alert_role:
      return alert;
    case open_role:
      return row.event.is_alert() && row.resolved <= 0;
    case kind_role:
      return static_cast<int>(row.event.kind);
    default:
      return {};
  }
}

}  // namespace stacklab::ui

#include <moc_event_list_model.cpp>
