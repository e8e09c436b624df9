#include "engine/program/checker.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

namespace stacklab {
namespace {

// Which bytes of a buffer hold a value, and whether anybody has used it.
class Contents {
 public:
  bool holds(std::int64_t begin, std::int64_t end) const {
    for (const Part& p : parts_) {
      if (p.begin > begin) return false;
      if (p.end > begin) begin = p.end;
      if (begin >= end) return true;
    }
    return begin >= end;
  }
  void use(std::int64_t begin, std::int64_t end) {
    split(begin), split(end);
    for (Part& p : parts_)
      if (p.begin >= begin && p.end <= end) p.used = true;
  }
  // True if a value that nobody has used is lost.
  bool write(std::int64_t begin, std::int64_t end) {
    split(begin), split(end);
    bool lost = false;
    std::erase_if(parts_, [&](const Part& p) {
      const bool inside = p.begin >= begin && p.end <= end;
      lost |= inside && !p.used;
      return inside;
    });
    parts_.insert(std::upper_bound(parts_.begin(), parts_.end(), begin,
                                   [](std::int64_t b, const Part& p) { return b < p.begin; }),
                  Part{begin, end, false});
    return lost;
  }

 private:
  struct Part {
    std::int64_t begin, end;
    bool used;
  };
  void split(std::int64_t at) {
    for (std::size_t i = 0; i < parts_.size(); ++i)
      if (parts_[i].begin < at && at < parts_[i].end) {
        parts_.insert(parts_.begin() + static_cast<std::ptrdiff_t>(i) + 1, Part{at, parts_[i].end, parts_[i].used});
        parts_[i].end = at;
        return;
      }
  }
  std::vector<Part> parts_;  // ascending, disjoint
};

struct Operand {
  std::string_view name;
  TensorView view;
  Access access;
  std::int64_t begin() const { return view.place.offset; }
  std::int64_t end() const { return view.place.offset + view.bytes(); }
  bool overlaps(const Operand& o) const {
    return view.place.buffer == o.view.place.buffer && begin() < o.end() && o.begin() < end();
  }
  bool same_place(const Operand& o) const { return view.place == o.view.place && view.shape == o.view.shape; }
};

std::vector<Operand> operands_of(const Op& operation) {
  std::vector<Operand> operands;
  for_each_operand(operation, [&](std::string_view name, const TensorView& v, Access a) {
    operands.push_back({name, v, a});
  });
  return operands;
}

}  // namespace

std::vector<std::string> check_program(const ProgramSet& set, int index) {
  const Program& program = set.program(index);
  const std::vector<Buffer>& buffers = set.buffers();
  std::vector<std::string> faults;
  std::vector<Contents> contents(buffers.size());
  for (std::size_t i = 0; i < buffers.size(); ++i)
    if (buffers[i].storage == Storage::persistent || buffers[i].cls == BufferClass::input) {
      contents[i].write(0, buffers[i].bytes());
      contents[i].use(0, buffers[i].bytes());
    }
  for (std::size_t at = 0; at < program.ops.size(); ++at) {
    const OpRecord& record = program.ops[at];
    const auto fault = [&](const Operand& o, std::string_view what) {
      faults.push_back(fmt::format("{}: operation {} [{}] {}: {} of buffer {} {}", program.name, at, name_of(record.op),
                                   record.label, o.name, buffers[static_cast<std::size_t>(o.view.place.buffer)].name,
                                   what));
    };
    const std::vector<Operand> operands = operands_of(record.op);
    for (const Operand& o : operands) {
      const auto b = static_cast<std::size_t>(o.view.place.buffer);
      if (o.begin() < 0 || o.end() > buffers[b].bytes()) fault(o, "reaches beyond its buffer");
      if (!reads(o.access)) continue;
      if (!contents[b].holds(o.begin(), o.end())) fault(o, "is read before it is written");
      contents[b].use(o.begin(), o.end());
    }
    for (const Operand& o : operands) {
      if (!writes(o.access)) continue;
      for (const Operand& other : operands)
        if (&other != &o && o.overlaps(other) && !(may_alias(record.op, o.name, other.name) && o.same_place(other)) &&
            !(may_alias(record.op, other.name, o.name) && o.same_place(other)))
          fault(o, fmt::format("overlaps {}", other.name));
      Contents& c = contents[static_cast<std::size_t>(o.view.place.buffer)];
      if (c.write(o.begin(), o.end()) &&
          buffers[static_cast<std::size_t>(o.view.place.buffer)].storage == Storage::step)
        fault(o, "overwrites a value that nobody has used");
    }
  }
  return faults;
}

std::vector<std::string> check_plan(const ProgramSet& set, const MemoryPlan& plan) {
  const std::vector<Buffer>& buffers = set.buffers();
  std::vector<std::string> faults;
  struct Life {
    int begin, end;  // instants
    std::size_t buffer;
  };
  std::vector<std::vector<Life>> arenas(set.programs().size() + 1);  // of each Program, and the persistent one
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const Buffer& b = buffers[i];
    const bool persistent = b.storage == Storage::persistent;
    if (!persistent && b.first_use < 0) continue;
    if (plan.offset[i] % MemoryPlan::alignment != 0) faults.push_back(fmt::format("buffer {} is not aligned", b.name));
    if (plan.offset[i] < 0 || plan.offset[i] + b.bytes() > (persistent ? plan.persistent_bytes : plan.step_bytes))
      faults.push_back(fmt::format("buffer {} reaches beyond its arena", b.name));
    if (persistent)
      arenas.back().push_back({0, 1, i});
    else
      arenas[static_cast<std::size_t>(b.program)].push_back({b.first_use, b.last_use + 1, i});
  }
  for (std::vector<Life>& lives : arenas) {
    std::stable_sort(lives.begin(), lives.end(), [](const Life& a, const Life& b) { return a.begin < b.begin; });
    // Those that are alive do not overlap, so that a new one meets a neighbour or nobody.
    std::map<std::int64_t, const Life*> alive;  // by their ends
    std::multimap<int, std::int64_t> deaths;
    for (const Life& life : lives) {
      const std::int64_t begin = plan.offset[life.buffer], end = begin + buffers[life.buffer].bytes();
      for (; !deaths.empty() && deaths.begin()->first <= life.begin; deaths.erase(deaths.begin()))
        alive.erase(deaths.begin()->second);
      const auto next = alive.upper_bound(begin);
      if (next != alive.end() && plan.offset[next->second->buffer] < end) {
        faults.push_back(fmt::format("buffers {} and {} are alive together in the same space",
                                     buffers[next->second->buffer].name, buffers[life.buffer].name));
      } else if (end > begin) {
        alive.emplace(end, &life);
        deaths.emplace(life.end, end);
      }
    }
  }
  return faults;
}

}  // namespace stacklab
