#include "ui/pages/runs/mini_loss.h"

#include <QPainter>
#include <QPainterPath>
#include <algorithm>
#include <cmath>

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

void MiniLoss::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  const Theme& t = theme();
  const QFont small = look().number_font(TextRole::small);
  painter.setFont(small);
  const QFontMetrics font(small);
  double right = 0, low = 1e300, high = -1e300;
  for (const Curve& curve : curves_)
    for (std::size_t i = 0; i < curve.points.size(); ++i) {
      const double y = curve.points[i].y();
      right = std::max(right, curve.points[i].x());
      if (!std::isfinite(y)) continue;
      low = std::min(low, y);
      // The first steps are so high that nothing else would be seen.
      if (i * 20 >= curve.points.size()) high = std::max(high, y);
    }
  const QRectF plot(font.horizontalAdvance(QStringLiteral("0.000")) + 6, 6,
                    width() - font.horizontalAdvance(QStringLiteral("0.000")) - 14, height() - font.height() - 12);
  if (low > high || right <= 0) {
    painter.setPen(t[Token::text3]);
    painter.drawText(rect(), Qt::AlignCenter, tr("No loss yet."));
    return;
  }
  if (high - low < 1e-6) high = low + 1e-6;
  const auto place = [&](const QPointF& p) {
    return QPointF(plot.left() + plot.width() * p.x() / right,
                   plot.bottom() - plot.height() * std::clamp((p.y() - low) / (high - low), 0.0, 1.05));
  };
  for (const double y : {low, (low + high) / 2, high}) {
    const qreal at = place({0, y}).y();
    painter.setPen(t[Token::grid]);
    painter.drawLine(QPointF(plot.left(), at), QPointF(plot.right(), at));
    painter.setPen(t[Token::text3]);
    painter.drawText(QRectF(0, at - font.height() / 2.0, plot.left() - 6, font.height()),
                     Qt::AlignRight | Qt::AlignVCenter, format_fixed(y, 2));
  }
  painter.drawText(QRectF(plot.left(), plot.bottom() + 4, plot.width(), font.height()), Qt::AlignLeft,
                   QStringLiteral("0"));
  painter.drawText(QRectF(plot.left(), plot.bottom() + 4, plot.width(), font.height()), Qt::AlignRight,
                   format_compact(right));
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
}

}  // namespace stacklab::ui
