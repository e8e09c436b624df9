#include "ui/plots/chart_paint.h"

#include <QFontMetricsF>
#include <QPainter>
#include <QSet>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ui/theme/look.h"

namespace stacklab::ui {
namespace {

QPen hairline(const QColor& color, double width = 1, Qt::PenStyle style = Qt::SolidLine) {
  QPen pen(color, width, style, Qt::FlatCap);
  return pen;
}

// The middle of a pixel, so that one-pixel lines stay one pixel.
double crisp(double v) { return std::floor(v) + 0.5; }

}  // namespace

ChartItem::ChartItem(QGraphicsItem* chart, const ChartFrame& frame, double z) : QGraphicsItem(chart), frame_(frame) {
  setZValue(z);
  setAcceptedMouseButtons(Qt::NoButton);
}

void ChartItem::frame_changed() {
  if (bounds_ != frame_.bounds) {
    prepareGeometryChange();
    bounds_ = frame_.bounds;
  }
  update();
}

void GridItem::paint(QPainter* painter, const QStyleOptionGraphicsItem*, QWidget*) {
  const ChartFrame& f = frame_;
  const Theme& t = theme();
  if (f.plot.width() < 2 || f.plot.height() < 2) return;
  const QFont font = look().number_font(TextRole::small);
  const QFontMetricsF m(font);
  painter->setRenderHint(QPainter::Antialiasing, false);
  painter->setFont(font);
  for (const auto& line : f.references) {
    if (!line.limit) continue;
    const double y = std::min(f.py(line.y), f.plot.bottom());
    if (y > f.plot.top())
      painter->fillRect(QRectF(f.plot.topLeft(), QPointF(f.plot.right(), y)),
                        mix(t[Token::bad_soft], t[Token::surface], 0.6));
  }
  painter->setPen(hairline(t[Token::grid]));
  for (const Tick& tick : f.y_ticks)
    painter->drawLine(QPointF(f.plot.left(), crisp(f.py(tick.position))),
                      QPointF(f.plot.right(), crisp(f.py(tick.position))));
  for (const Tick& tick : f.x_ticks)
    painter->drawLine(QPointF(crisp(f.px(tick.position)), f.plot.top()),
                      QPointF(crisp(f.px(tick.position)), f.plot.bottom()));
  painter->setPen(hairline(t[Token::strong]));
  painter->drawLine(QPointF(f.plot.left(), crisp(f.plot.bottom())), QPointF(f.plot.right(), crisp(f.plot.bottom())));
  painter->setPen(t[Token::text3]);
  for (const Tick& tick : f.y_ticks) {
    const double y = f.py(tick.position);
    painter->drawText(QRectF(0, y - m.height() / 2, f.plot.left() - 6, m.height()), Qt::AlignRight | Qt::AlignVCenter,
                      tick.label);
  }
  double free_from = -1e9;
  for (const Tick& tick : f.x_ticks) {
    const double width = m.horizontalAdvance(tick.label);
    const double left = std::min(f.px(tick.position) - width / 2, f.bounds.right() - width);
    if (left < free_from) continue;
    painter->drawText(QRectF(left, f.plot.bottom() + 4, width + 1, m.height()), Qt::AlignLeft | Qt::AlignVCenter,
                      tick.label);
    free_from = left + width + 8;
  }
  painter->drawText(QRectF(f.plot.left(), f.plot.bottom() + 4 + m.height(), f.plot.width(), m.height()),
                    Qt::AlignRight | Qt::AlignVCenter, f.x_title);
}

void MarksItem::paint(QPainter* painter, const QStyleOptionGraphicsItem*, QWidget*) {
  const ChartFrame& f = frame_;
  const Theme& t = theme();
  if (f.plot.width() < 2 || f.plot.height() < 2) return;
  const QFont font = look().font(TextRole::small);
  const QFontMetricsF m(font);
  painter->setFont(font);
  const double glyph_side = metrics().scaled(9);

  painter->save();
  painter->setClipRect(f.plot.adjusted(-6, -6, 6, 1));
  for (const auto& line : f.references) {
    const double y = crisp(f.py(line.y));
    if (y < f.plot.top() || y > f.plot.bottom()) continue;
    QPen pen = hairline(t[line.limit ? Token::bad : Token::text3], 1.2);
    if (!line.limit) pen.setDashPattern({3, 2.5});
    painter->setPen(pen);
    painter->drawLine(QPointF(f.plot.left(), y), QPointF(f.plot.right(), y));
    const QString words = m.elidedText(line.text, Qt::ElideRight, std::max(20.0, f.plot.width() - 6));
    const double width = m.horizontalAdvance(words);
    const bool above = y - m.height() - 2 > f.plot.top() - 4;
    QRectF box(f.plot.right() - width - 6, above ? y - m.height() - 1 : y + 2, width + 4, m.height());
    // Signs of events have the top to themselves.
    const double signs_end = f.plot.top() - 1 + glyph_side;
    const bool meets_sign = std::any_of(f.events.begin(), f.events.end(), [&](const auto& event) {
      return f.px(event.x) + glyph_side / 2 > box.left() && f.px(event.x) - glyph_side / 2 < box.right();
    });
    if (meets_sign && box.top() < signs_end) box.moveTop(std::max(y + 2, signs_end));
    painter->fillRect(box, t[Token::surface]);
    painter->setPen(t[line.limit ? Token::bad : Token::text3]);
    painter->drawText(box, Qt::AlignCenter, words);
  }
  for (const auto& event : f.events) {
    if (!event.line) continue;
    const double x = crisp(f.px(event.x));
    QPen pen = hairline(event.color, 1);
    pen.setDashPattern({1.5, 2.5});
    painter->setPen(pen);
    painter->setRenderHint(QPainter::Antialiasing, false);
    painter->drawLine(QPointF(x, f.plot.top() + glyph_side), QPointF(x, f.plot.bottom()));
  }
  painter->setRenderHint(QPainter::Antialiasing);
  painter->setPen(Qt::NoPen);
  for (const auto& dot : f.dots) {
    painter->setBrush(dot.color);
    painter->drawEllipse(QPointF(f.px(dot.at.x()), f.py(dot.at.y())), 1.6, 1.6);
  }
  painter->setBrush(t[Token::surface]);
  for (const auto& circle : f.circles) {
    painter->setPen(QPen(circle.color, 1.4));
    painter->drawEllipse(QPointF(f.px(circle.at.x()), f.py(circle.at.y())), 2.5, 2.5);
  }
  painter->restore();

  double last_event = -1e9;
  for (const auto& event : f.events) {
    const double x = f.px(event.x);
    if (x < f.plot.left() - 1 || x > f.plot.right() + 1 || x - last_event < glyph_side * 0.7) continue;
    paint_glyph(*painter, event.glyph, QRectF(x - glyph_side / 2, f.plot.top() - 2, glyph_side, glyph_side),
                event.color);
    last_event = x;
  }
  double last_gap = -1e9;
  for (const auto& gap : f.gaps) {
    const double x = f.px(gap.at.x());
    if (x - last_gap < glyph_side) continue;
    last_gap = x;
    const double y = std::isfinite(gap.at.y()) ? std::clamp(f.py(gap.at.y()), f.plot.top() + 6, f.plot.bottom() - 6)
                                               : f.plot.bottom() - 7;
    paint_glyph(*painter, Glyph::cross, QRectF(x - glyph_side / 2, y - glyph_side / 2, glyph_side, glyph_side),
                t[Token::bad]);
  }

  std::vector<double> wanted;
  std::vector<bool> focused;
  QStringList texts;
  for (const auto& label : f.end_labels) {
    wanted.push_back(std::clamp(f.py(label.y), f.plot.top(), f.plot.bottom()));
    focused.push_back(label.focused);
    texts << label.text;
  }
  const std::vector<double> places =
      spread_labels(wanted, focused, texts, std::max(13.0, m.height()), f.plot.top(), f.plot.bottom());
  // How many found no room stands behind the lowest.
  const auto dropped = std::count_if(places.begin(), places.end(), [](double y) { return std::isnan(y); });
  const double lowest =
      std::accumulate(places.begin(), places.end(), -1e9, [](double most, double y) { return y > most ? y : most; });
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (std::isnan(places[i])) continue;
    const QRectF box(f.plot.right() + 6, places[i] - m.height() / 2, f.bounds.right() - f.plot.right() - 6, m.height());
    const QString more = dropped > 0 && places[i] == lowest ? QStringLiteral("+%1").arg(dropped) : QString();
    const double more_width = more.isEmpty() ? 0 : m.horizontalAdvance(more) + 6;
    const QString words = m.elidedText(f.end_labels[i].text, Qt::ElideMiddle, box.width() - more_width);
    painter->setPen(f.end_labels[i].color);
    painter->drawText(box, Qt::AlignLeft | Qt::AlignVCenter, words);
    if (more.isEmpty()) continue;
    painter->setPen(t[Token::text3]);
    painter->drawText(box.adjusted(m.horizontalAdvance(words) + 6, 0, 0, 0), Qt::AlignLeft | Qt::AlignVCenter, more);
  }

