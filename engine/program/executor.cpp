#include "engine/program/executor.h"

#include <algorithm>
#include <stdexcept>

#include "engine/base/clock.h"
#include "engine/program/checker.h"

namespace stacklab {
Result<Executor> Executor::create(const ProgramSet& set, const Backend& backend, ParallelFor* parallel,
                                  const Accept& accept) {
  Executor e;
  e.set_ = &set;
  e.backend_ = &backend;
  e.context_.parallel = parallel;
  e.plan_ = plan_memory(set);
  if (accept)
    if (Status s = accept(e.plan_); !s) return tl::unexpected(s.error());
  std::vector<std::string> faults = check_plan(set, e.plan_);
  for (std::size_t p = 0; p < set.programs().size(); ++p)
    for (std::string& fault : check_program(set, static_cast<int>(p))) faults.push_back(std::move(fault));
  if (!faults.empty()) throw std::logic_error(faults.front());

  auto persistent = Arena::allocate(e.plan_.persistent_bytes, "parameters and optimiser state");
  if (!persistent) return tl::unexpected(persistent.error());
  auto step = Arena::allocate(e.plan_.step_bytes, "activations, gradients and workspace of a step");
  if (!step) return tl::unexpected(step.error());
  e.persistent_ = std::move(*persistent);
  e.step_ = std::move(*step);
  for (const Program& program : set.programs()) {
    std::vector<Op>& ops = e.bound_.emplace_back();
    for (const OpRecord& record : program.ops) {
      ops.push_back(record.op);
      for_each_operand(ops.back(), [&](std::string_view, TensorView& v, Access) { v = e.bind(v); });
    }
  }
  return e;
}

TensorView Executor::bind(const Value& v) const {
  const auto b = static_cast<std::size_t>(v.place.buffer);
  const Arena& arena = set_->buffers()[b].storage == Storage::persistent ? persistent_ : step_;
  TensorView bound = v;
  bound.data = arena.data() + plan_.offset[b] + v.place.offset;
  return bound;
}

void Executor::run(int program) { run(program, 0, static_cast<int>(set_->program(program).ops.size())); }

void Executor::run(int program, std::string_view segment) {
  for (const Segment& s : set_->program(program).segments)
    if (s.name == segment) return run(program, s.begin, s.end);
  throw std::logic_error("no segment " + std::string(segment) + " in " + set_->program(program).name);
}

void Executor::run(int program, int begin, int end) {
  const std::vector<Op>& ops = bound_[static_cast<std::size_t>(program)];
  for (int i = begin; i < end; ++i) {
    const double start = trace_ ? steady_seconds() : 0;
    backend_->run(ops[static_cast<std::size_t>(i)], context_);
    if (!trace_) continue;
    const Program& p = set_->program(program);
    const auto segment =
        std::find_if(p.segments.begin(), p.segments.end(), [&](const Segment& s) { return s.begin <= i && i < s.end; });
    trace_->entries.push_back({&p, &p.ops[static_cast<std::size_t>(i)],
                               segment == p.segments.end() ? nullptr : &*segment, start, steady_seconds() - start});
  }
}

}  // namespace stacklab
