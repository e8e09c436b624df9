// Many charts that come to show at once do not hold up the window: in one turn of its event loop only so much is
// computed, and the rest in the turns after.
#pragma once

#include <QElapsedTimer>
#include <QTimer>
#include <algorithm>

namespace stacklab::ui {

// Of the thread of the window alone.
class TurnBudget {
 public:
  static TurnBudget& instance() {
    static TurnBudget budget;
    return budget;
  }
  // Whether this turn has room for more. The first to ask always gets it.
  bool has_room() const { return spent_ns_ < most_ns; }
  template <class Work>
  void spend(Work&& work) {
    QElapsedTimer clock;
    clock.start();
    work();
    // The timer's turn is the next one.
    if (spent_ns_ == 0) QTimer::singleShot(0, [this] { spent_ns_ = 0; });
    spent_ns_ += std::max<qint64>(clock.nsecsElapsed(), 1);
  }

 private:
  static constexpr qint64 most_ns = 15'000'000;
  qint64 spent_ns_ = 0;
};

}  // namespace stacklab::ui
