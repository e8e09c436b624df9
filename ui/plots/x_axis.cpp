#include "ui/plots/x_axis.h"

#include <QCoreApplication>
#include <algorithm>
#include <array>
#include <cmath>

#include "ui/theme/numbers.h"

namespace stacklab::ui {
namespace {

QString tr(const char* text) { return QCoreApplication::translate("axes", text); }

std::vector<Tick> duration_ticks(AxisRange range, int most) {
  constexpr double minute = 60, hour = 3600, day = 86400;
  constexpr std::array<double, 21> steps = {1,       2,          5,          10,          15,          30,
                                            minute,  2 * minute, 5 * minute, 10 * minute, 15 * minute, 30 * minute,
                                            hour,    2 * hour,   3 * hour,   6 * hour,    12 * hour,   day,
                                            2 * day, 5 * day,    10 * day};
  if (!(range.span() > 0)) return {};
  const double wanted = range.span() / std::max(1, most);
  if (wanted < steps.front()) {
    std::vector<Tick> ticks = linear_ticks(range, most, ValueFormat::compact);
    for (Tick& tick : ticks) tick.label += tr(" s");
    return ticks;
  }
  const auto fits = std::lower_bound(steps.begin(), steps.end(), wanted);
  const double step = fits == steps.end() ? std::ceil(wanted / (10 * day)) * 10 * day : *fits;
  std::vector<Tick> ticks;
  for (double at = std::ceil(range.low / step - 1e-6) * step; at <= range.high + step * 1e-6; at += step)
    ticks.push_back({at, at == 0 ? QStringLiteral("0") : format_duration(at)});
  return ticks;
}

}  // namespace

QString x_name(XKind kind) {
  switch (kind) {
    case XKind::step:
      return tr("Step");
    case XKind::tokens:
      return tr("Tokens");
    case XKind::flops:
      return tr("FLOPs");
    case XKind::clock:
      return tr("Wall clock");
    case XKind::process:
      return tr("Time in run");
  }
  return {};
}

QString x_unit(XKind kind) {
  switch (kind) {
    case XKind::step:
      return tr("step");
    case XKind::tokens:
      return tr("tokens");
    case XKind::flops:
      return tr("FLOPs, 6 per parameter and token");
    case XKind::clock:
      return tr("since the first step, by the clock");
    case XKind::process:
      return tr("spent in the run");
  }
  return {};
}

QString x_word(XKind kind) {
  switch (kind) {
    case XKind::step:
      return QStringLiteral("step");
    case XKind::tokens:
      return QStringLiteral("tokens");
    case XKind::flops:
      return QStringLiteral("flops");
    case XKind::clock:
      return QStringLiteral("clock");
    case XKind::process:
      return QStringLiteral("process");
  }
  return {};
}

XKind x_kind_from_word(const QString& word) {
  for (const XKind kind : x_kinds)
    if (x_word(kind) == word) return kind;
  return XKind::step;
}

QString format_x(XKind kind, double x) {
  switch (kind) {
    case XKind::step:
      return format_count(std::llround(x));
    case XKind::tokens:
      return format_amount(x);
    case XKind::flops:
      return format_value(x, ValueFormat::scientific);
    default:
      return format_duration(x);
  }
}

std::vector<Tick> x_ticks(XKind kind, AxisRange range, int most, bool log) {
  switch (kind) {
    case XKind::step:
    case XKind::tokens:
      return count_ticks(range, most, log);
    case XKind::flops:
      return log ? log_ticks(range, most, ValueFormat::scientific) : linear_ticks(range, most, ValueFormat::scientific);
    default:
      break;
  }
  if (!log) return duration_ticks(range, most);
  std::vector<Tick> ticks = log_ticks(range, most, ValueFormat::compact);
  for (Tick& tick : ticks) {
    const double seconds = std::pow(10, tick.position);
    tick.label = seconds < 1 ? tick.label + tr(" s") : format_duration(seconds);
  }
  return ticks;
}

double narrowest_x(XKind kind, double whole) { return kind == XKind::step ? 2 : whole * 1e-6; }

double x_at_step(const Series& rows, double step) {
  const auto steps = rows.xs();
  if (steps.empty()) return 0;
  const auto at = static_cast<std::size_t>(std::lower_bound(steps.begin(), steps.end(), step) - steps.begin());
  if (at == steps.size()) return rows.ys()[at - 1];
  if (at == 0 || steps[at] == step) return rows.ys()[at];
  const double part = (step - steps[at - 1]) / (steps[at] - steps[at - 1]);
  return rows.ys()[at - 1] + part * (rows.ys()[at] - rows.ys()[at - 1]);
}

void MappedX::update(const Series& series, const Series* rows, double scale) {
  mapped_ = rows != nullptr;
  if (!rows || rows != rows_ || scale != scale_ || series.epoch() != epoch_ || rows->epoch() != rows_epoch_ ||
      xs_.size() > series.size())
    xs_.clear();
  rows_ = rows;
  scale_ = scale;
  epoch_ = series.epoch();
  rows_epoch_ = rows ? rows->epoch() : 0;
  if (!rows || rows->empty()) return;
  const auto steps = series.xs(), known = rows->xs();
  auto at = static_cast<std::size_t>(
      xs_.empty() ? 0 : std::lower_bound(known.begin(), known.end(), steps[xs_.size() - 1]) - known.begin());
  for (std::size_t i = xs_.size(); i < steps.size() && steps[i] <= known.back(); ++i) {
    while (at < known.size() && known[at] < steps[i]) ++at;
    const double x = (known[at] == steps[i] ? rows->ys()[at] : x_at_step(*rows, steps[i])) * scale;
    // A clock that was set back must not fold the curve.
    xs_.push_back(xs_.empty() ? x : std::max(x, xs_.back()));
  }
}

}  // namespace stacklab::ui
