// The numbers behind a panel, as a table: a row for each step at which some curve has a value.
#pragma once

#include <QAbstractTableModel>
#include <vector>

#include "ui/plots/curve_chart.h"

namespace stacklab::ui {

class SeriesTableModel : public QAbstractTableModel {
 public:
  // A copy of what is shown in the window now.
  SeriesTableModel(const CurveChart& chart, QObject* parent);
  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  struct CurveColumn {
    QString title;
    std::vector<double> xs, ys;
  };
  std::vector<double> steps_;
  std::vector<CurveColumn> curves_;
  ValueFormat format_;
};

// Opens a window with the table; it deletes itself when closed.
void show_table(const CurveChart& chart, QWidget* parent);

}  // namespace stacklab::ui
