#include "ui/pages/monitor/monitor_page.h"

#include <QPointer>
#include <QStackedLayout>
#include <algorithm>
#include <cmath>

#include "ui/models/state_look.h"
#include "ui/theme/numbers.h"

namespace stacklab::ui {
namespace {

QString text(const std::string& s) { return QString::fromStdString(s); }

QString corpus_title(const std::string& name) {
  if (name == "kjv") return MonitorPage::tr("the King James Bible");
  if (name == "tinyworld") return MonitorPage::tr("stories of a small generated world");
  return text(name);
}

}  // namespace

void MonitorPage::set_introduction(bool on, const std::string& corpus) {
  introduction_ = on;
  introduction_corpus_ = corpus;
  charts_->keep_loss(on);
  curves_signature_.clear();
  if (snapshot_) update_curves();
  update_journey();
}

void MonitorPage::set_start_texts(const QString& help, const QString& button) {
  start_help_ = help;
  start_button_ = button;
  update_empty();
}

void MonitorPage::set_list_visible(bool visible) { list_box_->setVisible(visible); }

void MonitorPage::take_snapshot(const WorkspaceSnapshotPtr& snapshot) {
  if (snapshot_ && snapshot->generation <= snapshot_->generation) return;
  const std::size_t known_ends = snapshot_ ? snapshot_->ended.size() : snapshot->ended.size();
  snapshot_ = snapshot;
  runs_->update(snapshot);
  filter_->runs_changed();
  choose_selection();
  update_curves();
  update_inspector();
  update_journey();
  update_failure();
  update_header();
  update_empty();
  for (std::size_t i = known_ends; i < snapshot->ended.size(); ++i) {
    if (!snapshot->ended[i].already_finished) continue;
    select(snapshot->ended[i].run);
    emit message(tr("This run has been to its end before: nothing was done."));
  }
}

const JobSnapshot* MonitorPage::pending_job() const {
  if (!snapshot_) return nullptr;
  for (const auto& job : snapshot_->jobs)
    if (job->run.empty() || !runs_->find(job->run)) return job.get();
  return nullptr;
}

const JobSnapshot* MonitorPage::job_of(const RunId& run) const {
  if (!snapshot_) return nullptr;
  for (const auto& job : snapshot_->jobs)
    if (job->run == run) return job.get();
  return nullptr;
}

double MonitorPage::speed_of(const RunInfo& run) const {
  if (!is_active(run.summary.state) && run.summary.tokens_per_second > 0) return run.summary.tokens_per_second;
  const double recent = charts_->recent(run.summary.id, metric::tokens_per_second, 20);
  if (std::isfinite(recent) && recent > 0) return recent;
  return run.summary.seconds > 0 ? static_cast<double>(run.summary.tokens) / run.summary.seconds : 0;
}

void MonitorPage::choose_selection() {
  if (user_chose_ && runs_->find(selected_)) return;
  // What works now is what one wants to see; else the newest.
  RunId best;
  for (int row = 0; row < runs_->rowCount(); ++row) {
    const RunInfo& run = runs_->run_at(row);
    if (best.empty()) best = run.summary.id;
    if (is_active(run.summary.state)) {
      best = run.summary.id;
      break;
    }
  }
  if (best == selected_) return;
  select(best);
  user_chose_ = false;
}

void MonitorPage::select(const RunId& id) {
  if (id == selected_) return;
  selected_ = id;
  user_chose_ = true;
  list_->setCurrentIndex(list_->order()->index_of(id));
  events_->reset();
  charts_->set_events({});
  events_generation_ = link_->follow_events(id);
  update_curves();
  update_inspector();
  update_failure();
}

void MonitorPage::update_curves() {
  const RunInfo* selected = runs_->find(selected_);
  const auto shown = runs_->shown_runs();
  std::string signature = selected_ + "|" + std::to_string(runs_->baseline());
  for (const RunInfo* run : shown) signature += "|" + run->summary.id + run->summary.name;
  if (signature != curves_signature_) {
    curves_signature_ = signature;
    charts_->set_baseline(runs_->baseline());
    charts_->set_runs(shown, selected);
  } else {
    charts_->update_facts(shown, selected);
  }
  QString empty;
  const JobSnapshot* job = selected ? job_of(selected_) : pending_job();
  if (shown.empty() && runs_->rowCount() > 0)
    empty = tr("All runs are hidden. Click a run's line in the list to show it.");
  else if (selected && is_active(selected->summary.state) && selected->summary.step == 0 &&
           selected->summary.progress.phase == "training")
    empty = tr("The first loss comes with the end of the first step.");
  else if (job || (selected && is_active(selected->summary.state)))
    empty = tr("The first loss comes when the text is ready and the first step is done.");
  else
    empty = tr("No values yet.");
  charts_->set_empty_texts(empty, tr("No values yet."));
}

void MonitorPage::take_events(const EventsChunkPtr& events) {
  if (events->generation != events_generation_) return;
  events_->update(*events);
  charts_->set_events(events_->rows());
}

void MonitorPage::update_inspector() {
  const RunInfo* run = runs_->find(selected_);
  const JobSnapshot* job = pending_job();
  inspector_shows_job_ = job && (!run || !is_active(run->summary.state)) && !user_chose_;
  if (inspector_shows_job_)
    inspector_->show_job(*job);
  else if (run)
    inspector_->show_run(*run, runs_->now(), speed_of(*run), link_->can_steer() || looks_steerable_);
  else
    inspector_->show_nothing();
  emit steering_changed();
}

void MonitorPage::update_journey() {
  const JobSnapshot* job = pending_job();
  const RunInfo* run = nullptr;
  if (!job) {
    run = runs_->find(selected_);
    if (run) job = job_of(selected_);
  }
  const std::string of = job ? std::to_string(job->job) : run ? run->summary.id : std::string();
  // A run that has just got its row goes on with what is known of its job.
  if (job && of != journey_of_) {
    journey_.clear();
    journey_of_ = of;
  }
  if (job || run) journey_.update(job ? job->progress : run->summary.progress, run, runs_->now());
  const bool preparing = job && journey_.is_preparing();
  const bool shown = (introduction_ && runs_->rowCount() <= 1 && (job || run)) || preparing;
  strip_->setVisible(shown);
  if (!shown) return;
  QString title, sentence;
  const QString name = job ? text(job->name) : text(run->summary.name);
  const QString corpus = run                            ? corpus_title(run->config.corpus)
                         : introduction_corpus_.empty() ? tr("a text")
                                                        : corpus_title(introduction_corpus_);
  journey_.set_result(QStringLiteral("text"), run ? corpus : QString());
  const auto parameters = run ? fact_of(run->summary, "parameters") : std::nullopt;
  if (parameters)
    journey_.set_result(QStringLiteral("starting"),
                        tr("%1 parameters, a vocabulary of %2, a window of %3")
                            .arg(format_count(std::llround(*parameters)), format_count(run->config.vocab_size),
                                 format_count(run->config.seq_len)));
  if (introduction_ && run && run->summary.state == RunState::finished) {
    title = tr("Your first model is trained");
    sentence = tr("It read %1 and learnt to guess what comes next: the loss fell from %2 to %3 in %4.")
                   .arg(corpus, run->summary.first_loss ? format_loss(*run->summary.first_loss) : missing(),
                        run->summary.last_loss ? format_loss(*run->summary.last_loss) : missing(),
                        format_duration(run->summary.seconds));
  } else if (introduction_) {
    title =
        run && run->summary.step > 0 ? tr("Your first model is training") : tr("Your first model is being prepared");
    const QString model = parameters
                              ? tr("A language model of %1 parameters").arg(format_count(std::llround(*parameters)))
                              : tr("A small language model");
    sentence = tr("%1 reads %2 on this computer's processor and learns to guess what comes next. "
                  "It started by itself; the curve below falls as it learns.")
                   .arg(model, corpus);
  } else {
    title = tr("%1 gets ready").arg(name);
    sentence = tr("Training begins when the text has been turned into tokens.");
  }
  strip_->set_texts(title, sentence);
  strip_->set_folded(introduction_ && run && run->summary.state == RunState::finished);
  strip_->set_closable(introduction_);
  if (introduction_)
    emit journey_told(journey_, title, sentence, run ? seconds_left(run->summary) : -1, run ? speed_of(*run) : 0);
  strip_->show_journey(journey_, runs_->now(), run ? seconds_left(run->summary) : -1, run ? speed_of(*run) : 0);
}

void MonitorPage::update_failure() {
  QString title, what;
  bool resumable = false, diverged = false;
  const RunInfo* run = runs_->find(selected_);
  if (run && (run->summary.state == RunState::failed || run->summary.state == RunState::killed ||
              run->summary.state == RunState::lost)) {
    const StateLook look = look_of(*run);
    title = run->summary.state == RunState::failed ? tr("%1 failed").arg(text(run->summary.name))
            : run->summary.state == RunState::killed
                ? tr("%1 was killed").arg(text(run->summary.name))
                : tr("%1 is lost: its process has ended").arg(text(run->summary.name));
    what = cause_of(*run, runs_->now());
    // With the same settings it would come to the same end again.
    diverged = has_diverged(*run);
    resumable = !diverged;
  } else if (snapshot_) {
    // The last job that ended, when the list does not tell of its failure and nothing newer has been started since.
    const JobOutcome* last = snapshot_->ended.empty() ? nullptr : &snapshot_->ended.back();
    for (const auto& job : snapshot_->jobs)
      if (last && job->job > last->job) last = nullptr;
    const RunInfo* known = last ? runs_->find(last->run) : nullptr;
    const bool told = known && known->summary.state == RunState::failed;
    if (last && last->error && last->error->kind != Error::Kind::stopped && !told) {
      title = last->error->kind == Error::Kind::refused ? tr("The run was refused") : tr("The run could not start");
      what = text(last->error->what);
      if (!last->error->remedy.empty()) what += QLatin1Char('\n') + text(last->error->remedy);
    }
  }
  if (snapshot_ && title.isEmpty() && !snapshot_->read_error.isEmpty()) {
    title = tr("The store cannot be read");
    what = snapshot_->read_error;
  }
  const QString signature = title + what;
  failure_->setVisible(!title.isEmpty() && signature != dismissed_failure_);
  failure_title_->set_full_text(title);
  failure_text_->set_full_text(what);
  failure_text_->setVisible(!what.isEmpty());
  failure_resume_->setVisible(resumable);
  failure_clone_->setVisible(diverged);
  failure_resume_->setEnabled(inspector_->resume_button()->isEnabled());
}

void MonitorPage::update_header() {
  const auto shown = runs_->shown_runs().size();
  const bool live = std::any_of(snapshot_->runs.begin(), snapshot_->runs.end(),
                                [](const RunInfo& r) { return is_active(r.summary.state); });
  QString facts = runs_->rowCount() == 0 ? tr("no runs yet")
                  : shown == 1           ? tr("1 run shown")
                                         : tr("%1 runs shown").arg(format_count(static_cast<std::int64_t>(shown)));
  if (live) facts += tr(", live");
  facts_->set_full_text(facts);
  update_list_head();
  points_->set_full_text(charts_->raw_points() == 0
                             ? QString()
                             : tr("%1 raw points, %2 drawn")
                                   .arg(format_count(static_cast<std::int64_t>(charts_->raw_points())),
                                        format_count(static_cast<std::int64_t>(charts_->drawn_points()))));
  const auto bad = charts_->first_non_finite();
  first_non_finite_->setVisible(bad.has_value());
  if (bad) first_non_finite_->setToolTip(tr("Step %1").arg(format_count(std::llround(bad->first))));
}

void MonitorPage::update_list_head() {
  const bool wrong = !filter_->problem().isEmpty();
  const int listed = list_->order()->rowCount(), all = runs_->rowCount();
  list_count_->set_color(wrong ? Token::bad : Token::text3);
  list_count_->set_full_text(wrong           ? filter_->problem()
                             : listed == all ? tr("%1 shown of %2").arg(runs_->shown_runs().size()).arg(all)
                                             : tr("%1 of %2 listed").arg(listed).arg(all));
  list_count_->setToolTip(list_count_->full_text());
  // Counts stand whole; what is wrong with a filter may be longer than the list is wide.
  list_count_->setMinimumWidth(wrong ? 0 : list_count_->sizeHint().width());
}

void MonitorPage::update_empty() {
  const bool empty = snapshot_ && snapshot_->runs.empty() && snapshot_->jobs.empty() && snapshot_->ended.empty() &&
                     snapshot_->read_error.isEmpty();
  notice_->set_texts(tr("This workspace holds no runs yet."), start_help_, start_button_);
  stack_->setCurrentWidget(empty ? static_cast<QWidget*>(notice_) : content_);
  export_->setVisible(!empty);
  if (empty != is_empty_) {
    is_empty_ = empty;
    emit dock_wanted_changed();
    if (empty) notice_->button()->setFocus();
  }
}

bool MonitorPage::settled() const {
  return snapshot_ && (runs_->rowCount() == 0 || (charts_->settled() && curves_signature_.size() > selected_.size()));
}

void MonitorPage::stop_selected() {
  const RunInfo* run = runs_->find(selected_);
  const JobSnapshot* pending = pending_job();
  if (run && is_active(run->summary.state)) {
    link_->stop(run->summary.id);
  } else if (run && run->job >= 0) {
    link_->stop_job(run->job);
  } else if (pending && inspector_shows_job_) {
    link_->stop_job(pending->job);
  } else {
    return;
  }
  emit message(tr("Stopping: the step is finished and saved first."));
}

void MonitorPage::resume_selected() {
  const RunInfo* run = runs_->find(selected_);
  if (!run) return;
  link_->resume(run->summary.id);
  emit message(tr("%1 goes on from its last checkpoint.").arg(text(run->summary.name)));
}

void MonitorPage::trace_selected() {
  const RunInfo* run = runs_->find(selected_);
  if (!run) return;
  const RunId id = run->summary.id;
  inspector_->trace_begun(*run);
  link_->trace(id, [self = QPointer<MonitorPage>(this), id](const QString& error) {
    if (!self) return;
    self->inspector_->trace_asked(id, error);
    self->update_inspector();
  });
  update_inspector();
}

void MonitorPage::go_to_first_non_finite() {
  const auto first = charts_->first_non_finite();
  if (!first) return;
  CurveChart* chart = charts_->panel(first->second)->chart();
  chart->go_to(first->first);
  chart->setFocus();
}

}  // namespace stacklab::ui

#include <moc_monitor_page.cpp>
