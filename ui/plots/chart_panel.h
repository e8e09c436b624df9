// A chart in its frame: title, unit, badges, menu.
#pragma once

#include <QFrame>

#include "ui/plots/curve_chart.h"
#include "ui/theme/widgets.h"

class QHBoxLayout;
class QMenu;

namespace stacklab::ui {

class ChartPanel : public QFrame {
  Q_OBJECT
 public:
  ChartPanel(ChartSetup setup, SharedView* shared, QWidget* parent = nullptr);

  CurveChart* chart() const { return chart_; }
  void set_log_y(bool log);
  void save_picture(const QString& path);  // PNG, written on another thread
  void save_values(const QString& path);   // CSV of the visible range, written on another thread

 signals:
  void log_y_changed(bool log);
  void saved(const QString& path, const QString& error);  // error empty: done

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void update_badges();
  void open_menu(const QPoint& global);
  QToolButton* make_badge(const char* kind, const QString& icon_name);
  void ask_path(const QString& title, const QString& suffix, void (ChartPanel::*save)(const QString&));

  TextLabel* unit_;
  QToolButton* non_finite_;
  QToolButton* hidden_;
  QToolButton* robust_;
  QToolButton* zoomed_;
  QToolButton* menu_button_;
  CurveChart* chart_;
};

}  // namespace stacklab::ui
