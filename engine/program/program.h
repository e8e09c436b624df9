// A step as a list of operations over named buffers. Built once from the config; nothing is executed while building.
// Memory, FLOPs, the trace and the checker's proof are all read off this list.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/ops.h"

namespace stacklab {

// A label for reports: what a buffer is for.
enum class BufferClass : std::uint8_t {
  parameter,
  gradient,
  optimiser,
  activation,
  workspace,
  cache,
  input,
  output,
  scalar
};
inline constexpr int buffer_class_count = 9;
std::string_view to_string(BufferClass c);

// persistent: lives as long as its ProgramSet. step: lives from its first to its last use in one Program, and shares
// space with others.
enum class Storage : std::uint8_t { persistent, step };

// While building, a value is a view that has a place in a buffer and no address.
using Value = TensorView;

struct Buffer {
  std::string name;
  BufferClass cls = BufferClass::activation;
  Storage storage = Storage::step;
  DType dtype = DType::none;
  Shape shape;
  int program = -1;    // of a step buffer
  int first_use = -1;  // operations of that Program; an input lives from 0, an output to the end
  int last_use = -1;

  std::int64_t bytes() const { return shape.size() * size_of(dtype); }
};

struct OpRecord {
  Op op;
  std::string label;  // where in the model: "blocks.3.attn"
};

// Host code may read outputs and write inputs between the segments of a Program; lifetimes cross the cuts.
struct Segment {
  std::string name;
  int begin = 0;
  int end = 0;  // operations begin .. end-1
};

struct Program {
  std::string name;
  std::vector<OpRecord> ops;
  std::vector<Segment> segments;

  double flops() const;
};

// The Programs of a run. Their persistent buffers share one arena; their step buffers another, as large as the largest
// needs.
class ProgramSet {
 public:
  // A buffer that outlives every Program: parameters, optimiser state, accumulated gradients, caches.
  Value persistent(std::string name, BufferClass cls, DType dtype, Shape shape);

  const std::vector<Buffer>& buffers() const { return buffers_; }
  const std::vector<Program>& programs() const { return programs_; }
  const Program& program(int index) const { return programs_[static_cast<std::size_t>(index)]; }
  int find(std::string_view program_name) const;  // -1: there is none

 private:
  friend class Builder;
  Value add_buffer(Buffer buffer);

  std::vector<Buffer> buffers_;
  std::vector<Program> programs_;
};

}  // namespace stacklab