  if (f.empty && !f.empty_text.isEmpty()) {
    painter->setFont(look().font(TextRole::secondary));
    painter->setPen(t[Token::text3]);
    // Above lines that are there all the same.
    const double below = f.references.empty() ? 0 : f.plot.height() * 0.55;
    painter->drawText(f.plot.adjusted(8, 0, -8, -below), Qt::AlignCenter | Qt::TextWordWrap, f.empty_text);
  }
}

void CrosshairItem::set_position(std::optional<double> x, const QString& chip) {
  if (x == x_ && chip == chip_) return;
  update_strip();
  x_ = x;
  chip_ = chip;
  update_strip();
}

void CrosshairItem::set_rubber_band(std::optional<QRectF> band) {
  band_ = band;
  update();
}

QRectF CrosshairItem::chip_rect() const {
  const QFontMetricsF m(look().number_font(TextRole::small));
  const double width = m.horizontalAdvance(chip_) + 12, x = frame_.px(*x_);
  const double left =
      std::clamp(x - width / 2, frame_.bounds.left(), std::max(frame_.bounds.left(), frame_.bounds.right() - width));
  return {left, frame_.plot.bottom() + 2, width, m.height() + 4};
}

void CrosshairItem::update_strip() {
  if (!x_) return;
  update(QRectF(frame_.px(*x_) - 2, frame_.plot.top() - 2, 4, frame_.plot.height() + 4));
  update(chip_rect().adjusted(-1, -1, 1, 1));
}

