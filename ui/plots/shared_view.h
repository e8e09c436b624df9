// What the panels of a page have in common: the shown range of x, each panel's range of y, how they are smoothed, and
// the crosshair. Views are a stack with a way back.
#pragma once

#include <QElapsedTimer>
#include <QMap>
#include <QObject>
#include <QString>
#include <optional>
#include <vector>

#include "ui/plots/x_axis.h"

namespace stacklab::ui {

struct View {
  std::optional<AxisRange> x;  // empty: all
  QMap<QString, AxisRange> y;  // by panel; absent: fitted
  bool operator==(const View& other) const {
    return x == other.x && y.keys() == other.y.keys() && y.values() == other.y.values();
  }
};

class SharedView : public QObject {
  Q_OBJECT
 public:
  using QObject::QObject;

  const View& view() const { return views_[at_]; }
  void push(const View& view, bool join = false);  // join: a quick row of small changes (the wheel) makes one view
  void back();
  void forward();
  void reset();
  bool can_go_back() const { return at_ > 0; }
  bool can_go_forward() const { return at_ + 1 < views_.size(); }

  double smoothing() const { return smoothing_; }
  bool raw_shown() const { return raw_shown_; }
  bool robust() const { return robust_; }
  bool log_x() const { return log_x_; }
  XKind x_kind() const { return x_kind_; }
  void set_smoothing(double beta);  // 0 (none) to 0.995
  void set_raw_shown(bool shown);
  void set_robust(bool robust);
  void set_log_x(bool log);
  void set_x_kind(XKind kind);  // ranges of the other axis are forgotten

  std::optional<double> crosshair() const { return crosshair_; }
  void set_crosshair(std::optional<double> x);

 signals:
  void changed();  // ranges or smoothing: the curves are to be drawn anew
  void stack_changed();
  void crosshair_changed();

 private:
  std::vector<View> views_{View{}};
  std::size_t at_ = 0;
  QElapsedTimer since_joined_;
  double smoothing_ = 0.86;
  bool raw_shown_ = true, robust_ = false, log_x_ = false;
  XKind x_kind_ = XKind::step;
  std::optional<double> crosshair_;
};

}  // namespace stacklab::ui
