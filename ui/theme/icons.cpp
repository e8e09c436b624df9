#include "ui/theme/icons.h"

#include <QFile>
#include <QHash>
#include <QIconEngine>
#include <QPainter>
#include <QPixmap>
#include <QSvgRenderer>

#include "ui/theme/look.h"

namespace stacklab::ui {
namespace {

QByteArray svg_text(const QString& name) {
  static QHash<QString, QByteArray> cache;
  auto found = cache.find(name);
  if (found == cache.end()) {
    QFile file(QStringLiteral(":/icons/%1.svg").arg(name));
    found = cache.insert(name, file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray());
  }
  return *found;
}

class ThemedIcon : public QIconEngine {
 public:
  ThemedIcon(QString name, Token color) : name_(std::move(name)), color_(color) {}

  void paint(QPainter* painter, const QRect& rect, QIcon::Mode mode, QIcon::State state) override {
    const qreal ratio = painter->device() ? painter->device()->devicePixelRatioF() : 1;
    painter->drawPixmap(rect, icon_pixmap(name_, std::min(rect.width(), rect.height()), ratio, color(mode, state)));
  }
  QPixmap pixmap(const QSize& size, QIcon::Mode mode, QIcon::State state) override {
    return icon_pixmap(name_, std::min(size.width(), size.height()), 1, color(mode, state));
  }
  QPixmap scaledPixmap(const QSize& size, QIcon::Mode mode, QIcon::State state, qreal) override {
    return pixmap(size, mode, state);
  }
  QIconEngine* clone() const override { return new ThemedIcon(*this); }

 private:
  QColor color(QIcon::Mode mode, QIcon::State state) const {
    if (mode == QIcon::Disabled) return theme()[Token::off];
    return theme()[state == QIcon::On ? Token::accent : color_];
  }

  QString name_;
  Token color_;
};

}  // namespace

QIcon icon(const QString& name, Token color) { return QIcon(new ThemedIcon(name, color)); }

QPixmap icon_pixmap(const QString& name, int size, qreal device_pixel_ratio, const QColor& color) {
  QByteArray svg = svg_text(name);
  svg.replace("stroke=\"#000\"", "stroke=\"" + color.name().toLatin1() + "\"");
  QPixmap pixmap(QSize(size, size) * device_pixel_ratio);
  pixmap.fill(Qt::transparent);
  QSvgRenderer renderer(svg);
  QPainter painter(&pixmap);
  renderer.render(&painter);
  painter.end();
  pixmap.setDevicePixelRatio(device_pixel_ratio);
  return pixmap;
}

}  // namespace stacklab::ui
