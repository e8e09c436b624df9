#include "ui/pages/monitor/monitor_charts.h"

#include <QVBoxLayout>
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
  if (auto blind = blind_guess(run)) lines.push_back(*std::move(blind));
  if (const auto unigram = fact_of(run.summary, "unigram_entropy"))
    lines.push_back({*unigram, MonitorCharts::tr("%1, guessing by frequency alone").arg(format_fixed(*unigram, 2))});
  return lines;
}

constexpr std::size_t most_worst_heads = 5;

// FLOPs of a token as the name of the axis says; 0: the run has not told its size yet.
double flops_per_token(const RunInfo& run) { return 6 * fact_of(run.summary, "parameters").value_or(0); }

}  // namespace

std::optional<ReferenceLine> blind_guess(const RunInfo& run) {
  if (run.config.vocab_size <= 1) return std::nullopt;
  const double loss =
      fact_of(run.summary, "uniform_entropy").value_or(std::log(static_cast<double>(run.config.vocab_size)));
  return ReferenceLine{loss, (run.config.tokenizer == "bytes" ? MonitorCharts::tr("%1, a blind guess among %2 bytes")
                                                              : MonitorCharts::tr("%1, a blind guess among %2 tokens"))
                                 .arg(format_fixed(loss, 2), format_count(run.config.vocab_size))};
}

std::vector<MonitorCharts::Plan> MonitorCharts::plans() {
  const auto name = [](std::string_view metric) { return std::string(metric); };
  return {
      {{QStringLiteral("loss"), tr("Loss"), tr("nats per token"), ValueFormat::fixed3, false},
       {{name(metric::loss), tr("train"), false}, {name(metric::val_loss), tr("val"), true}}},
      {{QStringLiteral("learning-rate"), tr("Learning rate"), tr("of each update"), ValueFormat::scientific, false},
       {{name(metric::muon_lr), tr("muon"), false, false}, {name(metric::adam_lr), tr("adamw"), false, false}}},
      {{QStringLiteral("gradient-norm"), tr("Gradient norm"), tr("before clipping"), ValueFormat::fixed2, true},
       {{name(metric::grad_norm), tr("norm"), false}}},
      {{QStringLiteral("update-norm"), tr("Update norm"), tr("of all parameters"), ValueFormat::fixed3, false},
       {{name(metric::update_norm), tr("norm"), false}}},
      {{QStringLiteral("tokens-per-second"), tr("Tokens per second"), tr("whole steps"), ValueFormat::compact, false},
       {{name(metric::tokens_per_second), tr("tok/s"), false}}},
      {{QStringLiteral("utilisation"), tr("Utilisation"), tr("of this computer's matrix products"),
        ValueFormat::percent, false},
       {{name(metric::hfu), tr("HFU"), false},
        {name(metric::mfu_attention), tr("MFU attn"), false},
        {name(metric::mfu_documents), tr("MFU docs"), false},
        {name(metric::mfu_6nd), tr("MFU 6ND"), false}}},
      {{QStringLiteral("memory"), tr("Memory"), tr("of the process"), ValueFormat::bytes, false},
       {{name(metric::process_bytes), tr("resident"), false, false}}},
      {{QStringLiteral("largest-logit"), tr("Largest logit"), tr("of all heads, each step"), ValueFormat::fixed2,
        false},
       {{name(metric::max_logit), tr("largest"), false}}},
  };
}

std::vector<std::pair<QString, PanelLayout>> MonitorCharts::perspectives() {
  using Row = PanelLayout::Row;
  const auto one = [](const char* id, double width = 1) {
    return PanelLayout::Column{width, {{QLatin1String(id), 1}}};
  };
  const PanelLayout pretraining{
      {Row{1.7, {one("loss", 1.9), {1, {{QStringLiteral("learning-rate"), 1}, {QStringLiteral("gradient-norm"), 1}}}}},
       Row{1.15, {one("max-logit", 1.9), one("worst-heads")}},
       Row{1, {one("update-norm"), one("tokens-per-second"), one("utilisation"), one("memory")}}}};
  const PanelLayout stability{
      {Row{1.4, {one("loss", 1.6), {1, {{QStringLiteral("worst-heads"), 1}, {QStringLiteral("gradient-norm"), 1}}}}},
       Row{1,
           {one("max-logit", 1.6), {1, {{QStringLiteral("largest-logit"), 1}, {QStringLiteral("update-norm"), 1}}}}}}};
  return {{tr("Pretraining"), pretraining}, {tr("Stability"), stability}};
}

