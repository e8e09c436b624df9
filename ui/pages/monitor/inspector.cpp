#include "ui/pages/monitor/inspector.h"

#include <QGridLayout>
#include <QPainter>
#include <QPlainTextEdit>
#include <QScrollArea>
#include <QStyle>
#include <QTabBar>
#include <algorithm>
#include <cmath>

#include "ui/frame/run_head.h"
#include "ui/models/state_look.h"
#include "ui/theme/icons.h"
#include "ui/theme/numbers.h"

namespace stacklab::ui {
namespace {
QString text(const std::string& s) { return QString::fromStdString(s); }
constexpr int pad = 12;
}  // namespace

QSize EventDelegate::sizeHint(const QStyleOptionViewItem&, const QModelIndex&) const {
  return {100, metrics().row() + 2};
}

void EventDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const {
  const Theme& t = theme();
  const QRect row = option.rect;
  // Everything is laid out from left to right and mirrored where the desktop reads the other way.
  const auto place = [&](int x, int width) {
    return QStyle::visualRect(option.direction, row, QRect(row.left() + x, row.top(), width, row.height()));
  };
  const auto side_of = [&](Qt::Alignment side) {
    return static_cast<int>(QStyle::visualAlignment(option.direction, side) | Qt::AlignVCenter);
  };
  painter->save();
  if (option.state & QStyle::State_Selected)
    painter->fillRect(row, t[Token::soft]);
  else if (option.state & QStyle::State_MouseOver)
    painter->fillRect(row, t[Token::hover]);
  painter->setPen(t[Token::grid]);
  painter->drawLine(row.bottomLeft(), row.bottomRight());
  const EventLook look_ = look_of(static_cast<RunEvent::Kind>(index.data(EventListModel::kind_role).toInt()));
  const int side = metrics().scaled(10);
  QRectF glyph = place(pad, side);
  glyph.setTop(row.top() + (row.height() - side) / 2.0);
  glyph.setHeight(side);
  paint_glyph(*painter, look_.glyph, glyph, t[look_.color]);
  const QString step = format_count(index.data(EventListModel::step_role).toLongLong());
  painter->setFont(look().number_font(TextRole::secondary));
  const int step_width = painter->fontMetrics().horizontalAdvance(step);
  painter->setPen(t[Token::text3]);
  painter->drawText(place(row.width() - pad - step_width, step_width), side_of(Qt::AlignRight), step);
  painter->setFont(look().font(TextRole::secondary));
  int room = row.width() - step_width - pad - 8;
  if (const QString alert = index.data(EventListModel::alert_role).toString(); !alert.isEmpty()) {
    const int width = painter->fontMetrics().horizontalAdvance(alert);
    painter->setPen(t[index.data(EventListModel::open_role).toBool() ? Token::warn : Token::text3]);
    painter->drawText(place(room - width, width), side_of(Qt::AlignRight), alert);
    room -= width + 8;
  }
  painter->setPen(t[Token::text]);
  const int x = pad + side + 8, width = std::max(0, room - x);
  painter->drawText(place(x, width), side_of(Qt::AlignLeft),
                    painter->fontMetrics().elidedText(index.data().toString(), Qt::ElideRight, width));
  painter->restore();
}

Inspector::Inspector(EventListModel* events, QWidget* parent) : QTabWidget(parent), event_model_(events) {
  setDocumentMode(true);
  tabBar()->setDrawBase(false);
  setAccessibleName(tr("Inspector"));
  auto* page = new QWidget(this);
  page->setObjectName(QStringLiteral("inspector"));
  auto* column = new QVBoxLayout(page);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);

