// The actions of a window with their keys, for the shortcut editor.
#pragma once

#include <QAbstractTableModel>

#include "ui/frame/action_set.h"

namespace stacklab::ui {

class ShortcutModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Column { action_column, menu_column, keys_column, column_count };
  enum Role { id_role = Qt::UserRole + 1 };

  explicit ShortcutModel(ActionSet* actions, QObject* parent = nullptr);

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  ActionSet* actions_;
};

}  // namespace stacklab::ui
