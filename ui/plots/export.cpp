#include "ui/plots/export.h"

#include <QApplication>
#include <QBuffer>
#include <QPointer>
#include <QSaveFile>
#include <QThreadPool>
#include <charconv>
#include <cmath>

namespace stacklab::ui {
namespace {

void add_number(QByteArray& to, double value) {
  char text[40];
  const auto end = std::to_chars(text, text + sizeof text, value);
  to.append(text, end.ptr - text);
}

QByteArray quoted(const QString& text) {
  QByteArray bytes = text.toUtf8();
  if (!bytes.contains(',') && !bytes.contains('"') && !bytes.contains('\n')) return bytes;
  return '"' + bytes.replace("\"", "\"\"") + '"';
}

}  // namespace

std::vector<CurveExtract> extract(const CurveChart& chart) {
  std::vector<CurveExtract> result;
  const AxisRange window = chart.data_window();
  for (const Curve& curve : chart.curves()) {
    const auto xs = curve.series->xs();
    const auto ys = curve.series->ys().values();
    const auto [begin, end] = index_range(xs, window.low, window.high);
    result.push_back(
        {curve.group_id,
         curve.group,
         curve.metric,
         {xs.begin() + static_cast<std::ptrdiff_t>(begin), xs.begin() + static_cast<std::ptrdiff_t>(end)},
         {ys.begin() + static_cast<std::ptrdiff_t>(begin), ys.begin() + static_cast<std::ptrdiff_t>(end)}});
  }
  return result;
}

QByteArray to_csv(const std::vector<CurveExtract>& curves) {
  QByteArray csv = "run,name,metric,step,value\n";
  for (const CurveExtract& curve : curves) {
    const QByteArray head = quoted(curve.run_id) + ',' + quoted(curve.run_name) + ',' + quoted(curve.metric) + ',';
    for (std::size_t i = 0; i < curve.xs.size(); ++i) {
      csv += head;
      csv += QByteArray::number(static_cast<qlonglong>(std::llround(curve.xs[i])));
      csv += ',';
      add_number(csv, curve.ys[i]);
      csv += '\n';
    }
  }
  return csv;
}

QString write_file(const QString& path, const QByteArray& bytes) {
  QSaveFile file(path);
  if (file.open(QIODevice::WriteOnly) && file.write(bytes) == bytes.size() && file.commit()) return {};
  return QCoreApplication::translate("export", "%1 could not be written: %2").arg(path, file.errorString());
}

namespace {

void later(QObject* owner, std::function<QString()> work, std::function<void(const QString&)> done) {
  QPointer<QObject> self(owner);
  QThreadPool::globalInstance()->start([self, work = std::move(work), done = std::move(done)] {
    const QString error = work();
    QMetaObject::invokeMethod(qApp, [self, done, error] {
      if (self) done(error);
    });
  });
}

}  // namespace

void save_picture_later(QObject* owner, const QImage& image, const QString& path,
                        std::function<void(const QString&)> done) {
  later(
      owner,
      [image, path] {
        QByteArray bytes;
        QBuffer buffer(&bytes);
        image.save(&buffer, "PNG");
        return write_file(path, bytes);
      },
      std::move(done));
}

void save_values_later(QObject* owner, std::vector<CurveExtract> curves, const QString& path,
                       std::function<void(const QString&)> done) {
  later(
      owner, [curves = std::move(curves), path] { return write_file(path, to_csv(curves)); }, std::move(done));
}

}  // namespace stacklab::ui
