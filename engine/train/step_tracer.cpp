#include "engine/train/step_tracer.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "engine/base/clock.h"

namespace stacklab {

StepTracer::StepTracer(TraceRequest request, std::int64_t first, std::int64_t last) : request_(std::move(request)) {
  if (first > last) return;
  from_ = std::min(first + 1, last);
  to_ = std::min(from_ + std::max<std::int64_t>(1, request_.steps) - 1, last);
}

void StepTracer::begin_step(std::int64_t update, Executor& executor) {
  if (!traced(update)) return;
  executor.set_trace(&trace_);
  step_began_ = steady_seconds();
}

void StepTracer::batch_ready() {
  if (step_began_ > 0) trace_.spans.push_back({"batch", step_began_, steady_seconds() - step_began_});
}

bool StepTracer::end_step(std::int64_t update, Executor& executor) {
  if (!traced(update)) return false;
  executor.set_trace(nullptr);
  const double seconds = steady_seconds() - std::exchange(step_began_, 0);
  trace_.spans.push_back({fmt::format("step {}", update), steady_seconds() - seconds, seconds});
  if (!summary_) summary_ = TraceSummary{request_.file.string(), update, update, 0, {}};
  summary_->last_step = update;
  summary_->seconds += seconds;
  return update == to_;
}

Status StepTracer::write() {
  if (!summary_ || !summary_->operations.empty()) return {};
  for (const Trace::Total& t : trace_.totals())
    summary_->operations.push_back({std::string(t.op), t.calls, t.seconds, t.flops, t.bytes});
  return request_.file.empty() ? Status() : write_trace(request_.file, trace_);
}

}  // namespace stacklab
