#include "ui/plots/chart_panel.h"

#include <QMenu>
#include <cmath>

#include "ui/plots/export.h"
#include "ui/plots/series_table.h"
#include "ui/theme/numbers.h"

namespace stacklab::ui {

ChartPanel::ChartPanel(ChartSetup setup, SharedView* shared, QWidget* parent)
    : PanelFrame(setup.id, setup.title, parent), own_log_y_(setup.log_y) {
  non_finite_ = make_badge("bad", QStringLiteral("dialog-error"));
  hidden_ = make_badge("warn", QStringLiteral("dialog-warning"));
  robust_ = make_badge("info", {});
  zoomed_ = make_badge("info", {});
  chart_ = new CurveChart(std::move(setup), shared, this);
  set_content(chart_);
  update_unit();
  connect(chart_, &CurveChart::facts_changed, this, [this] { update_badges(); });
  connect(chart_->shared(), &SharedView::changed, this, [this] { update_badges(); });
  connect(chart_, &CurveChart::menu_requested, this, [this](const QPoint& at) { open_menu(at); });
  connect(non_finite_, &QToolButton::clicked, this, [this] {
    if (chart_->facts().first_non_finite) chart_->go_to(*chart_->facts().first_non_finite);
  });
  connect(hidden_, &QToolButton::clicked, this, [this] { set_log_y(false); });
  connect(robust_, &QToolButton::clicked, this, [this] { chart_->shared()->set_robust(false); });
  connect(zoomed_, &QToolButton::clicked, this, [this] { chart_->shared()->reset(); });
  update_badges();
}

void ChartPanel::set_log_y(bool log) {
  own_log_y_ = log;
  apply_log_y(log);
}

void ChartPanel::override_log_y(bool all) { apply_log_y(all || own_log_y_); }

void ChartPanel::apply_log_y(bool log) {
  if (log != chart_->log_y()) {
    chart_->set_log_y(log);
    update_unit();
  }
  emit log_y_changed(log);
}

void ChartPanel::update_unit() {
  unit()->set_full_text(chart_->log_y() ? tr("%1, log").arg(chart_->setup().unit) : chart_->setup().unit);
}

void ChartPanel::update_badges() {
  const ChartFacts& facts = chart_->facts();
  const QString step = format_count(std::llround(facts.first_non_finite_step));
  const QString many = format_count(static_cast<std::int64_t>(facts.non_finite));
  set_badge(non_finite_, facts.first_non_finite.has_value(),
            {facts.curves_with_non_finite == 1
                 ? tr("1 run has NaN: go to step %1").arg(step)
                 : tr("%1 curves have NaN: go to step %2").arg(facts.curves_with_non_finite).arg(step),
             tr("NaN: go to %1").arg(step), facts.non_finite > 0 ? tr("NaN ×%1").arg(many) : tr("NaN")},
            tr("%1: first value of %2 that is NaN or infinite. %3 in view.")
                .arg(chart_->setup().title, facts.first_non_finite_curve, many));
  const QString hidden = format_count(static_cast<std::int64_t>(facts.hidden));
  set_badge(hidden_, facts.hidden > 0,
            {(facts.summed ? tr("%1 or more non-positive hidden") : tr("%1 non-positive hidden")).arg(hidden),
             tr("%1 hidden").arg(hidden)},
            tr("A log axis cannot show values of 0 and below. Click for a linear axis."));
  set_badge(robust_, facts.robust_cuts, {tr("robust range"), tr("robust")},
            tr("The axis holds the middle 98 % of the values. Click to show all."));
  const View& view = chart_->shared()->view();
  set_badge(zoomed_, view.y.contains(chart_->setup().id), {tr("y zoomed"), tr("zoomed")},
            tr("Click to show everything."));
  setToolTip({});
  unit()->setToolTip(tr("%1 raw points, %2 drawn")
                         .arg(format_count(static_cast<std::int64_t>(facts.raw)),
                              format_count(static_cast<std::int64_t>(facts.drawn))));
}

void ChartPanel::fill_menu(QMenu* menu) {
  menu->addAction(tr("Save visible values (CSV)…"), this, [this] {
    ask_path(tr("Save values"), {QStringLiteral("csv")}, [this](const QString& path) { save_values(path); });
  });
  menu->addAction(tr("Show as table"), this, [this] { show_table(*chart_, window()); });
  menu->addSeparator();
  QAction* log = menu->addAction(tr("Logarithmic y axis"));
  log->setCheckable(true);
  log->setChecked(chart_->log_y());
  connect(log, &QAction::toggled, this, &ChartPanel::set_log_y);
  QAction* first = menu->addAction(tr("Go to first non-finite value"), this,
                                   [this] { chart_->go_to(*chart_->facts().first_non_finite); });
  first->setEnabled(chart_->facts().first_non_finite.has_value());
  menu->addAction(tr("Show everything"), QKeySequence(Qt::Key_Home), chart_->shared(), &SharedView::reset);
}

void ChartPanel::save_values(const QString& path) {
  const auto save = [this, path](std::vector<CurveExtract> curves) {
    save_values_later(this, std::move(curves), path, [this, path](const QString& error) { emit saved(path, error); });
  };
  if (whole_values_)
    whole_values_(extract(*chart_), save);
  else
    save(extract(*chart_));
}

}  // namespace stacklab::ui

#include <moc_chart_panel.cpp>
