#include "ui/shell/pictures.h"

#include <QBuffer>
#include <QDir>

#include "ui/plots/export.h"

namespace stacklab::ui {
namespace {
constexpr int look_every_ms = 40;
// Drawn and unchanged at so many looks in a row: layouts and charts have come to rest.
constexpr int looks_at_rest = 4;
constexpr int looks_in_trouble = 50;
constexpr int patience_ms = 60000;
}  // namespace

PictureTaker::PictureTaker(MainWindow* window, QString directory, QObject* parent)
    : QObject(parent), window_(window), directory_(std::move(directory)), left_(window->page_names()) {
  timer_.setInterval(look_every_ms);
  connect(&timer_, &QTimer::timeout, this, &PictureTaker::look);
  connect(window_, &MainWindow::open_failed, this, &PictureTaker::end);
}

void PictureTaker::start() {
  if (!QDir().mkpath(directory_))
    return end(tr("%1 cannot be made: choose another folder for the pictures").arg(directory_));
  window_->show();
  window_->show_page(left_.front());
  window_->open();
  waited_.start();
  timer_.start();
}

void PictureTaker::look() {
  settled_looks_ = window_->settled() ? settled_looks_ + 1 : 0;
  if (settled_looks_ < looks_at_rest) {
    // A store that stays unreadable will not be drawn; one that is only busy is waited for.
    troubled_looks_ = window_->trouble().isEmpty() ? 0 : troubled_looks_ + 1;
    if (troubled_looks_ > looks_in_trouble) return end(window_->trouble());
    if (waited_.elapsed() > patience_ms) end(tr("the page %1 was not drawn within a minute").arg(left_.front()));
    return;
  }
  const QString name = left_.takeFirst();
  const QString path = directory_ + QLatin1Char('/') + name + QStringLiteral(".png");
  QByteArray bytes;
  QBuffer buffer(&bytes);
  window_->grab().toImage().save(&buffer, "PNG");
  const QString error = write_file(path, bytes);
  if (!error.isEmpty()) return end(error);
  written_ << path;
  if (left_.isEmpty()) return end({});
  settled_looks_ = 0;
  waited_.start();
  window_->show_page(left_.front());
}

void PictureTaker::end(const QString& error) {
  timer_.stop();
  emit finished(error);
}

}  // namespace stacklab::ui

#include <moc_pictures.cpp>
