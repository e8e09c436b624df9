#include "ui/shell/status_strip.h"

#include <QHBoxLayout>
#include <QPainter>
#include <QTimer>
#include <algorithm>

#include "ui/models/state_look.h"
#include "ui/theme/icons.h"
#include "ui/theme/numbers.h"

namespace stacklab::ui {
namespace {
QString text(const std::string& s) { return QString::fromStdString(s); }
constexpr int message_ms = 6000;
constexpr int name_width = 180;
}  // namespace

class IconLabel : public QWidget {
 public:
  IconLabel(const QString& icon_name, QWidget* parent) : QWidget(parent), icon_(icon(icon_name, Token::text2)) {
    auto* row = new QHBoxLayout(this);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(5);
    picture_ = new QLabel(this);
    label_ = new TextLabel(TextRole::secondary, Token::text2, false, this);
    label_->set_numbers(true);
    row->addWidget(picture_);
    row->addWidget(label_);
    const auto restyle = [this] {
      picture_->setPixmap(icon_.pixmap(QSize(1, 1) * metrics().scaled(14), devicePixelRatioF()));
    };
    restyle();
    connect(&look(), &Look::changed, this, restyle);
    hide();
  }
  void let_shrink() { label_->set_shrinking(); }
  void set_color(Token color) { label_->set_color(color); }
  void set(const QString& value, const QString& tip) {
    label_->set_full_text(value);
    setToolTip(tip);
    setVisible(!value.isEmpty());
  }

