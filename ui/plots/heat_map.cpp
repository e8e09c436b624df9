#include "ui/plots/heat_map.h"

#include <QFontMetricsF>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <array>
#include <cmath>

#include "ui/plots/ticks.h"
#include "ui/theme/look.h"
#include "ui/theme/numbers.h"

namespace stacklab::ui {
namespace {

constexpr double legend_bar = 120;

QColor between(QColor a, QColor b, double part) { return mix(b, a, std::clamp(part, 0.0, 1.0)); }

}  // namespace

double HeatCells::largest() const {
  double most = 0;
  for (const double v : values)
    if (std::isfinite(v)) most = std::max(most, v);
  return most > 0 ? most : 1;
}

int HeatCells::over() const {
  if (limit <= 0) return 0;
  return static_cast<int>(std::count_if(values.begin(), values.end(), [&](double v) { return v >= limit; }));
}

QColor heat_color(double part, bool dark) {
  static const std::array<QColor, 5> light_ramp = {QColor(0xF1F3F8), QColor(0xCBD6EF), QColor(0x94ACDF),
                                                   QColor(0x5D7AC6), QColor(0x34489C)};
  static const std::array<QColor, 5> dark_ramp = {QColor(0x20242E), QColor(0x2B3C62), QColor(0x3F64A8),
                                                  QColor(0x6A98DC), QColor(0xA8CBF5)};
  const auto& ramp = dark ? dark_ramp : light_ramp;
  if (!(part > 0)) return ramp[0];
  if (part >= 1)
    return dark ? between(QColor(0xEDA05A), QColor(0xFF6A3A), (part - 1) * 2)
                : between(QColor(0xF0924A), QColor(0xC93A0C), (part - 1) * 2);
  const double at = part * 4;
  const auto i = std::min<std::size_t>(3, static_cast<std::size_t>(at));
  return between(ramp[i], ramp[i + 1], at - static_cast<double>(i));
}

HeatMap::HeatMap(const QString& column_word, const QString& row_word, QWidget* parent)
    : QWidget(parent), column_word_(column_word), row_word_(row_word) {
  setFocusPolicy(Qt::StrongFocus);
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
  connect(&look(), &Look::changed, this, qOverload<>(&QWidget::update));
}

void HeatMap::set_cells(HeatCells cells) {
  cells_ = std::move(cells);
  if (selected_ && (selected_->x() >= cells_.columns || selected_->y() >= cells_.rows)) selected_.reset();
  setAccessibleDescription(selected_ ? say(*selected_) : empty_text_);
  update();
}

void HeatMap::set_selected(std::optional<QPoint> cell) {
  if (cell == selected_) return;
  selected_ = cell;
  if (cell) setAccessibleDescription(say(*cell));
  update();
}

void HeatMap::set_empty_text(const QString& text) {
  empty_text_ = text;
  update();
}

QRectF HeatMap::plot() const {
  const QFontMetricsF m(look().number_font(TextRole::small));
  return QRectF(QPointF(m.horizontalAdvance(QString::number(std::max(0, cells_.rows - 1))) + 10, 6),
                QPointF(width() - 6, std::max(20.0, height() - 2 * m.height() - 6)));
}

QRectF HeatMap::cell_rect(int row, int column) const {
  const QRectF p = plot();
  const double w = p.width() / cells_.columns, h = p.height() / cells_.rows;
  const double left = std::round(p.left() + column * w), top = std::round(p.top() + row * h);
  return {left, top, std::max(1.0, std::round(p.left() + (column + 1) * w) - left - 1),
          std::max(1.0, std::round(p.top() + (row + 1) * h) - top - 1)};
}

std::optional<QPoint> HeatMap::cell_at(const QPointF& position) const {
  const QRectF p = plot();
  if (cells_.columns == 0 || cells_.rows == 0 || !p.contains(position)) return std::nullopt;
  return QPoint(std::min(cells_.columns - 1, static_cast<int>((position.x() - p.left()) / p.width() * cells_.columns)),
                std::min(cells_.rows - 1, static_cast<int>((position.y() - p.top()) / p.height() * cells_.rows)));
}

QString HeatMap::say(QPoint cell) const {
  const double value = cells_.at(cell.y(), cell.x());
  return tr("%1 %2, %3 %4: %5")
      .arg(column_word_)
      .arg(cell.x())
      .arg(row_word_)
      .arg(cell.y())
      .arg(std::isnan(value) ? tr("not measured") : format_fixed(value, 2));
}

void HeatMap::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  const Theme& t = theme();
  const QFont font = look().number_font(TextRole::small);
  const QFontMetricsF m(font);
  painter.setFont(font);
  painter.setPen(t[Token::text3]);
  if (cells_.rows == 0 || cells_.columns == 0) {
    painter.setFont(look().font(TextRole::secondary));
    painter.drawText(QRectF(rect()).adjusted(8, 0, -8, 0), Qt::AlignCenter | Qt::TextWordWrap, empty_text_);
    return;
  }
  const QRectF p = plot();
  const double reference = cells_.limit > 0 ? cells_.limit : cells_.largest() * 1.0001;
  for (int row = 0; row < cells_.rows; ++row)
    for (int column = 0; column < cells_.columns; ++column) {
      const double value = cells_.at(row, column);
      const QRectF box = cell_rect(row, column);
      if (std::isnan(value)) {
        painter.setPen(t[Token::grid]);
        painter.drawRect(box.adjusted(0, 0, -1, -1));
        continue;
      }
      painter.fillRect(box, heat_color(std::isfinite(value) ? value / reference : 2, t.is_dark()));
      if (cells_.limit > 0 && value >= cells_.limit) {
        const double side = std::clamp(std::min(box.width(), box.height()) / 3, 3.0, 8.0);
        painter.setRenderHint(QPainter::Antialiasing);
        painter.setPen(Qt::NoPen);
        painter.setBrush(t[Token::text]);
        painter.drawPolygon(
            QPolygonF({box.topRight() - QPointF(side, 0), box.topRight(), box.topRight() + QPointF(0, side)}));
        painter.setBrush(Qt::NoBrush);
        painter.setRenderHint(QPainter::Antialiasing, false);
      }
    }
  if (selected_) {
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(QPen(t[Token::text], 1.6));
    painter.drawRect(cell_rect(selected_->y(), selected_->x()).adjusted(0.3, 0.3, -0.3, -0.3));
    painter.setRenderHint(QPainter::Antialiasing, false);
  }
  painter.setPen(t[Token::text3]);
  const double cell_height = p.height() / cells_.rows;
  const int row_step = std::max(1, static_cast<int>(std::ceil(m.height() / cell_height)));
  for (int row = 0; row < cells_.rows; row += row_step)
    painter.drawText(QRectF(0, p.top() + row * cell_height, p.left() - 6, cell_height),
                     Qt::AlignRight | Qt::AlignVCenter, QString::number(row));
  const double cell_width = p.width() / cells_.columns;
  const double label = m.horizontalAdvance(QString::number(cells_.columns)) + 8;
  int column_step = 1;
  for (const int step : {1, 2, 5, 10, 20, 50})
    if (cell_width * (column_step = step) >= label) break;
  for (int column = 0; column < cells_.columns; ++column) {
    const QRectF below(p.left() + column * cell_width, p.bottom() + 3, cell_width, m.height());
    if (column % column_step == 0)
      painter.drawText(below.adjusted(-20, 0, 20, 0), Qt::AlignCenter, QString::number(column));
    if (static_cast<std::size_t>(column) < cells_.marked.size() && cells_.marked[static_cast<std::size_t>(column)])
      painter.fillRect(QRectF(below.center().x() - 4, p.bottom() + 1, 8, 1.5), t[Token::text3]);
  }
  const QRectF foot(p.left(), p.bottom() + 3 + m.height(), p.width(), m.height());
  painter.drawText(foot, Qt::AlignLeft | Qt::AlignVCenter, tr("%1 by %2").arg(row_word_, column_word_));
  painter.drawText(foot, Qt::AlignRight | Qt::AlignVCenter,
                   note_.isEmpty() ? column_word_ : tr("%1; %2").arg(column_word_, note_));
}