  auto* head = new QVBoxLayout;
  head->setContentsMargins(pad, 10, pad, 10);
  head->setSpacing(7);
  head_ = new RunHead(page);
  auto* buttons = new QHBoxLayout;
  buttons->setSpacing(6);
  stop_ = make_button(tr("Stop"), QStringLiteral("media-playback-stop"), page);
  resume_ = make_button(tr("Resume"), QStringLiteral("media-playback-start"), page);
  buttons->addWidget(stop_);
  buttons->addWidget(resume_);
  buttons->addStretch();
  head->addWidget(head_);
  head->addLayout(buttons);
  column->addLayout(head);
  column->addWidget(make_line(Qt::Horizontal, page));
  facts_ = new FactGrid(page);
  column->addWidget(facts_);

  auto* bar = new QWidget(page);
  bar->setObjectName(QStringLiteral("sunkenBar"));
  bar->setAttribute(Qt::WA_StyledBackground);
  auto* bar_row = new QHBoxLayout(bar);
  bar_row->setContentsMargins(pad, 5, pad, 5);
  events_title_ = new TextLabel(TextRole::secondary, Token::text, true, bar);
  bar_row->addWidget(events_title_);
  column->addWidget(bar);
  events_ = new QListView(page);
  events_->setModel(events);
  events_->setItemDelegate(new EventDelegate(events_));
  events_->setUniformItemSizes(true);
  events_->setMouseTracking(true);
  events_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  events_->setVerticalScrollMode(QAbstractItemView::ScrollPerPixel);
  events_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  events_->setAccessibleName(tr("Events"));
  column->addWidget(events_, 1);
  addTab(page, tr("Run"));
  addTab(make_times(), tr("Time"));
  addTab(make_samples(), tr("Samples"));

  config_ = new QPlainTextEdit(this);
  config_->setReadOnly(true);
  config_->setProperty("quiet", true);
  config_->setAccessibleName(tr("Config of the run"));
  config_->setLineWrapMode(QPlainTextEdit::NoWrap);
  addTab(config_, tr("Config"));

  connect(stop_, &QPushButton::clicked, this, &Inspector::stop_requested);
  connect(resume_, &QPushButton::clicked, this, &Inspector::resume_requested);
  const auto chosen = [this](const QModelIndex& index) {
    emit event_chosen(index.data(EventListModel::step_role).toLongLong());
  };
  connect(events_, &QListView::clicked, this, chosen);
  connect(events_, &QListView::activated, this, chosen);
  const auto count = [this] {
    events_title_->set_full_text(tr("Events  %1").arg(format_count(event_model_->rowCount())));
  };
  connect(events, &QAbstractItemModel::rowsInserted, this, count);
  connect(events, &QAbstractItemModel::modelReset, this, count);
  count();
  const auto restyle = [this] {
    config_->setStyleSheet(QStringLiteral("QPlainTextEdit{font-family:'%1';font-size:%2px;padding:6px;}")
                               .arg(look().mono_font(TextRole::secondary).family())
                               .arg(look().font(TextRole::secondary).pixelSize()));
  };
  restyle();
  connect(&look(), &Look::changed, this, restyle);
  show_nothing();
}

QWidget* Inspector::make_times() {
  auto* page = new QWidget(this);
  auto* column = new QVBoxLayout(page);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  auto* head = new QVBoxLayout;
  head->setContentsMargins(pad, 10, pad, 8);
  auto* title = new TextLabel(TextRole::body, Token::text, true, page);
  title->set_full_text(tr("Time per operation"));
  times_note_ = new TextLabel(TextRole::secondary, Token::text3, false, page);
  times_note_->setWordWrap(true);
  head->addWidget(title);
  head->addWidget(times_note_);
  trace_note_ = new TextLabel(TextRole::secondary, Token::text2, false, page);
  trace_note_->setWordWrap(true);
  trace_note_->hide();
  trace_ = make_button(tr("Measure now"), {}, page);
  auto* ask = new QHBoxLayout;
  ask->addWidget(trace_);
  ask->addStretch();
  head->addLayout(ask);
  head->addWidget(trace_note_);
  connect(trace_, &QPushButton::clicked, this, &Inspector::trace_requested);
  column->addLayout(head);
  column->addWidget(make_line(Qt::Horizontal, page));
  auto* scroll = new QScrollArea(page);
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setAccessibleName(tr("Time per operation, scrolled"));
  times_ = new TimeBars(scroll);
  scroll->setWidget(times_);
  column->addWidget(scroll, 1);
  return page;
}

