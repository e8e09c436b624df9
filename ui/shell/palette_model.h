// What the palette offers: actions, runs and settings that fit what has been typed, the best first.
#pragma once

#include <QAbstractListModel>
#include <functional>
#include <vector>

#include "ui/theme/glyphs.h"
#include "ui/theme/theme.h"

namespace stacklab::ui {

struct PaletteItem {
  enum class Kind { action, run, setting };
  Kind kind = Kind::action;
  QString id;     // remembered among those used last
  QString title;  // what is matched
  QString note;   // menu, state, section: in grey beside it
  QString keys;
  bool enabled = true;
  std::int64_t run_number = -1;
  std::function<void()> call;
};

class PaletteModel : public QAbstractListModel {
  Q_OBJECT
 public:
  enum Role { note_role = Qt::UserRole + 1, keys_role, kind_role, letters_role, run_number_role };
  static constexpr int most_rows = 60;

  using QAbstractListModel::QAbstractListModel;

  void set_items(std::vector<PaletteItem> items, const QStringList& used_last);
  void set_typed(const QString& typed);
  const PaletteItem* item(int row) const;

  int rowCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  Qt::ItemFlags flags(const QModelIndex& index) const override;

 private:
  struct Row {
    std::size_t item;
    int score;
    std::vector<int> at;
  };
  std::vector<PaletteItem> items_;
  QStringList used_last_;
  std::vector<Row> rows_;
};

}  // namespace stacklab::ui
