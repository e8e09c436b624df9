#include "ui/plots/curve_chart.h"

#include <QChart>
#include <QFontMetricsF>
#include <QLegend>
#include <algorithm>
#include <cmath>
#include <limits>

#include "ui/plots/turn_budget.h"
#include "ui/theme/look.h"
#include "ui/theme/numbers.h"

namespace stacklab::ui {
namespace {

constexpr int period_ms = 100;
constexpr double largest_drawn = 1e300;
// Pieces of one curve that are lines of their own; a curve torn into more shows the shorter ones as dots.
constexpr std::size_t most_pieces = 48;

double to_axis(double value, bool log) { return log ? std::log10(value) : value; }
double from_axis(double value, bool log) { return log ? std::pow(10, value) : value; }
double rounded_up(double width, double to) { return std::ceil(width / to) * to; }

// The largest 1, 2, 3 or 5 times a power of ten not above value, as log10; or the smallest not below it.
double log_end(double value, bool upwards) {
  const double floor_decade = std::floor(value);
  double best = upwards ? floor_decade + 1 : floor_decade;
  for (const double m : {1.0, 2.0, 3.0, 5.0}) {
    const double candidate = floor_decade + std::log10(m);
    if (upwards && candidate >= value - 1e-9) best = std::min(best, candidate);
    if (!upwards && candidate <= value + 1e-9) best = std::max(best, candidate);
  }
  return best;
}

// The middle 98 % of the finite values, from at most 4,096 of them.
std::optional<AxisRange> middle_range(const Column& ys, std::size_t begin, std::size_t end, bool positive) {
  std::vector<double> sample;
  const std::size_t stride = std::max<std::size_t>(1, (end - begin) / 4096);
  for (std::size_t i = begin; i < end; i += stride)
    if (std::isfinite(ys[i]) && (!positive || ys[i] > 0)) sample.push_back(ys[i]);
  if (sample.empty()) return std::nullopt;
  std::sort(sample.begin(), sample.end());
  const auto at = [&](double part) {
    return sample[static_cast<std::size_t>(part * static_cast<double>(sample.size() - 1))];
  };
  return AxisRange{at(0.01), at(0.99)};
}

}  // namespace

CurveChart::CurveChart(ChartSetup setup, SharedView* shared, QWidget* parent)
    : QChartView(parent), setup_(std::move(setup)), shared_(shared), timer_(period_ms, [this] { refresh_in_turn(); }) {
  if (!shared_) shared_ = new SharedView(this);
  QChart* c = chart();
  c->legend()->hide();
  c->setBackgroundVisible(false);
  c->setMargins(QMargins());
  c->setContentsMargins(0, 0, 0, 0);
  axis_x_ = new QValueAxis(c);
  axis_y_ = new QValueAxis(c);
  c->addAxis(axis_x_, Qt::AlignBottom);
  c->addAxis(axis_y_, Qt::AlignLeft);
  axis_x_->setVisible(false);
  axis_y_->setVisible(false);
  setFrameShape(QFrame::NoFrame);
  setRenderHint(QPainter::Antialiasing);
  setBackgroundBrush(Qt::NoBrush);
  viewport()->setAutoFillBackground(false);
  setMouseTracking(true);
  viewport()->setMouseTracking(true);
  setFocusPolicy(Qt::StrongFocus);
  setMinimumSize(120, 90);
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
  setAccessibleName(tr("%1 chart").arg(setup_.title));
  viewport()->setAccessibleName(accessibleName());
  // Qt Charts puts its lines above 0; the grid goes below them, the rest above.
  grid_ = new GridItem(c, frame_, -0.5);
  marks_ = new MarksItem(c, frame_, 100);
  crosshair_ = new CrosshairItem(c, frame_, 200);
  connect(shared_, &SharedView::changed, this, [this] { mark_dirty(); });
  connect(shared_, &SharedView::crosshair_changed, this, [this] {
    const auto x = shared_->crosshair();
    if (!x || (shared_->log_x() && *x <= 0)) return crosshair_->set_position(std::nullopt, {});
    crosshair_->set_position(to_axis(*x, shared_->log_x()), format_x(shared_->x_kind(), *x));
  });
  connect(&look(), &Look::changed, this, [this] {
    for (auto& live : lives_) live->pens_stale = true;
    mark_dirty();
  });
}

CurveChart::~CurveChart() {
  timer_.cancel();
  delete tip_;
}

void CurveChart::set_curves(std::vector<Curve> curves) {
  std::vector<std::unique_ptr<Live>> next;
  for (Curve& curve : curves) {
    const auto same = std::find_if(lives_.begin(), lives_.end(),
                                   [&](const auto& live) { return live && live->curve.id == curve.id; });
    if (same == lives_.end()) {
      next.push_back(std::make_unique<Live>());
    } else {
      if ((*same)->curve.series != curve.series) {
        (*same)->smoother = Smoother();
        (*same)->state = Drawn();
        (*same)->mapped = MappedX();
      }
      if ((*same)->curve.axis != curve.axis) (*same)->state = Drawn();
      if ((*same)->curve.focused != curve.focused || (*same)->curve.number != curve.number ||
          (*same)->curve.muted != curve.muted) {
        (*same)->pens_stale = true;
        restack_ = true;
      }
      next.push_back(std::move(*same));
    }
    next.back()->curve = std::move(curve);
  }
  for (auto& gone : lives_)
    if (gone) remove_lines(*gone);
  lives_ = std::move(next);
  mark_dirty();
}

std::vector<Curve> CurveChart::curves() const {
  std::vector<Curve> result;
  for (const auto& live : lives_) result.push_back(live->curve);
  return result;
}

void CurveChart::set_reference_lines(std::vector<ReferenceLine> lines) {
  if (lines == references_) return;
  references_ = std::move(lines);
  mark_dirty();
}

void CurveChart::set_events(std::vector<EventMark> events) {
  if (events == events_) return;
  events_ = std::move(events);
  mark_dirty();
}

void CurveChart::set_empty_text(const QString& text) {
  if (text == frame_.empty_text) return;
  frame_.empty_text = text;
  mark_dirty();
}

void CurveChart::set_expected_end(double x) {
  if (x == expected_end_) return;
  expected_end_ = x;
  mark_dirty();
}

void CurveChart::set_log_y(bool log) {
  if (log == setup_.log_y) return;
  setup_.log_y = log;
  View view = shared_->view();
  // A range of the other axis means nothing on this one.
  if (view.y.remove(setup_.id)) shared_->push(view);
  mark_dirty();
}

void CurveChart::mark_dirty() {
  dirty_ = true;
  if (isVisible()) timer_.request();
}

void CurveChart::refresh_now() {
  timer_.cancel();
  dirty_ = true;
  refresh();
}

void CurveChart::refresh_in_turn() {
  dirty_ = true;
  if (!isVisible()) return;
  if (TurnBudget::instance().has_room()) {
    timer_.cancel();
    TurnBudget::instance().spend([this] { refresh(); });
  } else {
    timer_.request();
  }
}

void CurveChart::refresh() {
  if (!isVisible()) return;
  dirty_ = false;
  ++refreshes_;
  lay_out();
  axis_x_->setRange(frame_.x.low, frame_.x.high);
  axis_y_->setRange(frame_.y.low, frame_.y.high);
  Window window{data_window().low, data_window().high, std::max(1, static_cast<int>(frame_.plot.width())),
                shared_->log_x(), setup_.log_y};
  for (auto& live : lives_) draw_curve(*live, window);
  if (restack_) restack();
  axis_x_->setRange(frame_.x.low, frame_.x.high);
  axis_y_->setRange(frame_.y.low, frame_.y.high);
  collect_marks();
  grid_->frame_changed();
  marks_->frame_changed();
  crosshair_->frame_changed();
  collect_facts();
  describe();
}

bool CurveChart::is_smoothed(const Curve& curve) const {
  return curve.smooth && !curve.points && shared_->smoothing() > 0;
}

AxisRange CurveChart::fit_x() const {
  double first = std::numeric_limits<double>::infinity(), last = expected_end_;
  for (const auto& live : lives_) {
    const auto xs = live->xs();
    if (xs.empty()) continue;
    first = std::min(first, xs.front());
    last = std::max(last, xs.back());
  }
  if (shared_->log_x()) {
    double low = std::isfinite(first) && first > 0 ? first : 1;
    // A clock begins at 0, which has no place here: the next point does.
    if (first <= 0)
      for (const auto& live : lives_)
        if (const auto xs = live->xs(); xs.size() > 1 && xs[1] > 0) low = std::min(low, xs[1]);
    return {low, std::max(last, low * 10)};
  }
  const double low = std::isfinite(first) ? std::min(0.0, first) : 0;
  return {low, last > low ? last : low + 100};
}

AxisRange CurveChart::fit_y(AxisRange x_data) {
  const bool log = setup_.log_y;
  double low = std::numeric_limits<double>::infinity(), high = -low;
  const auto take = [&](double value) {
    if (!std::isfinite(value) || (log && value <= 0)) return;
    value = std::clamp(value, -largest_drawn, largest_drawn);  // the span of an axis must be finite too
    low = std::min(low, value);
    high = std::max(high, value);
  };
  bool cuts = false;
  for (const auto& live : lives_) {
    const Series& series = *live->curve.series;
    const bool raw = !is_smoothed(live->curve) || shared_->raw_shown();
    const Column& ys = raw ? series.ys() : live->smoother.ys();
    const auto [begin, end] = index_range(live->xs(), x_data.low, x_data.high);
    const Extremes extremes = ys.extremes(begin, end);
    const std::uint32_t smallest = log ? extremes.min_positive : extremes.min;
    if (smallest == no_index) continue;
    if (shared_->robust()) {
      if (const auto middle = middle_range(ys, begin, end, log)) {
        cuts |= ys[smallest] < middle->low || ys[extremes.max] > middle->high;
        take(middle->low);
        take(middle->high);
        continue;
      }
    }
    take(ys[smallest]);
    take(ys[extremes.max]);
  }
  facts_.robust_cuts = cuts;
  frame_.empty = !(low <= high);
  // The whole picture includes the lines that values are measured against; a closer look does not.
  if (!shared_->view().x)
    for (const ReferenceLine& line : references_) take(line.y);
  if (!(low <= high)) return log ? AxisRange{-4, 0} : AxisRange{0, 1};
  const int most = std::clamp(static_cast<int>(frame_.plot.height() / 45), 2, 6);
  if (!log) {
    AxisRange range = nice_range(low, high, most);
    // A line on the very edge would be half cut off.
    if (range.high - high < 0.02 * range.span()) range.high += 0.05 * range.span();
    return range;
  }
  AxisRange range{log_end(std::log10(low), false), log_end(std::log10(high), true)};
  if (range.span() < 0.2) range = {range.low - 0.1, range.high + 0.1};
  return range;
}

void CurveChart::lay_out() {
  const bool log_x = shared_->log_x();
  const QFontMetricsF m(look().number_font(TextRole::small));
  const QSizeF size = viewport()->size();
  frame_.bounds = QRectF(QPointF(), size);
  const double top = 8, bottom = size.height() - 2 * m.height() - 5;
  frame_.plot = QRectF(QPointF(0, top), QPointF(size.width(), std::max(top + 10, bottom)));

  for (auto& live : lives_) {
    live->mapped.update(*live->curve.series, live->curve.axis.get(), live->curve.axis_scale);
    if (is_smoothed(live->curve)) live->smoother.update(*live->curve.series, shared_->smoothing());
  }

  const View& view = shared_->view();
  const AxisRange x_data = view.x.value_or(fit_x());
  frame_.x = {to_axis(std::max(x_data.low, log_x ? std::max(1e-9, x_data.high * 1e-9) : -1e300), log_x),
              to_axis(x_data.high, log_x)};
  const AxisRange fitted = fit_y(x_data);
  frame_.y = view.y.contains(setup_.id) ? view.y[setup_.id] : fitted;

  const int most_y = std::clamp(static_cast<int>(frame_.plot.height() / 40), 2, 6);
  frame_.y_ticks =
      setup_.log_y ? log_ticks(frame_.y, most_y, setup_.format) : linear_ticks(frame_.y, most_y, setup_.format);
  // An empty panel keeps its grid; numbers on it would mean nothing.
  if (frame_.empty && references_.empty())
    for (Tick& tick : frame_.y_ticks) tick.label.clear();
  double left = 3 * m.averageCharWidth();
  for (const Tick& tick : frame_.y_ticks) left = std::max(left, m.horizontalAdvance(tick.label));

  // The value at each line's end, in the run's ink.
  frame_.end_labels.clear();
  std::size_t groups = 0;
  QString last_group;
  for (const auto& live : lives_)
    if (live->curve.group_id != last_group) {
      ++groups;
      last_group = live->curve.group_id;
    }
  double right = 0;
  for (const auto& live : lives_) {
    const Column& raw = live->curve.series->ys();
    const bool smoothed = is_smoothed(live->curve);
    const Column& shown = smoothed ? live->smoother.ys() : raw;
    if (raw.empty()) continue;
    std::size_t last = raw.size() - 1;
    while (last > 0 && raw.size() - last < 1000 && !std::isfinite(raw[last])) --last;
    // A run that ended in NaN says so, where its last number was.
    const bool ended_bad = !std::isfinite(raw[raw.size() - 1]);
    const bool placed = std::isfinite(raw[last]) && (!setup_.log_y || shown[last] > 0);
    if (!placed && !ended_bad) continue;
    QString text = format_value(raw[raw.size() - 1], setup_.format);
    if (groups > 1) {
      if (live->curve.points) continue;
      // Where there is no room for names, the ink says whose value it is.
      if (size.width() >= 480) text = live->curve.group + QLatin1Char(' ') + text;
    } else if (lives_.size() > 1) {
      text += QLatin1Char(' ') + live->curve.name;
    }
    const QColor ink = ended_bad           ? theme()[Token::bad]
                       : live->curve.muted ? theme()[Token::text3]
                                           : theme().run_ink(live->curve.number);
    frame_.end_labels.push_back(
        {placed ? to_axis(shown[last], setup_.log_y) : frame_.y.low, text, ink, live->curve.focused});
    right = std::max(right, m.horizontalAdvance(text));
  }
  const double most_right = size.width() * (size.width() < 320 ? 0.42 : 0.3);
  right = right > 0 ? std::min(rounded_up(right + 10, 8), most_right) : 12;
  frame_.plot.setLeft(rounded_up(left + 8, 8));
  frame_.plot.setRight(std::max(frame_.plot.left() + 10, size.width() - right));

  const int most_x = std::clamp(static_cast<int>(frame_.plot.width() / 75), 2, 8);
  const XKind kind = shared_->x_kind();
  frame_.x_ticks = x_ticks(kind, frame_.x, most_x, log_x);
  const QString of = expected_end_ > 0 ? tr("%1 of %2").arg(x_unit(kind), format_x(kind, expected_end_)) : x_unit(kind);
  frame_.x_title = log_x ? tr("%1, log").arg(of) : of;
  chart()->setPlotArea(frame_.plot);
  setSceneRect(frame_.bounds);
}

AxisRange CurveChart::data_window() const {
  const bool log = shared_->log_x();
  // There and back again a logarithm is rounded; what lies on the edge is in the window.
  const double slack = log ? 1e-12 : 0;
  return {from_axis(frame_.x.low, log) * (1 - slack), from_axis(frame_.x.high, log) * (1 + slack)};
}

void CurveChart::draw_curve(Live& live, const Window& window) {
  const Series& series = *live.curve.series;
  const Drawn state{series.version(), {window.x0, window.x1}, live.xs().size(),
                    window.columns,   shared_->smoothing(),   shared_->raw_shown(),
                    window.log_x,     window.log_y,           live.curve.focused};
  if (live.pens_stale) set_pens(live);
  if (state == live.state) return;
  live.state = state;
  live.dots.clear();
  live.circles.clear();
  const Decimated raw = decimate(live.xs(), series.ys(), window);
  const auto [begin, end] = index_range(live.xs(), window.x0, window.x1);
  live.raw = series.raw(begin, end);
  live.hidden = raw.hidden;
  live.non_finite = series.non_finite(begin, end);
  live.gaps = raw.gaps;
  live.drawn = raw.points.size();
  if (live.curve.points) {
    live.circles = raw.points;
    return;
  }
  if (is_smoothed(live.curve)) {
    const bool faint = shared_->raw_shown();
    draw_lines(live, live.raw_lines, faint ? raw : Decimated(), false);
    draw_lines(live, live.main_lines, decimate(live.xs(), live.smoother.ys(), window), true);
  } else {
    draw_lines(live, live.raw_lines, Decimated(), false);
    draw_lines(live, live.main_lines, raw, true);
  }
}

void CurveChart::draw_lines(Live& live, std::vector<QLineSeries*>& pool, const Decimated& decimated, bool main) {
  struct Piece {
    int begin, end;
  };
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < decimated.starts.size(); ++i) {
    const int end =
        i + 1 < decimated.starts.size() ? decimated.starts[i + 1] : static_cast<int>(decimated.points.size());
    pieces.push_back({decimated.starts[i], end});
  }
  // Longest first; what is a single point, or one piece too many, becomes dots.
  if (pieces.size() > most_pieces)
    std::stable_sort(pieces.begin(), pieces.end(), [](Piece a, Piece b) { return a.end - a.begin > b.end - b.begin; });
  std::size_t used = 0;
  for (const Piece& piece : pieces) {
    if (piece.end - piece.begin < 2 || used == most_pieces) {
      if (main)
        for (int i = piece.begin; i < piece.end; ++i)
          live.dots.push_back(decimated.points[static_cast<std::size_t>(i)]);
      continue;
    }
    if (used == pool.size()) {
      auto* line = new QLineSeries;
      chart()->addSeries(line);
      line->attachAxis(axis_x_);
      line->attachAxis(axis_y_);
      pool.push_back(line);
      set_pens(live);
      restack_ = restack_ || !main || lives_.size() > 1;
    }
    pool[used]->replace(QList<QPointF>(decimated.points.begin() + piece.begin, decimated.points.begin() + piece.end));
    pool[used]->setVisible(true);
    ++used;
  }
  for (std::size_t i = used; i < pool.size(); ++i) {
    if (!pool[i]->isVisible()) continue;
    pool[i]->replace(QList<QPointF>());
    pool[i]->setVisible(false);
  }
}

