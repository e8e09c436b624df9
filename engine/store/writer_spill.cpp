// What the writer does with records that the data base cannot take, and what it says of those that are lost.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>

#include "engine/base/clock.h"
#include "engine/base/log.h"
#include "engine/store/writer.h"

namespace stacklab::store {
namespace {

constexpr std::int64_t words_bytes = 64 << 10;

// Of the store itself; the attachment is held still by the lock of the queue.
Record store_alert(Attachment& a, std::string text, RunEvent::Severity severity) {
  return {a.key,
          EventRecord{
              a.next_sequence++, a.last_step, unix_seconds(), RunEvent::Kind::store, std::move(text), severity, {}}};
}

std::string lost_text(std::int64_t rows, std::int64_t first, std::int64_t last, const std::string& problem) {
  return fmt::format("{} rows of steps {} to {} are lost: {}", rows, first, last, problem);
}

}  // namespace

// Says once, among the rows that go there, that they do.
void Writer::note_spill(const Attachments& attached) {
  std::lock_guard lock(mutex_);
  std::vector<Record> alerts;
  for (const auto& a : attached)
    alerts.push_back(store_alert(
        *a, fmt::format("The store cannot be written: {}. Training goes on; rows wait in a file beside it", problem_),
        RunEvent::Severity::warning));
  held_rows_ += std::ssize(alerts);
  // Before what may be the end of the run.
  pending_.insert(pending_.begin(), std::make_move_iterator(alerts.begin()), std::make_move_iterator(alerts.end()));
}

// The same where there is no room for them, at once for whoever watches.
void Writer::note_no_room(const Attachments& attached, const Error& error) {
  const std::string text = fmt::format(
      "Neither the store nor a file beside it can be written: {}; {}. Training goes on; rows wait in memory, "
      "{} at most, later ones are lost",
      problem_, error.what, options_.held_rows_limit);
  log_error("{}", text);
  std::lock_guard lock(mutex_);
  for (const auto& a : attached) {
    pending_.push_back(store_alert(*a, text, RunEvent::Severity::critical));
    ++held_rows_;
  }
}

void Writer::spill_pending(const Attachments& attached) {
  if (pending_.empty()) return;
  const bool first = out_of_patience() && !spill_told_;
  if (first) note_spill(attached);
  spill_told_ |= first;
  const std::int64_t rows = rows_of(pending_);
  if (const auto spilled = spill_.append(pending_); !spilled) {
    {
      std::lock_guard lock(mutex_);
      health_.problem = fmt::format("{}; and {}", problem_, spilled.error().message());
    }
    if (out_of_patience() && !std::exchange(no_room_told_, true)) note_no_room(attached, spilled.error());
    keep_words();
    return;
  }
  words_kept_ = 0;
  if (first) log_warning("rows go to {} until the store can be written", spill_.path().string());
  pending_.clear();
  std::lock_guard lock(mutex_);
  held_rows_ -= rows;
  health_.spilled_rows += rows;
}

// The process ends, and what is pending with it: said where there is still room for it.
void Writer::tell_what_is_lost() {
  constexpr std::int64_t last_sequence = std::int64_t{1} << 40;  // after all that the session told
  struct Lost {
    std::int64_t rows = 0, first = 0, last = 0;
  };
  std::map<SessionKey, Lost> lost;
  const auto add = [&lost](const SessionKey& key, std::int64_t rows, std::int64_t first, std::int64_t last) {
    Lost& l = lost[key];
    l = {l.rows + rows, l.rows > 0 ? std::min(l.first, first) : first, std::max(l.last, last)};
  };
  for (const Record& record : pending_)
    if (const auto* step = std::get_if<StepRecord>(&record.body))
      add(record.key, row_count(record), step->step, step->step);
  for (const auto& list : {attached_, departed_})
    for (const auto& a : list)
      if (a->lost_rows > 0) add(a->key, a->lost_rows, a->first_lost_step, a->last_lost_step);
  keep_words();
  if (words_kept_ < pending_.size()) log_error("what happened, and how it ended, is lost with them");
  std::vector<Record> words;
  for (const auto& [key, l] : lost) {
    const std::string text = lost_text(l.rows, l.first, l.last, health_.problem);
    log_error("{}", text);
    words.push_back({key, EventRecord{last_sequence, l.last, unix_seconds(), RunEvent::Kind::store, text,
                                      RunEvent::Severity::critical, static_cast<double>(l.rows)}});
  }
  if (!words_.append(words)) log_error("nor can it be recorded that they are");
}

// Before the disk is full. Without such room all is as it would be without it.
void Writer::keep_room(const Attachments& attached) {
  if (attached.empty() || room_kept_) return;
  room_kept_ = true;
  if (Status kept = words_.reserve(words_bytes); !kept) log_debug("{}", kept.error().message());
}

// What happened and how it ended, of what neither the data base nor the spill file takes. Taken in later, and once
// only: the same records may still be committed.
void Writer::keep_words() {
  std::vector<Record> words;
  for (std::size_t i = words_kept_; i < pending_.size(); ++i) {
    const auto& body = pending_[i].body;
    const bool end = std::holds_alternative<EndRecord>(body);
    // The end has the last of the room.
    if (end || (!std::holds_alternative<StepRecord>(body) && words_.bytes() < words_bytes / 2))
      words.push_back(pending_[i]);
  }
  if (words_.append(words)) words_kept_ = pending_.size();
}

Writer::LostRows Writer::report_lost(const Attachments& attached) {
  LostRows reported;
  Attachments all = attached;
  {
    std::lock_guard lock(mutex_);
    all.insert(all.end(), departed_.begin(), departed_.end());
  }
  for (const auto& a : all) {
    EventRecord event;
    {
      std::lock_guard lock(mutex_);
      if (a->lost_rows == 0) continue;
      reported.emplace_back(a, a->lost_rows);
      event = {a->next_sequence++,
               a->last_lost_step,
               unix_seconds(),
               RunEvent::Kind::store,
               lost_text(a->lost_rows, a->first_lost_step, a->last_lost_step, health_.problem),
               RunEvent::Severity::critical,
               static_cast<double>(a->lost_rows)};
    }
    applier_->apply({a->key, event});
  }
  return reported;
}

}  // namespace stacklab::store
