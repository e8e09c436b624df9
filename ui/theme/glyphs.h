// Small shapes that stand for states and events, so that colour never speaks alone.
#pragma once

#include <QColor>
#include <QRectF>

class QPainter;

namespace stacklab::ui {

enum class Glyph {
  circle,
  play,
  play_hollow,
  pause,
  square_hollow,
  check,
  cross,
  square,
  question,
  diamond,
  triangle_down,
  none
};

// Fills `box` (square, 11 px at the usual size).
void paint_glyph(QPainter& painter, Glyph glyph, const QRectF& box, const QColor& color);

}  // namespace stacklab::ui
