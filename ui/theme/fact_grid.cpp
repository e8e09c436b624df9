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
  grid_->setColumnStretch(1, 1);
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
    grid_->addWidget(row.label, line, 0);
    grid_->addWidget(row.value, line, 1);
    found = rows_.emplace(label, row).first;
  }
  found->second.value->set_full_text(value);
  found->second.label->setVisible(!value.isEmpty());
  found->second.value->setVisible(!value.isEmpty());
}

}  // namespace stacklab::ui
