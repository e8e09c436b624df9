#include "ui/plots/export.h"

#include <QApplication>
#include <QBuffer>
#include <QFileDialog>
#include <QFileInfo>
#include <QPainter>
#include <QPdfWriter>
#include <QPointer>
#include <QSaveFile>
#include <QSvgGenerator>
#include <QThreadPool>
#include <charconv>
#include <cmath>

#include "ui/theme/look.h"

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
  const auto ranges = chart.shown_points();
  std::size_t at = 0;
  for (const Curve& curve : chart.curves()) {
    const auto xs = curve.series->xs();
    const auto ys = curve.series->ys().values();
    const auto [begin, end] = ranges[at++];
    result.push_back({curve.group_id,
                      curve.group,
                      curve.metric,
                      {xs.begin() + static_cast<std::ptrdiff_t>(begin), xs.begin() + static_cast<std::ptrdiff_t>(end)},
                      {ys.begin() + static_cast<std::ptrdiff_t>(begin), ys.begin() + static_cast<std::ptrdiff_t>(end)},
                      curve.series->summed()});
    CurveExtract& made = result.back();
    if (made.xs.empty()) continue;
    made.first_step = std::llround(made.xs.front());
    made.last_step = std::llround(made.xs.back());
    if (chart.shared()->x_kind() != XKind::step) continue;
    const AxisRange window = chart.data_window();
    made.first_step = std::llround(std::ceil(std::max(window.low, curve.series->xs().front())));
    made.last_step = std::llround(std::floor(std::min(window.high, curve.series->xs().back())));
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

void save_widget_later(QObject* owner, QWidget& widget, const QString& caption, const QString& path,
                       std::function<void(const QString&)> done) {
  const QFont font = look().font(TextRole::small);
  const int below = caption.isEmpty() ? 0 : QFontMetrics(font).height() + 8;
  const QSize size = widget.size() + QSize(0, below);
  const auto draw = [&](QPaintDevice& device, double scale) {
    QPainter painter(&device);
    painter.scale(scale, scale);
    painter.fillRect(QRect(QPoint(), size), theme()[Token::window]);
    widget.render(&painter, QPoint(), {}, QWidget::DrawChildren);
    painter.setFont(font);
    painter.setPen(theme()[Token::text3]);
    if (below)
      painter.drawText(QRect(11, widget.height(), size.width() - 22, below), Qt::AlignLeft | Qt::AlignVCenter,
                       QFontMetrics(font).elidedText(caption, Qt::ElideRight, size.width() - 22));
  };
  const QString suffix = QFileInfo(path).suffix().toLower();
  QByteArray bytes;
  QBuffer buffer(&bytes);
  buffer.open(QIODevice::WriteOnly);
  if (suffix == QLatin1String("svg")) {
    QSvgGenerator svg;
    svg.setOutputDevice(&buffer);
    svg.setSize(size);
    svg.setViewBox(QRect(QPoint(), size));
    svg.setDescription(caption);
    draw(svg, 1);
  } else if (suffix == QLatin1String("pdf")) {
    QPdfWriter pdf(&buffer);
    pdf.setPageSize(QPageSize(QSizeF(size) * 0.75, QPageSize::Point, {}, QPageSize::ExactMatch));
    pdf.setPageMargins(QMarginsF());
    pdf.setResolution(96);
    pdf.setTitle(caption);
    draw(pdf, 1);
  } else {
    QImage image(size * 2, QImage::Format_RGB32);
    image.setText(QStringLiteral("Description"), caption);
    draw(image, 2);
    return save_picture_later(owner, image, path, std::move(done));
  }
  buffer.close();
  later(
      owner, [bytes, path] { return write_file(path, bytes); }, std::move(done));
}

void ask_save_path(QWidget* owner, const QString& title, QStandardPaths::StandardLocation where, const QString& name,
                   const QStringList& suffixes, std::function<void(const QString&)> save) {
  auto* dialog = new QFileDialog(owner->window(), title, QStandardPaths::writableLocation(where));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setAcceptMode(QFileDialog::AcceptSave);
  QStringList filters;
  for (const QString& suffix : suffixes) filters << QStringLiteral("%1 (*.%2)").arg(suffix.toUpper(), suffix);
  dialog->setNameFilters(filters);
  dialog->setDefaultSuffix(suffixes.front());
  QObject::connect(dialog, &QFileDialog::filterSelected, dialog, [dialog, suffixes, filters](const QString& filter) {
    dialog->setDefaultSuffix(suffixes.value(filters.indexOf(filter), suffixes.front()));
  });
  dialog->selectFile(name + QLatin1Char('.') + suffixes.front());
  QObject::connect(dialog, &QFileDialog::fileSelected, owner, std::move(save));
  dialog->open();
}

void save_values_later(QObject* owner, std::vector<CurveExtract> curves, const QString& path,
                       std::function<void(const QString&)> done) {
  later(
      owner, [curves = std::move(curves), path] { return write_file(path, to_csv(curves)); }, std::move(done));
}

}  // namespace stacklab::ui
