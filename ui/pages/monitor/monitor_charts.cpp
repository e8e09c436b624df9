#include "ui/pages/monitor/monitor_charts.h"

#include <QGridLayout>
#include <algorithm>
#include <cmath>
#include <limits>

#include "ui/models/state_look.h"
#include "ui/theme/numbers.h"

namespace stacklab::ui {
namespace {

QString text(const std::string& s) { return QString::fromStdString(s); }

// Constants that a loss is measured against.
std::vector<ReferenceLine> references(const RunInfo& run) {
  std::vector<ReferenceLine> lines;
  const bool bytes = run.config.tokenizer == "bytes";
  if (run.config.vocab_size > 1) {
    const double blind =
        fact_of(run.summary, "uniform_entropy").value_or(std::log(static_cast<double>(run.config.vocab_size)));
    lines.push_back({blind, (bytes ? MonitorCharts::tr("%1, a blind guess among %2 bytes")
                                   : MonitorCharts::tr("%1, a blind guess among %2 tokens"))
                                .arg(format_fixed(blind, 2), format_count(run.config.vocab_size))});
  }
  if (const auto unigram = fact_of(run.summary, "unigram_entropy"))
    lines.push_back({*unigram, MonitorCharts::tr("%1, guessing by frequency alone").arg(format_fixed(*unigram, 2))});
  return lines;
}

}  // namespace

std::vector<MonitorCharts::Plan> MonitorCharts::plans() {
  const auto name = [](std::string_view metric) { return std::string(metric); };
  return {
      {{QStringLiteral("loss"), tr("Loss"), tr("nats per token"), ValueFormat::fixed3, false},
       {{name(metric::loss), tr("train"), false}, {name(metric::val_loss), tr("val"), true}}},
      {{QStringLiteral("learning-rate"), tr("Learning rate"), tr("AdamW"), ValueFormat::scientific, false},
       {{name(metric::adam_lr), tr("adamw"), false, false}}},
      {{QStringLiteral("gradient-norm"), tr("Gradient norm"), tr("before clipping"), ValueFormat::fixed2, true},
       {{name(metric::grad_norm), tr("norm"), false}}},
      {{QStringLiteral("tokens-per-second"), tr("Tokens per second"), tr("whole steps"), ValueFormat::compact, false},
       {{name(metric::tokens_per_second), tr("tok/s"), false}}},
  };
}

MonitorCharts::MonitorCharts(WorkspaceLink* link, QWidget* parent) : QWidget(parent), link_(link), plans_(plans()) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(8);
  auto* small = new QHBoxLayout;
  small->setSpacing(8);
  for (const Plan& plan : plans_) {
    auto* panel = new ChartPanel(plan.setup, &view_, this);
    panels_.push_back(panel);
    connect(panel->chart(), &CurveChart::facts_changed, this, &MonitorCharts::facts_changed);
    if (panels_.size() == 1)
      column->addWidget(panel, 8);
    else {
      // Equal shares, whatever the headers would like.
      panel->setMinimumWidth(160);
      panel->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Expanding);
      small->addWidget(panel, 1);
    }
  }
  column->addLayout(small, 5);
}

void MonitorCharts::set_runs(const std::vector<const RunInfo*>& runs, const RunInfo* selected) {
  std::map<SeriesKey, Held> next;
  std::vector<SeriesKey> keys;
  const auto hold = [&](const SeriesKey& key) {
    if (const auto known = next.find(key); known != next.end()) return known->second.series;
    const auto before = held_.find(key);
    Held held = before != held_.end() ? before->second : Held{std::make_shared<Series>(), false};
    next[key] = held;
    keys.push_back(key);
    return held.series;
  };
  for (std::size_t i = 0; i < panels_.size(); ++i) {
    std::vector<Curve> curves;
    for (const RunInfo* run : runs) {
      const std::shared_ptr<Series> seconds = hold({run->summary.id, seconds_series});
      for (const Source& source : plans_[i].sources) {
        const SeriesKey key{run->summary.id, source.metric};
        Curve curve;
        curve.id = text(run->summary.id + "/" + source.metric);
        curve.group_id = text(run->summary.id);
        curve.group = text(run->summary.name);
        curve.name = source.name;
        curve.metric = text(source.metric);
        curve.number = run->summary.number;
        curve.points = source.points;
        curve.smooth = source.smooth;
        curve.focused = selected && selected->summary.id == run->summary.id;
        curve.tokens_per_step = tokens_per_step(*run);
        curve.series = hold(key);
        curve.seconds = seconds;
        curves.push_back(std::move(curve));
      }
    }
    panels_[i]->chart()->set_curves(std::move(curves));
  }
  held_ = std::move(next);
  link_->follow(keys);
  update_facts(runs, selected);
}

