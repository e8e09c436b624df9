// What a new workspace shows in place of its table: the first run, step by step, with its curve; and what one can start
// oneself.
#pragma once

#include <QWidget>

#include "ui/models/workspace_link.h"
#include "ui/plots/chart_panel.h"
#include "ui/plots/shared_view.h"
#include "ui/theme/fact_grid.h"

class QVBoxLayout;

namespace stacklab::ui {

class Journey;
class JourneyStrip;
class RunHead;

class FirstStart : public QWidget {
  Q_OBJECT
 public:
  // The curve is read by another chart, which shares it.
  FirstStart(WorkspaceLink* link, CurveChart* loss, QWidget* parent = nullptr);

  // Something to start: an icon, what it does, and a line on it.
  QPushButton* add_link(const QString& icon_name, const QString& title, const QString& help);
  void show_journey(const Journey& journey, const QString& title, const QString& sentence, double now,
                    double left_seconds, double tokens_per_second);
  void show_run(const RunInfo& run, double now, bool can_steer);
  void show_system(const SystemInfo& info);
  CurveChart* chart() const { return panel_->chart(); }
  QPushButton* pause_button() const { return pause_; }
  QPushButton* stop_button() const { return stop_; }
  QPushButton* monitor_button() const { return monitor_; }

 private:
  CurveChart* loss_;
  SharedView view_;
  TextLabel *title_, *sentence_;
  RunHead* head_;
  QPushButton *pause_, *stop_, *monitor_;
  JourneyStrip* strip_;
  ChartPanel* panel_;
  QVBoxLayout* links_;
  FactGrid* computer_;
};

}  // namespace stacklab::ui
