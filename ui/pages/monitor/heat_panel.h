// The largest attention logit of each layer and head, at one step of one run.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "ui/plots/column.h"
#include "ui/plots/heat_map.h"
#include "ui/plots/panel_frame.h"

class QDialog;
class QSlider;

namespace stacklab::ui {

// What the heads of a run have reported, by layer and head.
struct HeadSeries {
  int layers = 0, heads = 0;
  std::vector<std::shared_ptr<const Series>> series;  // by layer
  std::vector<bool> unpositioned;                     // layers without position encoding
  double limit = 0;                                   // the clip threshold; 0: none
  QString run;                                        // its name
  const Series& of(int layer, int head) const {
    return *series[static_cast<std::size_t>(layer) * static_cast<std::size_t>(heads) + static_cast<std::size_t>(head)];
  }
  bool empty() const { return series.empty(); }
};

class HeatPanel : public PanelFrame {
  Q_OBJECT
 public:
  explicit HeatPanel(QWidget* parent = nullptr);

  HeatMap* map() const { return map_; }
  QSlider* slider() const { return slider_; }
  HeatLegend* legend() const { return legend_; }
  void set_heads(HeadSeries heads);
  void refresh();                                    // their values have grown
  void set_cursor_step(std::optional<double> step);  // of the crosshair
  void set_selected(std::optional<QPoint> head);     // x: layer, y: head
  void set_empty_text(const QString& text) { map_->set_empty_text(text); }
  double step() const { return step_; }

  // The cells as a table that can be copied; it deletes itself when closed.
  QDialog* show_as_table();

 signals:
  void head_chosen(int layer, int head);

 protected:
  void fill_menu(QMenu* menu) override;

 private:
  void show_step();
  std::span<const double> steps() const;

  HeadSeries heads_;
  HeatMap* map_;
  HeatLegend* legend_;
  QToolButton *over_, *follow_;
  QSlider* slider_;
  TextLabel* at_;
  std::optional<double> cursor_;
  double step_ = 0;
};

}  // namespace stacklab::ui
