// Where an axis has its ticks and what they say. Drawn by us, because QValueAxis labels are printf formats only.
#pragma once

#include <QString>
#include <vector>

namespace stacklab::ui {

// How a panel's values are written: 3.149; 0.43; 2.0e-2; 13.7k; 45.1 %; 24.5 GB.
enum class ValueFormat { fixed3, fixed2, scientific, compact, percent, bytes };
QString format_value(double value, ValueFormat format);
QString format_difference(double value, ValueFormat format);  // with its sign

struct Tick {
  double position = 0;  // in the axis' unit: log10 on a log axis
  QString label;        // empty: a grid line without text
};

struct AxisRange {
  double low = 0, high = 1;
  bool operator==(const AxisRange&) const = default;
  double span() const { return high - low; }
};

// At most `most` ticks of a step 1, 2 or 5 times a power of ten.
std::vector<Tick> linear_ticks(AxisRange range, int most, ValueFormat format);
// range in log10. Decades; with 3 or 2 and 5 between them where there is room; linear steps below a decade.
std::vector<Tick> log_ticks(AxisRange range, int most, ValueFormat format);
// Steps: 0, 500, 1,000; from 10,000 on 0, 4k, 8k.
std::vector<Tick> count_ticks(AxisRange range, int most, bool log);

// The smallest range with ends on ticks that holds low and high; a single value gets room around it.
AxisRange nice_range(double low, double high, int most);

}  // namespace stacklab::ui
