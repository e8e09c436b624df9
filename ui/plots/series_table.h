// The numbers behind a panel, as a table: a row for each step at which some curve has a value.
#pragma once

#include <QAbstractTableModel>
#include <vector>

#include "ui/plots/curve_chart.h"

class QAbstractItemView;
class QDialog;

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

// Opens a window with the table; it deletes itself when closed. What is selected is copied with tabs between.
void show_table(const CurveChart& chart, QWidget* parent);
// Takes the model.
QDialog* show_table(QAbstractItemModel* model, const QString& title, const QString& name, QWidget* parent);
QString selected_text(const QAbstractItemView& view);

}  // namespace stacklab::ui
