// The one thread of a process that writes a workspace's store. Others push records and return at once; the thread
// commits them in batches, waits while the data base is locked or the disk full, and then spills to a file, so that
// nothing is lost without a word.
#pragma once

#include <SQLiteCpp/Database.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/result.h"
#include "engine/store/applier.h"
#include "engine/store/records.h"
#include "engine/store/spill.h"
#include "engine/store/store.h"

namespace stacklab::store {

// A run that this process trains.
struct Attachment {
  // Constant.
  SessionKey key;
  std::int64_t run_number = 0;
  RunRequests requests;  // called on the writer's thread

  // Under the queue's lock.
  std::int64_t next_sequence = 1;
  std::optional<Progress> progress;                                    // latest, not yet written
  std::optional<std::pair<double, double>> beat;                       // latest (last_beat, next_by), not yet written
  bool stopping = false;                                               // to be written
  std::optional<std::chrono::steady_clock::time_point> beat_due = {};  // promised; whatever the wall clock does
  bool stalled = false;                                                // an alert says so
  std::int64_t last_step = 0;
  std::int64_t lost_rows = 0, first_lost_step = 0, last_lost_step = 0;

  // Of the writer's thread.
  bool stop_told = false;
  std::int64_t checkpoints_asked = 0, traces_asked = 0;
};

class Writer {
 public:
  Writer(std::filesystem::path workspace, std::unique_ptr<SQLite::Database> db, const StoreOptions& options);
  ~Writer();  // commits or spills what is queued

  // These push and return.
  void push(const std::shared_ptr<Attachment>& from, RecordBody body, bool soon = false);
  // Runs set under the queue's lock, to leave a progress or a beat in the attachment.
  void pulse(const std::shared_ptr<Attachment>& from, const std::function<void(Attachment&)>& set);
  // Tried again until it can be done, or the store closes.
  void post(std::function<void(SQLite::Database&)> task);

  void attach(const std::shared_ptr<Attachment>& attachment);
  void detach(const std::shared_ptr<Attachment>& attachment);

  // Runs task on the writer's thread, after all that was pushed before, and waits for its result.
  Status call(const std::function<Status(SQLite::Database&)>& task);
  // Waits until all that was pushed is committed or spilled. An error says what had to stay in memory, and why.
  Status flush();
  // The same for training's own thread: what cannot be committed at once is spilled, without patience.
  void settle();

  StoreHealth health() const;

 private:
  struct Task {
    enum class Wants { nothing, all_written, all_safe };  // of what was pushed; safe: spilled at once
    std::function<void(SQLite::Database&)> run;
    Wants wants = Wants::nothing;
  };
  using Clock = std::chrono::steady_clock;

  using Attachments = std::vector<std::shared_ptr<Attachment>>;
  using LostRows = std::vector<std::pair<std::shared_ptr<Attachment>, std::int64_t>>;

  void loop();
  bool turn();
  bool wait_for_work(std::vector<Task>& tasks, Attachments& attached);
  void commit(const Attachments& attached, bool drain);
  void write_pulses();
  LostRows report_lost(const Attachments& attached);
  void put_pulses_back();
  void poll_requests(const Attachments& attached);
  void unavailable(const Error& error);
  bool out_of_patience() const;
  void spill_pending(const Attachments& attached);
  void watch_beats(Clock::time_point now);
  void queue_now(Record record);
  Status wait_for(Task::Wants wants);
  void attempt(std::function<void(SQLite::Database&)> task);
  void attempt_again();
  void note_spill(const Attachments& attached);
  void note_no_room(const Attachments& attached, const Error& error);
  void keep_words();
  void keep_room(const Attachments& attached);
  void tell_what_is_lost();
  void limit_wal();

  const std::filesystem::path workspace_;
  const StoreOptions options_;

  // Of the writer's thread.
  std::unique_ptr<SQLite::Database> db_;
  std::unique_ptr<Applier> applier_;
  SpillFile spill_;
  SpillFile words_;             // room kept for what happened and how it ended
  std::size_t words_kept_ = 0;  // of pending_: records whose words are in it
  bool room_kept_ = false, no_room_told_ = false;
  std::vector<Record> pending_;
  struct TakenPulse {
    std::shared_ptr<Attachment> from;
    std::optional<Progress> progress;
    std::optional<std::pair<double, double>> beat;
    bool stopping = false;
  };
  std::vector<TakenPulse> pulses_;
  std::optional<Clock::time_point> unavailable_since_;
  std::string problem_;
  bool spill_told_ = false;
  std::chrono::milliseconds retry_after_{250};
  Clock::time_point next_try_{}, last_commit_{}, last_housekeeping_{}, next_attempt_{};
  std::vector<std::function<void(SQLite::Database&)>> undone_;  // of what was posted

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Record> queue_;
  std::vector<Task> tasks_;
  Attachments attached_, departed_;          // departed: ended, with lost rows that are not told yet
  std::optional<Clock::time_point> oldest_;  // of what waits in the queue
  std::int64_t queued_rows_ = 0;
  std::int64_t held_rows_ = 0;  // queued and pending
  bool soon_ = false;
  bool closing_ = false;
  StoreHealth health_;

  std::thread thread_;
};

}  // namespace stacklab::store
