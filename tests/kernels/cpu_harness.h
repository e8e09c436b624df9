// What the tests of the CPU backend share: guarded memory, teams of threads, instruction sets.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "engine/base/thread_team.h"
#include "kernels/context.h"
#include "kernels/cpu/targets.h"
#include "kernels/tensor_view.h"
#include "tests/kernels/op_harness.h"

namespace stacklab::test {

// Unit roundoff of float: the relative error of one operation.
inline constexpr double unit32 = 0x1p-24;

// Elements between two zones that must stay as they are.
template <class T>
class Guarded {
 public:
  Guarded() = default;
  explicit Guarded(std::int64_t n, T value = T()) : n_(static_cast<std::size_t>(n)), memory_(n_ + 2 * guard, mark()) {
    for (std::size_t i = 0; i < n_; ++i) data()[i] = value;
  }
  T* data() { return memory_.data() + guard; }
  const T* data() const { return memory_.data() + guard; }
  std::size_t size() const { return n_; }
  T& operator[](std::size_t i) { return data()[i]; }
  const T& operator[](std::size_t i) const { return data()[i]; }
  std::vector<T> values() const { return {data(), data() + n_}; }
  bool intact() const {
    if (memory_.empty()) return true;
    const T m = mark();
    for (std::size_t i = 0; i < guard; ++i)
      if (std::memcmp(&memory_[i], &m, sizeof m) != 0 || std::memcmp(&memory_[guard + n_ + i], &m, sizeof m) != 0)
        return false;
    return true;
  }

 private:
  static constexpr std::size_t guard = 64;
  static T mark() {
    T m;
    std::memset(static_cast<void*>(&m), 0x5a, sizeof m);
    return m;
  }
  std::size_t n_ = 0;
  std::vector<T> memory_;
};

template <class T>
Guarded<T> random_guarded(std::int64_t n, std::uint32_t seed, double deviation = 1) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal(0, deviation);
  Guarded<T> g(n);
  for (std::int64_t i = 0; i < n; ++i) g[static_cast<std::size_t>(i)] = static_cast<T>(normal(engine));
  return g;
}

template <class T>
TensorView view_of(Guarded<T>& g, Shape shape) {
  TensorView v;
  v.data = reinterpret_cast<std::byte*>(g.data());
  v.dtype = dtype_of<T>;
  v.shape = shape;
  return v;
}

// Runs the rest of the scope on one instruction set.
class OnInstructionSet {
 public:
  explicit OnInstructionSet(std::string_view name) { cpu::restrict_instruction_set(name); }
  ~OnInstructionSet() { cpu::restrict_instruction_set(""); }
  OnInstructionSet(const OnInstructionSet&) = delete;
  OnInstructionSet& operator=(const OnInstructionSet&) = delete;
};

// Calls make(parallel) on every instruction set, for any threads and order of tasks: within one instruction set its
// values must be the same bits. check(what, values) sees those of each instruction set.
template <class Make, class Check>
void on_every_path(const std::string& what, Make&& make, Check&& check) {
  ReversedTasks reversed;
  ThreadTeam two(2), three(3);
  for (const std::string_view set : cpu::instruction_sets()) {
    const OnInstructionSet on(set);
    const std::string where = what + " on " + std::string(set);
    const auto first = make(nullptr);
    check(where, first);
    for (ParallelFor* parallel :
         {static_cast<ParallelFor*>(&reversed), static_cast<ParallelFor*>(&two), static_cast<ParallelFor*>(&three)}) {
      const auto again = make(parallel);
      ASSERT_EQ(first.size(), again.size()) << where;
      EXPECT_EQ(std::memcmp(first.data(), again.data(), first.size() * sizeof first[0]), 0) << where << ", bits";
    }
  }
}

// run_op with a workspace of just what is asked for, full of NaN, between guards.
template <class AnyOp>
void run_guarded(const Backend& backend, AnyOp operation, ParallelFor* parallel = nullptr) {
  const std::int64_t floats = (backend.needs(Op(operation)).workspace + 3) / 4;
  Guarded<float> workspace(floats, std::numeric_limits<float>::quiet_NaN());
  if (floats > 0) {
    operation.workspace = view_of(workspace, {floats});
    operation.workspace.dtype = DType::u8, operation.workspace.shape = {4 * floats};
  }
  const Op op = operation;
  const char* why = check(op);
  ASSERT_EQ(why, nullptr) << name_of(op) << ": " << why;
  KernelContext context;
  context.parallel = parallel;
  backend.run(op, context);
  EXPECT_TRUE(workspace.intact()) << name_of(op);
}

// allowed(i) bounds the error of element i.
template <class Got, class Expected, class Allowed>
void expect_close(const std::string& what, const Got& got, const Expected& expected, Allowed&& allowed) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  double worst = -1;
  std::size_t at = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double error = std::abs(static_cast<double>(got[i]) - static_cast<double>(expected[i]));
    const double ratio = error == 0 ? 0 : error / allowed(i);
    if (!(ratio <= worst)) worst = std::isnan(ratio) ? std::numeric_limits<double>::infinity() : ratio, at = i;
  }
  if (got.size() == 0) return;
  EXPECT_LE(worst, 1) << what << ": element " << at << " of " << got.size() << " is " << got[at] << " instead of "
                      << expected[at] << ", allowed error " << allowed(at);
}

}  // namespace stacklab::test
