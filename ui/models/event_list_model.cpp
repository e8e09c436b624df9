#include "ui/models/event_list_model.h"

#include "ui/theme/numbers.h"

namespace stacklab::ui {

void EventListModel::reset() {
  beginResetModel();
  rows_.clear();
  endResetModel();
}

void EventListModel::update(const EventsChunk& chunk) {
  if (chunk.restart && !rows_.empty()) reset();
  if (chunk.rows.empty()) return;
  beginInsertRows({}, 0, static_cast<int>(chunk.rows.size()) - 1);
  rows_.insert(rows_.end(), chunk.rows.begin(), chunk.rows.end());
  endInsertRows();
  const int surplus = rowCount() - most_rows;
  if (surplus <= 0) return;
  beginRemoveRows({}, most_rows, rowCount() - 1);
  rows_.erase(rows_.begin(), rows_.begin() + surplus);
  endRemoveRows();
}

int EventListModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}

QVariant EventListModel::data(const QModelIndex& index, int role) const {
  if (!checkIndex(index, CheckIndexOption::IndexIsValid | CheckIndexOption::ParentIsInvalid)) return {};
  const RunEventRow& row = row_at(index.row());
  const QString text = QString::fromStdString(row.event.text);
  switch (role) {
    case Qt::DisplayRole:
      return text;
    case Qt::ToolTipRole:
      return tr("%1\nstep %2, %3").arg(text, format_count(row.event.step), format_clock(row.unix_time));
    case Qt::AccessibleTextRole:
      return tr("%1, step %2").arg(text, format_count(row.event.step));
    case step_role:
      return static_cast<qlonglong>(row.event.step);
    case kind_role:
      return static_cast<int>(row.event.kind);
    default:
      return {};
  }
}

}  // namespace stacklab::ui

#include <moc_event_list_model.cpp>
