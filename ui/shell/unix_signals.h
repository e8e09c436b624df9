// SIGINT and SIGTERM as an ordinary signal of the event loop.
#pragma once

#include <QObject>

class QSocketNotifier;

namespace stacklab::ui {

class UnixSignals : public QObject {
  Q_OBJECT
 public:
  explicit UnixSignals(QObject* parent = nullptr);
  ~UnixSignals() override;

 signals:
  void quit_requested();

 private:
  QSocketNotifier* notifier_ = nullptr;
};

}  // namespace stacklab::ui
