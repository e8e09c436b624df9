// A chart in its frame, with what its badges say.
#pragma once

#include "ui/plots/curve_chart.h"
#include "ui/plots/panel_frame.h"

namespace stacklab::ui {

class ChartPanel : public PanelFrame {
  Q_OBJECT
 public:
  ChartPanel(ChartSetup setup, SharedView* shared, QWidget* parent = nullptr);

  CurveChart* chart() const { return chart_; }
  void set_log_y(bool log);
  void save_values(const QString& path);  // CSV of the visible range, written on another thread

 signals:
  void log_y_changed(bool log);

 protected:
  void fill_menu(QMenu* menu) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  void update_badges();
  void update_unit();

  QToolButton* non_finite_;
  QToolButton* hidden_;
  QToolButton* robust_;
  QToolButton* zoomed_;
  CurveChart* chart_;
};

}  // namespace stacklab::ui
