// What parts of something took, longest first: name, bar, time.
#pragma once

#include <QString>
#include <QWidget>
#include <vector>

namespace stacklab::ui {

struct TimeBar {
  QString name;
  double seconds = 0;
  bool operator==(const TimeBar&) const = default;
};

class TimeBars : public QWidget {
  Q_OBJECT
 public:
  explicit TimeBars(QWidget* parent = nullptr);
  void set_bars(std::vector<TimeBar> bars);
  const std::vector<TimeBar>& bars() const { return bars_; }
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override { return {120, sizeHint().height()}; }

 protected:
  void paintEvent(QPaintEvent* event) override;
  bool event(QEvent* event) override;

 private:
  double whole() const;
  std::vector<TimeBar> bars_;
};

QString format_time(double seconds);  // 871 ms, 2.27 s, 41 µs

}  // namespace stacklab::ui