void CurveChart::set_pens(Live& live) {
  live.pens_stale = false;
  const QColor color = color_of(live.curve);
  // Blended rather than transparent: the lines of a chart are drawn piece by piece, and overlapping ends would show.
  for (QLineSeries* line : live.raw_lines)
    line->setPen(QPen(mix(color, theme()[Token::surface], 0.28), 1, Qt::SolidLine, Qt::FlatCap));
  QPen pen(color, live.curve.focused ? 1.9 : 1.7, Qt::SolidLine, Qt::FlatCap, Qt::RoundJoin);
  if (const QList<qreal> dash = run_dash(live.curve.number); !dash.isEmpty()) pen.setDashPattern(dash);
  for (QLineSeries* line : live.main_lines) line->setPen(pen);
}

QColor CurveChart::color_of(const Curve& curve) const {
  return curve.muted ? theme()[Token::text3] : theme().run_color(curve.number);
}

std::vector<std::pair<std::size_t, std::size_t>> CurveChart::shown_points() const {
  const AxisRange window = data_window();
  std::vector<std::pair<std::size_t, std::size_t>> ranges;
  for (const auto& live : lives_) ranges.push_back(index_range(live->xs(), window.low, window.high));
  return ranges;
}

void CurveChart::restack() {
  // Qt Charts stacks lines as they were added: put the smoothed ones over all raw ones, the focused run's last.
  restack_ = false;
  std::vector<std::pair<Live*, QLineSeries*>> order;
  for (const bool focused : {false, true})
    for (auto& live : lives_)
      if (live->curve.focused == focused)
        for (QLineSeries* line : live->main_lines) order.emplace_back(live.get(), line);
  for (auto& [live, line] : order) {
    chart()->removeSeries(line);
    chart()->addSeries(line);
    line->attachAxis(axis_x_);
    line->attachAxis(axis_y_);
    live->pens_stale = true;
  }
  for (auto& live : lives_)
    if (live->pens_stale) set_pens(*live);
}

