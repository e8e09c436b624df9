#include "ui/pages/runs/mini_loss.h"

#include <QPainter>
#include <QPainterPath>
#include <algorithm>
#include <cmath>
#include <limits>

#include "ui/theme/glyphs.h"
#include "ui/theme/look.h"
#include "ui/theme/numbers.h"

namespace stacklab::ui {

MiniLoss::MiniLoss(QWidget* parent) : QWidget(parent) {
  setAccessibleName(tr("Loss by step"));
  setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
}

QSize MiniLoss::sizeHint() const { return {200, metrics().scaled(120)}; }

void MiniLoss::set_curves(std::vector<Curve> curves) {
  curves_ = std::move(curves);
  QString said;
  for (const Curve& curve : curves_)
    if (!curve.points.empty())
      said += tr("from %1 to %2. ").arg(format_loss(curve.points.front().y()), format_loss(curve.points.back().y()));
  setAccessibleDescription(said);
  update();
}

MiniLoss::Axis MiniLoss::axis() const {
  constexpr double none = std::numeric_limits<double>::infinity();
  Axis axis;
  double low = none, high = -none, highest = -none;
  for (const Curve& curve : curves_)
    for (std::size_t i = 0; i < curve.points.size(); ++i) {
      const double y = curve.points[i].y();
      axis.right = std::max(axis.right, curve.points[i].x());
      if (!std::isfinite(y)) continue;
      low = std::min(low, y);
      highest = std::max(highest, y);
      // The first steps are so high that nothing else would be seen.
      if (i * 20 >= curve.points.size()) high = std::max(high, y);
    }
  if (low > highest || axis.right <= 0) return axis;
  high = high < low ? highest : high;
  for (int most = 3; most <= 5 && axis.ticks.size() < 3; ++most) {
    axis.range = nice_range(low, high, most);
    axis.ticks = linear_ticks(axis.range, most, ValueFormat::fixed3);
  }
  axis.cut = highest > axis.range.high;
  return axis;
}

QRectF MiniLoss::plot() const {
  const QFontMetrics font(look().number_font(TextRole::small));
  int widest = 0;
  for (const Tick& tick : axis().ticks) widest = std::max(widest, font.horizontalAdvance(tick.label));
  const double top = font.height() / 2.0 + 2;
  return {widest + 8.0, top, width() - widest - 16.0, height() - font.height() - 6 - top};
}

void MiniLoss::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  const Theme& t = theme();
  const QFont small = look().number_font(TextRole::small);
  painter.setFont(small);
  const QFontMetrics font(small);
  const Axis axis = this->axis();
  if (axis.is_empty()) {
    painter.setPen(t[Token::text3]);
    painter.drawText(rect(), Qt::AlignCenter, tr("No loss yet."));
    return;
  }
  const QRectF plot = this->plot();
  const auto place = [&](const QPointF& p) {
    return QPointF(plot.left() + plot.width() * p.x() / axis.right,
                   plot.bottom() - plot.height() * std::clamp((p.y() - axis.range.low) / axis.range.span(), 0.0, 1.05));
  };
  for (const Tick& tick : axis.ticks) {
    const qreal at = place({0, tick.position}).y();
    painter.setPen(t[Token::grid]);
    painter.drawLine(QPointF(plot.left(), at), QPointF(plot.right(), at));
    painter.setPen(t[Token::text3]);
    painter.drawText(QRectF(0, at - font.height() / 2.0, plot.left() - 6, font.height()),
                     Qt::AlignRight | Qt::AlignVCenter, tick.label);
  }
  const QRectF below(plot.left(), plot.bottom() + 4, plot.width(), font.height());
  painter.drawText(below, Qt::AlignLeft, QStringLiteral("0"));
  painter.drawText(below, Qt::AlignRight, format_compact(axis.right));
  if (axis.cut)
    painter.drawText(QRectF(plot.left(), plot.top() + 1, plot.width() - 2, font.height()), Qt::AlignRight,
                     tr("first steps above"));
  painter.setClipRect(plot.adjusted(-1, -4, 2, 2));
  for (const Curve& curve : curves_) {
    QPen pen(t.run_color(curve.number), 1.7);
    if (const auto dash = run_dash(curve.number); !dash.isEmpty()) {
      pen.setDashPattern(dash);
      pen.setCapStyle(Qt::FlatCap);
    }
    painter.setPen(pen);
    QPainterPath path;
    bool down = false;
    for (const QPointF& p : curve.points) {
      if (!std::isfinite(p.y())) {
        down = false;
        continue;
      }
      if (down)
        path.lineTo(place(p));
      else
        path.moveTo(place(p));
      down = true;
    }
    painter.drawPath(path);
  }
  painter.setClipping(false);
  const double side = metrics().scaled(9);
  for (const Curve& curve : curves_) {
    double last = -side;
    for (const QPointF& gap : curve.gaps) {
      const double x = plot.left() + plot.width() * gap.x() / axis.right;
      if (x - last < side) continue;
      last = x;
      const double y =
          std::isfinite(gap.y()) ? std::clamp(place(gap).y(), plot.top() + 6, plot.bottom() - 6) : plot.bottom() - 7;
      paint_glyph(painter, Glyph::cross, QRectF(x - side / 2, y - side / 2, side, side), t[Token::bad]);
    }
  }
}

}  // namespace stacklab::ui
