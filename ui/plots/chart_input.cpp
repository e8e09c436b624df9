// The mouse and keyboard of a chart: crosshair and tip, zoom by dragging, wheel and keys, and the way back.
#include <QContextMenuEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>

#include "ui/plots/curve_chart.h"
#include "ui/theme/numbers.h"

namespace stacklab::ui {
namespace {

constexpr double drag_threshold = 5;
constexpr double snap_within = 30;
// A drag flatter than this zooms in x alone.
constexpr double flat_drag = 12;

}  // namespace

double CurveChart::x_at(double pixel) const {
  const double axis = frame_.x.low + (pixel - frame_.plot.left()) / frame_.plot.width() * frame_.x.span();
  return shared_->log_x() ? std::pow(10, axis) : axis;
}

double CurveChart::y_at(double pixel) const {
  return frame_.y.low + (frame_.plot.bottom() - pixel) / frame_.plot.height() * frame_.y.span();
}

std::optional<double> CurveChart::snapped(double x) const {
  std::optional<double> best;
  for (const auto& live : lives_) {
    const Series& series = *live->curve.series;
    const auto xs = live->xs();
    if (series.empty() || xs.empty()) continue;
    const double candidate = xs[nearest_index(xs, x)];
    if (!best || std::abs(candidate - x) < std::abs(*best - x)) best = candidate;
  }
  return best;
}

// What the baseline's curve of the same metric has there, as it is drawn; none for the baseline itself.
std::optional<double> CurveChart::baseline_at(const Live& of, double x) const {
  if (of.curve.baseline) return std::nullopt;
  for (const auto& live : lives_) {
    if (!live->curve.baseline || live->curve.metric != of.curve.metric) continue;
    const auto xs = live->xs();
    if (xs.empty() || x < xs.front() || x > xs.back()) return std::nullopt;
    const std::size_t i = nearest_index(xs, x);
    const double value = is_smoothed(live->curve) ? live->smoother.ys()[i] : live->curve.series->ys()[i];
    return std::isfinite(value) ? std::optional(value) : std::nullopt;
  }
  return std::nullopt;
}

Readout CurveChart::readout(double x, std::optional<double> y_pixel) const {
  Readout result;
  const XKind kind = shared_->x_kind();
  result.title = kind == XKind::step ? tr("step %1").arg(format_count(std::llround(x))) : format_x(kind, x);
  QStringList with, without;  // groups
  for (const auto& live : lives_) {
    const Series& series = *live->curve.series;
    const auto xs = live->xs();
    const std::size_t i = nearest_index(xs, x);
    // Runs are shorter or longer than others: no value is shown beyond their ends, nor between points that are far
    // apart.
    if (xs.empty() || (xs[i] != x && (x > xs.back() || x < xs.front()))) {
      without << live->curve.group_id;
      continue;
    }
    with << live->curve.group_id;
    const double raw = series.ys()[i];
    const bool smoothed = is_smoothed(live->curve);
    const double shown = smoothed ? live->smoother.ys()[i] : raw;
    Readout::Row row;
    row.number = live->curve.number;
    row.points = live->curve.points;
    const bool one_group = std::all_of(lives_.begin(), lives_.end(), [&](const auto& l) {
      return l->curve.group_id == lives_.front()->curve.group_id;
    });
    row.name = one_group            ? live->curve.name
               : live->curve.points ? tr("%1 %2").arg(live->curve.group, live->curve.name)
                                    : live->curve.group;
    row.value = format_value(std::isfinite(raw) ? shown : raw, setup_.format);
    row.bad = !std::isfinite(raw);
    const double step = series.xs()[i];
    if (xs[i] != x)
      row.raw = tr("at %1").arg(format_x(kind, xs[i]));
    else if (smoothed)
      row.raw = tr("raw %1").arg(format_value(raw, setup_.format));
    if (const auto base = baseline_at(*live, x); base && std::isfinite(shown))
      row.raw += (row.raw.isEmpty() ? QString() : QStringLiteral(", ")) +
                 tr("%1 to baseline").arg(format_difference(shown - *base, setup_.format));
    const double axis = setup_.log_y ? std::log10(shown) : shown;
    row.distance = y_pixel && std::isfinite(axis) ? std::abs(frame_.py(axis) - *y_pixel) : 1e9;
    result.rows.push_back(row);
    if (result.aside.isEmpty() && live->curve.tokens_per_step > 0) {
      if (kind != XKind::step) result.aside = tr("step %1, ").arg(format_count(std::llround(step)));
      result.aside += tr("%1 tokens").arg(format_amount(live->curve.tokens_per_step * step));
      const Series* seconds = live->curve.seconds.get();
      if (seconds && !seconds->empty() && step <= seconds->xs().back())
        result.aside += tr(", %1").arg(format_duration(x_at_step(*seconds, step)));
    }
  }
  std::stable_sort(result.rows.begin(), result.rows.end(),
                   [](const auto& a, const auto& b) { return a.distance < b.distance; });
  without.removeDuplicates();
  without.removeIf([&](const QString& group) { return with.contains(group); });
  if (!without.isEmpty())
    result.footer =
        without.size() == 1 ? tr("1 run has no value here") : tr("%1 runs have no value here").arg(without.size());
  return result;
}

void CurveChart::hover(const QPointF& position) {
  if (!frame_.plot.contains(position)) {
    shared_->set_crosshair(std::nullopt);
    hide_tip();
    return;
  }
  auto x = snapped(x_at(position.x()));
  if (x) {
    // Far from any point the crosshair stays at the cursor, and the tip says who has no value there.
    const double axis = shared_->log_x() ? std::log10(*x) : *x;
    if (std::abs(frame_.px(axis) - position.x()) > snap_within) {
      x = x_at(position.x());
      if (shared_->x_kind() == XKind::step) x = std::round(*x);
    }
  }
  shared_->set_crosshair(x);
  if (x)
    show_tip(position);
  else
    hide_tip();
}

void CurveChart::show_tip(const QPointF& position) {
  if (!shared_->crosshair()) return;
  if (!tip_) tip_ = new ReadoutTip(window());
  const Readout values = readout(*shared_->crosshair(), position.y());
  if (values.rows.empty() && values.footer.isEmpty()) return hide_tip();
  tip_->show_at(values, viewport()->mapTo(window(), position.toPoint()));
}

void CurveChart::hide_tip() {
  if (tip_) tip_->hide();
}

void CurveChart::go_to(double x) {
  const AxisRange shown = data_window();
  if (x < shown.low || x > shown.high) {
    View view = shared_->view();
    const double half = shown.span() / 2;
    view.x = AxisRange{std::max(0.0, x - half), std::max(0.0, x - half) + shown.span()};
    shared_->push(view);
  }
  shared_->set_crosshair(x);
}

void CurveChart::zoom_x(double factor, double around_pixel) {
  const bool log = shared_->log_x();
  const double around = frame_.x.low + (around_pixel - frame_.plot.left()) / frame_.plot.width() * frame_.x.span();
  AxisRange range{around - (around - frame_.x.low) * factor, around + (frame_.x.high - around) * factor};
  if (!log) range.low = std::max(range.low, 0.0);
  AxisRange chosen = log ? AxisRange{std::pow(10, range.low), std::pow(10, range.high)} : range;
  View view = shared_->view();
  const AxisRange all = fit_x();
  if (chosen.span() < narrowest_x(shared_->x_kind(), all.span())) return;  // no closer
  if (chosen.low <= all.low && chosen.high >= all.high)
    view.x.reset();
  else
    view.x = chosen;
  shared_->push(view, true);
}

void CurveChart::zoom_y(double factor, double around_pixel) {
  const double around = y_at(around_pixel);
  View view = shared_->view();
  view.y[setup_.id] = {around - (around - frame_.y.low) * factor, around + (frame_.y.high - around) * factor};
  shared_->push(view, true);
}

void CurveChart::wheelEvent(QWheelEvent* event) {
  const double turns = (event->angleDelta().y() != 0 ? event->angleDelta().y() : event->angleDelta().x()) / 120.0;
  if (turns == 0) return;
  const double factor = std::pow(0.8, turns);
  if (event->modifiers() & Qt::ShiftModifier)
    zoom_y(factor, event->position().y());
  else
    zoom_x(factor, std::clamp(event->position().x(), frame_.plot.left(), frame_.plot.right()));
  event->accept();
}

void CurveChart::mousePressEvent(QMouseEvent* event) {
  if (event->button() == Qt::LeftButton && frame_.plot.adjusted(-4, -4, 4, 4).contains(event->position())) {
    dragging_ = true;
    press_ = event->position();
    hide_tip();
  }
  event->accept();
}

void CurveChart::mouseMoveEvent(QMouseEvent* event) {
  if (!dragging_) return hover(event->position());
  const QPointF now(std::clamp(event->position().x(), frame_.plot.left(), frame_.plot.right()),
                    std::clamp(event->position().y(), frame_.plot.top(), frame_.plot.bottom()));
  QRectF band = QRectF(press_, now).normalized();
  if (band.height() < flat_drag) {
    band.setTop(frame_.plot.top());
    band.setBottom(frame_.plot.bottom());
  }
  crosshair_->set_rubber_band(band.intersected(frame_.plot));
}

void CurveChart::mouseReleaseEvent(QMouseEvent* event) {
  if (!dragging_ || event->button() != Qt::LeftButton) return;
  dragging_ = false;
  crosshair_->set_rubber_band(std::nullopt);
  const QRectF band = QRectF(press_, event->position()).normalized().intersected(frame_.plot);
  if (band.width() < drag_threshold) return;
  View view = shared_->view();
  const AxisRange x{x_at(band.left()), x_at(band.right())};
  if (x.span() >= narrowest_x(shared_->x_kind(), fit_x().span())) view.x = x;
  if (band.height() >= flat_drag) view.y[setup_.id] = {y_at(band.bottom()), y_at(band.top())};
  shared_->push(view);
}

void CurveChart::mouseDoubleClickEvent(QMouseEvent* event) {
  dragging_ = false;
  crosshair_->set_rubber_band(std::nullopt);
  if (event->button() == Qt::LeftButton) shared_->reset();
}

void CurveChart::leaveEvent(QEvent* event) {
  hide_tip();
  shared_->set_crosshair(std::nullopt);
  QChartView::leaveEvent(event);
}

void CurveChart::step_crosshair(int points) {
  const Live* live = nullptr;
  for (const auto& candidate : lives_)
    if (!candidate->xs().empty() && (!live || candidate->curve.focused)) live = candidate.get();
  if (!live) return;
  const auto xs = live->xs();
  const auto last = static_cast<std::ptrdiff_t>(xs.size()) - 1;
  std::ptrdiff_t i = last;
  if (shared_->crosshair())
    i = std::clamp<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(nearest_index(xs, *shared_->crosshair())) + points, 0,
                                   last);
  go_to(xs[static_cast<std::size_t>(i)]);
  const double axis = shared_->log_x() ? std::log10(*shared_->crosshair()) : *shared_->crosshair();
  show_tip({frame_.px(axis), frame_.plot.center().y()});
}

