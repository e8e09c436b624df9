#include "ui/shell/palette_model.h"

#include <QRegularExpression>
#include <algorithm>

#include "ui/shell/fuzzy.h"

namespace stacklab::ui {
namespace {
// What was used a moment ago stands a little higher; it never beats a clearly better fit.
constexpr int used_bonus = 5;
constexpr int disabled_malus = -12;
}  // namespace

void PaletteModel::set_items(std::vector<PaletteItem> items, const QStringList& used_last) {
  beginResetModel();
  items_ = std::move(items);
  used_last_ = used_last;
  rows_.clear();
  endResetModel();
  set_typed({});
}

void PaletteModel::set_typed(const QString& typed) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < items_.size(); ++i) {
    const PaletteItem& item = items_[i];
    auto match = fuzzy_match(typed, item.title);
    if (!match) continue;
    const auto used = used_last_.indexOf(item.id);
    int score = match->score + (item.enabled ? 0 : disabled_malus);
    if (used >= 0) score += used_bonus + static_cast<int>(used_last_.size() - used);
    rows.push_back({i, score, std::move(match->at)});
  }
  const auto better = [this](const Row& a, const Row& b) {
    if (a.score != b.score) return a.score > b.score;
    const auto shorter = items_[a.item].title.size() - items_[b.item].title.size();
    // Without letters the order is that of the menus.
    if (!a.at.empty() && shorter != 0) return shorter < 0;
    return a.item < b.item;
  };
  const std::size_t kept = std::min<std::size_t>(rows.size(), most_rows);
  std::partial_sort(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(kept), rows.end(), better);
  rows.resize(kept);
  beginResetModel();
  rows_ = std::move(rows);
  endResetModel();
}

const PaletteItem* PaletteModel::item(int row) const {
  return row >= 0 && row < rowCount() ? &items_[rows_[static_cast<std::size_t>(row)].item] : nullptr;
}

int PaletteModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}

QVariant PaletteModel::data(const QModelIndex& index, int role) const {
  if (!checkIndex(index, CheckIndexOption::IndexIsValid | CheckIndexOption::ParentIsInvalid)) return {};
  const PaletteItem& of = *item(index.row());
  switch (role) {
    case Qt::DisplayRole:
      return of.title;
    case Qt::AccessibleTextRole:
      return QStringList({of.title, of.note, of.keys}).filter(QRegularExpression(QStringLiteral("."))).join(", ");
    case note_role:
      return of.note;
    case keys_role:
      return of.keys;
    case kind_role:
      return static_cast<int>(of.kind);
    case letters_role: {
      QVariantList letters;
      for (const int at : rows_[static_cast<std::size_t>(index.row())].at) letters.append(at);
      return letters;
    }
    case run_number_role:
      return static_cast<qlonglong>(of.run_number);
    default:
      return {};
  }
}

Qt::ItemFlags PaletteModel::flags(const QModelIndex& index) const {
  if (!index.isValid()) return Qt::NoItemFlags;
  const Qt::ItemFlags usable = Qt::ItemIsSelectable | Qt::ItemNeverHasChildren;
  return item(index.row())->enabled ? usable | Qt::ItemIsEnabled : usable;
}

}  // namespace stacklab::ui

#include <moc_palette_model.cpp>
