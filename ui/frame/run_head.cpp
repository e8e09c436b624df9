#include "ui/frame/run_head.h"

#include <QVBoxLayout>

#include "ui/models/state_look.h"
#include "ui/theme/numbers.h"

namespace stacklab::ui {
namespace {
QString text(const std::string& s) { return QString::fromStdString(s); }
}  // namespace

RunHead::RunHead(QWidget* parent) : QWidget(parent) {
  auto* head = new QVBoxLayout(this);
  head->setContentsMargins(0, 0, 0, 0);
  head->setSpacing(7);
  auto* first = new QHBoxLayout;
  first->setSpacing(8);
  swatch_ = new Swatch(this);
  name_ = new TextLabel(TextRole::body, Token::text, true, this);
  name_->set_elided(true);
  pill_ = new StatePill(this);
  first->addWidget(swatch_);
  first->addWidget(name_, 1);
  first->addWidget(pill_);
  cause_ = new TextLabel(TextRole::secondary, Token::text2, false, this);
  cause_->setWordWrap(true);
  bar_ = new ThinProgress(this);
  auto* second = new QHBoxLayout;
  steps_ = new TextLabel(TextRole::secondary, Token::text, false, this);
  steps_->set_numbers(true);
  left_ = new TextLabel(TextRole::secondary, Token::text2, false, this);
  left_->set_numbers(true);
  second->addWidget(steps_);
  second->addStretch();
  second->addWidget(left_);
  head->addLayout(first);
  head->addWidget(cause_);
  head->addWidget(bar_);
  head->addLayout(second);
}

void RunHead::show_nothing() {
  swatch_->hide();
  name_->set_full_text(tr("No run selected"));
  pill_->hide();
  cause_->hide();
  bar_->set(-1, Token::info);
  steps_->set_full_text({});
  left_->set_full_text({});
}

void RunHead::show_job(const JobSnapshot& job) {
  show_nothing();
  name_->set_full_text(text(job.name));
  pill_->show();
  const StateLook state = look_of(job.stopping     ? RunState::stopping
                                  : is_queued(job) ? RunState::queued
                                                   : RunState::running,
                                  false);
  pill_->set_state(state.glyph, job.stopping || is_queued(job) ? state.word : tr("preparing"), state.color,
                   state.ground);
  const Progress& p = job.progress;
  bar_->set(p.total > 0 ? static_cast<double>(p.done) / static_cast<double>(p.total) : -1, state.color);
  steps_->set_full_text(is_queued(job) ? tr("waits for its turn") : phase_title(p.phase));
  cause_->setVisible(!p.detail.empty());
  cause_->set_full_text(text(p.detail));
}

void RunHead::show_run(const RunInfo& run, double now) {
  const RunSummary& s = run.summary;
  swatch_->show();
  swatch_->set_run_number(s.number);
  name_->set_full_text(text(s.name));
  pill_->show();
  const StateLook state = look_of(run);
  pill_->set_state(state.glyph, state.word, state.color, state.ground);
  const QString why = cause_of(run, now);
  cause_->setVisible(!why.isEmpty());
  cause_->set_full_text(why);
  cause_->set_color(s.state == RunState::failed || s.state == RunState::killed ? Token::bad : Token::text2);
  bar_->set(fraction_done(s), state.color);
  steps_->set_full_text(s.total_steps > 0 ? tr("step %1 of %2").arg(format_count(s.step), format_count(s.total_steps))
                                          : tr("step %1").arg(format_count(s.step)));
  const double left = seconds_left(s);
  left_->set_full_text(left >= 0       ? tr("%1 left").arg(format_duration(left))
                       : s.seconds > 0 ? tr("took %1").arg(format_duration(s.seconds))
                                       : QString());
}

}  // namespace stacklab::ui

#include <moc_run_head.cpp>
