#include "ui/pages/monitor/heat_panel.h"

#include <QHBoxLayout>
#include <QMenu>
#include <QSlider>
#include <QStandardItemModel>
#include <algorithm>
#include <cmath>
#include <limits>

#include "ui/plots/series_table.h"
#include "ui/theme/numbers.h"

namespace stacklab::ui {

HeatPanel::HeatPanel(QWidget* parent) : PanelFrame(QStringLiteral("max-logit"), tr("Max attention logit"), parent) {
  over_ = make_badge("bad", QStringLiteral("dialog-warning"));
  over_->setFocusPolicy(Qt::NoFocus);
  legend_ = new HeatLegend(this);
  legend_->hide();
  header()->insertWidget(header()->count() - 1, legend_);
  map_ = new HeatMap(tr("layer"), tr("head"), this);
  map_->setAccessibleName(tr("Max attention logit by layer and head"));
  map_->set_column_note(tr("underlined: no position encoding"));
  set_content(map_);
  auto* row = new QHBoxLayout;
  row->setContentsMargins(11, 0, 11, 4);
  row->setSpacing(8);
  slider_ = new QSlider(Qt::Horizontal, this);
  slider_->setAccessibleName(tr("Step of the heat map"));
  at_ = new TextLabel(TextRole::small, Token::text2, false, this);
  at_->set_numbers(true);
  follow_ = new QToolButton(this);
  follow_->setText(tr("Follow cursor"));
  follow_->setCheckable(true);
  follow_->setChecked(true);
  follow_->setProperty("toggle", true);
  follow_->setAccessibleName(tr("The heat map follows the crosshair"));
  follow_->setToolTip(tr("Show the step of the crosshair; the last one where there is none"));
  row->addWidget(slider_, 1);
  row->addWidget(at_);
  row->addWidget(follow_);
  column()->addLayout(row);
  connect(map_, &HeatMap::cell_chosen, this, [this](int head, int layer) { emit head_chosen(layer, head); });
  connect(slider_, &QSlider::valueChanged, this, [this] {
    follow_->setChecked(false);
    show_step();
  });
  connect(follow_, &QToolButton::toggled, this, [this] { show_step(); });
  refresh();
}

void HeatPanel::fill_menu(QMenu* menu) {
  QAction* table = menu->addAction(tr("Show as table"), this, [this] { show_as_table(); });
  table->setEnabled(!map_->cells().values.empty());
}

QDialog* HeatPanel::show_as_table() {
  const HeatCells& cells = map_->cells();
  auto* model = new QStandardItemModel(cells.rows, cells.columns);
  for (int row = 0; row < cells.rows; ++row) {
    model->setVerticalHeaderItem(row, new QStandardItem(tr("head %1").arg(row)));
    for (int column = 0; column < cells.columns; ++column) {
      const double value = cells.at(row, column);
      auto* item = new QStandardItem(std::isnan(value) ? missing() : format_fixed(value, 2));
      item->setEditable(false);
      item->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
      const bool over = cells.limit > 0 && value >= cells.limit;
      if (over) item->setForeground(theme()[Token::bad]);
      item->setToolTip(QString::number(value, 'g', 17));
      item->setAccessibleText(tr("layer %1, head %2: %3%4")
                                  .arg(column)
                                  .arg(row)
                                  .arg(item->text(), over ? tr(", over the threshold") : QString()));
      model->setItem(row, column, item);
    }
  }
  for (int column = 0; column < cells.columns; ++column)
    model->setHorizontalHeaderItem(column, new QStandardItem(tr("layer %1").arg(column)));
  return show_table(model, tr("%1, %2").arg(title(), unit()->full_text()), tr("%1 as a table").arg(title()), window());
}

void HeatPanel::set_heads(HeadSeries heads) {
  heads_ = std::move(heads);
  refresh();
}

std::span<const double> HeatPanel::steps() const {
  return heads_.empty() ? std::span<const double>() : heads_.of(0, 0).xs();
}

void HeatPanel::refresh() {
  const auto known = static_cast<int>(steps().size());
  const QSignalBlocker blocker(slider_);
  const bool at_end = slider_->value() == slider_->maximum();
  slider_->setRange(0, std::max(0, known - 1));
  if (at_end) slider_->setValue(slider_->maximum());
  for (QWidget* widget : std::initializer_list<QWidget*>{slider_, at_, follow_}) widget->setVisible(known > 1);
  show_step();
}

void HeatPanel::set_cursor_step(std::optional<double> step) {
  if (step == cursor_) return;
  cursor_ = step;
  if (follow_->isChecked()) show_step();
}

void HeatPanel::set_selected(std::optional<QPoint> head) { map_->set_selected(head); }

void HeatPanel::show_step() {
  const auto known = steps();
  HeatCells cells;
  if (!known.empty()) {
    std::size_t i = follow_->isChecked() ? known.size() - 1 : static_cast<std::size_t>(slider_->value());
    if (follow_->isChecked() && cursor_) i = nearest_index(known, *cursor_);
    i = std::min(i, known.size() - 1);
    {
      const QSignalBlocker blocker(slider_);
      slider_->setValue(static_cast<int>(i));
    }
    step_ = known[i];
    cells.rows = heads_.heads;
    cells.columns = heads_.layers;
    cells.limit = heads_.limit;
    cells.marked = heads_.unpositioned;
    for (int head = 0; head < heads_.heads; ++head)
      for (int layer = 0; layer < heads_.layers; ++layer) {
        const Series& series = heads_.of(layer, head);
        const std::size_t at = series.nearest(step_);
        // Of very many evaluations not each head has kept the same.
        const bool known_there = !series.empty() && (series.xs()[at] == step_ || series.summed());
        cells.values.push_back(known_there ? series.ys()[at] : std::numeric_limits<double>::quiet_NaN());
      }
  }
  const QString step = format_count(std::llround(step_));
  unit()->set_full_text(known.empty()          ? QString()
                        : heads_.run.isEmpty() ? tr("step %1").arg(step)
                                               : tr("%1, step %2").arg(heads_.run, step));
  at_->set_full_text(tr("step %1").arg(step));
  const int over = cells.over();
  set_badge(over_, over > 0, {over == 1 ? tr("1 head over") : tr("%1 heads over").arg(over), tr("%1 over").arg(over)},
            tr("Heads whose largest logit reached the threshold of %1").arg(format_fixed(heads_.limit, 0)));
  legend_->set_scale(heads_.limit, cells.values.empty() ? 0 : cells.largest(), tr("clip"));
  map_->set_cells(std::move(cells));
}

}  // namespace stacklab::ui

#include <moc_heat_panel.cpp>
