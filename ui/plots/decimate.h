// From raw points to what a screen can show: at most four points (first, smallest, largest, last) for each column of
// pixels.
#pragma once

#include <QPointF>
#include <cstddef>
#include <span>
#include <vector>

#include "ui/plots/column.h"

namespace stacklab::ui {

struct Window {
  double x0 = 0, x1 = 1;  // in the data's unit, both ends shown
  int columns = 1;        // pixels across
  bool log_x = false, log_y = false;
};

struct Decimated {
  std::vector<QPointF> points;  // in the axis' unit: log10 of what is on a log axis
  std::vector<int> starts;      // first point of each unbroken piece
  std::vector<QPointF> gaps;   // where a stretch of non-finite values begins; y of the last value before it (NaN: none)
  std::size_t raw = 0;         // values of the window, whatever they are
  std::size_t hidden = 0;      // of those: finite, but not positive, on a log axis
  std::size_t non_finite = 0;  // of those: NaN or infinite
};

// xs ascending, as long as ys. The neighbours just outside the window are kept, so that lines reach its edge.
Decimated decimate(std::span<const double> xs, const Column& ys, const Window& window);

// Indices [first, second) of the points with x0 <= x <= x1.
std::pair<std::size_t, std::size_t> index_range(std::span<const double> xs, double x0, double x1);

}  // namespace stacklab::ui
