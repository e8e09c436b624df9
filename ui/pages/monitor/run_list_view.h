// The list at the left: each run's line, name, last loss, state and cause. It is the legend of all panels.
#pragma once

#include <QListView>
#include <QStyledItemDelegate>

#include "ui/models/run_list_model.h"

namespace stacklab::ui {

class RunListDelegate : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;
  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override;
  // Where a click shows and hides instead of selecting.
  static QRect swatch_rect(const QRect& row);
};

class RunListView : public QListView {
  Q_OBJECT
 public:
  explicit RunListView(RunListModel* model, QWidget* parent = nullptr);

 protected:
  void mousePressEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  bool viewportEvent(QEvent* event) override;

 private:
  RunListModel* runs_;
};

}  // namespace stacklab::ui
