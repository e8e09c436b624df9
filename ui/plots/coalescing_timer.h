// Calls back soon after it is asked to, but never more often than the period.
#pragma once

#include <QElapsedTimer>
#include <QTimer>
#include <algorithm>
#include <functional>

namespace stacklab::ui {

class CoalescingTimer {
 public:
  CoalescingTimer(int period_ms, std::function<void()> call) : period_(period_ms) {
    timer_.setSingleShot(true);
    QObject::connect(&timer_, &QTimer::timeout, &timer_, [this, call = std::move(call)] {
      call();
      since_last_.start();  // counted from the end, so that slow work leaves the thread some room
    });
  }

  void request() {
    if (timer_.isActive()) return;
    const qint64 passed = since_last_.isValid() ? since_last_.elapsed() : period_;
    timer_.start(static_cast<int>(std::max<qint64>(0, period_ - passed)));
  }
  bool pending() const { return timer_.isActive(); }
  void cancel() { timer_.stop(); }

 private:
  int period_;
  QTimer timer_;
  QElapsedTimer since_last_;
};

}  // namespace stacklab::ui
