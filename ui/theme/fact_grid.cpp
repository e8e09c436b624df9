#include "ui/theme/fact_grid.h"

#include <QGridLayout>

namespace stacklab::ui {
namespace {
constexpr int pad = 12;
}

FactGrid::FactGrid(QWidget* parent) : QWidget(parent), grid_(new QGridLayout(this)) {
  grid_->setContentsMargins(pad, 4, pad, 8);
  grid_->setHorizontalSpacing(12);
  grid_->setVerticalSpacing(3);
  grid_->setColumnStretch(2, 1);
}

void FactGrid::set(const QString& label, const QString& value, bool mono) {
  auto found = rows_.find(label);
  if (found == rows_.end()) {
    if (value.isEmpty()) return;
    Row row{new TextLabel(TextRole::secondary, Token::text3, false, this),
            new TextLabel(TextRole::secondary, Token::text, false, this)};
    row.label->set_full_text(label);
    row.value->set_elided(true);
    row.value->set_numbers(true);
    if (mono) row.value->set_mono(true);
    row.value->setTextInteractionFlags(Qt::TextSelectableByMouse);
    const int line = grid_->rowCount();
    grid_->addWidget(row.label, line, 1);
    grid_->addWidget(row.value, line, 2);
    found = rows_.emplace(label, row).first;
  }
  found->second.value->set_full_text(value);
  found->second.label->setVisible(!value.isEmpty());
  found->second.value->setVisible(!value.isEmpty());
  if (found->second.swatch) found->second.swatch->setVisible(!value.isEmpty());
}

void FactGrid::set_swatch(const QString& label, const QColor& color) {
  const auto found = rows_.find(label);
  if (found == rows_.end()) return;
  Row& row = found->second;
  if (!row.swatch) {
    row.swatch = new QLabel(this);
    row.swatch->setObjectName(QStringLiteral("swatch"));
    int line = 0, column = 0, rows = 0, columns = 0;
    grid_->getItemPosition(grid_->indexOf(row.label), &line, &column, &rows, &columns);
    grid_->addWidget(row.swatch, line, 0);
  }
  QPixmap square(QSize(1, 1) * metrics().scaled(10) * devicePixelRatioF());
  square.setDevicePixelRatio(devicePixelRatioF());
  square.fill(color);
  row.swatch->setPixmap(square);
  row.swatch->setVisible(row.value->isVisibleTo(this));
}

}  // namespace stacklab::ui
