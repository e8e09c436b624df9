// Traces a few steps of a run: attaches a Trace to the executor for them, then writes the file and sums it up.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "engine/base/result.h"
#include "engine/program/executor.h"
#include "engine/run/run.h"

namespace stacklab {

struct TraceRequest {
  std::filesystem::path file;  // empty: the steps are summed up and no file is written
  std::int64_t steps = 3;
};

class StepTracer {
 public:
  // Updates first .. last are what this process will do at most. The first one is left out where there are others: it
  // touches its memory for the first time, or is the one at hand.
  StepTracer(TraceRequest request, std::int64_t first, std::int64_t last);

  void begin_step(std::int64_t update, Executor& executor);
  void batch_ready();
  // True when this was the last step to be traced.
  bool end_step(std::int64_t update, Executor& executor);

  // Nothing is left to be traced.
  bool is_over(std::int64_t update) const { return update > to_; }

  // Writes what was traced so far. Nothing is written when no step was.
  Status write();
  const std::optional<TraceSummary>& summary() const { return summary_; }

 private:
  bool traced(std::int64_t update) const { return from_ <= update && update <= to_; }

  TraceRequest request_;
  std::int64_t from_ = 0, to_ = -1;
  double step_began_ = 0;
  Trace trace_;
  std::optional<TraceSummary> summary_;
};

}  // namespace stacklab
