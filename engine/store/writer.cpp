#include "engine/store/writer.h"

#include <SQLiteCpp/Transaction.h>
#include <fmt/core.h>

#include <algorithm>
#include <future>
#include <new>
#include <utility>

#include "engine/base/clock.h"
#include "engine/base/log.h"
#include "engine/store/database.h"

namespace stacklab::store {
namespace {

constexpr std::chrono::milliseconds housekeeping_interval{1000};
constexpr std::chrono::milliseconds retry_interval{250};
constexpr std::chrono::milliseconds longest_retry_interval{5000};
constexpr std::chrono::seconds stall_grace{2};
constexpr int checkpoint_timeout_ms = 200;

}  // namespace

Writer::Writer(std::filesystem::path workspace, std::unique_ptr<SQLite::Database> db, const StoreOptions& options)
    : workspace_(std::move(workspace)),
      options_(options),
      db_(std::move(db)),
      applier_(std::make_unique<Applier>(*db_)),
      spill_(workspace_ / "runs"),
      words_(workspace_ / "runs", SpillFile::Use::words),
      thread_([this] { loop(); }) {}

Writer::~Writer() {
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void Writer::push(const std::shared_ptr<Attachment>& from, RecordBody body, bool soon) {
  Record record{from->key, std::move(body)};
  const std::int64_t rows = row_count(record);
  {
    std::lock_guard lock(mutex_);
    if (auto* event = std::get_if<EventRecord>(&record.body)) event->sequence = from->next_sequence++;
    if (auto* resolved = std::get_if<ResolvedRecord>(&record.body)) resolved->sequence = from->next_sequence++;
    const auto* step = std::get_if<StepRecord>(&record.body);
    if (step) from->last_step = step->step;
    // Steps are many and may go when memory runs out; what happened and how it ended is little and stays.
    if (step && held_rows_ + rows > options_.held_rows_limit) {
      if (from->lost_rows == 0) {
        from->first_lost_step = step->step;
        log_error("rows of step {} and later are lost: too many wait{}{}", step->step,
                  health_.problem.empty() ? "" : ": ", health_.problem);
      }
      from->last_lost_step = step->step;
      from->lost_rows += rows;
      health_.lost_rows += rows;
      return;
    }
    held_rows_ += rows;
    queued_rows_ += rows;
    queue_.push_back(std::move(record));
    if (!oldest_) oldest_ = Clock::now();
    soon_ |= soon;
    if (queued_rows_ < options_.commit_rows && !soon && queue_.size() > 1) return;
  }
  wake_.notify_one();
}

void Writer::pulse(const std::shared_ptr<Attachment>& from, const std::function<void(Attachment&)>& set) {
  bool first = false;
  {
    std::lock_guard lock(mutex_);
    set(*from);
    first = !oldest_;
    if (first) oldest_ = Clock::now();
  }
  if (first) wake_.notify_one();
}

void Writer::post(std::function<void(SQLite::Database&)> task) {
  {
    std::lock_guard lock(mutex_);
    tasks_.push_back({[task = std::move(task), this](SQLite::Database&) { attempt(task); }});
  }
  wake_.notify_one();
}

// What somebody asked for is not forgotten because the store is locked or the disk full just now.
void Writer::attempt(std::function<void(SQLite::Database&)> task) {
  try {
    task(*db_);
  } catch (const SQLite::Exception& e) {
    const Error error = database_error(e, workspace_);
    if (!may_pass(e)) {
      log_error("the store: {}", error.message());
      return;
    }
    if (undone_.empty()) log_warning("the store cannot be written for now: {}; a request waits", error.message());
    undone_.push_back(std::move(task));
    next_attempt_ = Clock::now() + retry_interval;
  } catch (const std::exception& e) {
    log_error("the store: {}", e.what());
  }
}

void Writer::attempt_again() {
  if (undone_.empty()) return;
  bool last = false;
  {
    std::lock_guard lock(mutex_);
    last = closing_;
  }
  if (!last && Clock::now() < next_attempt_) return;
  db_->setBusyTimeout(last ? static_cast<int>(options_.claim_timeout.count()) : 0);
  for (auto& task : std::exchange(undone_, {})) attempt(std::move(task));
  db_->setBusyTimeout(static_cast<int>(options_.busy_timeout.count()));
  if (last && !undone_.empty()) log_error("{} requests could not be written to the store", undone_.size());
}

void Writer::attach(const std::shared_ptr<Attachment>& attachment) {
  std::lock_guard lock(mutex_);
  attached_.push_back(attachment);
  wake_.notify_one();
}

void Writer::detach(const std::shared_ptr<Attachment>& attachment) {
  std::lock_guard lock(mutex_);
  std::erase(attached_, attachment);
  if (attachment->lost_rows > 0) departed_.push_back(attachment);
}

Status Writer::call(const std::function<Status(SQLite::Database&)>& task) {
  auto done = std::make_shared<std::promise<Status>>();
  auto result = done->get_future();
  {
    std::lock_guard lock(mutex_);
    tasks_.push_back({[&task, done, this](SQLite::Database& db) {
      Status status;
      db.setBusyTimeout(static_cast<int>(options_.claim_timeout.count()));
      try {
        status = guarded(workspace_, [&] { return task(db); });
      } catch (const std::exception& e) {
        status = failed(e.what());
      }
      db.setBusyTimeout(static_cast<int>(options_.busy_timeout.count()));
      done->set_value(status);
    }});
  }
  wake_.notify_one();
  return result.get();
}

Status Writer::flush() { return wait_for(Task::Wants::all_written); }

void Writer::settle() { static_cast<void>(wait_for(Task::Wants::all_safe)); }

Status Writer::wait_for(Task::Wants wants) {
  auto done = std::make_shared<std::promise<Status>>();
  auto result = done->get_future();
  {
    std::lock_guard lock(mutex_);
    tasks_.push_back({[done, this](SQLite::Database&) {
                        Status status;
                        if (!pending_.empty()) {
                          std::lock_guard inner(mutex_);
                          status = failed(fmt::format("{} rows are not stored: {}", held_rows_, health_.problem));
                        }
                        done->set_value(status);
                      },
                      wants});
  }
  wake_.notify_one();
  return result.get();
}

StoreHealth Writer::health() const {
  std::lock_guard lock(mutex_);
  StoreHealth health = health_;
  health.held_rows = held_rows_;
  return health;
}

// Under the queue's lock.
void Writer::queue_now(Record record) {
  const std::int64_t rows = row_count(record);
  held_rows_ += rows;
  queued_rows_ += rows;
  queue_.push_back(std::move(record));
  if (!oldest_) oldest_ = Clock::now();
  soon_ = true;
}

// A training thread that hangs cannot say so itself. Under the queue's lock.
void Writer::watch_beats(Clock::time_point now) {
  for (const auto& a : attached_) {
    if (!a->beat_due) continue;
    const bool late = now > *a->beat_due + stall_grace;
    if (late == a->stalled) continue;
    a->stalled = late;
    if (late)
      queue_now({a->key, EventRecord{a->next_sequence++,
                                     a->last_step,
                                     unix_seconds(),
                                     RunEvent::Kind::stall,
                                     "No sign of life from training for longer than it promised",
                                     RunEvent::Severity::warning,
                                     {}}});
    else
      queue_now({a->key, ResolvedRecord{a->next_sequence++, a->last_step, unix_seconds(), RunEvent::Kind::stall}});
  }
}

// Takes over what was queued. True when the store is closing.
bool Writer::wait_for_work(std::vector<Task>& tasks, Attachments& attached) {
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto now = Clock::now();
    watch_beats(now);
    if (closing_ || !tasks_.empty()) break;
    auto due = Clock::time_point::max();
    if (unavailable_since_ || !spill_.empty()) due = std::max(next_try_, now);
    // What comes after a pause is committed at once, what comes thick and fast in batches.
    if (oldest_ && !unavailable_since_)
      due = std::min(due, std::max(*oldest_, last_commit_ + options_.commit_interval));
    if (!attached_.empty()) due = std::min(due, last_housekeeping_ + housekeeping_interval);
    if (!undone_.empty()) due = std::min(due, next_attempt_);
    if (!unavailable_since_ && (queued_rows_ >= options_.commit_rows || soon_)) break;
    if (due <= now) break;
    if (due == Clock::time_point::max())
      wake_.wait(lock);
    else
      wake_.wait_until(lock, due);
  }
  if (pending_.empty())
    pending_.swap(queue_);
  else
    std::move(queue_.begin(), queue_.end(), std::back_inserter(pending_));
  queue_.clear();
  queued_rows_ = 0;
  oldest_.reset();
  soon_ = false;
  tasks.swap(tasks_);
  for (const auto& a : attached_) {
    if (!a->progress && !a->beat && !a->stopping) continue;
    pulses_.push_back({a, std::exchange(a->progress, std::nullopt), std::exchange(a->beat, std::nullopt),
                       std::exchange(a->stopping, false)});
  }
  attached = attached_;
  return closing_;
}

void Writer::loop() {
  bool closed = false;
  while (!closed) {
    try {
      closed = turn();
    } catch (const std::exception& e) {
      // Memory ran out: what is queued stays queued.
      log_error("the store's writer: {}", e.what());
      std::this_thread::sleep_for(retry_interval);
    }
  }
  if (!pending_.empty()) tell_what_is_lost();
}

// Waits for work and does it. True when the store is closing and everything is done that can be.
bool Writer::turn() {
  std::vector<Task> tasks;
  Attachments attached;
  bool drain = wait_for_work(tasks, attached), settle = false, others = false;
  for (const auto& task : tasks) {
    drain |= task.wants == Task::Wants::all_written;
    settle |= task.wants == Task::Wants::all_safe;
    others |= task.wants != Task::Wants::all_safe;
  }
  bool lost = false;
  {
    std::lock_guard lock(mutex_);
    lost = !departed_.empty();
    for (const auto& a : attached) lost |= a->lost_rows > 0;
  }
  if (!pending_.empty() || !pulses_.empty() || !spill_.empty() || lost) {
    if (!unavailable_since_ || drain || others || Clock::now() >= next_try_)
      commit(attached, drain);
    else if (out_of_patience())
      spill_pending(attached);
    // Training waits for this, and for no lock of the data base.
    if (settle) spill_pending(attached);
    put_pulses_back();
  }
  keep_room(attached);
  poll_requests(attached);
  for (auto& task : tasks) task.run(*db_);
  attempt_again();
  if (const auto now = Clock::now(); now - last_housekeeping_ >= housekeeping_interval) {
    last_housekeeping_ = now;
    limit_wal();
  }
  std::lock_guard lock(mutex_);
  return closing_ && queue_.empty() && tasks_.empty();
}

// One transaction, so that readers see whole steps only: what was spilled, the pulses, and what is pending, which may
// end a run.
void Writer::commit(const Attachments& attached, bool drain) {
  const auto give_up = unavailable_since_.value_or(Clock::now()) + options_.patience;
  for (;;) {
    const auto begin = Clock::now();
    // Once it is known that somebody holds the lock, the next tries wait for nobody: a checkpoint may wait for them.
    const bool patient = !unavailable_since_ || drain;
    db_->setBusyTimeout(patient ? static_cast<int>(options_.busy_timeout.count()) : 0);
    try {
      SQLite::Transaction transaction(*db_, SQLite::TransactionBehavior::IMMEDIATE);
      applier_->begin();
      const auto spilled = spill_.read([&](const Record& record) { applier_->apply(record); });
      if (!spilled) throw std::runtime_error(spilled.error().message());
      write_pulses();
      std::int64_t unplaced = 0;
      for (const auto& record : pending_) unplaced += applier_->apply(record) ? 0 : row_count(record);
      const auto reported = report_lost(attached);
      applier_->finish();
      transaction.commit();
      const std::int64_t rows = rows_of(pending_);
      spill_.discard();
      pending_.clear();
      pulses_.clear();
      words_kept_ = 0;
      no_room_told_ = false;
      if (!words_.empty()) {
        words_.discard();
        room_kept_ = false;
      }
      std::lock_guard lock(mutex_);
      held_rows_ -= rows;
      for (const auto& [a, rows_lost] : reported) a->lost_rows -= rows_lost;
      std::erase_if(departed_, [](const auto& a) { return a->lost_rows == 0; });
      health_.lost_rows += unplaced;
      health_.spilled_rows = 0;
      last_commit_ = Clock::now();
      retry_after_ = retry_interval;
      if (unavailable_since_) log_info("the store is available again; all rows are written");
      if (std::exchange(spill_told_, false))
        for (const auto& a : attached)
          queue_now({a->key, ResolvedRecord{a->next_sequence++, a->last_step, unix_seconds(), RunEvent::Kind::store}});
      health_.available = true;
      health_.problem.clear();
      unavailable_since_.reset();
      break;
    } catch (const std::exception& e) {
      const auto* sqlite = dynamic_cast<const SQLite::Exception*>(&e);
      const Error error = sqlite ? database_error(*sqlite, workspace_) : Error{Error::Kind::failed, e.what(), {}};
      applier_->forget();
      // A full disk makes every attempt do all its work in vain: they become rarer.
      if (Clock::now() - begin > retry_interval / 10) retry_after_ = std::min(2 * retry_after_, longest_retry_interval);
      unavailable(error);
      if (out_of_patience() || (drain && Clock::now() >= give_up)) spill_pending(attached);
      // Whoever waits for all to be written waits as long as patience lasts, then what is left is spilled.
      if (!drain || Clock::now() >= give_up) break;
      std::this_thread::sleep_for(std::min(retry_interval, options_.patience));
    }
  }
  db_->setBusyTimeout(static_cast<int>(options_.busy_timeout.count()));
}

bool Writer::out_of_patience() const {
  return unavailable_since_ && Clock::now() - *unavailable_since_ >= options_.patience;
}

void Writer::unavailable(const Error& error) {
  const auto now = Clock::now();
  next_try_ = now + retry_after_;
  if (!unavailable_since_) {
    unavailable_since_ = now;
    log_warning("the store cannot be written for now: {}; training goes on", error.message());
  }
  std::lock_guard lock(mutex_);
  health_.available = false;
  health_.problem = problem_ = error.message();
}

void Writer::write_pulses() {
  for (const auto& pulse : pulses_) {
    const auto& from = *pulse.from;
    if (pulse.beat) {
      SQLite::Statement update(*db_, "UPDATE sessions SET last_beat = ?, next_by = ? WHERE run = ? AND session = ?");
      update.bind(1, pulse.beat->first);
      update.bind(2, pulse.beat->second);
      update.bind(3, from.run_number);
      update.bind(4, from.key.session);
      update.exec();
    }
    if (pulse.progress) {
      SQLite::Statement update(*db_,
                               "UPDATE runs SET phase = ?, detail = ?, done = ?, total = ? "
                               "WHERE number = ? AND session = ? AND state IN ('running', 'stopping')");
      update.bind(1, pulse.progress->phase);
      update.bind(2, pulse.progress->detail);
      update.bind(3, pulse.progress->done);
      update.bind(4, pulse.progress->total);
      update.bind(5, from.run_number);
      update.bind(6, from.key.session);
      update.exec();
    }
    if (pulse.stopping) {
      SQLite::Statement update(
          *db_, "UPDATE runs SET state = 'stopping' WHERE number = ? AND session = ? AND state = 'running'");
      update.bind(1, from.run_number);
      update.bind(2, from.key.session);
      update.exec();
    }
  }
}

// A pulse that could not be written waits for the next attempt, unless a newer one is there already.
void Writer::put_pulses_back() {
  std::lock_guard lock(mutex_);
  for (auto& pulse : pulses_) {
    if (!pulse.from->progress) pulse.from->progress = std::move(pulse.progress);
    if (!pulse.from->beat) pulse.from->beat = pulse.beat;
    pulse.from->stopping |= pulse.stopping;
  }
  pulses_.clear();
}

void Writer::poll_requests(const Attachments& attached) {
  for (const auto& a : attached) {
    std::string why;
    StopKind kind = StopKind::stop;
    std::int64_t checkpoints = a->checkpoints_asked, traces = a->traces_asked;
    try {
      SQLite::Statement query(*db_,
                              "SELECT session, stop_requested, checkpoint_requested, trace_requested FROM runs WHERE "
                              "number = ?");
      query.bind(1, a->run_number);
      if (!query.executeStep()) {
        why = "the run was deleted";
      } else if (query.getColumn(0).getInt64() != a->key.session) {
        why = "another process took the run over";
      } else {
        if (query.getColumn(1).getInt() != 0) why = "the user";
        if (query.getColumn(1).getInt() == static_cast<int>(StopKind::pause)) kind = StopKind::pause;
        checkpoints = query.getColumn(2).getInt64();
        traces = query.getColumn(3).getInt64();
      }
    } catch (const SQLite::Exception&) {
      return;  // the next poll will tell
    }
    if (std::exchange(a->checkpoints_asked, checkpoints) < checkpoints && a->requests.checkpoint)
      a->requests.checkpoint();
    if (std::exchange(a->traces_asked, traces) < traces && a->requests.trace) a->requests.trace();
    if (why.empty() || a->stop_told) continue;
    if (a->requests.stop) a->requests.stop(why, kind);
    a->stop_told = true;
  }
}

// Readers that overlap all the time keep SQLite from starting the WAL over; beyond the limit the writer waits for a
// gap.
void Writer::limit_wal() {
  std::error_code ec;
  const auto size = std::filesystem::file_size(database_file(workspace_).string() + "-wal", ec);
  if (ec || static_cast<std::int64_t>(size) <= options_.wal_limit) return;
  db_->setBusyTimeout(checkpoint_timeout_ms);
  db_->tryExec("PRAGMA wal_checkpoint(TRUNCATE)");
  db_->setBusyTimeout(static_cast<int>(options_.busy_timeout.count()));
}

}  // namespace stacklab::store