 private:
  QIcon icon_;
  QLabel* picture_;
  TextLabel* label_;
};

StatusStrip::StatusStrip(const QString& workspace, const QString& workspace_path, QWidget* parent) : QWidget(parent) {
  setAccessibleName(tr("Status"));
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(12, 0, 12, 0);
  row->setSpacing(14);
  const auto label = [this](bool numbers) {
    auto* l = new TextLabel(TextRole::secondary, Token::text2, false, this);
    l->set_numbers(numbers);
    return l;
  };
  device_ = new IconLabel(QStringLiteral("cpu"), this);
  device_->let_shrink();
  memory_ = new IconLabel(QStringLiteral("memory"), this);
  disk_ = new IconLabel(QStringLiteral("drive-harddisk"), this);
  pill_ = new StatePill(this);
  bar_ = new ThinProgress(this);
  bar_->setFixedWidth(80);
  job_ = label(true);
  message_ = label(false);
  message_->set_shrinking();
  counts_ = label(true);
  wal_ = label(true);
  workspace_ = label(false);
  wal_->setToolTip(tr("Size of the store's write-ahead log"));
  workspace_->set_shrinking();
  workspace_->set_full_text(tr("workspace: %1").arg(workspace));
  workspace_->setToolTip(workspace_path);
  const auto rule = [this] {
    auto* line = make_line(Qt::Vertical, this);
    line->setFixedHeight(14);
    return line;
  };
  job_rule_ = rule();
  for (QWidget* widget :
       std::initializer_list<QWidget*>{device_, memory_, disk_, job_rule_, pill_, bar_, job_, message_})
    row->addWidget(widget);
  row->addStretch();
  for (QWidget* widget : std::initializer_list<QWidget*>{counts_, rule(), wal_, rule(), workspace_})
    row->addWidget(widget);
  pill_->hide();
  bar_->hide();
  message_->hide();
  message_timer_ = new QTimer(this);
  message_timer_->setSingleShot(true);
  connect(message_timer_, &QTimer::timeout, message_, &QWidget::hide);
}

void StatusStrip::show_system(const SystemInfo& info) {
  const bool gpu = !info.gpus.empty();
  QString gpus = gpu ? text(info.gpus.front()) : QString();
  if (info.gpus.size() > 1)
    gpus = std::all_of(info.gpus.begin(), info.gpus.end(), [&](const auto& g) { return g == info.gpus.front(); })
               ? tr("%1 × %2").arg(info.gpus.size()).arg(gpus)
               : tr("%1 and %2 more").arg(gpus).arg(info.gpus.size() - 1);
  device_->set(gpu ? gpus : tr("CPU, %1 threads, %2").arg(info.threads).arg(text(info.isa)),
               gpu ? text(info.cpu) : tr("%1. %2").arg(text(info.cpu), text(info.gpu_note)));
  memory_->set(tr("RAM %1 free").arg(format_bytes(info.memory_free)), tr("of %1").arg(format_bytes(info.memory_total)));
  const bool little = info.disk_free < disk_alarm_bytes;
  disk_->set(
      little ? tr("only %1 free").arg(format_bytes(info.disk_free)) : tr("%1 free").arg(format_bytes(info.disk_free)),
      tr("On the disk that holds the workspace"));
  disk_->set_color(little ? Token::bad : Token::text2);
}

void StatusStrip::show_snapshot(const WorkspaceSnapshot& snapshot) {
  const RunInfo* active = nullptr;
  int running = 0;
  for (const RunInfo& run : snapshot.runs) {
    if (!is_active(run.summary.state)) continue;
    ++running;
    if (!active || run.job >= 0) active = &run;
  }
  const JobSnapshot* preparing = nullptr;
  int queued = 0;
  for (const auto& job : snapshot.jobs) {
    if (is_queued(*job))
      ++queued;
    else if (!preparing)
      preparing = job.get();
  }
  const bool busy = active || preparing;
  job_rule_->setVisible(busy);
  pill_->setVisible(busy);
  bar_->setVisible(busy);
  job_->setVisible(busy);
  if (active) {
    const StateLook state = look_of(*active);
    const double part = fraction_done(active->summary), left = seconds_left(active->summary);
    show_name(state, text(active->summary.name));
    bar_->set(part, state.color);
    QString words = part >= 0 ? format_percent(part) : state.word;
    if (active->summary.state == RunState::stopping)
      words += tr(", stopping");
    else if (left >= 0)
      words += tr(", %1 left").arg(format_duration(left));
    job_->set_full_text(words);
  } else if (preparing) {
    const StateLook state = look_of(RunState::running, false);
    const Progress& p = preparing->progress;
    show_name(state, text(preparing->name));
    bar_->set(p.total > 0 ? static_cast<double>(p.done) / static_cast<double>(p.total) : -1, state.color);
    job_->set_full_text(tr("preparing: %1").arg(phase_title(p.phase).toLower()));
    ++running;
  }
  QStringList counts;
  counts << tr("%1 running").arg(running);
  if (queued > 0) counts << tr("%1 queued").arg(queued);
  counts_->set_full_text(counts.join(QStringLiteral(", ")));
  const bool alarm = snapshot.wal_bytes > wal_alarm_bytes;
  const QString wal = tr("WAL %1").arg(format_bytes(snapshot.wal_bytes));
  wal_->set_full_text(alarm ? tr("%1: too large").arg(wal) : wal);
  wal_->set_color(alarm ? Token::bad : Token::text2);
  wal_->setToolTip(alarm
                       ? tr("The store's write-ahead log cannot shrink while a program holds an old view of the store. "
                            "Close other programs that read it.")
                       : tr("Size of the store's write-ahead log"));
}

void StatusStrip::show_name(const StateLook& state, const QString& name) {
  const QFontMetrics font(look().font(TextRole::secondary));
  const QString shown = font.elidedText(name, Qt::ElideMiddle, metrics().scaled(name_width));
  pill_->set_state(state.glyph, shown, state.color, Token::window);
  pill_->setToolTip(shown == name ? QString() : name);
}

void StatusStrip::show_message(const QString& words) {
  message_->set_full_text(words);
  message_->show();
  message_timer_->start(message_ms);
}

}  // namespace stacklab::ui

#include <moc_status_strip.cpp>
