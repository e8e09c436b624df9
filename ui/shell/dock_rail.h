// What is left of the dock in a narrow window: its tabs, standing on their side at the right edge.
#pragma once

#include <QToolBar>

class QTabWidget;

namespace stacklab::ui {

class DockRail : public QToolBar {
  Q_OBJECT
 public:
  explicit DockRail(QWidget* parent);
  void set_tabs(QTabWidget* tabs);
  void show_open(bool open);  // which button is pressed

 signals:
  void chosen(int tab);

 private:
  void restyle();

  QTabWidget* tabs_ = nullptr;
  QList<class QAbstractButton*> buttons_;
  bool open_ = false;
};

}  // namespace stacklab::ui
