#include "engine/program/memory_plan.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace stacklab {
namespace {

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + MemoryPlan::alignment - 1) / MemoryPlan::alignment * MemoryPlan::alignment;
}

// Disjoint parts of an arena, ascending; neighbours are joined, so that there are few.
class Space {
 public:
  void add(std::int64_t begin, std::int64_t end) {
    const auto first = std::lower_bound(parts_.begin(), parts_.end(), begin,
                                        [](const Part& p, std::int64_t at) { return p.end < at; });
    auto last = first;
    for (; last != parts_.end() && last->begin <= end; ++last)
      begin = std::min(begin, last->begin), end = std::max(end, last->end);
    parts_.insert(parts_.erase(first, last), {begin, end});
  }
  struct Part {
    std::int64_t begin, end;
  };
  const std::vector<Part>& parts() const { return parts_; }

 private:
  std::vector<Part> parts_;
};

// What is taken at each instant. A tree of halves of time: a life covers few of its nodes whole, and each node knows
// what is taken throughout and what is taken at some instant of it.
class Taken {
 public:
  explicit Taken(int instants) {
    while (leaves_ < instants) leaves_ *= 2;
    throughout_.resize(static_cast<std::size_t>(2 * leaves_));
    ever_.resize(static_cast<std::size_t>(2 * leaves_));
  }
  void add(int first, int last, std::int64_t begin, std::int64_t end) {
    for_cover(
        first, last, [&](int node) { throughout_[static_cast<std::size_t>(node)].add(begin, end); },
        [&](int node) { ever_[static_cast<std::size_t>(node)].add(begin, end); });
  }
  // The lowest offset where so many bytes are free from first to last.
  std::int64_t lowest_free(int first, int last, std::int64_t size) {
    parts_.clear();
    const auto gather = [&](const Space& s) { parts_.insert(parts_.end(), s.parts().begin(), s.parts().end()); };
    for_cover(
        first, last, [&](int node) { gather(ever_[static_cast<std::size_t>(node)]); },
        [&](int node) { gather(throughout_[static_cast<std::size_t>(node)]); });
    std::sort(parts_.begin(), parts_.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
    std::int64_t at = 0;
    for (const Space::Part& part : parts_) {
      if (at + size <= part.begin) break;
      at = std::max(at, part.end);
    }
    return at;
  }

 private:
  // covered(node): those that the life covers whole, none inside another. met(node): they and all above them.
  template <class Covered, class Met>
  void for_cover(int first, int last, Covered&& covered, Met&& met) {
    visit(1, 0, leaves_, first, last + 1, covered, met);
  }
  template <class Covered, class Met>
  void visit(int node, int begin, int end, int first, int last, Covered& covered, Met& met) {
    if (last <= begin || end <= first) return;
    met(node);
    if (first <= begin && end <= last) return covered(node);
    const int middle = (begin + end) / 2;
    visit(2 * node, begin, middle, first, last, covered, met);
    visit(2 * node + 1, middle, end, first, last, covered, met);
  }

  int leaves_ = 1;
  std::vector<Space> throughout_, ever_;
  std::vector<Space::Part> parts_;
};

// Places the step buffers of one Program (indices into the set); returns the arena's size.
std::int64_t place(const std::vector<Buffer>& buffers, std::vector<std::size_t> todo, int op_count,
                   std::vector<std::int64_t>& offset) {
  // Ties by index keep the plan a function of the list alone.
  std::stable_sort(todo.begin(), todo.end(),
                   [&](std::size_t a, std::size_t b) { return buffers[a].bytes() > buffers[b].bytes(); });
  Taken taken(op_count);
  std::int64_t arena = 0;
  for (const std::size_t index : todo) {
    const Buffer& b = buffers[index];
    const std::int64_t size = aligned(b.bytes()), at = taken.lowest_free(b.first_use, b.last_use, size);
    taken.add(b.first_use, b.last_use, at, at + size);
    offset[index] = at;
    arena = std::max(arena, at + size);
  }
  return arena;
}

ProgramMemory live_memory(const std::vector<Buffer>& buffers, const std::vector<std::size_t>& mine, int op_count) {
  // What begins to live at each operation, and what ended before it.
  std::vector<std::array<std::int64_t, buffer_class_count>> change(static_cast<std::size_t>(op_count) + 1);
  for (const std::size_t i : mine) {
    const auto cls = static_cast<std::size_t>(buffers[i].cls);
    change[static_cast<std::size_t>(buffers[i].first_use)][cls] += aligned(buffers[i].bytes());
    change[static_cast<std::size_t>(buffers[i].last_use) + 1][cls] -= aligned(buffers[i].bytes());
  }
  ProgramMemory memory;
  std::array<std::int64_t, buffer_class_count> by_class = {};
  for (int op = 0; op < op_count; ++op) {
    for (std::size_t c = 0; c < by_class.size(); ++c) by_class[c] += change[static_cast<std::size_t>(op)][c];
    const std::int64_t live = std::accumulate(by_class.begin(), by_class.end(), std::int64_t{0});
    if (live > memory.live_bytes) memory = {0, live, op, by_class};
  }
  return memory;
}

}  // namespace

MemoryPlan plan_memory(const ProgramSet& set) {
  const std::vector<Buffer>& buffers = set.buffers();
  MemoryPlan plan;
  plan.offset.assign(buffers.size(), 0);
  std::vector<std::vector<std::size_t>> of_program(set.programs().size());
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const Buffer& b = buffers[i];
    if (b.storage == Storage::persistent) {
      plan.offset[i] = plan.persistent_bytes;
      plan.persistent_bytes += aligned(b.bytes());
      plan.persistent_by_class[static_cast<std::size_t>(b.cls)] += aligned(b.bytes());
    } else if (b.first_use >= 0) {
      of_program[static_cast<std::size_t>(b.program)].push_back(i);
    }
  }
  for (std::size_t p = 0; p < of_program.size(); ++p) {
    const int op_count = static_cast<int>(set.programs()[p].ops.size());
    ProgramMemory memory = live_memory(buffers, of_program[p], op_count);
    memory.arena_bytes = place(buffers, of_program[p], op_count, plan.offset);
    plan.step_bytes = std::max(plan.step_bytes, memory.arena_bytes);
    plan.programs.push_back(memory);
  }
  return plan;
}

}  // namespace stacklab