void CrosshairItem::paint(QPainter* painter, const QStyleOptionGraphicsItem*, QWidget*) {
  const Theme& t = theme();
  if (band_) {
    QColor fill = t[Token::accent];
    fill.setAlphaF(0.12F);
    painter->setRenderHint(QPainter::Antialiasing, false);
    painter->setPen(QPen(t[Token::accent], 1));
    painter->setBrush(fill);
    painter->drawRect(*band_);
  }
  if (!x_ || *x_ < frame_.x.low || *x_ > frame_.x.high) return;
  const double x = crisp(frame_.px(*x_));
  painter->setRenderHint(QPainter::Antialiasing, false);
  painter->setPen(hairline(t[Token::input]));
  painter->drawLine(QPointF(x, frame_.plot.top()), QPointF(x, frame_.plot.bottom()));
  const QRectF chip = chip_rect();
  painter->setRenderHint(QPainter::Antialiasing);
  painter->setPen(Qt::NoPen);
  painter->setBrush(t[Token::text2]);
  painter->drawRoundedRect(chip, 3, 3);
  painter->setFont(look().number_font(TextRole::small));
  painter->setPen(t[Token::surface]);
  painter->drawText(chip, Qt::AlignCenter, chip_);
}

std::vector<double> spread_labels(const std::vector<double>& wanted, const std::vector<bool>& focused,
                                  const QStringList& texts, double gap, double top, double bottom) {
  std::vector<double> places(wanted.size(), std::numeric_limits<double>::quiet_NaN());
  const auto room = static_cast<std::size_t>(std::max(0.0, std::floor((bottom - top) / gap))) + 1;
  std::vector<std::size_t> order(wanted.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return focused[a] && !focused[b]; });
  if (order.size() > room) {
    QSet<QString> said;
    std::vector<bool> repeats(wanted.size());
    for (const std::size_t i : order) {
      const QString& words = texts[static_cast<qsizetype>(i)];
      repeats[i] = said.contains(words);
      said.insert(words);
    }
    std::stable_partition(order.begin(), order.end(), [&](std::size_t i) { return !repeats[i]; });
    order.resize(room);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return wanted[a] < wanted[b]; });
  double next = top;
  for (const std::size_t i : order) {
    places[i] = std::max(wanted[i], next);
    next = places[i] + gap;
  }
  double limit = bottom;
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    places[*it] = std::min(places[*it], limit);
    limit = places[*it] - gap;
  }
  return places;
}

}  // namespace stacklab::ui
