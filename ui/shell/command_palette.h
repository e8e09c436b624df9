// The palette: a field and a list, used with the keyboard alone.
#pragma once

#include <QListView>
#include <QStyledItemDelegate>

#include "ui/shell/palette_model.h"
#include "ui/shell/popup.h"

class QLineEdit;

namespace stacklab::ui {

class CommandPalette : public Popup {
  Q_OBJECT
 public:
  explicit CommandPalette(QWidget* window);
  void open(QWidget* anchor, std::vector<PaletteItem> items);
  PaletteModel* model() const { return model_; }
  QLineEdit* field() const { return field_; }
  QListView* list() const { return list_; }
  const QStringList& used_last() const { return used_last_; }

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void choose(const QModelIndex& index);
  void mark_first();
  void mark(int row, int direction);

  PaletteModel* model_;
  QLineEdit* field_;
  QListView* list_;
  class TextLabel* nothing_;
  QStringList used_last_;
};

}  // namespace stacklab::ui
