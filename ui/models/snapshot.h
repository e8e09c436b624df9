// Immutable values that the reading thread hands to the window. Each carries a generation number, so that what comes
// too late is dropped.
#pragma once

#include <QHash>
#include <QMetaType>
#include <QString>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/run/run.h"
#include "engine/service/job_service.h"
#include "engine/service/system_info.h"

namespace stacklab::ui {

// What the window needs of a run's config, read once.
struct ConfigFacts {
  std::string corpus, tokenizer, device, precision;
  std::int64_t vocab_size = 0, d_model = 0, n_layers = 0, seq_len = 0, batch_tokens = 0, tokens = 0;
  std::int64_t n_heads = 0, nope_every = 0;
  double qk_clip = 0, grad_clip = 0;
};
ConfigFacts config_facts(const std::string& config_json);

struct RunInfo {
  RunSummary summary;
  ConfigFacts config;
  std::int64_t job = -1;  // the job of this process that works on it; -1: none
};

struct WorkspaceSnapshot {
  std::uint64_t generation = 0;
  double unix_time = 0;
  std::vector<RunInfo> runs;                             // in order of creation
  std::vector<std::shared_ptr<const JobSnapshot>> jobs;  // of this process, queued and running
  std::vector<JobOutcome> ended;                         // of this process's jobs, in order of their end
  std::int64_t wal_bytes = 0;
  QString read_error;  // empty: all is well
};
using WorkspaceSnapshotPtr = std::shared_ptr<const WorkspaceSnapshot>;

// Not metrics of the store, but what else it tells of each step: the time spent in the run, in seconds; tokens; and the
// clock, in seconds since the first row.
inline constexpr const char* seconds_series = "@seconds";
inline constexpr const char* tokens_series = "@tokens";
inline constexpr const char* clock_series = "@clock";

struct SeriesKey {
  std::string run, metric;
  bool operator==(const SeriesKey&) const = default;
  auto operator<=>(const SeriesKey&) const = default;
};

// A stretch of steps, both ends included, and into how many parts a long run is summed up there.
struct SeriesSection {
  std::int64_t first = 0, last = 0, parts = 0;
  bool operator==(const SeriesSection&) const = default;
};
using SectionsByRun = std::map<RunId, std::vector<SeriesSection>>;

struct SeriesChunk {
  std::uint64_t generation = 0;  // of the request that first asked for this series
  SeriesKey key;
  bool restart = false;   // what was read before is void
  bool complete = false;  // nothing more was there when this was read
  std::vector<double> steps, values;
  // Of points that stand for others (Series::append); empty: each stands for itself.
  std::vector<std::uint32_t> spans;
  std::vector<double> typical;
};
using SeriesChunkPtr = std::shared_ptr<const SeriesChunk>;

struct EventsChunk {
  std::uint64_t generation = 0;
  RunId run;
  bool restart = false;
  std::vector<RunEventRow> rows;
  std::vector<RunEventRow> alerts;  // as they stand now, where some may have been raised or are over
};
using EventsChunkPtr = std::shared_ptr<const EventsChunk>;

// What happened in any run that a person should hear of, whichever is on show. Oldest first.
struct NoticesChunk {
  struct Row {
    RunId run;
    std::string name;
    RunEventRow event;
  };
  std::vector<Row> rows;
};
using NoticesChunkPtr = std::shared_ptr<const NoticesChunk>;
// Whether an event that is no alert is one to hear of all the same.
bool is_notice(const RunEvent& event);
using SystemInfoPtr = std::shared_ptr<const SystemInfo>;

}  // namespace stacklab::ui
