#include "ui/shell/shortcut_model.h"

#include <QFont>

#include "ui/theme/look.h"

namespace stacklab::ui {

ShortcutModel::ShortcutModel(ActionSet* actions, QObject* parent) : QAbstractTableModel(parent), actions_(actions) {
  connect(actions, &ActionSet::keys_changed, this, [this] {
    if (rowCount() > 0) emit dataChanged(index(0, 0), index(rowCount() - 1, column_count - 1));
  });
}

int ShortcutModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(actions_->entries().size());
}

int ShortcutModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : column_count; }

QVariant ShortcutModel::data(const QModelIndex& index, int role) const {
  if (!checkIndex(index, CheckIndexOption::IndexIsValid | CheckIndexOption::ParentIsInvalid)) return {};
  const ActionSet::Entry& entry = actions_->entries()[static_cast<std::size_t>(index.row())];
  const bool changed = !actions_->is_default(entry.id);
  const QString keys = QKeySequence::listToString(entry.action->shortcuts(), QKeySequence::NativeText);
  switch (role) {
    case Qt::DisplayRole:
      if (index.column() == action_column) return plain_text(entry.action->text());
      if (index.column() == menu_column) return menu_text(entry.menu);
      return changed ? tr("%1  (changed)").arg(keys.isEmpty() ? tr("none") : keys) : keys;
    case Qt::ToolTipRole:
      return changed ? tr("At first: %1").arg(QKeySequence::listToString(entry.defaults, QKeySequence::NativeText))
                     : QVariant();
    case Qt::FontRole:
      return changed ? QVariant(look().font(TextRole::body, true)) : QVariant();
    case Qt::AccessibleTextRole:
      return tr("%1, %2, keys %3")
          .arg(plain_text(entry.action->text()), menu_text(entry.menu), keys.isEmpty() ? tr("none") : keys);
    case id_role:
      return entry.id;
    default:
      return {};
  }
}

QVariant ShortcutModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
  return section == action_column ? tr("Action") : section == menu_column ? tr("Menu") : tr("Keys");
}

}  // namespace stacklab::ui

#include <moc_shortcut_model.cpp>
