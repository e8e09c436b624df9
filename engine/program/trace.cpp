#include "engine/program/trace.h"

#include <algorithm>
#include <limits>
#include <map>

#include "engine/base/atomic_file.h"
#include "engine/base/json_writer.h"

namespace stacklab {
namespace {

// The lines of the picture, from top to bottom.
enum Line { host = 1, segments = 2, operations = 3 };

void name_line(JsonWriter& w, Line line, std::string_view name) {
  w.begin_object();
  w.member("ph", "M");
  w.member("name", "thread_name");
  w.member("pid", 1);
  w.member("tid", static_cast<int>(line));
  w.key("args");
  w.begin_object();
  w.member("name", name);
  w.end_object();
  w.end_object();
}

// Leaves the event's object open.
void begin_event(JsonWriter& w, Line line, std::string_view name, double begin, double seconds) {
  w.begin_object();
  w.member("ph", "X");
  w.member("name", name);
  w.member("pid", 1);
  w.member("tid", static_cast<int>(line));
  w.member("ts", begin * 1e6);
  w.member("dur", seconds * 1e6);
}

void write_operation(JsonWriter& w, const Trace::Entry& e, double origin) {
  const double flops = flops_of(e.record->op), bytes = bytes_of(e.record->op);
  begin_event(w, operations, name_of(e.record->op), e.begin - origin, e.seconds);
  w.key("args");
  w.begin_object();
  w.member("scope", e.record->label);
  w.member("segment", e.segment ? e.segment->name : std::string());
  w.member("program", e.program->name);
  w.member("flops", flops);
  w.member("bytes", bytes);
  if (e.seconds > 0) w.member("gflop_per_second", flops / e.seconds * 1e-9);
  if (e.seconds > 0) w.member("gbyte_per_second", bytes / e.seconds * 1e-9);
  w.end_object();
  w.end_object();
}

}  // namespace

std::vector<Trace::Total> Trace::totals() const {
  std::map<std::string_view, Total> by_name;
  for (const Entry& e : entries) {
    Total& t = by_name[name_of(e.record->op)];
    t.op = name_of(e.record->op);
    t.calls += 1;
    t.seconds += e.seconds;
    t.flops += flops_of(e.record->op);
    t.bytes += bytes_of(e.record->op);
  }
  std::vector<Total> sorted;
  for (const auto& [name, total] : by_name) sorted.push_back(total);
  std::sort(sorted.begin(), sorted.end(), [](const Total& a, const Total& b) { return a.seconds > b.seconds; });
  return sorted;
}

std::string Trace::to_json() const {
  double origin = std::numeric_limits<double>::infinity();
  for (const Entry& e : entries) origin = std::min(origin, e.begin);
  for (const Span& s : spans) origin = std::min(origin, s.begin);
  JsonWriter w;
  w.begin_object();
  w.member("displayTimeUnit", "ms");
  w.key("traceEvents");
  w.begin_array();
  name_line(w, host, "host");
  name_line(w, segments, "segments");
  name_line(w, operations, "operations");
  for (const Span& s : spans) {
    begin_event(w, host, s.name, s.begin - origin, s.seconds);
    w.end_object();
  }
  for (std::size_t i = 0, end = 0; i < entries.size(); i = end) {
    // A Program that is run again begins with an operation that lies before the last one.
    for (end = i + 1; end < entries.size() && entries[end].program == entries[i].program &&
                      entries[end].segment == entries[i].segment && entries[end].record > entries[end - 1].record;)
      ++end;
    if (entries[i].segment == nullptr) continue;
    const Entry& last = entries[end - 1];
    begin_event(w, segments, entries[i].program->name + ": " + entries[i].segment->name, entries[i].begin - origin,
                last.begin + last.seconds - entries[i].begin);
    w.end_object();
  }
  for (const Entry& e : entries) write_operation(w, e, origin);
  w.end_array();
  w.end_object();
  return w.text() + "\n";
}

Status write_trace(const std::filesystem::path& file, const Trace& trace) {
  return write_file_atomically(file, trace.to_json());
}

}  // namespace stacklab
