// What in a run's numbers a person should know at once. The judgement of a step depends on the last `memory` recorded
// points alone, so a run that was interrupted raises what an uninterrupted one would, once it has seen them again.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "engine/run/run.h"

namespace stacklab {

class AlertWatch {
 public:
  static constexpr std::int64_t window = 64;  // points that a loss is compared with
  static constexpr std::int64_t calm = 32;    // points without trouble until an alert is over, or raised anew
  static constexpr std::int64_t memory = window + calm + 1;

  // logit_threshold: the largest attention logit that is in order.
  explicit AlertWatch(double logit_threshold) : logit_threshold_(logit_threshold) {}

  struct Verdict {
    std::vector<RunEvent> raised;
    std::vector<RunEvent::Kind> resolved;
  };
  // Events without a loss are no points.
  Verdict observe(const MetricEvent& event);

 private:
  // Trouble that lasts is one alert: it is raised after a calm stretch, and over after another.
  struct Trouble {
    std::int64_t calm_points = calm;
    bool raise(bool bad);
    bool over(bool bad) const { return !bad && calm_points == calm; }
  };

  double logit_threshold_;
  std::deque<double> losses_;  // the last points, finite or not
  Trouble spike_, non_finite_, logit_;
};

}  // namespace stacklab
