// The workspaces and configs used last, the last one first.
#pragma once

#include <QAbstractListModel>

#include "ui/shell/settings.h"

namespace stacklab::ui {

class RecentsModel : public QAbstractListModel {
  Q_OBJECT
 public:
  enum Role { path_role = Qt::UserRole + 1, kind_role };

  explicit RecentsModel(SettingsKeeper* keeper, QObject* parent = nullptr);

  int rowCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  const Recent& at(int row) const { return rows_[row]; }
  void forget(const Recent& recent);
  void clear();

 private:
  void update();

  SettingsKeeper* keeper_;
  QList<Recent> rows_;
};

}  // namespace stacklab::ui
