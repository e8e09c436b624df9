#include "ui/plots/ticks.h"

#include <QLocale>
#include <algorithm>
#include <cmath>

#include "ui/theme/numbers.h"

namespace stacklab::ui {
namespace {

double nice_step(double span, int most) {
  if (!(span > 0) || most < 1) return 1;
  const double rough = span / most;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0, 10.0})
    if (factor * power >= rough * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

// From here on, and below, a number with all its zeros cannot be read.
constexpr double huge = 1e7, tiny = 1e-3;

int decimals_of(double step) { return std::max(0, static_cast<int>(std::ceil(-std::log10(step) - 1e-9))); }

QString scientific_label(double value, double step) {
  if (std::abs(value) < step * 1e-6) return QStringLiteral("0");
  const int exponent = static_cast<int>(std::floor(std::log10(std::abs(value)) + 1e-9));
  const double mantissa = value / std::pow(10, exponent);
  const bool whole = std::abs(mantissa - std::round(mantissa)) < 1e-6;
  const int decimals = whole ? 0 : std::clamp(decimals_of(step / std::pow(10, exponent)), 1, 6);
  return QLocale().toString(mantissa, 'f', decimals) + QLatin1Char('e') + QString::number(exponent);
}

QString suffixed(double value, double step, bool bytes = false) {
  const double size = std::abs(value);
  for (const auto& [unit, name] :
       {std::pair{1e9, bytes ? " GB" : "B"}, {1e6, bytes ? " MB" : "M"}, {1e3, bytes ? " kB" : "k"}})
    if (size >= unit * (1 - 1e-9))
      return QLocale().toString(value / unit, 'f', decimals_of(std::max(step, unit / 100) / unit)) +
             QLatin1String(name);
  return QLocale().toString(value, 'f', decimals_of(step)) + QLatin1String(bytes ? " B" : "");
}

QString tick_label(double value, double step, double largest, ValueFormat format) {
  if (std::abs(value) < step * 1e-6) value = 0;
  const bool wide = format == ValueFormat::fixed3 || format == ValueFormat::fixed2;
  if ((wide && (largest >= huge || largest < tiny)) || (format == ValueFormat::compact && largest >= 1e13))
    return scientific_label(value, step);
  switch (format) {
    case ValueFormat::scientific:
      return scientific_label(value, step);
    case ValueFormat::compact:
      return largest >= 10000 ? suffixed(value, step) : QLocale().toString(value, 'f', decimals_of(step));
    case ValueFormat::percent:
      return QLocale().toString(100 * value, 'f', decimals_of(100 * step)) + QStringLiteral(" %");
    case ValueFormat::bytes:
      return value == 0 ? QStringLiteral("0") : suffixed(value, step, true);
    default:
      return QLocale().toString(value, 'f', decimals_of(step));
  }
}

QString log_label(double value, ValueFormat format) {
  if (format == ValueFormat::percent || format == ValueFormat::bytes) return tick_label(value, value, value, format);
  if (format == ValueFormat::scientific || value < tiny || value >= huge) return scientific_label(value, value);
  if (format == ValueFormat::compact && value >= 10000) return suffixed(value, value);
  return QLocale().toString(value, 'f', decimals_of(std::pow(10, std::floor(std::log10(value) + 1e-9))));
}

std::vector<double> multiples(AxisRange range, double step) {
  std::vector<double> values;
  const double first = std::ceil(range.low / step - 1e-6);
  for (int i = 0; i < 64; ++i) {
    const double value = (first + i) * step;
    if (value > range.high + step * 1e-6) break;
    values.push_back(value);
  }
  return values;
}

}  // namespace

QString format_difference(double value, ValueFormat format) {
  return (value < 0 ? QChar(0x2212) : QChar(QLatin1Char('+'))) + format_value(std::abs(value), format);
}

QString format_value(double value, ValueFormat format) {
  const auto fixed = [value](int decimals) {
    const double size = std::abs(value);
    const bool to_nothing = size > 0 && size < 0.5 * std::pow(10, -decimals);
    return size >= huge || to_nothing ? format_rate(value) : format_fixed(value, decimals);
  };
  switch (format) {
    case ValueFormat::fixed3:
      return fixed(3);
    case ValueFormat::fixed2:
      return fixed(2);
    case ValueFormat::scientific:
      return format_rate(value);
    case ValueFormat::compact:
      return format_compact(value);
    case ValueFormat::percent:
      return std::isfinite(value) ? format_fixed(100 * value, 1) + QStringLiteral(" %") : format_fixed(value, 1);
    case ValueFormat::bytes:
      return std::isfinite(value) ? format_bytes(std::llround(value)) : format_fixed(value, 1);
  }
  return {};
}

std::vector<Tick> linear_ticks(AxisRange range, int most, ValueFormat format) {
  std::vector<Tick> ticks;
  if (!(range.span() > 0)) return ticks;
  const double step = nice_step(range.span(), most);
  for (const double value : multiples(range, step))
    ticks.push_back({value, tick_label(value, step, std::max(std::abs(range.low), std::abs(range.high)), format)});
  return ticks;
}

std::vector<Tick> log_ticks(AxisRange range, int most, ValueFormat format) {
  std::vector<Tick> ticks;
  if (!(range.span() > 0) || most < 1) return ticks;
  const int first = static_cast<int>(std::floor(range.low)), last = static_cast<int>(std::ceil(range.high));
  const std::vector<std::vector<double>> choices = {{1, 2, 5}, {1, 3}, {1}};
  const auto positions_of = [&](const std::vector<double>& mantissas) {
    std::vector<double> positions;
    for (int decade = first; decade <= last; ++decade)
      for (const double m : mantissas) {
        const double position = decade + std::log10(m);
        if (position >= range.low - 1e-9 && position <= range.high + 1e-9) positions.push_back(position);
      }
    return positions;
  };
  std::vector<double> best;
  for (const auto& mantissas : choices) {
    const std::vector<double> positions = positions_of(mantissas);
    if (static_cast<int>(positions.size()) <= most || mantissas.size() == 1) {
      best = positions;
      break;
    }
  }
  if (best.size() < 3) {
    // Less than about a decade: even steps of the value itself.
    const AxisRange values{std::pow(10, range.low), std::pow(10, range.high)};
    const auto take_steps = [&](int count) {
      ticks.clear();
      const double step = nice_step(values.span(), count);
      for (const double value : multiples(values, step))
        if (value > 0) ticks.push_back({std::log10(value), tick_label(value, step, values.high, format)});
    };
    take_steps(most);
    if (ticks.size() >= 2) return ticks;
    // One number alone gives no scale.
    if (best.size() < 2) best = positions_of(choices.front());
    if (best.size() < 2) {
      for (int finer = 2 * most; ticks.size() < 2 && finer <= 16 * most; finer *= 2) take_steps(finer);
      return ticks;
    }
    ticks.clear();
  }
  const auto stride = static_cast<std::size_t>(std::max(1, static_cast<int>(best.size() + most - 1) / most));
  for (std::size_t i = 0; i < best.size(); i += stride)
    ticks.push_back({best[i], log_label(std::pow(10, best[i]), format)});
  return ticks;
}

std::vector<Tick> count_ticks(AxisRange range, int most, bool log) {
  if (log) return log_ticks(range, most, ValueFormat::compact);
  std::vector<Tick> ticks;
  if (!(range.span() > 0)) return ticks;
  const double step = std::max(1.0, nice_step(range.span(), most));
  for (const double value : multiples(range, step))
    ticks.push_back({value, tick_label(value, step, range.high, ValueFormat::compact)});
  return ticks;
}

AxisRange nice_range(double low, double high, int most) {
  if (!(high > low)) {
    const double room = low == 0 ? 1 : std::abs(low) * 0.05;
    low -= room;
    high += room;
  }
  const double step = nice_step(high - low, most);
  return {std::floor(low / step + 1e-9) * step, std::ceil(high / step - 1e-9) * step};
}

}  // namespace stacklab::ui