void HeatMap::choose(QPoint cell) {
  set_selected(cell);
  emit cell_chosen(cell.y(), cell.x());
}

void HeatMap::mousePressEvent(QMouseEvent* event) {
  if (const auto cell = cell_at(event->position()); cell && event->button() == Qt::LeftButton) choose(*cell);
  QWidget::mousePressEvent(event);
}

void HeatMap::keyPressEvent(QKeyEvent* event) {
  if (cells_.rows == 0 || cells_.columns == 0) return QWidget::keyPressEvent(event);
  QPoint cell = selected_.value_or(QPoint(0, 0));
  switch (event->key()) {
    case Qt::Key_Left:
      cell.rx() -= 1;
      break;
    case Qt::Key_Right:
      cell.rx() += 1;
      break;
    case Qt::Key_Up:
      cell.ry() -= 1;
      break;
    case Qt::Key_Down:
      cell.ry() += 1;
      break;
    default:
      return QWidget::keyPressEvent(event);
  }
  choose({std::clamp(cell.x(), 0, cells_.columns - 1), std::clamp(cell.y(), 0, cells_.rows - 1)});
}

bool HeatMap::event(QEvent* event) {
  if (event->type() == QEvent::ToolTip) {
    const auto* help = static_cast<QHelpEvent*>(event);
    if (const auto cell = cell_at(help->pos()))
      QToolTip::showText(help->globalPos(), say(*cell), this);
    else
      QToolTip::hideText();
    return true;
  }
  return QWidget::event(event);
}

