#include "ui/theme/glyphs.h"

#include <QFont>
#include <QPainter>
#include <QPainterPath>
#include <QPolygonF>

namespace stacklab::ui {

void paint_glyph(QPainter& painter, Glyph glyph, const QRectF& box, const QColor& color) {
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  const double s = box.width() / 11.0;
  const auto at = [&](double x, double y) { return box.topLeft() + QPointF(x, y) * s; };
  const QPen stroke(color, 1.5 * s, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin);
  const QPolygonF triangle({at(2.5, 1.2), at(10, 5.5), at(2.5, 9.8)});
  painter.setPen(Qt::NoPen);
  painter.setBrush(color);
  const auto hollow = [&] {
    painter.setPen(stroke);
    painter.setBrush(Qt::NoBrush);
  };
  switch (glyph) {
    case Glyph::none:
      break;
    case Glyph::circle:
      hollow();
      painter.drawEllipse(QRectF(at(1.5, 1.5), at(9.5, 9.5)));
      break;
    case Glyph::play:
      painter.drawPolygon(triangle);
      break;
    case Glyph::play_hollow:
      hollow();
      painter.drawPolygon(triangle);
      break;
    case Glyph::pause:
      painter.drawRect(QRectF(at(2, 1.5), at(4.5, 9.5)));
      painter.drawRect(QRectF(at(6.5, 1.5), at(9, 9.5)));
      break;
    case Glyph::square_hollow:
      hollow();
      painter.drawRect(QRectF(at(2, 2), at(9, 9)));
      break;
    case Glyph::square:
      painter.drawRect(QRectF(at(1.5, 1.5), at(9.5, 9.5)));
      break;
    case Glyph::check:
      hollow();
      painter.drawPolyline(QPolygonF({at(1.5, 6), at(4.3, 8.8), at(9.7, 2.4)}));
      break;
    case Glyph::cross:
      hollow();
      painter.drawLine(at(2, 2), at(9, 9));
      painter.drawLine(at(9, 2), at(2, 9));
      break;
    case Glyph::diamond:
      painter.drawPolygon(QPolygonF({at(5.5, .8), at(10.2, 5.5), at(5.5, 10.2), at(.8, 5.5)}));
      break;
    case Glyph::triangle_down:
      painter.drawPolygon(QPolygonF({at(.9, 2), at(10.1, 2), at(5.5, 9.6)}));
      break;
    case Glyph::question: {
      QFont font = painter.font();
      font.setPixelSize(qRound(12 * s));
      font.setBold(true);
      painter.setFont(font);
      painter.setPen(color);
      painter.drawText(box.adjusted(-2, -2, 2, 2), Qt::AlignCenter, QStringLiteral("?"));
      break;
    }
  }
  painter.restore();
}

}  // namespace stacklab::ui
