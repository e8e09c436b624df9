// Facts as a column of labels and values.
#pragma once

#include <map>

#include "ui/theme/widgets.h"

class QGridLayout;

namespace stacklab::ui {

// Label and value, one below the other; values elide, with the whole as tip.
class FactGrid : public QWidget {
 public:
  explicit FactGrid(QWidget* parent = nullptr);
  void set(const QString& label, const QString& value, bool mono = false);  // an empty value hides the row
  void set_swatch(const QString& label, const QColor& color);               // of a row that is there

 private:
  struct Row {
    TextLabel *label, *value;
    QLabel* swatch = nullptr;
  };
  QGridLayout* grid_;
  std::map<QString, Row> rows_;
};

}  // namespace stacklab::ui
