// What is painted around and over the lines of a chart: three items on the chart's scene that show a frame of plain
// values.
#pragma once

#include <QColor>
#include <QGraphicsObject>
#include <QPointF>
#include <QRectF>
#include <QStringList>
#include <optional>
#include <vector>

#include "ui/plots/ticks.h"
#include "ui/theme/glyphs.h"

namespace stacklab::ui {

struct ChartFrame {
  struct Marker {
    QPointF at;  // axis units
    QColor color;
  };
  struct Label {
    double y = 0;  // axis units
    QString text;
    QColor color;
    bool focused = false;
  };
  struct Reference {
    double y = 0;
    QString text;
    bool limit = false;
  };
  struct Event {
    double x = 0;
    Glyph glyph = Glyph::diamond;
    QColor color;
    bool line = true;
  };

  QRectF bounds, plot;
  AxisRange x, y;
  std::vector<Tick> x_ticks, y_ticks;
  QString x_title, empty_text;
  std::vector<Marker> dots, circles, gaps;
  std::vector<Label> end_labels;
  std::vector<Reference> references;
  std::vector<Event> events;
  bool empty = true;

  double px(double x_value) const { return plot.left() + (x_value - x.low) / x.span() * plot.width(); }
  double py(double y_value) const { return plot.bottom() - (y_value - y.low) / y.span() * plot.height(); }
};

class ChartItem : public QGraphicsItem {
 public:
  ChartItem(QGraphicsItem* chart, const ChartFrame& frame, double z);
  QRectF boundingRect() const override { return bounds_; }
  void frame_changed();

 protected:
  const ChartFrame& frame_;

 private:
  QRectF bounds_;
};

// Grid, axes, their labels: below the lines.
class GridItem : public ChartItem {
 public:
  using ChartItem::ChartItem;
  void paint(QPainter* painter, const QStyleOptionGraphicsItem*, QWidget*) override;
};

// Reference lines, events, circles, gaps, values at the line ends, the sentence of an empty panel: above the lines.
class MarksItem : public ChartItem {
 public:
  using ChartItem::ChartItem;
  void paint(QPainter* painter, const QStyleOptionGraphicsItem*, QWidget*) override;
};

// Follows the mouse, so it repaints only narrow strips.
class CrosshairItem : public ChartItem {
 public:
  using ChartItem::ChartItem;
  void set_position(std::optional<double> x, const QString& chip);  // axis unit
  void set_rubber_band(std::optional<QRectF> band);
  void paint(QPainter* painter, const QStyleOptionGraphicsItem*, QWidget*) override;

 private:
  QRectF chip_rect() const;
  void update_strip();
  std::optional<double> x_;
  QString chip_;
  std::optional<QRectF> band_;
};

// Moves labels apart so that neighbours keep `gap` pixels, within [top, bottom]; those that find no room are dropped,
// first those that say the same as another, then unfocused ones. Returns the pixel of each kept label's middle, in the
// order given; NaN where dropped.
std::vector<double> spread_labels(const std::vector<double>& wanted, const std::vector<bool>& focused,
                                  const QStringList& texts, double gap, double top, double bottom);

}  // namespace stacklab::ui
