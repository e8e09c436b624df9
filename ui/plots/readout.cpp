#include "ui/plots/readout.h"

#include <QFontMetrics>
#include <QPainter>
#include <algorithm>

#include "ui/theme/look.h"
#include "ui/theme/widgets.h"

namespace stacklab::ui {
namespace {
constexpr int pad = 10, column_gap = 14, swatch = 16;
constexpr std::size_t most_rows = 12;
}  // namespace

ReadoutTip::ReadoutTip(QWidget* window) : QFrame(window) {
  setObjectName(QStringLiteral("tip"));
  setAttribute(Qt::WA_TransparentForMouseEvents);
  setAccessibleName(tr("Values at the crosshair"));
  hide();
}

QSize ReadoutTip::measure() const {
  const QFontMetrics body(look().font(TextRole::secondary)), bold(look().font(TextRole::secondary, true));
  int name = 0, value = 0, raw = 0;
  for (const auto& row : readout_.rows) {
    name = std::max(name, body.horizontalAdvance(row.name));
    value = std::max(value, bold.horizontalAdvance(row.value));
    raw = std::max(raw, body.horizontalAdvance(row.raw));
  }
  const int rows = static_cast<int>(readout_.rows.size()) + 1 + (readout_.footer.isEmpty() ? 0 : 1);
  const int table = readout_.rows.empty() ? 0 : swatch + 8 + name + column_gap + value + (raw ? column_gap + raw : 0);
  const int title = bold.horizontalAdvance(readout_.title) + column_gap + body.horizontalAdvance(readout_.aside);
  const int width = std::max({table, title, body.horizontalAdvance(readout_.footer)}) + 2 * pad;
  return {width, rows * (body.height() + 3) + 2 * pad - 3 + (readout_.rows.empty() ? 0 : 5)};
}

void ReadoutTip::show_at(const Readout& readout, const QPoint& cursor) {
  readout_ = readout;
  if (readout_.rows.size() > most_rows) readout_.rows.resize(most_rows);
  resize(measure());
  QPoint place = cursor + QPoint(18, 14);
  const QSize room = parentWidget()->size();
  if (place.x() + width() > room.width()) place.setX(cursor.x() - 18 - width());
  if (place.y() + height() > room.height()) place.setY(cursor.y() - 14 - height());
  move(std::max(0, place.x()), std::max(0, place.y()));
  raise();
  show();
  update();
}

void ReadoutTip::paintEvent(QPaintEvent* event) {
  QFrame::paintEvent(event);
  const Theme& t = theme();
  const QFont plain = look().font(TextRole::secondary), strong = look().font(TextRole::secondary, true);
  const QFontMetrics m(plain);
  const int line = m.height() + 3, right = width() - pad;
  QPainter painter(this);
  painter.setFont(strong);
  painter.setPen(t[Token::text]);
  painter.drawText(QRect(pad, pad, width(), m.height()), Qt::AlignLeft, readout_.title);
  painter.setFont(plain);
  painter.setPen(t[Token::text3]);
  painter.drawText(QRect(pad, pad, right - pad, m.height()), Qt::AlignRight, readout_.aside);
  int y = pad + line;
  if (!readout_.rows.empty()) {
    painter.setPen(t[Token::border]);
    painter.drawLine(pad, y + 1, right, y + 1);
    y += 5;
  }
  int raw = 0;
  for (const auto& row : readout_.rows) raw = std::max(raw, m.horizontalAdvance(row.raw));
  for (const auto& row : readout_.rows) {
    if (row.points) {
      painter.setRenderHint(QPainter::Antialiasing);
      painter.setPen(QPen(t.run_color(row.number), 1.4));
      painter.drawEllipse(QPointF(pad + swatch / 2.0, y + m.height() / 2.0), 2.5, 2.5);
    } else {
      paint_swatch(painter, QRectF(pad, y, swatch, m.height()), row.number);
    }
    painter.setFont(plain);
    painter.setPen(t[Token::text]);
    painter.drawText(QRect(pad + swatch + 8, y, width(), m.height()), Qt::AlignLeft, row.name);
    painter.setPen(t[Token::text3]);
    painter.drawText(QRect(pad, y, right - pad, m.height()), Qt::AlignRight, row.raw);
    painter.setFont(strong);
    painter.setPen(t[row.bad ? Token::bad : Token::text]);
    painter.drawText(QRect(pad, y, right - pad - (raw ? raw + column_gap : 0), m.height()), Qt::AlignRight, row.value);
    y += line;
  }
  painter.setFont(plain);
  painter.setPen(t[Token::text3]);
  painter.drawText(QRect(pad, y, right - pad, m.height()), Qt::AlignLeft, readout_.footer);
}

}  // namespace stacklab::ui
