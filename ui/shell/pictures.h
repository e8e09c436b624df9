// Draws every page to a file, once what is in the workspace has been drawn.
#pragma once

#include <QObject>
#include <QStringList>
#include <QTimer>

#include "ui/shell/main_window.h"

namespace stacklab::ui {

class PictureTaker : public QObject {
  Q_OBJECT
 public:
  // The window is shown and its workspace opened by this. Directory made if missing.
  PictureTaker(MainWindow* window, QString directory, QObject* parent = nullptr);
  void start();
  const QStringList& written() const { return written_; }

 signals:
  void finished(const QString& error);  // empty: all pages are there

 private:
  void look();
  void end(const QString& error);

  MainWindow* window_;
  QString directory_;
  QStringList left_, written_;
  QTimer timer_;
  QElapsedTimer waited_;
  int settled_looks_ = 0;
  int troubled_looks_ = 0;
};

}  // namespace stacklab::ui
