// A sheet over the window, below its menu bar, for palette and notifications: it closes with Escape, a click beside it
// or the loss of the focus, and gives the focus back. Being part of the window it works on every desktop.
#pragma once

#include <QFrame>
#include <QPointer>

namespace stacklab::ui {

class Popup : public QFrame {
  Q_OBJECT
 public:
  explicit Popup(QWidget* window);
  // Its right edge at the right edge of `anchor`, below it.
  void open_below(QWidget* anchor, QSize size, QWidget* focus);
  void set_height(int height);  // while it is open
  void dismiss();

 signals:
  void dismissed();

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  void place();
  void leave();  // closed, with the focus where it is

  QPointer<QWidget> anchor_, focus_before_;
  QSize wanted_;
};

}  // namespace stacklab::ui