void CurveChart::keyPressEvent(QKeyEvent* event) {
  const bool big = event->modifiers() & Qt::ShiftModifier;
  switch (event->key()) {
    case Qt::Key_Home:
      shared_->reset();
      break;
    case Qt::Key_Left:
      step_crosshair(big ? -10 : -1);
      break;
    case Qt::Key_Right:
      step_crosshair(big ? 10 : 1);
      break;
    case Qt::Key_Plus:
    case Qt::Key_Equal:
      zoom_x(0.8, frame_.plot.center().x());
      break;
    case Qt::Key_Minus:
      zoom_x(1.25, frame_.plot.center().x());
      break;
    case Qt::Key_Escape:
      shared_->set_crosshair(std::nullopt);
      hide_tip();
      break;
    case Qt::Key_Menu:
      emit menu_requested(mapToGlobal(rect().center()));
      break;
    default:
      QChartView::keyPressEvent(event);
      return;
  }
  event->accept();
}

void CurveChart::contextMenuEvent(QContextMenuEvent* event) {
  hide_tip();
  emit menu_requested(event->globalPos());
  event->accept();
}

void CurveChart::focusInEvent(QFocusEvent* event) {
  if (QWidget* panel = parentWidget()) panel->update();
  QChartView::focusInEvent(event);
}

void CurveChart::focusOutEvent(QFocusEvent* event) {
  if (QWidget* panel = parentWidget()) panel->update();
  QChartView::focusOutEvent(event);
}

void CurveChart::resizeEvent(QResizeEvent* event) {
  QChartView::resizeEvent(event);
  // At once where there is room for it, so that the old picture is not stretched.
  if (isVisible()) refresh_in_turn();
}

void CurveChart::showEvent(QShowEvent* event) {
  QChartView::showEvent(event);
  if (dirty_ || frame_.bounds.size() != QSizeF(viewport()->size())) refresh_in_turn();
}

void CurveChart::hideEvent(QHideEvent* event) {
  hide_tip();
  QChartView::hideEvent(event);
}

}  // namespace stacklab::ui
