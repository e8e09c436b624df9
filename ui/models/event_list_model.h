// What happened in one run, newest first.
#pragma once

#include <QAbstractListModel>
#include <vector>

#include "ui/models/snapshot.h"

namespace stacklab::ui {

class EventListModel : public QAbstractListModel {
  Q_OBJECT
 public:
  enum Role { step_role = Qt::UserRole + 1, kind_role, alert_role, open_role };
  // The list keeps so many; older ones are in the store.
  static constexpr int most_rows = 5000;

  using QAbstractListModel::QAbstractListModel;

  void reset();
  void update(const EventsChunk& chunk);
  // "open", "over at step 120"; empty: it is no alert.
  static QString alert_word(const RunEventRow& row);

  int rowCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  const std::vector<RunEventRow>& rows() const { return rows_; }  // oldest first

 private:
  const RunEventRow& row_at(int row) const { return rows_[rows_.size() - 1 - static_cast<std::size_t>(row)]; }
  std::vector<RunEventRow> rows_;
};

}  // namespace stacklab::ui
