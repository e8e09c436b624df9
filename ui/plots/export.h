// What a panel shows, as files. Numbers in files have a '.' whatever the locale, and read back exactly.
#pragma once

#include <QByteArray>
#include <QString>
#include <vector>

#include "ui/plots/curve_chart.h"

namespace stacklab::ui {

// The raw points of one curve within a window, copied, so that another thread can write them.
struct CurveExtract {
  QString run_id, run_name, metric;
  std::vector<double> xs, ys;
};
std::vector<CurveExtract> extract(const CurveChart& chart);

// run,name,metric,step,value; NaN and infinities as nan, inf, -inf.
QByteArray to_csv(const std::vector<CurveExtract>& curves);

// Through a temporary file and a rename; empty when it worked, else what went wrong.
QString write_file(const QString& path, const QByteArray& bytes);

}  // namespace stacklab::ui
