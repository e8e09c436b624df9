// The panels of the monitor and the points behind them.
#pragma once

#include <QWidget>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "ui/models/workspace_link.h"
#include "ui/pages/monitor/heat_panel.h"
#include "ui/pages/monitor/panel_grid.h"
#include "ui/plots/chart_panel.h"
#include "ui/plots/shared_view.h"

namespace stacklab::ui {

// The loss of a model that knows nothing; none: the vocabulary is not known.
std::optional<ReferenceLine> blind_guess(const RunInfo& run);

class MonitorCharts : public QWidget {
  Q_OBJECT
 public:
  explicit MonitorCharts(WorkspaceLink* link, QWidget* parent = nullptr);

  SharedView* view() { return &view_; }
  PanelGrid* grid() const { return grid_; }
  // The runs on show, in the order of the list. Asks the link for the series of the panels that are shown.
  void set_runs(const std::vector<const RunInfo*>& runs, const RunInfo* selected);
  void keep_loss(bool keep) { keep_loss_ = keep; }                // whether its panel is shown or not; before set_runs
  void set_baseline(std::int64_t number) { baseline_ = number; }  // before set_runs; -1: none
  // What a run knows of itself grows while it trains: reference lines of the selected one, length of the axis.
  void update_facts(const std::vector<const RunInfo*>& runs, const RunInfo* selected);
  void take(const SeriesChunkPtr& chunk);
  void set_events(const std::vector<RunEventRow>& rows);
  void set_empty_texts(const QString& loss, const QString& others);
  // Brings a step of the selected run before the eyes, whatever the axis counts.
  void go_to_step(double step);
  void choose_head(int layer, int head);
  std::optional<QPoint> chosen_head() const { return chosen_head_; }
  // All panels of curves, over what each has of its own; false gives each its own back.
  void set_log_y(bool all);
  bool log_y() const { return all_log_y_; }
  // With all values of the store in place of those that stand for others. What cannot be read stays as it is.
  void whole_values(std::vector<CurveExtract> curves, std::function<void(std::vector<CurveExtract>)> done);

  // Curves; first the loss.
  const std::vector<ChartPanel*>& panels() const { return panels_; }
  ChartPanel* panel(const QString& id) const;
  HeatPanel* heat() const { return heat_; }
  QString caption() const { return caption_; }  // the runs on show, with the hashes of their configs
  // Mean of the last finite values of a metric that have been read; NaN if there are none.
  double recent(const RunId& run, std::string_view metric, std::size_t last) const;
  std::size_t raw_points() const;
  std::size_t drawn_points() const;
  std::optional<std::pair<double, QString>> first_non_finite() const;  // x, panel's id
  // Everything asked for has been read and drawn.
  bool settled() const;

  // "Pretraining" and "Stability", as they come.
  static std::vector<std::pair<QString, PanelLayout>> perspectives();

 signals:
  void facts_changed();
  void panels_changed();  // others are shown: their series are to be asked for

 private:
  struct Held {
    std::shared_ptr<Series> series;
    bool complete = false;
  };
  struct Source {
    std::string metric;
    QString name;
    bool points = false, smooth = true;
  };
  struct Plan {  // what a panel shows of each run
    ChartSetup setup;
    std::vector<Source> sources;
  };
  static std::vector<Plan> plans();
  using Hold = std::function<std::shared_ptr<Series>(const SeriesKey&)>;
  // Where the steps of a run lie on the x axis.
  struct Axis {
    SeriesKey key;                       // of rows
    std::shared_ptr<const Series> rows;  // null: it counts steps
    double scale = 1;
    double x_of_step(double step) const { return rows ? x_at_step(*rows, step) * scale : step; }
    double step_of_x(double x) const;
  };
  Axis axis_of(const RunInfo& run, const Hold& hold) const;
  void look_closely();
  std::vector<SeriesSection> sections_of(const Axis& axis) const;
  Curve curve_of(const RunInfo& run, const std::string& metric, const QString& name, const Hold& hold) const;
  void hold_heads(const RunInfo* selected, const Hold& hold);
  void rank_heads();
  void map_events();

  WorkspaceLink* link_;
  SharedView view_;
  PanelGrid* grid_;
  HeatPanel* heat_;
  ChartPanel* heads_panel_;
  std::vector<Plan> plans_;
  std::vector<ChartPanel*> panels_;  // as plans_, then the worst heads
  std::map<SeriesKey, Held> held_;
  std::set<SeriesKey> head_keys_;
  HeadSeries heads_;
  Curve head_curve_;  // what the curves of heads have in common
  std::optional<QPoint> chosen_head_;
  QString caption_;
  RunId heads_of_;
  bool keep_loss_ = false, all_log_y_ = false;
  std::int64_t baseline_ = -1;
  double expected_steps_ = 0;   // of the longest run on show
  Axis axis_;                   // of the selected run
  std::map<RunId, Axis> axes_;  // of those on show
  SectionsByRun sections_;      // what the link was last told
  std::vector<RunEventRow> events_;
  CoalescingTimer rank_timer_, look_timer_;
};

}  // namespace stacklab::ui
