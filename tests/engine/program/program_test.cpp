// Building, planning, proving and running Programs: small ones whose lives are known by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <stdexcept>

#include "engine/base/clock.h"
#include "engine/program/builder.h"
#include "engine/program/checker.h"
#include "engine/program/executor.h"
#include "engine/run/run.h"

namespace stacklab {
namespace {

const Backend& reference() { return *find_backend("reference"); }

// x + a w^T applied n times to the same stream.
struct Chain {
  ProgramSet set;
  Value w, a, x, out;
  int program = -1;

  explicit Chain(int n, std::int64_t rows = 8, std::int64_t d = 16) {
    w = set.persistent("w", BufferClass::parameter, DType::f32, {d, d});
    Builder p(set, reference(), "chain", Gradients::none);
    a = p.input("a", DType::f32, {rows, d});
    x = p.input("x", DType::f32, {rows, d});
    p.segment("forward");
    Value stream = x;
    for (int i = 0; i + 1 < n; ++i) stream = p.project_add(a, w, stream);
    p.segment("last");
    out = p.project_add(stream, w, stream);
    program = p.finish();
  }
};

bool mentions(const std::vector<std::string>& faults, std::string_view word) {
  for (const std::string& f : faults)
    if (f.find(word) != std::string::npos) return true;
  return false;
}

TEST(MemoryPlan, BuffersWhoseLivesDoNotMeetShareSpace) {
  const Chain chain(20);
  const MemoryPlan plan = plan_memory(chain.set);
  const std::int64_t one = 8 * 16 * 4;
  EXPECT_EQ(plan.persistent_bytes, 16 * 16 * 4);
  // Alive at once: a, and two neighbours of the stream, the first of which is x.
  EXPECT_EQ(plan.programs[0].live_bytes, 3 * one);
  EXPECT_EQ(plan.step_bytes, 3 * one);
  EXPECT_TRUE(check_plan(chain.set, plan).empty());
  EXPECT_EQ(plan.total(), plan.persistent_bytes + plan.step_bytes);
}

TEST(MemoryPlan, PeakNamesItsInstantAndClasses) {
  const Chain chain(3);
  const ProgramMemory m = plan_memory(chain.set).programs[0];
  EXPECT_EQ(m.peak_op, 0);
  std::int64_t sum = 0;
  for (const std::int64_t bytes : m.live_by_class) sum += bytes;
  EXPECT_EQ(sum, m.live_bytes);
  EXPECT_EQ(m.live_by_class[static_cast<std::size_t>(BufferClass::input)], 2 * 8 * 16 * 4);
}

// As a search would that compares every buffer with every other.
TEST(MemoryPlan, EachBufferLiesAsLowAsThoseBeforeItAllow) {
  std::mt19937 engine(5);
  const auto below = [&](int n) { return static_cast<int>(engine() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 50; ++round) {
    ProgramSet set;
    Builder p(set, reference(), "lives", Gradients::none);
    const Value w = set.persistent("w", BufferClass::parameter, DType::f32, {1, 1});
    // A buffer is born when it is written from another one, and dies when it is read last.
    std::vector<Value> born = {p.input("first", DType::f32, {1, 1})};
    const int count = 2 + below(60);
    for (int i = 0; i < count; ++i) {
      const Value& from = born[static_cast<std::size_t>(below(static_cast<int>(born.size())))];
      const Value to =
          p.scratch_value("b" + std::to_string(i), BufferClass::activation, DType::f32, {1 + below(200), 1});
      p.cast(w, to.row_range(0, 1)), p.cast(from.row_range(0, 1), to.row_range(0, 1));
      born.push_back(to);
    }
    p.finish();
    const MemoryPlan plan = plan_memory(set);
    EXPECT_EQ(check_plan(set, plan), std::vector<std::string>{});
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < set.buffers().size(); ++i)
      if (set.buffers()[i].storage == Storage::step && set.buffers()[i].first_use >= 0) order.push_back(i);
    const auto size = [&](std::size_t i) { return (set.buffers()[i].bytes() + 63) / 64 * 64; };
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return set.buffers()[a].bytes() > set.buffers()[b].bytes(); });
    for (std::size_t k = 0; k < order.size(); ++k) {
      const Buffer& b = set.buffers()[order[k]];
      const auto fits = [&](std::int64_t at) {
        for (std::size_t j = 0; j < k; ++j) {
          const Buffer& other = set.buffers()[order[j]];
          const std::int64_t begin = plan.offset[order[j]];
          if (b.first_use <= other.last_use && other.first_use <= b.last_use && at < begin + size(order[j]) &&
              begin < at + size(order[k]))
            return false;
        }
        return true;
      };
      std::int64_t lowest = 0;
      while (!fits(lowest)) lowest += 64;
      ASSERT_EQ(plan.offset[order[k]], lowest) << "round " << round << ", " << b.name;
    }
  }
}

