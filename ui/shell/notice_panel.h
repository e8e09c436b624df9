// The bell of the menu bar with the number of unread notices, and the sheet it opens.
#pragma once

#include <QListView>
#include <QPushButton>
#include <QToolButton>

#include "ui/shell/notice_model.h"
#include "ui/shell/popup.h"

namespace stacklab::ui {

class TextLabel;

class Bell : public QToolButton {
  Q_OBJECT
 public:
  explicit Bell(NoticeModel* model, QWidget* parent);

 private:
  NoticeModel* model_;
};

class NoticePanel : public Popup {
  Q_OBJECT
 public:
  NoticePanel(NoticeModel* model, QWidget* window);
  void open(QWidget* anchor);
  QListView* list() const { return list_; }
  QPushButton* all_read_button() const { return all_read_; }

 signals:
  void chosen(const stacklab::RunId& run, qint64 step);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void update_head();
  void choose(const QModelIndex& index);

  NoticeModel* model_;
  QListView* list_;
  QPushButton* all_read_;
  TextLabel *count_, *empty_, *empty_help_;
};

}  // namespace stacklab::ui
