// A chart in its frame, with what its badges say.
#pragma once

#include <functional>

#include "ui/plots/curve_chart.h"
#include "ui/plots/export.h"
#include "ui/plots/panel_frame.h"

namespace stacklab::ui {

// Gives curves with all their points, where some stand for others, to whom it is handed.
using WholeValues = std::function<void(std::vector<CurveExtract>, std::function<void(std::vector<CurveExtract>)>)>;

class ChartPanel : public PanelFrame {
  Q_OBJECT
 public:
  ChartPanel(ChartSetup setup, SharedView* shared, QWidget* parent = nullptr);

  CurveChart* chart() const { return chart_; }
  void set_log_y(bool log);       // its own axis
  void override_log_y(bool all);  // logarithmic whatever its own is; false gives its own back
  bool own_log_y() const { return own_log_y_; }
  void set_whole_values(WholeValues whole) { whole_values_ = std::move(whole); }
  void save_values(const QString& path);  // CSV of the visible range, written on another thread

 signals:
  void log_y_changed(bool log);

 protected:
  void fill_menu(QMenu* menu) override;

 private:
  void update_badges();
  void update_unit();
  void apply_log_y(bool log);

  QToolButton* non_finite_;
  QToolButton* hidden_;
  QToolButton* robust_;
  QToolButton* zoomed_;
  CurveChart* chart_;
  bool own_log_y_;
  WholeValues whole_values_;  // empty: what the chart has is all there is
};

}  // namespace stacklab::ui