MonitorCharts::MonitorCharts(WorkspaceLink* link, QWidget* parent)
    : QWidget(parent),
      link_(link),
      plans_(plans()),
      rank_timer_(300, [this] { rank_heads(); }),
      look_timer_(100, [this] { look_closely(); }) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  grid_ = new PanelGrid(this);
  column->addWidget(grid_);
  for (const Plan& plan : plans_) panels_.push_back(new ChartPanel(plan.setup, &view_));
  heads_panel_ = new ChartPanel(
      {QStringLiteral("worst-heads"), tr("Worst five heads"), tr("layer.head"), ValueFormat::fixed2, false}, &view_);
  panels_.push_back(heads_panel_);
  heat_ = new HeatPanel;
  for (ChartPanel* panel : panels_) {
    grid_->add_panel(panel);
    panel->set_whole_values([this](auto curves, auto done) { whole_values(std::move(curves), std::move(done)); });
    connect(panel->chart(), &CurveChart::facts_changed, this, &MonitorCharts::facts_changed);
  }
  grid_->add_panel(heat_);
  grid_->set_layout(perspectives().front().second);
  connect(grid_, &PanelGrid::layout_changed, this, &MonitorCharts::panels_changed);
  connect(heat_, &HeatPanel::head_chosen, this, &MonitorCharts::choose_head);
  connect(&view_, &SharedView::changed, this, [this] { look_timer_.request(); });
  connect(&view_, &SharedView::crosshair_changed, this, [this] {
    const auto x = view_.crosshair();
    heat_->set_cursor_step(x ? std::optional(axis_.step_of_x(*x)) : std::nullopt);
  });
}

MonitorCharts::Axis MonitorCharts::axis_of(const RunInfo& run, const Hold& hold) const {
  Axis axis;
  switch (view_.x_kind()) {
    case XKind::step:
      return axis;
    case XKind::tokens:
    case XKind::flops:
      axis.key = {run.summary.id, tokens_series};
      break;
    case XKind::clock:
      axis.key = {run.summary.id, clock_series};
      break;
    case XKind::process:
      axis.key = {run.summary.id, seconds_series};
      break;
  }
  axis.rows = hold(axis.key);
  if (view_.x_kind() == XKind::flops) {
    axis.scale = flops_per_token(run);
    // Without a size no step has its place.
    if (axis.scale <= 0) axis.rows = std::make_shared<Series>();
  }
  return axis;
}

Curve MonitorCharts::curve_of(const RunInfo& run, const std::string& metric, const QString& name,
                              const Hold& hold) const {
  const SeriesKey key{run.summary.id, metric};
  Curve curve;
  curve.id = text(run.summary.id + "/" + metric);
  curve.group_id = text(run.summary.id);
  curve.group = text(run.summary.name);
  curve.name = name;
  curve.metric = text(metric);
  curve.number = run.summary.number;
  curve.baseline = run.summary.number == baseline_;
  curve.tokens_per_step = tokens_per_step(run);
  curve.series = hold(key);
  curve.seconds = hold({run.summary.id, seconds_series});
  const Axis axis = axis_of(run, hold);
  curve.axis = axis.rows;
  curve.axis_scale = axis.scale;
  return curve;
}

void MonitorCharts::set_runs(const std::vector<const RunInfo*>& runs, const RunInfo* selected) {
  std::map<SeriesKey, Held> next;
  std::vector<SeriesKey> keys;
  const Hold hold = [&](const SeriesKey& key) {
    if (const auto known = next.find(key); known != next.end()) return known->second.series;
    const auto before = held_.find(key);
    Held held = before != held_.end() ? before->second : Held{std::make_shared<Series>(), false};
    next[key] = held;
    keys.push_back(key);
    return held.series;
  };
  for (std::size_t i = 0; i < plans_.size(); ++i) {
    std::vector<Curve> curves;
    if (grid_->shows(plans_[i].setup.id) || (i == 0 && keep_loss_))
      for (const RunInfo* run : runs)
        for (const Source& source : plans_[i].sources) {
          Curve curve = curve_of(*run, source.metric, source.name, hold);
          curve.points = source.points;
          curve.smooth = source.smooth;
          curve.focused = selected && selected->summary.id == run->summary.id;
          curves.push_back(std::move(curve));
        }
    panels_[i]->chart()->set_curves(std::move(curves));
  }
  hold_heads(selected, hold);
  const auto caption_of = [](const RunInfo* run) {
    return run ? tr("%1, config %2").arg(text(run->summary.name), text(run->summary.id)) : QString();
  };
  QStringList captions;
  for (const RunInfo* run : runs) captions << caption_of(run);
  caption_ = captions.join(QStringLiteral(" · "));
  for (PanelFrame* panel : grid_->panels())
    panel->set_caption(panel == heat_ || panel == heads_panel_ ? caption_of(selected) : caption_);
  axis_ = selected ? axis_of(*selected, hold) : Axis();
  axes_.clear();
  for (const RunInfo* run : runs) axes_[run->summary.id] = axis_of(*run, hold);
  if (selected) axes_[selected->summary.id] = axis_;
  held_ = std::move(next);
  update_facts(runs, selected);
  look_closely();
  link_->follow(keys);
  map_events();
}

