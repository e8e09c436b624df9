// The panels of the monitor and the points behind them.
#pragma once

#include <QWidget>
#include <map>
#include <memory>
#include <vector>

#include "ui/models/workspace_link.h"
#include "ui/plots/chart_panel.h"
#include "ui/plots/shared_view.h"

namespace stacklab::ui {

class MonitorCharts : public QWidget {
  Q_OBJECT
 public:
  explicit MonitorCharts(WorkspaceLink* link, QWidget* parent = nullptr);

  SharedView* view() { return &view_; }
  // The runs on show, in the order of the list. Asks the link for their series.
  void set_runs(const std::vector<const RunInfo*>& runs, const RunInfo* selected);
  // What a run knows of itself grows while it trains: reference lines of the selected one, length of the axis.
  void update_facts(const std::vector<const RunInfo*>& runs, const RunInfo* selected);
  void take(const SeriesChunkPtr& chunk);
  void set_events(const std::vector<RunEventRow>& rows);
  void set_empty_texts(const QString& loss, const QString& others);

  ChartPanel* panel(const QString& id) const;
  const std::vector<ChartPanel*>& panels() const { return panels_; }
  // Mean of the last finite values of a metric that have been read; NaN if there are none.
  double recent(const RunId& run, std::string_view metric, std::size_t last) const;
  std::size_t raw_points() const;
  std::size_t drawn_points() const;
  std::optional<std::pair<double, QString>> first_non_finite() const;  // step, panel's id
  // Everything asked for has been read and drawn.
  bool settled() const;

 signals:
  void facts_changed();

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

  WorkspaceLink* link_;
  SharedView view_;
  std::vector<Plan> plans_;
  std::vector<ChartPanel*> panels_;
  std::map<SeriesKey, Held> held_;
};

}  // namespace stacklab::ui
