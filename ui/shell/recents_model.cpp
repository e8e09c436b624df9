#include "ui/shell/recents_model.h"

#include <QDir>

namespace stacklab::ui {

RecentsModel::RecentsModel(SettingsKeeper* keeper, QObject* parent)
    : QAbstractListModel(parent), keeper_(keeper), rows_(keeper->settings().recents) {
  connect(keeper, &SettingsKeeper::changed, this, &RecentsModel::update);
}

void RecentsModel::update() {
  if (rows_ == keeper_->settings().recents) return;
  beginResetModel();
  rows_ = keeper_->settings().recents;
  endResetModel();
}

int RecentsModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}

QVariant RecentsModel::data(const QModelIndex& index, int role) const {
  if (!checkIndex(index, CheckIndexOption::IndexIsValid | CheckIndexOption::ParentIsInvalid)) return {};
  const Recent& recent = rows_[index.row()];
  const QString name = QDir(recent.path).dirName();
  switch (role) {
    case Qt::DisplayRole:
      return recent.kind == Recent::Kind::workspace ? name : tr("%1 (config)").arg(name);
    case Qt::ToolTipRole:
    case path_role:
      return recent.path;
    case kind_role:
      return static_cast<int>(recent.kind);
    default:
      return {};
  }
}

void RecentsModel::forget(const Recent& recent) {
  keeper_->change([&](Settings& s) { s.recents.removeAll(recent); });
}

void RecentsModel::clear() {
  keeper_->change([](Settings& s) { s.recents.clear(); });
}

}  // namespace stacklab::ui

#include <moc_recents_model.cpp>