void MonitorCharts::hold_heads(const RunInfo* selected, const Hold& hold) {
  const bool wanted = grid_->shows(heat_->id()) || grid_->shows(heads_panel_->id());
  HeadSeries heads;
  head_keys_.clear();
  if (selected && wanted && selected->config.n_layers > 0 && selected->config.n_heads > 0 &&
      selected->config.n_layers * selected->config.n_heads <= 4096) {
    heads.layers = static_cast<int>(selected->config.n_layers);
    heads.heads = static_cast<int>(selected->config.n_heads);
    heads.limit = selected->config.qk_clip;
    heads.run = text(selected->summary.name);
    for (int layer = 0; layer < heads.layers; ++layer) {
      heads.unpositioned.push_back(selected->config.nope_every > 0 && (layer + 1) % selected->config.nope_every == 0);
      for (int head = 0; head < heads.heads; ++head) {
        const SeriesKey key{selected->summary.id, metric::max_logit_of(layer, head)};
        heads.series.push_back(hold(key));
        head_keys_.insert(key);
      }
    }
    head_curve_ = curve_of(*selected, metric::max_logit_of(0, 0), {}, hold);
    head_curve_.smooth = false;
  }
  const RunId of = selected ? selected->summary.id : RunId();
  if (of != heads_of_) {
    heads_of_ = of;
    chosen_head_.reset();
    heat_->set_selected(std::nullopt);
  }
  heads_ = std::move(heads);
  heat_->set_heads(heads_);
  rank_heads();
}

void MonitorCharts::rank_heads() {
  std::vector<std::pair<double, std::pair<int, int>>> all;
  for (int layer = 0; layer < heads_.layers; ++layer)
    for (int head = 0; head < heads_.heads; ++head) {
      const Column& ys = heads_.of(layer, head).ys();
      if (ys.empty()) continue;
      const Extremes extremes = ys.extremes(0, ys.size());
      // What is not a number any more is the worst.
      const double most = !ys.non_finite().empty()   ? std::numeric_limits<double>::infinity()
                          : extremes.max == no_index ? 0
                                                     : ys[extremes.max];
      all.push_back({most, {layer, head}});
    }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::pair<int, int>> worst;
  for (const auto& [most, head] : all)
    if (worst.size() < most_worst_heads) worst.push_back(head);
  if (chosen_head_) {
    const std::pair<int, int> chosen{chosen_head_->x(), chosen_head_->y()};
    if (std::find(worst.begin(), worst.end(), chosen) == worst.end()) worst.push_back(chosen);
  }
  const QPoint front = chosen_head_    ? *chosen_head_
                       : worst.empty() ? QPoint(-1, -1)
                                       : QPoint(worst.front().first, worst.front().second);
  std::vector<Curve> curves;
  for (const auto& [layer, head] : worst) {
    Curve curve = head_curve_;
    const std::string metric = metric::max_logit_of(layer, head);
    curve.id += text("/" + metric);
    curve.metric = text(metric);
    curve.name = QStringLiteral("L%1.H%2").arg(layer).arg(head);
    curve.focused = QPoint(layer, head) == front;
    curve.muted = !curve.focused;
    curve.series = heads_.series[static_cast<std::size_t>(layer * heads_.heads + head)];
    curves.push_back(std::move(curve));
  }
  heads_panel_->chart()->set_curves(std::move(curves));
}

void MonitorCharts::choose_head(int layer, int head) {
  chosen_head_ = QPoint(layer, head);
  heat_->set_selected(chosen_head_);
  if (!grid_->shows(heads_panel_->id())) grid_->show_panel(heads_panel_->id());
  rank_heads();
}