QWidget* Inspector::make_samples() {
  auto* page = new QWidget(this);
  auto* column = new QVBoxLayout(page);
  column->setContentsMargins(pad, 12, pad, 12);
  auto* fact = new TextLabel(TextRole::body, Token::text, true, page);
  fact->set_full_text(tr("This run has written no samples."));
  auto* help = new TextLabel(TextRole::secondary, Token::text2, false, page);
  help->setWordWrap(true);
  help->set_full_text(tr("What a model writes at each evaluation stands here, the newest first."));
  column->addWidget(fact);
  column->addWidget(help);
  column->addStretch();
  return page;
}

void Inspector::show_times(const RunSummary& run) {
  const QString prefix = text(std::string(step_seconds_fact)) + QLatin1Char('.');
  std::vector<TimeBar> bars;
  double operations = 0;
  for (const auto& [name, value] : run.facts) {
    if (!text(name).startsWith(prefix)) continue;
    bars.push_back({text(name).mid(prefix.size()).replace(QLatin1Char('_'), QLatin1Char(' ')), value});
    operations += value;
  }
  const auto whole = fact_of(run, step_seconds_fact);
  if (whole && *whole > operations) bars.push_back({tr("between operations"), *whole - operations});
  const auto at = fact_of(run, step_seconds_at_fact);
  times_note_->set_full_text(
      whole && at ? tr("%1 a step, measured over a few steps, the last of them step %2")
                        .arg(format_time(*whole), format_count(std::llround(*at)))
      : whole ? tr("%1 a step, measured over a few of the first steps of this run").arg(format_time(*whole))
              : tr("A few of the first steps of a run are measured; this one has not come so far, or is of an earlier "
                   "version."));
  times_->set_bars(std::move(bars));
}

void Inspector::trace_begun(const RunInfo& run) {
  trace_run_ = run.summary.id;
  traced_before_ = fact_of(run.summary, step_seconds_at_fact).value_or(0);
  trace_error_.clear();
}

void Inspector::trace_asked(const RunId& run, const QString& error) {
  if (run == trace_run_) trace_error_ = error;
}

void Inspector::show_trace(const RunInfo& run, bool can_steer) {
  const RunSummary& s = run.summary;
  const bool running = is_active(s.state);
  const double measured = fact_of(s, step_seconds_at_fact).value_or(0);
  if (s.id == trace_run_ && trace_error_.isEmpty() && (!running || measured > traced_before_)) trace_run_.clear();
  const bool waiting = s.id == trace_run_ && trace_error_.isEmpty();
  set_button(trace_, running && can_steer && !waiting,
             !can_steer ? tr("This workspace is open for reading only.")
             : waiting  ? tr("Its next steps are being measured.")
                        : tr("It is not running."));
  const bool failed = s.id == trace_run_ && !trace_error_.isEmpty();
  trace_note_->set_color(failed ? Token::bad : Token::text2);
  trace_note_->set_full_text(failed    ? tr("It could not be asked: %1").arg(trace_error_)
                             : waiting ? tr("Asked: the next steps are measured; what they took appears here.")
                                       : QString());
  trace_note_->setVisible(failed || waiting);
}

void Inspector::set_button(QPushButton* button, bool enabled, const QString& why_not) {
  button->setEnabled(enabled);
  button->setToolTip(enabled ? QString() : why_not);
  button->setAccessibleDescription(enabled ? QString() : why_not);
}

void Inspector::show_nothing() {
  head_->show_nothing();
  facts_->hide();
  show_times({});
  set_button(trace_, false, tr("There is no run to measure."));
  trace_note_->hide();
  set_button(stop_, false, tr("There is no run to stop."));
  set_button(resume_, false, tr("There is no run to resume."));
  config_->setPlainText({});
  shown_config_.clear();
}

