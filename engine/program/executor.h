// Memory for a ProgramSet, and its operations run one after another on a backend. Allocates what the plan says when it
// is made, and nothing afterwards.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/program/memory_plan.h"
#include "engine/program/program.h"
#include "engine/program/trace.h"
#include "engine/tensor/arena.h"
#include "kernels/backend.h"

namespace stacklab {

class Executor {
 public:
  // Whether so much may be allocated; its error is create's.
  using Accept = std::function<Status(const MemoryPlan& plan)>;
  // Checks the set and its plan, allocates both arenas and binds every operation. set, backend and parallel must
  // outlive the executor.
  static Result<Executor> create(const ProgramSet& set, const Backend& backend, ParallelFor* parallel,
                                 const Accept& accept = {});

  // Runs a whole Program, or one segment of it. The step arena belongs to the Program that ran last: another Program's
  // inputs must be written after this one's outputs were read.
  void run(int program);
  void run(int program, std::string_view segment);

  // The elements of a value on the host.
  template <class T>
  std::span<T> host(const Value& v) const {
    const TensorView bound = bind(v);
    return {bound.as<T>(), static_cast<std::size_t>(bound.size())};
  }
  TensorView bind(const Value& v) const;
  // Calls f(span of float or double) with the elements of a real value.
  template <class F>
  void visit(const Value& v, F&& f) const {
    if (v.dtype == DType::f64)
      f(host<double>(v));
    else
      f(host<float>(v));
  }

  const MemoryPlan& plan() const { return plan_; }
  std::int64_t allocated_bytes() const { return persistent_.bytes() + step_.bytes(); }
  void set_trace(Trace* trace) { trace_ = trace; }

 private:
  Executor() = default;
  void run(int program, int begin, int end);

  const ProgramSet* set_ = nullptr;
  const Backend* backend_ = nullptr;
  KernelContext context_;
  MemoryPlan plan_;
  Arena persistent_, step_;
  std::vector<std::vector<Op>> bound_;  // of each Program
  Trace* trace_ = nullptr;
};

}  // namespace stacklab
