// Where long runs are read closely: in what the axes show, and, on a log axis, more so the further left.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ui/pages/monitor/monitor_charts.h"

namespace stacklab::ui {
namespace {

constexpr std::int64_t first_step = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t last_step = std::numeric_limits<std::int64_t>::max();
// More than there are pixels across a panel.
constexpr std::int64_t parts_inside = 2048, parts_outside = 512, parts_of_log_section = 1024;
constexpr std::int64_t points_read_at_once = 20000;
constexpr double log_section = 8;  // from one to the next

}  // namespace

std::vector<SeriesSection> MonitorCharts::sections_of(const Axis& axis) const {
  const std::optional<AxisRange>& shown = view_.view().x;
  if (!shown && !view_.log_x()) return {};
  double low = 1, high = expected_steps_;
  if (shown) {
    // A step more at either side, as lines go on to the edge.
    low = std::floor(axis.step_of_x(shown->low)) - 1;
    high = std::ceil(axis.step_of_x(shown->high)) + 1;
  }
  std::vector<SeriesSection> sections;
  std::int64_t at = first_step;
  const auto up_to = [&](double step, std::int64_t parts) {
    if (!(step < 9e18)) step = 9e18;
    if (const auto end = static_cast<std::int64_t>(step); end >= at) {
      sections.push_back({at, end, parts});
      at = end + 1;
    }
  };
  if (shown) up_to(low - 1, parts_outside);
  if (view_.log_x())
    for (double end = std::max(low, 1.0) * log_section; end < high; end *= log_section)
      up_to(end, parts_of_log_section);
  if (shown) up_to(high, view_.log_x() ? parts_of_log_section : parts_inside);
  sections.push_back({at, last_step, shown ? parts_outside : parts_of_log_section});
  return sections;
}

void MonitorCharts::look_closely() {
  SectionsByRun sections;
  for (const auto& [run, axis] : axes_)
    if (auto of = sections_of(axis); !of.empty()) sections[run] = std::move(of);
  if (sections == sections_) return;
  sections_ = sections;
  for (auto& [key, held] : held_)
    if (held.series->summed()) held.complete = false;  // it comes anew
  link_->look_at(sections);
}

void MonitorCharts::whole_values(std::vector<CurveExtract> curves,
                                 std::function<void(std::vector<CurveExtract>)> done) {
  if (std::none_of(curves.begin(), curves.end(), [](const CurveExtract& c) { return c.summed; }))
    return done(std::move(curves));
  auto whole = std::make_shared<std::vector<CurveExtract>>(std::move(curves));
  const auto read = [whole](StoreReader* reader, JobService*) {
    for (CurveExtract& curve : *whole) {
      if (!curve.summed || !reader) continue;
      std::vector<double> xs, ys;
      Result<std::vector<SeriesPoint>> points;
      for (std::int64_t after = curve.first_step - 1;; after = points->back().step) {
        points = reader->series(curve.run_id.toStdString(), curve.metric.toStdString(), after, points_read_at_once);
        if (!points || points->empty()) break;
        for (const SeriesPoint& point : *points) {
          if (point.step > curve.last_step) break;
          xs.push_back(static_cast<double>(point.step));
          ys.push_back(point.value);
        }
        if (points->back().step >= curve.last_step) break;
      }
      if (!points) continue;
      curve.xs = std::move(xs);
      curve.ys = std::move(ys);
      curve.summed = false;
    }
  };
  link_->with_store(read, [whole, done = std::move(done)] { done(std::move(*whole)); });
}

}  // namespace stacklab::ui
