#include "ui/theme/numbers.h"

#include <QCoreApplication>
#include <QDateTime>
#include <QLocale>
#include <cmath>

namespace stacklab::ui {
namespace {

QString tr(const char* text) { return QCoreApplication::translate("numbers", text); }

QString word_for(double value) {
  if (std::isnan(value)) return QStringLiteral("NaN");
  return value > 0 ? QStringLiteral("inf") : QStringLiteral("-inf");
}

// Three significant digits where that needs decimals, as in 231.5k, 6.54, 13.7.
QString significant(double value) {
  const double size = std::abs(value);
  const int decimals = size >= 100 ? 1 : size >= 10 ? 1 : 2;
  QString text = QLocale().toString(value, 'f', decimals);
  return text;
}

QString scaled(double value, const QString& space, std::initializer_list<std::pair<double, const char*>> units) {
  for (const auto& [unit, name] : units)
    if (std::abs(value) >= unit * 0.9995) return significant(value / unit) + space + QLatin1String(name);
  return {};
}

}  // namespace

QString format_fixed(double value, int decimals) {
  return std::isfinite(value) ? QLocale().toString(value, 'f', decimals) : word_for(value);
}

QString format_loss(double value) { return format_fixed(value, 3); }

QString format_loss_difference(double value) {
  if (!std::isfinite(value)) return format_fixed(value, 3);
  return (value < 0 ? QChar(0x2212) : QChar(QLatin1Char('+'))) + format_fixed(std::abs(value), 3);
}

QString format_rate(double value) {
  if (!std::isfinite(value)) return word_for(value);
  if (value == 0) return QStringLiteral("0");
  QString text = QString::asprintf("%.1e", value);  // 2.0e-02
  const qsizetype e = text.indexOf(QLatin1Char('e'));
  const int exponent = text.mid(e + 1).toInt();
  QString mantissa = text.left(e);
  mantissa.replace(QLatin1Char('.'), QLocale().decimalPoint());
  return mantissa + QLatin1Char('e') + QString::number(exponent);
}

QString format_count(std::int64_t value) { return QLocale().toString(static_cast<qlonglong>(value)); }

QString format_compact(double value) {
  if (!std::isfinite(value)) return word_for(value);
  const QString big = scaled(value, {}, {{1e12, "T"}, {1e9, "B"}, {1e6, "M"}, {1e3, "k"}});
  if (!big.isEmpty()) return big;
  return QLocale().toString(value, 'f', value == std::floor(value) || std::abs(value) >= 100 ? 0 : 1);
}

QString format_amount(double value) {
  if (!std::isfinite(value)) return word_for(value);
  const QString big = scaled(value, QStringLiteral(" "), {{1e12, "T"}, {1e9, "B"}, {1e6, "M"}});
  return big.isEmpty() ? format_count(std::llround(value)) : big;
}

QString format_bytes(std::int64_t bytes) {
  const double value = static_cast<double>(bytes);
  if (std::abs(value) < 1000) return tr("%1 B").arg(bytes);
  static constexpr std::pair<double, const char*> units[] = {{1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}};
  for (const auto& [unit, name] : units)
    if (std::abs(value) >= unit * 0.9995)
      return QLocale().toString(value / unit, 'f', 1) + QLatin1Char(' ') + QLatin1String(name);
  return {};
}

QString format_money(double usd) {
  if (!std::isfinite(usd)) return missing();
  return QStringLiteral("$") + format_fixed(usd, usd < 1000 ? 2 : 0);
}

QString format_duration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return missing();
  const auto s = static_cast<qlonglong>(std::llround(seconds));
  if (s < 1) return tr("%1 s").arg(QLocale().toString(seconds, 'f', 1));
  if (s < 60) return tr("%1 s").arg(s);
  if (s < 3600) return tr("%1 min %2 s").arg(s / 60).arg(s % 60);
  if (s < 86400) return tr("%1 h %2 min").arg(s / 3600).arg(s % 3600 / 60);
  return tr("%1 d %2 h").arg(s / 86400).arg(s % 86400 / 3600);
}

QString format_ago(double seconds) {
  return seconds < 1 ? tr("just now") : tr("%1 ago").arg(format_duration(std::floor(seconds)));
}

QString format_percent(double fraction) {
  return tr("%1 %").arg(QLocale().toString(std::floor(fraction * 100 + 1e-9), 'f', 0));
}

QString format_clock(double unix_time) {
  const QDateTime when = QDateTime::fromMSecsSinceEpoch(static_cast<qint64>(unix_time * 1000));
  const QDateTime now = QDateTime::currentDateTime();
  if (when.date() == now.date()) return when.toString(QStringLiteral("HH:mm"));
  const qint64 days = when.daysTo(now);
  return QLocale().toString(when, days < 7 ? QStringLiteral("ddd HH:mm") : QStringLiteral("d MMM yyyy HH:mm"));
}

}  // namespace stacklab::ui