TEST(Checker, ACorrectProgramHasNoFaults) {
  const Chain chain(5);
  EXPECT_EQ(check_program(chain.set, chain.program), std::vector<std::string>{});
}

TEST(Checker, ReadingWhatNobodyWrote) {
  ProgramSet set;
  const Value w = set.persistent("w", BufferClass::parameter, DType::f32, {4, 4});
  Builder p(set, reference(), "p", Gradients::none);
  p.segment("forward");
  const Value ghost = p.scratch_value("ghost", BufferClass::activation, DType::f32, {2, 4});
  const Value a = p.input("a", DType::f32, {2, 4});
  p.project_add(a, w, ghost);
  const int program = p.finish();
  EXPECT_TRUE(mentions(check_program(set, program), "buffer ghost is read before it is written"));
  EXPECT_THROW((void)Executor::create(set, reference(), nullptr), std::logic_error);
}

TEST(Checker, HalfWrittenIsNotWritten) {
  ProgramSet set;
  Builder p(set, reference(), "p", Gradients::none);
  p.segment("optimiser");
  const Value g = p.input("g", DType::f32, {4});
  const Value partials = p.scratch_value("partials", BufferClass::scalar, DType::f64, {2});
  const Value updates = set.persistent("updates", BufferClass::scalar, DType::f64, {1});
  p.sum_squares(g, partials.row_range(0, 1));
  const Value norm = p.output("norm", DType::f64, {1}), scale = p.output("scale", DType::f64, {1});
  p.clip_scale(partials, norm, scale, updates, 1);
  const int program = p.finish();
  EXPECT_TRUE(mentions(check_program(set, program), "partials is read before it is written"));
}

TEST(Checker, LosingAValueThatNobodyUsed) {
  ProgramSet set;
  Builder p(set, reference(), "p", Gradients::none);
  p.segment("s");
  const Value g = p.input("g", DType::f32, {4});
  const Value slot = p.output("slot", DType::f64, {1});
  p.sum_squares(g, slot);
  p.sum_squares(g, slot);
  EXPECT_TRUE(mentions(check_program(set, p.finish()), "overwrites a value that nobody has used"));
}

TEST(Checker, ForbiddenOverlapOfOperands) {
  ProgramSet set;
  const Value w = set.persistent("w", BufferClass::optimiser, DType::f32, {4});
  const Value scalar = set.persistent("one", BufferClass::scalar, DType::f64, {1});
  Builder p(set, reference(), "p", Gradients::none);
  p.segment("s");
  p.adamw({.w = w, .g = w, .m = w, .v = w, .lr = scalar, .scale = scalar, .updates = scalar, .change = {}});
  EXPECT_TRUE(mentions(check_program(set, p.finish()), "overlaps"));
}

TEST(Checker, TwoLiveBuffersInOneSpace) {
  const Chain chain(4);
  MemoryPlan plan = plan_memory(chain.set);
  plan.offset[static_cast<std::size_t>(chain.x.place.buffer)] =
      plan.offset[static_cast<std::size_t>(chain.a.place.buffer)];
  EXPECT_TRUE(mentions(check_plan(chain.set, plan), "buffers a and x are alive together"));
}

TEST(Builder, ShapesThatDoNotFitNameOperationAndOperands) {
  ProgramSet set;
  const Value w = set.persistent("w", BufferClass::parameter, DType::f32, {4, 5});
  Builder p(set, reference(), "p", Gradients::none);
  p.scope("blocks.3.attn");
  const Value a = p.input("a", DType::f32, {2, 4});
  try {
    p.project_add(a, w, a);
    FAIL() << "accepted";
  } catch (const std::logic_error& e) {
    const std::string text = e.what();
    for (const char* part : {"[project_add]", "blocks.3.attn", "w is not [d, K]", "f32 [4, 5]"})
      EXPECT_NE(text.find(part), std::string::npos) << text;
  }
}

