// What each operation of a run cost: recorded by the executor while it has a Trace, summed by operation, and written
// for the viewers of Chrome's trace format (ui.perfetto.dev, chrome://tracing).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/program/program.h"

namespace stacklab {

struct Trace {
  // Refers to the Programs that were run: to be used while they live.
  struct Entry {
    const Program* program = nullptr;
    const OpRecord* record = nullptr;
    const Segment* segment = nullptr;  // null: of none
    double begin = 0;                  // steady_seconds()
    double seconds = 0;
  };
  std::vector<Entry> entries;

  // What the host did, around operations and between them.
  struct Span {
    std::string name;  // "step 12", "batch"
    double begin = 0;
    double seconds = 0;
  };
  std::vector<Span> spans;

  struct Total {
    std::string_view op;
    std::int64_t calls = 0;
    double seconds = 0, flops = 0, bytes = 0;
  };
  // By operation, the most expensive first.
  std::vector<Total> totals() const;

  // JSON with one event for each operation (name, scope, segment, FLOPs, bytes), each segment that was run without a
  // break, and each span; times in microseconds from the first of them.
  std::string to_json() const;
};

Status write_trace(const std::filesystem::path& file, const Trace& trace);

}  // namespace stacklab
