// A loss curve in little room.
#pragma once

#include <QWidget>
#include <vector>

namespace stacklab::ui {

// A few hundred points of a loss curve, drawn small.
class MiniLoss : public QWidget {
 public:
  explicit MiniLoss(QWidget* parent = nullptr);
  struct Curve {
    std::int64_t number = 0;
    std::vector<QPointF> points;  // step and loss; NaN breaks the line
  };
  void set_curves(std::vector<Curve> curves);
  const std::vector<Curve>& curves() const { return curves_; }
  QSize sizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  std::vector<Curve> curves_;
};

}  // namespace stacklab::ui
