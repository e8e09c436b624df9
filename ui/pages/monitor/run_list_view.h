// The list at the left: each run's line, name, last loss, state and cause. It is the legend of all panels.
#pragma once

#include <QListView>
#include <QStyledItemDelegate>
#include <functional>

#include "ui/pages/monitor/run_order.h"

class QUndoStack;

namespace stacklab::ui {

class RunListDelegate : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;
  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override;
  // Where a click shows and hides instead of selecting.
  static QRect swatch_rect(const QRect& row, Qt::LayoutDirection direction);
};

class RunListView : public QListView {
  Q_OBJECT
 public:
  explicit RunListView(RunListModel* model, QWidget* parent = nullptr);
  RunOrder* order() const { return order_; }
  void set_undo_stack(QUndoStack* undo) { undo_ = undo; }

  // Undoable, under this title.
  void change(const QString& what, const std::function<void()>& call);

 signals:
  void pin_wanted(qint64 number);
  void baseline_wanted(qint64 number);

 protected:
  void contextMenuEvent(QContextMenuEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  bool viewportEvent(QEvent* event) override;

 private:
  void toggle(const RunId& id);
  void solo(const RunId& id);

  RunListModel* runs_;
  RunOrder* order_;
  QUndoStack* undo_ = nullptr;
};

}  // namespace stacklab::ui