TEST(Builder, FirstContributionAssignsTheNextOnesAdd) {
  ProgramSet set;
  const Value w = set.persistent("w", BufferClass::parameter, DType::f32, {4, 4});
  const Value frozen = set.persistent("frozen", BufferClass::parameter, DType::f32, {4, 4});
  for (const Gradients mode : {Gradients::step, Gradients::assign, Gradients::accumulate}) {
    Builder p(set, reference(), "p", mode);
    p.freeze(frozen);
    EXPECT_FALSE(p.grad(frozen).present());
    EXPECT_FALSE(p.gradient(w).present());
    EXPECT_EQ(p.grad(w).accumulate, mode == Gradients::accumulate);
    EXPECT_TRUE(p.grad(w).accumulate);
    const bool persistent =
        set.buffers()[static_cast<std::size_t>(p.gradient(w).place.buffer)].storage == Storage::persistent;
    EXPECT_EQ(persistent, mode != Gradients::step);
    p.finish();
  }
  // Both accumulating Programs share one gradient.
  int gradients = 0;
  for (const Buffer& b : set.buffers()) gradients += b.storage == Storage::persistent && b.cls == BufferClass::gradient;
  EXPECT_EQ(gradients, 1);
  Builder none(set, reference(), "q", Gradients::none);
  EXPECT_FALSE(none.grad(w).present());
}

TEST(Executor, AllocatesThePlanAndRunsSegments) {
  Chain chain(3);
  auto executor = Executor::create(chain.set, reference(), nullptr);
  ASSERT_TRUE(executor);
  EXPECT_EQ(executor->allocated_bytes(), plan_memory(chain.set).total());
  for (float& v : executor->host<float>(chain.w)) v = 0;
  for (std::int64_t i = 0; i < 16; ++i)
    executor->host<float>(chain.w)[static_cast<std::size_t>(i * 17)] = 1;  // identity
  for (float& v : executor->host<float>(chain.a)) v = 1;
  for (float& v : executor->host<float>(chain.x)) v = 2;
  executor->run(chain.program, "forward");
  executor->run(chain.program, "last");
  // (2 + 1 + 1) + the same through the identity
  for (const float v : executor->host<float>(chain.out)) EXPECT_EQ(v, 8);
  EXPECT_THROW(executor->run(chain.program, "nowhere"), std::logic_error);
}

TEST(Executor, TraceHoldsEveryOperationWithItsWork) {
  Chain chain(4);
  auto executor = Executor::create(chain.set, reference(), nullptr);
  ASSERT_TRUE(executor);
  Trace trace;
  executor->set_trace(&trace);
  executor->run(chain.program);
  ASSERT_EQ(trace.entries.size(), 4u);
  EXPECT_EQ(trace.entries[0].segment->name, "forward");
  EXPECT_EQ(trace.entries[3].segment->name, "last");
  const auto totals = trace.totals();
  ASSERT_EQ(totals.size(), 1u);
  EXPECT_EQ(totals[0].op, "project_add");
  EXPECT_EQ(totals[0].calls, 4);
  EXPECT_EQ(totals[0].flops, 4 * 2.0 * 8 * 16 * 16);
  EXPECT_EQ(totals[0].bytes, 4 * 4.0 * (3 * 8 * 16 + 16 * 16));
  EXPECT_EQ(totals[0].flops, chain.set.program(chain.program).flops());
}

// Of two runs of a Program: an event for each operation, one for each segment of each run, all within the whole.
TEST(Trace, IsWrittenForViewers) {
  Chain chain(4);
  auto executor = Executor::create(chain.set, reference(), nullptr);
  ASSERT_TRUE(executor);
  Trace trace;
  executor->set_trace(&trace);
  const double begin = steady_seconds();
  executor->run(chain.program);
  executor->run(chain.program);
  trace.spans.push_back({"step \"1\"", begin, steady_seconds() - begin});
  EXPECT_TRUE(trace.to_json().starts_with(trace_beginning));
  const nlohmann::json json = nlohmann::json::parse(trace.to_json());
  std::map<int, int> events;  // by line
  double whole = 0;
  for (const auto& e : json["traceEvents"]) {
    if (e["ph"] != "X") continue;
    ++events[e["tid"].get<int>()];
    if (e["name"] == "step \"1\"") whole = e["dur"].get<double>();
    if (e["name"] == "project_add") {
      EXPECT_EQ(e["args"]["flops"].get<double>(), 2.0 * 8 * 16 * 16);
      EXPECT_EQ(e["args"]["bytes"].get<double>(), 4.0 * (3 * 8 * 16 + 16 * 16));
      EXPECT_FALSE(e["args"]["segment"].get<std::string>().empty());
    }
  }
  const int segments = static_cast<int>(chain.set.program(chain.program).segments.size());
  EXPECT_EQ(events, (std::map<int, int>{{1, 1}, {2, 2 * segments}, {3, 8}}));
  for (const auto& e : json["traceEvents"]) {
    if (e["ph"] != "X") continue;
    EXPECT_LE(e["ts"].get<double>() + e["dur"].get<double>(), whole + 1e-3) << e;
  }
}

}  // namespace
}  // namespace stacklab
