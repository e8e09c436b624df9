// What a panel shows, as files. Numbers in files have a '.' whatever the locale, and read back exactly.
#pragma once

#include <QByteArray>
#include <QImage>
#include <QStandardPaths>
#include <QStringList>
#include <functional>
#include <vector>

#include "ui/plots/curve_chart.h"

namespace stacklab::ui {

// The raw points of one curve within a window, copied, so that another thread can write them.
struct CurveExtract {
  QString run_id, run_name, metric;
  std::vector<double> xs, ys;
  bool summed = false;                         // some of these points stand for others
  std::int64_t first_step = 0, last_step = 0;  // of the window
};
std::vector<CurveExtract> extract(const CurveChart& chart);

// run,name,metric,step,value, where run is the config's hash; NaN and infinities as nan, inf, -inf.
QByteArray to_csv(const std::vector<CurveExtract>& curves);

// Through a temporary file and a rename; empty when it worked, else what went wrong.
QString write_file(const QString& path, const QByteArray& bytes);

// Encodes and writes on another thread; `done` gets the error (empty: done) on the window's thread, if `owner` still
// lives.
void save_picture_later(QObject* owner, const QImage& image, const QString& path,
                        std::function<void(const QString&)> done);
// A picture of the widget with a line below it, in the format of the path's ending: PNG at twice the pixels, SVG, PDF.
void save_widget_later(QObject* owner, QWidget& widget, const QString& caption, const QString& path,
                       std::function<void(const QString&)> done);
// Asks for a file to write with one of these endings, the first unless another is chosen. save: while owner lives.
void ask_save_path(QWidget* owner, const QString& title, QStandardPaths::StandardLocation where, const QString& name,
                   const QStringList& suffixes, std::function<void(const QString&)> save);
void save_values_later(QObject* owner, std::vector<CurveExtract> curves, const QString& path,
                       std::function<void(const QString&)> done);

}  // namespace stacklab::ui
