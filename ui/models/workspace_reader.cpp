#include "ui/models/workspace_reader.h"

#include <QDateTime>
#include <algorithm>
#include <cmath>

namespace stacklab::ui {
namespace {

constexpr int system_period_ms = 2000;
constexpr int drain_period_ms = 30;
constexpr int pump_period_ms = 5;
constexpr int most_in_flight = 4;
constexpr std::int64_t most_events = 500;
constexpr int most_runs_heard = 20;  // at each look
constexpr int alerts_period_ms = 1000;

QString text(const std::string& s) { return QString::fromStdString(s); }

}  // namespace

WorkspaceReader::WorkspaceReader(LinkOptions options)
    : options_(std::move(options)), timer_(new QTimer(this)), pump_timer_(new QTimer(this)) {
  timer_->setSingleShot(true);
  pump_timer_->setSingleShot(true);
  connect(timer_, &QTimer::timeout, this, &WorkspaceReader::look);
  connect(pump_timer_, &QTimer::timeout, this, &WorkspaceReader::pump);
}

std::weak_ptr<JobService> WorkspaceReader::service() {
  const std::lock_guard lock(service_mutex_);
  return shared_service_;
}

void WorkspaceReader::open() {
  auto workspace = options_.open();
  if (!workspace) {
    emit open_failed(text(workspace.error().what), text(workspace.error().remedy));
    return;
  }
  service_ = std::move(workspace->service);
  reader_ = std::move(workspace->reader);
  if (!reader_ && service_) {
    auto reader = service_->reader();
    if (!reader) {
      service_.reset();
      emit open_failed(text(reader.error().what), text(reader.error().remedy));
      return;
    }
    reader_ = std::move(*reader);
  }
  {
    const std::lock_guard lock(service_mutex_);
    shared_service_ = service_;
  }
  emit opened();
  look();
}

void WorkspaceReader::follow(std::vector<std::pair<SeriesKey, std::uint64_t>> keys) {
  std::map<SeriesKey, Followed> next;
  for (auto& [key, generation] : keys) {
    const auto before = followed_.find(key);
    Followed& to = next[key];
    if (before != followed_.end() && before->second.generation == generation) to = before->second;
    to.generation = generation;
  }
  followed_ = std::move(next);
  hurry_ = false;
  wake();
}

void WorkspaceReader::follow_events(RunId run, std::uint64_t generation) {
  events_run_ = std::move(run);
  events_generation_ = generation;
  last_event_ = 0;
  events_epoch_ = -1;
  open_alerts_ = 0;
  hurry_ = false;
  wake();
}

void WorkspaceReader::wake() {
  if (reader_) schedule(0);
}

void WorkspaceReader::schedule(int ms) {
  if (!timer_->isActive() || timer_->remainingTime() > ms) timer_->start(ms);
}

void WorkspaceReader::look() {
  if (!reader_) return;
  QElapsedTimer clock;
  clock.start();
  error_.clear();
  WorkspaceSnapshot snapshot;
  snapshot.generation = ++generation_;
  snapshot.unix_time = static_cast<double>(QDateTime::currentMSecsSinceEpoch()) / 1000;
  read_jobs(snapshot);
  read_runs(snapshot);
  snapshot.wal_bytes = reader_->wal_bytes();
  snapshot.read_error = error_;
  // A busy window sees the next one instead: snapshots never pile up.
  if (!snapshot_in_flight_.exchange(true))
    emit snapshot_ready(std::make_shared<const WorkspaceSnapshot>(std::move(snapshot)));
  if (!draining_) {
    pump();
    read_events();
    read_notices();
    read_system();
  }
  // A store of very many runs is looked at less often, so that reading never takes more than a fifth of a processor.
  const int unhurried = static_cast<int>(std::min<qint64>(4 * clock.elapsed(), 5000));
  schedule(std::max(unhurried, draining_ ? drain_period_ms
                               : active_ ? options_.active_period_ms
                                         : options_.idle_period_ms));
  if (draining_ && (!service_ || service_->jobs().empty())) {
    timer_->stop();
    // Joins the job threads, which have ended.
    reader_.reset();
    service_.reset();
    emit drained();
  }
}

void WorkspaceReader::pump() {
  if (reader_ && !draining_ && !read_series()) pump_timer_->start(pump_period_ms);
}

void WorkspaceReader::read_jobs(WorkspaceSnapshot& snapshot) {
  if (!service_) return;
  snapshot.jobs = service_->jobs();
  for (const auto& job : snapshot.jobs) known_jobs_.insert(job->job);
  for (auto it = known_jobs_.begin(); it != known_jobs_.end();) {
    const auto outcome = service_->outcome(*it);
    if (!outcome) {
      ++it;
      continue;
    }
    ended_.push_back(*outcome);
    it = known_jobs_.erase(it);
  }
  snapshot.ended = ended_;
}

void WorkspaceReader::read_runs(WorkspaceSnapshot& snapshot) {
  auto changes = reader_->changes(changes_seen_);
  active_ = !snapshot.jobs.empty();
  if (!changes) {
    error_ = text(changes.error().message());
    return;
  }
  changes_seen_ = changes->counter;
  if (changes->everything) runs_.clear();
  alerts_stale_ = alerts_stale_ || changes->everything || !changes->runs.empty();
  for (RunSummary& run : changes->runs) runs_[run.number] = std::move(run);
  snapshot.runs.reserve(runs_.size());
  for (const auto& [number, run] : runs_) {
    if (run.archived > 0 || run.deleted > 0) continue;
    auto [config, fresh] = configs_.try_emplace(run.id);
    if (fresh) config->second = config_facts(run.config_json);
    RunInfo info{run, config->second, -1};
    for (const auto& job : snapshot.jobs)
      if (job->run == info.summary.id) info.job = job->job;
    active_ = active_ || is_active(info.summary.state);
    Heard& heard = heard_[info.summary.id];
    heard.name = info.summary.name;
    heard.beat = info.summary.last_beat;
    heard.state = info.summary.state;
    heard.step = info.summary.step;
    snapshot.runs.push_back(std::move(info));
  }
}

void WorkspaceReader::look_at(SectionsByRun sections) {
  sections.swap(sections_);
  for (auto& [key, followed] : followed_) {
    if (!followed.summed) continue;
    const auto before = sections.find(key.run), now = sections_.find(key.run);
    const bool same = before == sections.end() || now == sections_.end()
                          ? (before == sections.end()) == (now == sections_.end())
                          : before->second == now->second;
    if (!same) start_over(key, followed);
  }
  hurry_ = false;
  wake();
}

void WorkspaceReader::start_over(const SeriesKey& key, Followed& followed) {
  followed.last_step = std::numeric_limits<std::int64_t>::min();
  followed.restart = true;
  const auto heard = heard_.find(key.run);
  // What is long now has no more than this many steps; a short one is read as it is.
  const std::int64_t steps = heard == heard_.end() ? 0 : heard->second.step;
  followed.summed = std::max(steps, followed.sent) > options_.most_points;
  followed.sent = 0;
}

bool WorkspaceReader::read_series() {
  for (auto& [key, followed] : followed_) {
    const auto epoch = reader_->series_epoch(key.run);
    if (!epoch) continue;  // the run has no row yet
    if (*epoch != followed.epoch || followed.sent > options_.most_points) {
      followed.epoch = *epoch;
      start_over(key, followed);
    }
    for (;;) {
      if (hurry_) return false;
      // The window takes chunks one by one between its other work; never let them pile up.
      if (chunks_in_flight_ >= most_in_flight) return false;
      auto chunk = std::make_shared<SeriesChunk>();
      const Status read =
          followed.restart && followed.summed ? read_summed(key, followed, *chunk) : read_chunk(key, followed, *chunk);
      if (!read) {
        error_ = text(read.error().message());
        break;
      }
      if (!chunk->steps.empty() || followed.restart || chunk->complete != followed.complete) {
        chunk->generation = followed.generation;
        chunk->key = key;
        chunk->restart = followed.restart;
        if (!chunk->steps.empty()) followed.last_step = std::llround(chunk->steps.back());
        if (!followed.restart || !followed.summed) followed.sent += static_cast<std::int64_t>(chunk->steps.size());
        followed.restart = false;
        followed.complete = chunk->complete;
        ++chunks_in_flight_;
        emit chunk_ready(chunk);
      }
      // A run that has grown too long on the way comes anew.
      if (chunk->complete || followed.sent > options_.most_points) break;
    }
  }
  return true;
}

void WorkspaceReader::read_events() {
  if (events_run_.empty()) return;
  auto chunk = std::make_shared<EventsChunk>();
  chunk->generation = events_generation_;
  chunk->run = events_run_;
  const auto epoch = reader_->series_epoch(events_run_);
  if (!epoch) return;
  if (*epoch != events_epoch_) {
    events_epoch_ = *epoch;
    last_event_ = 0;
    chunk->restart = true;
  }
  auto rows = reader_->events(events_run_, last_event_, most_events);
  if (!rows) {
    error_ = text(rows.error().message());
    return;
  }
  std::int64_t open = 0;
  for (const auto& [number, run] : runs_)
    if (run.id == events_run_) open = run.open_alerts;
  if (open != open_alerts_) {
    auto alerts = reader_->alerts(false, most_events);
    if (!alerts) {
      error_ = text(alerts.error().message());
      return;
    }
    open_alerts_ = open;
    for (AlertRow& alert : *alerts)
      if (alert.run == events_run_) chunk->alerts.push_back(std::move(alert.row));
  }
  if (rows->empty() && chunk->alerts.empty() && !chunk->restart) return;
  if (!rows->empty()) last_event_ = rows->back().id;
  chunk->rows = std::move(*rows);
  emit events_ready(std::move(chunk));
}

void WorkspaceReader::read_alerts(NoticesChunk& chunk) {
  if (!alerts_stale_ || hurry_ || (since_alerts_.isValid() && since_alerts_.elapsed() < alerts_period_ms)) return;
  auto alerts = reader_->alerts(false, most_events);
  since_alerts_.start();
  if (!alerts) {
    error_ = text(alerts.error().message());
    return;
  }
  alerts_stale_ = false;
  for (auto alert = alerts->rbegin(); alert != alerts->rend(); ++alert) {
    const auto told = alerts_told_.find(alert->row.id);
    if (told != alerts_told_.end() && told->second == alert->row.resolved) continue;
    alerts_told_[alert->row.id] = alert->row.resolved;
    chunk.rows.push_back({alert->run, alert->name, std::move(alert->row)});
  }
}

void WorkspaceReader::read_notices() {
  auto chunk = std::make_shared<NoticesChunk>();
  read_alerts(*chunk);
  int looked_at = 0;
  for (auto& [run, heard] : heard_) {
    if (heard.seen == heard.beat && heard.seen_state == heard.state) continue;
    if (hurry_ || ++looked_at > most_runs_heard) break;  // the others at the next look
    auto rows = reader_->events(run, heard.last_event, most_events);
    if (!rows) continue;
    if (static_cast<std::int64_t>(rows->size()) < most_events) {
      heard.seen = heard.beat;
      heard.seen_state = heard.state;
    }
    if (!rows->empty()) heard.last_event = rows->back().id;
    for (RunEventRow& row : *rows)
      if (is_notice(row.event)) chunk->rows.push_back({run, heard.name, std::move(row)});
  }
  if (!chunk->rows.empty()) emit notices_ready(std::move(chunk));
}

void WorkspaceReader::read_system() {
  if (!options_.system_info || (since_system_.isValid() && since_system_.elapsed() < system_period_ms)) return;
  since_system_.start();
  emit system_ready(std::make_shared<const SystemInfo>(options_.system_info()));
}

void WorkspaceReader::drain() {
  draining_ = true;
  if (service_) service_->stop_all();  // again: it may have been opened after the window asked
  if (reader_) return look();
  service_.reset();
  emit drained();
}

void WorkspaceReader::leave() {
  draining_ = true;
  timer_->stop();
  pump_timer_->stop();
  reader_.reset();
  service_.reset();
  emit drained();
}

}  // namespace stacklab::ui

#include <moc_workspace_reader.cpp>