void MonitorCharts::update_facts(const std::vector<const RunInfo*>& runs, const RunInfo* selected) {
  double end = 0;
  for (const RunInfo* run : runs) end = std::max(end, static_cast<double>(run->summary.total_steps));
  for (ChartPanel* panel : panels_) panel->chart()->set_expected_end(end);
  panels_.front()->chart()->set_reference_lines(selected ? references(*selected) : std::vector<ReferenceLine>());
}

void MonitorCharts::take(const SeriesChunkPtr& chunk) {
  const auto held = held_.find(chunk->key);
  if (held == held_.end()) return;
  if (chunk->restart) held->second.series->clear();
  held->second.series->append(chunk->steps, chunk->values);
  held->second.complete = chunk->complete;
  for (std::size_t i = 0; i < panels_.size(); ++i)
    for (const Source& source : plans_[i].sources)
      if (source.metric == chunk->key.metric) panels_[i]->chart()->mark_dirty();
}

void MonitorCharts::set_events(const std::vector<RunEventRow>& rows) {
  std::vector<EventMark> all, loud;
  for (const RunEventRow& row : rows) {
    const EventLook look = look_of(row.event.kind);
    // What comes often is a small sign at the top of the loss; what went wrong is a line through all panels.
    const bool quiet = row.event.kind == RunEvent::Kind::info || row.event.kind == RunEvent::Kind::checkpoint;
    all.push_back({static_cast<double>(row.event.step), look.glyph, look.color, text(row.event.text), !quiet});
    if (!quiet) loud.push_back(all.back());
  }
  for (ChartPanel* panel : panels_) panel->chart()->set_events(panel == panels_.front() ? all : loud);
}

void MonitorCharts::set_empty_texts(const QString& loss, const QString& others) {
  for (ChartPanel* panel : panels_) panel->chart()->set_empty_text(panel == panels_.front() ? loss : others);
}

ChartPanel* MonitorCharts::panel(const QString& id) const {
  for (ChartPanel* panel : panels_)
    if (panel->chart()->setup().id == id) return panel;
  return nullptr;
}

double MonitorCharts::recent(const RunId& run, std::string_view metric, std::size_t last) const {
  const auto held = held_.find(SeriesKey{run, std::string(metric)});
  if (held == held_.end()) return std::numeric_limits<double>::quiet_NaN();
  const Column& ys = held->second.series->ys();
  double sum = 0;
  int count = 0;
  for (std::size_t i = ys.size() - std::min(ys.size(), last); i < ys.size(); ++i) {
    if (!std::isfinite(ys[i])) continue;
    sum += ys[i];
    ++count;
  }
  return count ? sum / count : std::numeric_limits<double>::quiet_NaN();
}

std::size_t MonitorCharts::raw_points() const {
  std::size_t sum = 0;
  for (const ChartPanel* panel : panels_) sum += panel->chart()->facts().raw;
  return sum;
}

std::size_t MonitorCharts::drawn_points() const {
  std::size_t sum = 0;
  for (const ChartPanel* panel : panels_) sum += panel->chart()->facts().drawn;
  return sum;
}

std::optional<std::pair<double, QString>> MonitorCharts::first_non_finite() const {
  std::optional<std::pair<double, QString>> first;
  for (const ChartPanel* panel : panels_) {
    const auto step = panel->chart()->facts().first_non_finite;
    if (step && (!first || *step < first->first)) first = {*step, panel->chart()->setup().id};
  }
  return first;
}

bool MonitorCharts::settled() const {
  return std::all_of(held_.begin(), held_.end(), [](const auto& h) { return h.second.complete; }) &&
         std::none_of(panels_.begin(), panels_.end(),
                      [](const ChartPanel* p) { return p->chart()->refresh_pending(); });
}

}  // namespace stacklab::ui

#include <moc_monitor_charts.cpp>
