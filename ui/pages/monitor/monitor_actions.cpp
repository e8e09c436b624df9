// What can be done on the monitor page, for menus and palette.
#include "ui/pages/monitor/monitor_page.h"

namespace stacklab::ui {

void MonitorPage::add_actions(ActionSet& actions) {
  const QString file = tr("&File"), run = tr("&Run"), chart = tr("&Chart");
  SharedView* view = charts_->view();
  // What changes the panels brings them before the eyes.
  const auto here = [this](std::function<void()> call) {
    return [this, call = std::move(call)] {
      show_me();
      if (call) call();
    };
  };
  const auto add = [&](const char* id, const QString& menu, const QString& text, const char* keys,
                       std::function<void()> call) {
    return actions.add(QLatin1String(id), menu, text, QLatin1String(keys), here(std::move(call)));
  };

  actions.add_gap(file);
  add("file.save_picture", file, tr("Save panels as &picture…"), "Ctrl+Shift+S", [this] { ask_export_picture(); });
  add("file.save_values", file, tr("Save visible &values…"), "Ctrl+Shift+E", [this] { ask_export_values(); });

  QAction* stop =
      actions.add(QStringLiteral("run.stop"), run, tr("&Stop"), QStringLiteral("Ctrl+."), [this] { stop_selected(); });
  QAction* resume = actions.add(QStringLiteral("run.resume"), run, tr("&Resume"), QStringLiteral("Ctrl+R"),
                                [this] { resume_selected(); });
  QAction* trace = actions.add(QStringLiteral("run.trace"), run, tr("&Measure its operations now"), QString(),
                               [this] { trace_selected(); });
  const auto steer = [this, stop, resume, trace] {
    trace->setEnabled(can_trace());
    trace->setStatusTip(inspector_->trace_button()->toolTip());
    stop->setEnabled(can_stop());
    resume->setEnabled(can_resume());
    stop->setStatusTip(inspector_->stop_button()->toolTip());
    resume->setStatusTip(inspector_->resume_button()->toolTip());
  };
  steer();
  connect(this, &MonitorPage::steering_changed, stop, steer);

  add("chart.back", chart, tr("&Back to the view before"), "Alt+Left", [view] { view->back(); });
  add("chart.forward", chart, tr("&Forward to the next view"), "Alt+Right", [view] { view->forward(); });
  add("chart.everything", chart, tr("Show &everything"), "Ctrl+Home", [view] { view->reset(); });
  actions.add_gap(chart);
  QAction* log_x = add("chart.log_x", chart, tr("Logarithmic &x axis"), "Ctrl+Shift+X", {});
  QAction* log_y = add("chart.log_y", chart, tr("Logarithmic &y axes"), "Ctrl+Shift+Y", {});
  QAction* raw = add("chart.raw", chart, tr("&Raw values behind the smoothed"), "Ctrl+Shift+R", {});
  QAction* robust = add("chart.robust", chart, tr("Ro&bust range"), "Ctrl+Shift+B", {});
  for (QAction* action : {log_x, log_y, raw, robust}) action->setCheckable(true);
  raw->setChecked(view->raw_shown());
  connect(log_x, &QAction::toggled, view, &SharedView::set_log_x);
  connect(log_y, &QAction::toggled, this, [this](bool on) {
    if (on != charts_->log_y()) charts_->set_log_y(on);
  });
  connect(raw, &QAction::toggled, view, &SharedView::set_raw_shown);
  connect(robust, &QAction::toggled, view, &SharedView::set_robust);
  connect(view, &SharedView::changed, log_x, [view, log_x, raw, robust] {
    log_x->setChecked(view->log_x());
    raw->setChecked(view->raw_shown());
    robust->setChecked(view->robust());
  });
  for (ChartPanel* panel : charts_->panels())
    connect(panel, &ChartPanel::log_y_changed, log_y, [this, log_y] { log_y->setChecked(charts_->log_y()); });
  actions.add_gap(chart);
  const QString axis = tr("&Chart|&X axis"), place = tr("&Chart|&Panels");
  for (const XKind kind : x_kinds)
    actions.add(QStringLiteral("chart.x_") + x_word(kind), axis, x_name(kind), {},
                here([view, kind] { view->set_x_kind(kind); }));
  for (const auto& [name, layout] : MonitorCharts::perspectives())
    actions.add(QStringLiteral("chart.layout_") + name.toLower(), place, tr("Arrange: %1").arg(name), {},
                here([this, layout = layout] { charts_->grid()->set_layout(layout); }));
  for (PanelFrame* panel : charts_->grid()->panels())
    actions.add(QStringLiteral("chart.panel_") + panel->id(), place, tr("Show %1").arg(panel->title()), {},
                here([this, id = panel->id()] { charts_->grid()->show_panel(id); }));
  const auto size = [&](const char* id, const QString& text, const char* keys, double width, double height) {
    actions.add(QLatin1String(id), place, text, QLatin1String(keys),
                here([this, width, height] { charts_->grid()->resize_current(width, height); }));
  };
  constexpr double more = 1.15;
  actions.add_gap(place);
  size("chart.wider", tr("&Wider"), "Ctrl+Alt+Right", more, 1);
  size("chart.narrower", tr("&Narrower"), "Ctrl+Alt+Left", 1 / more, 1);
  size("chart.taller", tr("&Taller"), "Ctrl+Alt+Down", 1, more);
  size("chart.lower", tr("&Lower"), "Ctrl+Alt+Up", 1, 1 / more);
  actions.add_gap(chart);
  add("chart.first_non_finite", chart, tr("&Go to the first non-finite value"), "Ctrl+G",
      [this] { go_to_first_non_finite(); });
}

void MonitorPage::show_run(const RunId& run, std::optional<std::int64_t> step) {
  if (!runs_->find(run)) return;
  show_me();
  runs_->set_shown(run, true);
  select(run);
  if (step && *step > 0) charts_->go_to_step(static_cast<double>(*step));
}

}  // namespace stacklab::ui