void Inspector::show_job(const JobSnapshot& job) {
  show_nothing();
  head_->show_job(job);
  set_button(stop_, !job.stopping, tr("It is stopping already."));
}

void Inspector::show_run(const RunInfo& run, double now, double tokens_per_second, bool can_steer) {
  const RunSummary& s = run.summary;
  head_->show_run(run, now);

  const bool running = s.state == RunState::running || s.state == RunState::queued;
  set_button(stop_, running && can_steer,
             !can_steer                      ? tr("This workspace is open for reading only.")
             : s.state == RunState::stopping ? tr("It is finishing its step and saving.")
                                             : tr("It is not running."));
  const bool can_go_on = s.state == RunState::paused || s.state == RunState::failed || s.state == RunState::killed ||
                         s.state == RunState::lost;
  set_button(resume_, can_go_on && can_steer && run.job < 0,
             !can_steer                      ? tr("This workspace is open for reading only.")
             : s.state == RunState::finished ? tr("It has reached its end.")
                                             : tr("It is working."));

  show_times(s);
  show_trace(run, can_steer);
  facts_->show();
  const std::int64_t all_tokens = run.config.tokens;
  facts_->set(tr("Tokens"), all_tokens > 0 ? tr("%1 of %2")
                                                 .arg(format_amount(static_cast<double>(s.tokens)),
                                                      format_amount(static_cast<double>(all_tokens)))
                                           : format_amount(static_cast<double>(s.tokens)));
  facts_->set(tr("Speed"), tokens_per_second > 0 ? tr("%1 tok/s").arg(format_compact(tokens_per_second)) : missing());
  facts_->set(tr("Time spent"), s.seconds > 0 ? format_duration(s.seconds) : missing());
  facts_->set(tr("Loss"),
              s.last_loss ? (s.first_loss ? tr("%1, from %2").arg(format_loss(*s.last_loss), format_loss(*s.first_loss))
                                          : format_loss(*s.last_loss))
                          : missing());
  facts_->set(tr("Validation"), s.val_loss ? format_loss(*s.val_loss) : missing());
  facts_->set(tr("Heartbeat"), is_active(s.state) && s.last_beat > 0 ? format_ago(std::max(0.0, now - s.last_beat))
                               : s.last_beat > 0                     ? format_clock(s.last_beat)
                                                                     : missing());
  facts_->set(tr("Corpus"),
              text(run.config.corpus) +
                  (run.config.tokenizer.empty() ? QString() : tr(", %1").arg(text(run.config.tokenizer))));
  if (run.config.n_layers > 0)
    facts_->set(tr("Model"), tr("%1 layers × %2, window %3")
                                 .arg(format_count(run.config.n_layers), format_count(run.config.d_model),
                                      format_count(run.config.seq_len)));
  if (const auto parameters = fact_of(s, "parameters"))
    facts_->set(tr("Parameters"), format_count(std::llround(*parameters)));
  // The plan is what training takes; the peak is of the whole process, window included.
  facts_->set(tr("Memory"),
              s.peak_bytes > 0
                  ? tr("%1 planned, process %2").arg(format_bytes(s.plan_bytes), format_bytes(s.peak_bytes))
                  : QString());
  facts_->set(tr("Device"), run.config.device.empty()
                                ? QString()
                                : tr("%1, %2").arg(text(run.config.device), text(run.config.precision)));
  facts_->set(tr("Run"), text(s.id), true);
  facts_->set(tr("Stored in"), text("runs/" + (s.folder.empty() ? s.name + "-" + s.id : s.folder)), true);
  facts_->set(tr("Commit"), text(s.commit).left(12), true);
  if (s.config_json != shown_config_) {
    shown_config_ = s.config_json;
    config_->setPlainText(text(s.config_json));
  }
}

}  // namespace stacklab::ui

#include <moc_inspector.cpp>
