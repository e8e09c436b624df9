// A loss curve in little room.
#pragma once

#include <QWidget>
#include <vector>

#include "ui/plots/ticks.h"

namespace stacklab::ui {

// A few hundred points of a loss curve, drawn small.
class MiniLoss : public QWidget {
 public:
  explicit MiniLoss(QWidget* parent = nullptr);
  struct Curve {
    std::int64_t number = 0;
    std::vector<QPointF> points;  // step and loss; NaN breaks the line
    std::vector<QPointF> gaps;    // where a loss was no number: a cross each, at the loss before or at the bottom
  };
  void set_curves(std::vector<Curve> curves);
  const std::vector<Curve>& curves() const { return curves_; }
  QSize sizeHint() const override;

  struct Axis {
    AxisRange range;
    std::vector<Tick> ticks;
    double right = 0;  // the last step
    bool cut = false;  // the first steps are above it
    bool is_empty() const { return ticks.empty(); }
  };
  Axis axis() const;
  QRectF plot() const;  // between the labels

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  std::vector<Curve> curves_;
};

}  // namespace stacklab::ui