void CurveChart::remove_lines(Live& live) {
  for (auto* pool : {&live.raw_lines, &live.main_lines}) {
    for (QLineSeries* line : *pool) {
      chart()->removeSeries(line);
      delete line;
    }
    pool->clear();
  }
}

void CurveChart::collect_marks() {
  frame_.dots.clear();
  frame_.circles.clear();
  frame_.gaps.clear();
  frame_.references.clear();
  frame_.events.clear();
  for (const auto& live : lives_) {
    const QColor color = color_of(live->curve);
    for (const QPointF& p : live->dots) frame_.dots.push_back({p, color});
    for (const QPointF& p : live->circles) frame_.circles.push_back({p, color});
    for (const QPointF& p : live->gaps) frame_.gaps.push_back({p, color});
  }
  std::sort(frame_.gaps.begin(), frame_.gaps.end(), [](const auto& a, const auto& b) { return a.at.x() < b.at.x(); });
  for (const ReferenceLine& line : references_)
    if (!setup_.log_y || line.y > 0)
      frame_.references.push_back({to_axis(line.y, setup_.log_y), line.label, line.limit});
  for (const EventMark& event : events_) {
    if (shared_->log_x() && event.x <= 0) continue;
    const double x = to_axis(event.x, shared_->log_x());
    if (x >= frame_.x.low && x <= frame_.x.high)
      frame_.events.push_back({x, event.glyph, theme()[event.color], event.line});
  }
}

