// What the queue of the store carries, and its form as a line of JSON when the data base cannot take it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "engine/run/run.h"

namespace stacklab::store {

// One process's part of a run.
struct SessionKey {
  RunId run;
  std::int64_t session = 0;
  auto operator<=>(const SessionKey&) const = default;
};

struct StepRecord {
  std::int64_t step = 0;
  std::int64_t tokens = 0;
  double process_seconds = 0;
  double unix_time = 0;
  std::vector<std::pair<std::string, double>> values;
  bool operator==(const StepRecord&) const = default;
};

struct EventRecord {
  std::int64_t sequence = 0;  // within the session
  std::int64_t step = 0;
  double unix_time = 0;
  RunEvent::Kind kind = RunEvent::Kind::info;
  std::string text;
  RunEvent::Severity severity = RunEvent::Severity::none;
  std::optional<double> value = {};
  bool operator==(const EventRecord&) const = default;
};

// The open alerts of a kind are over.
struct ResolvedRecord {
  std::int64_t sequence = 0;  // counted with the events: later ones are not meant
  std::int64_t step = 0;
  double unix_time = 0;
  RunEvent::Kind kind = RunEvent::Kind::info;
  bool operator==(const ResolvedRecord&) const = default;
};

struct FactRecord {
  std::string name;
  double value = 0;
  bool operator==(const FactRecord&) const = default;
};

struct ResumedRecord {
  std::int64_t after_step = 0;
  bool operator==(const ResumedRecord&) const = default;
};

// The completion record: without it a run has not ended, whatever its process's exit code was.
struct EndRecord {
  RunState state = RunState::finished;
  std::string cause;
  double unix_time = 0;
  std::int64_t step = 0, tokens = 0;  // done in all
  double seconds = 0;
  std::int64_t parameters = 0, plan_bytes = 0, peak_bytes = 0;
  double tokens_per_second = 0;
  std::string queue_options = {};  // with which it waits at the head of the queue; empty: it does not
  bool operator==(const EndRecord&) const = default;
};

using RecordBody = std::variant<StepRecord, EventRecord, FactRecord, ResumedRecord, EndRecord, ResolvedRecord>;

struct Record {
  SessionKey key;
  RecordBody body;
  bool operator==(const Record&) const = default;
};

// How many rows the record becomes: the unit in which queues are bounded.
std::int64_t row_count(const Record& record);
std::int64_t rows_of(const std::vector<Record>& records);

// One line without its end; numbers read back exactly, NaN and infinities as words.
std::string to_json_line(const Record& record);
// Empty for a line that is cut off or is none of ours.
std::optional<Record> from_json_line(std::string_view line);

}  // namespace stacklab::store
