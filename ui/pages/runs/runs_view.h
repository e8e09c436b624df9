// The table of runs on the screen: lines of groups across its whole width, states as shape and word, progress as a bar,
// tags as labels.
#pragma once

#include <QStyledItemDelegate>
#include <QTreeView>

#include "ui/models/run_table_model.h"

namespace stacklab::ui {

class RunsDelegate : public QStyledItemDelegate {
 public:
  explicit RunsDelegate(RunTableModel* model, QObject* parent) : QStyledItemDelegate(parent), model_(model) {}
  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override;
  QWidget* createEditor(QWidget* parent, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
  // The eye that shows or hides a run, in the cell of its name.
  static QRect eye_rect(const QRect& cell);

 private:
  void paint_cell(QPainter& painter, const QStyleOptionViewItem& option, const QModelIndex& index,
                  const RunRow& row) const;
  RunTableModel* model_;
};

class RunsView : public QTreeView {
  Q_OBJECT
 public:
  explicit RunsView(RunTableModel* model, QWidget* parent = nullptr);

  void restyle();
  std::vector<std::int64_t> selected_numbers() const;
  void select_numbers(const std::vector<std::int64_t>& numbers, std::int64_t current);
  std::int64_t current_number() const;
  // As wide as the columns are at first, unless others are given.
  void lay_out(const QHash<QString, int>& widths);

 signals:
  void eye_clicked(std::int64_t number);
  void selection_moved();

 protected:
  void drawRow(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
  void mousePressEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void scrollContentsBy(int dx, int dy) override;
  void resizeEvent(QResizeEvent* event) override;
  void selectionChanged(const QItemSelection& selected, const QItemSelection& deselected) override;
  void currentChanged(const QModelIndex& current, const QModelIndex& previous) override;

 private:
  void look_at_rows();
  void remember();
  void restore();

  RunTableModel* runs_;
  std::vector<std::int64_t> kept_selection_;
  std::int64_t kept_current_ = -1;
  int kept_scroll_ = 0, unit_ = 0;
};

}  // namespace stacklab::ui