void CurveChart::collect_facts() {
  ChartFacts facts;
  facts.robust_cuts = facts_.robust_cuts;
  for (const auto& live : lives_) {
    facts.raw += live->raw;
    facts.drawn += live->drawn;
    facts.hidden += live->hidden;
    facts.summed = facts.summed || live->curve.series->summed();
    facts.non_finite += live->non_finite;
    const auto& bad = live->curve.series->ys().non_finite();
    if (bad.empty()) continue;
    ++facts.curves_with_non_finite;
    if (bad.front() >= live->xs().size()) continue;
    const double x = live->xs()[bad.front()];
    if (!facts.first_non_finite || x < *facts.first_non_finite) {
      facts.first_non_finite = x;
      facts.first_non_finite_step = live->curve.series->xs()[bad.front()];
      facts.first_non_finite_curve = live->curve.group;
    }
  }
  if (facts == facts_ && refreshes_ > 1) return;
  facts_ = facts;
  viewport()->setToolTip({});
  emit facts_changed();
}

void CurveChart::describe() {
  QStringList parts;
  for (const auto& live : lives_) {
    const Series& series = *live->curve.series;
    if (series.empty()) continue;
    parts << tr("%1 %2: %3 at step %4")
                 .arg(live->curve.group, live->curve.name, format_value(series.ys()[series.size() - 1], setup_.format),
                      format_count(std::llround(series.xs().back())));
    if (parts.size() == 8) break;
  }
  setAccessibleDescription(parts.isEmpty() ? frame_.empty_text : parts.join(QStringLiteral("; ")));
}

}  // namespace stacklab::ui

#include <moc_curve_chart.cpp>
