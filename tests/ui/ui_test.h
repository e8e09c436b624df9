// What tests of the window share: waiting for the event loop, and looking at pictures.
#pragma once

#include <gtest/gtest.h>

#include <QApplication>
#include <QDeadlineTimer>
#include <QEventLoop>
#include <QImage>
#include <QTest>
#include <QTimer>
#include <QWidget>
#include <functional>

namespace stacklab::ui {

// Runs the event loop until it holds; false after a time that no machine should need.
inline bool wait_until(const std::function<bool()>& holds, int most_ms = 30000) {
  const QDeadlineTimer deadline(most_ms);
  QTimer wake;  // looks again even when nothing happens
  wake.start(10);
  while (!holds()) {
    if (deadline.hasExpired()) return false;
    QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents | QEventLoop::AllEvents);
  }
  return true;
}

inline bool close_to(const QColor& a, const QColor& b, int tolerance = 24) {
  return std::abs(a.red() - b.red()) <= tolerance && std::abs(a.green() - b.green()) <= tolerance &&
         std::abs(a.blue() - b.blue()) <= tolerance;
}

inline int count_pixels(const QImage& image, const QColor& color, const QRect& within = {}, int tolerance = 24) {
  const QRect area = within.isNull() ? image.rect() : within.intersected(image.rect());
  int count = 0;
  for (int y = area.top(); y <= area.bottom(); ++y)
    for (int x = area.left(); x <= area.right(); ++x)
      if (close_to(image.pixelColor(x, y), color, tolerance)) ++count;
  return count;
}

// Saved for people to look at when $STACKLAB_PICTURES names a folder.
void keep_picture(const QImage& image, const QString& name);

}  // namespace stacklab::ui