void MonitorCharts::update_facts(const std::vector<const RunInfo*>& runs, const RunInfo* selected) {
  double end = 0;
  expected_steps_ = 0;
  for (const RunInfo* run : runs) {
    const auto steps = static_cast<double>(std::max(run->summary.total_steps, run->summary.step));
    expected_steps_ = std::max(expected_steps_, steps);
    const XKind kind = view_.x_kind();
    if (kind == XKind::step) end = std::max(end, steps);
    if (kind == XKind::tokens) end = std::max(end, steps * tokens_per_step(*run));
    if (kind == XKind::flops) end = std::max(end, steps * tokens_per_step(*run) * flops_per_token(*run));
  }
  for (ChartPanel* panel : panels_) panel->chart()->set_expected_end(end);
  const auto lines = [this](const char* id, std::vector<ReferenceLine> of) {
    panel(QLatin1String(id))->chart()->set_reference_lines(std::move(of));
  };
  lines("loss", selected ? references(*selected) : std::vector<ReferenceLine>());
  std::vector<ReferenceLine> clip, logit, planned;
  if (selected && selected->config.grad_clip > 0)
    clip.push_back({selected->config.grad_clip, tr("clip %1").arg(format_fixed(selected->config.grad_clip, 1))});
  if (selected && selected->config.qk_clip > 0)
    logit.push_back({selected->config.qk_clip, tr("clip %1").arg(format_fixed(selected->config.qk_clip, 0)), true});
  if (selected && selected->summary.plan_bytes > 0)
    planned.push_back({static_cast<double>(selected->summary.plan_bytes),
                       tr("planned for training %1").arg(format_bytes(selected->summary.plan_bytes))});
  lines("gradient-norm", clip);
  lines("largest-logit", logit);
  lines("worst-heads", logit);
  lines("memory", planned);
}

void MonitorCharts::take(const SeriesChunkPtr& chunk) {
  const auto held = held_.find(chunk->key);
  if (held == held_.end()) return;
  if (chunk->restart) held->second.series->clear();
  held->second.series->append(chunk->steps, chunk->values, chunk->spans, chunk->typical);
  held->second.complete = chunk->complete;
  if (chunk->steps.empty() && !chunk->restart) return;
  if (chunk->key.metric.starts_with('@')) {
    // Where points lie has changed.
    if (view_.x_kind() != XKind::step)
      for (ChartPanel* panel : panels_) panel->chart()->mark_dirty();
    if (axis_.rows && chunk->key == axis_.key) map_events();
    return;
  }
  if (head_keys_.contains(chunk->key)) {
    heat_->refresh();
    rank_timer_.request();
    return;
  }
  for (std::size_t i = 0; i < plans_.size(); ++i)
    for (const Source& source : plans_[i].sources)
      if (source.metric == chunk->key.metric) panels_[i]->chart()->mark_dirty();
}

double MonitorCharts::Axis::step_of_x(double x) const {
  if (!rows || rows->empty()) return x;
  return rows->xs()[nearest_index(rows->ys().values(), x / scale)];
}

void MonitorCharts::go_to_step(double step) {
  for (ChartPanel* panel : panels_)
    if (panel->isVisible()) return panel->chart()->go_to(axis_.x_of_step(step));
  panels_.front()->chart()->go_to(axis_.x_of_step(step));
}

void MonitorCharts::set_log_y(bool all) {
  all_log_y_ = all;
  for (ChartPanel* panel : panels_) panel->override_log_y(all);
}

void MonitorCharts::set_events(const std::vector<RunEventRow>& rows) {
  events_ = rows;
  map_events();
}

void MonitorCharts::map_events() {
  std::vector<EventMark> all, loud;
  for (const RunEventRow& row : events_) {
    const EventLook look = look_of(row.event.kind);
    // What comes often is a small sign at the top of the loss; what went wrong is a line through all panels.
    const bool quiet = row.event.kind == RunEvent::Kind::info || row.event.kind == RunEvent::Kind::checkpoint;
    all.push_back(
        {axis_.x_of_step(static_cast<double>(row.event.step)), look.glyph, look.color, text(row.event.text), !quiet});
    if (!quiet) loud.push_back(all.back());
  }
  for (ChartPanel* panel : panels_) panel->chart()->set_events(panel == panels_.front() ? all : loud);
}

void MonitorCharts::set_empty_texts(const QString& loss, const QString& others) {
  for (ChartPanel* panel : panels_) panel->chart()->set_empty_text(panel == panels_.front() ? loss : others);
  heads_panel_->chart()->set_empty_text(tr("Heads are looked at with each evaluation."));
  heat_->set_empty_text(tr("Heads are looked at with each evaluation; this run has had none yet."));
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
                      [](const ChartPanel* p) { return p->isVisible() && p->chart()->refresh_pending(); }) &&
         !rank_timer_.pending() && !look_timer_.pending();
}

}  // namespace stacklab::ui

#include <moc_monitor_charts.cpp>