HeatLegend::HeatLegend(QWidget* parent) : QWidget(parent) {
  setSizePolicy(QSizePolicy::Maximum, QSizePolicy::Preferred);
  connect(&look(), &Look::changed, this, &QWidget::updateGeometry);
}

void HeatLegend::set_scale(double limit, double most, const QString& word) {
  limit_ = limit;
  most_ = limit > 0 ? 1.5 * limit : most;
  word_ = word;
  setVisible(most_ > 0);
  setAccessibleName(limit_ > 0 ? text() : tr("0 to %1").arg(end_text()));
  updateGeometry();
  update();
}

QString HeatLegend::text() const { return limit_ > 0 ? tr("%1 at %2").arg(word_, format_fixed(limit_, 0)) : QString(); }

QString HeatLegend::end_text() const {
  return most_ >= 10 && most_ < 1e5 ? format_fixed(most_, 0) : format_value(most_, ValueFormat::fixed2);
}

QSize HeatLegend::sizeHint() const {
  const QFontMetricsF m(look().font(TextRole::small));
  return QSizeF(legend_bar + m.horizontalAdvance(text()) + m.horizontalAdvance(end_text()) + (limit_ > 0 ? 50 : 24),
                m.height())
      .toSize();
}

void HeatLegend::paintEvent(QPaintEvent*) {
  const QFont font = look().font(TextRole::small);
  const QFontMetricsF m(font);
  const QString most = end_text();
  const double texts = m.horizontalAdvance(text()) + m.horizontalAdvance(most) + (limit_ > 0 ? 50 : 24);
  const double bar = std::min<double>(legend_bar, width() - texts);
  if (bar < 30) return;
  QPainter painter(this);
  painter.setFont(font);
  painter.setPen(theme()[Token::text3]);
  double x = m.horizontalAdvance(QLatin1Char('0')) + 6;
  painter.drawText(QRectF(0, 0, x, height()), Qt::AlignLeft | Qt::AlignVCenter, QStringLiteral("0"));
  const double top = height() / 2.0 - 5;
  for (int i = 0; i < static_cast<int>(bar); ++i)
    painter.fillRect(QRectF(x + i, top, 1, 10), heat_color((limit_ > 0 ? 1.5 : 0.9999) * i / bar, theme().is_dark()));
  if (limit_ > 0) painter.fillRect(QRectF(std::round(x + bar / 1.5) - 1, top - 2, 2, 14), theme()[Token::text]);
  x += bar + 6;
  painter.drawText(QRectF(x, 0, width() - x, height()), Qt::AlignLeft | Qt::AlignVCenter, most);
  if (limit_ <= 0) return;
  x += m.horizontalAdvance(most) + 10;
  painter.fillRect(QRectF(x, top - 2, 2, 14), theme()[Token::text]);
  painter.drawText(QRectF(x + 6, 0, width() - x, height()), Qt::AlignLeft | Qt::AlignVCenter, text());
}

}  // namespace stacklab::ui

#include <moc_heat_map.cpp>
