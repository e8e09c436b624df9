// Changes shortcuts: choose an action, press its new keys, assign. Keys that somebody has already are named and taken
// from there only when the user says so.
#pragma once

#include <QDialog>

#include "ui/shell/shortcut_model.h"

class QKeySequenceEdit;
class QLineEdit;
class QPushButton;
class QSortFilterProxyModel;
class QTableView;

namespace stacklab::ui {

class TextLabel;

class ShortcutEditor : public QDialog {
  Q_OBJECT
 public:
  ShortcutEditor(ActionSet* actions, QWidget* parent);
  void choose(const QString& id);
  QString chosen() const;
  QTableView* table() const { return table_; }
  QLineEdit* filter() const { return filter_; }
  QKeySequenceEdit* keys() const { return keys_; }
  QPushButton* assign_button() const { return assign_; }
  QPushButton* remove_button() const { return remove_; }
  QPushButton* reset_button() const { return reset_; }
  QPushButton* reset_all_button() const { return reset_all_; }
  QString verdict() const;

 private:
  void judge();

  ActionSet* actions_;
  ShortcutModel* model_;
  QSortFilterProxyModel* shown_;
  QTableView* table_;
  QLineEdit* filter_;
  QKeySequenceEdit* keys_;
  QPushButton *assign_, *remove_, *reset_, *reset_all_;
  TextLabel *chosen_, *verdict_;
};

}  // namespace stacklab::ui
