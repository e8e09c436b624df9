// What waits to be trained, in its order: dragged or moved by keys, started, taken out.
#pragma once

#include <QAbstractTableModel>
#include <QTreeView>

#include "ui/models/run_source.h"
#include "ui/theme/widgets.h"

namespace stacklab::ui {

class RunControl;

class QueueModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Column { place_column, run_column_, needs_column, time_column, cost_column, starts_column, column_count };

  using QAbstractTableModel::QAbstractTableModel;
  void update(const std::vector<QueueEntry>& entries);
  const std::vector<QueueEntry>& entries() const { return entries_; }
  // What a run will need, as soon as it has been worked out.
  struct Forecast {
    QString needs, time, cost;
  };
  void set_forecast(const RunId& run, const Forecast& forecast);
  bool has_forecast(const RunId& run) const { return forecasts_.count(run) > 0; }

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
  Qt::ItemFlags flags(const QModelIndex& index) const override;
  Qt::DropActions supportedDropActions() const override { return Qt::MoveAction; }
  QStringList mimeTypes() const override;
  QMimeData* mimeData(const QModelIndexList& indexes) const override;
  bool dropMimeData(const QMimeData* data, Qt::DropAction action, int row, int column,
                    const QModelIndex& parent) override;

 signals:
  void move_requested(std::int64_t entry, std::int64_t place);

 private:
  std::vector<QueueEntry> entries_;
  std::map<RunId, Forecast> forecasts_;
};

class QueuePanel : public QWidget {
  Q_OBJECT
 public:
  QueuePanel(RunControl* control, QWidget* parent = nullptr);
  void update_queue(const std::vector<QueueEntry>& entries);
  QueueModel* model() const { return model_; }
  QTreeView* view() const { return view_; }
  QAction *up_action, *down_action, *start_action, *remove_action;

 private:
  const QueueEntry* current() const;
  void judge();
  void restyle();

  RunControl* control_;
  QueueModel* model_;
  QTreeView* view_;
  TextLabel* count_;
};

}  // namespace stacklab::ui
