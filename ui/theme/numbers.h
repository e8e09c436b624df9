// How numbers are written on screen. Separators follow the user's locale; files never use these.
#pragma once

#include <QString>
#include <cstdint>

namespace stacklab::ui {

inline QString missing() { return QStringLiteral("–"); }

QString format_fixed(double value, int decimals);  // 3.149; NaN, inf as words
QString format_loss(double value);                 // 3 decimals
QString format_loss_difference(double value);      // the same, with its sign
QString format_rate(double value);                 // 2.0e-2
QString format_count(std::int64_t value);          // 101,353,728
QString format_compact(double value);              // 231.5k, 6.54M, 12
QString format_amount(double value);               // 6.54 B, 1.13 M, 4,096 (with a space: before a noun)
QString format_bytes(std::int64_t bytes);          // 24.5 GB, 1e9
QString format_money(double usd);                  // $38.88
QString format_duration(double seconds);           // two units: 42 s, 4 min 10 s, 13 h 45 min, 2 d 4 h
QString format_ago(double seconds);                // 1 s ago
QString format_percent(double fraction);           // 36 %
QString format_clock(double unix_time);            // 02:11 today, Thu 02:11 this week, else the date

}  // namespace stacklab::ui
