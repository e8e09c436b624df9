#include "engine/program/program.h"

#include <array>

namespace stacklab {

std::string_view to_string(BufferClass c) {
  constexpr std::array<std::string_view, buffer_class_count> words = {
      "parameter", "gradient", "optimiser", "activation", "workspace", "cache", "input", "output", "scalar"};
  return words[static_cast<std::size_t>(c)];
}

double Program::flops() const {
  double sum = 0;
  for (const OpRecord& record : ops) sum += flops_of(record.op);
  return sum;
}

Value ProgramSet::add_buffer(Buffer buffer) {
  Value v;
  v.dtype = buffer.dtype;
  v.shape = buffer.shape;
  v.place = {static_cast<std::int32_t>(buffers_.size()), 0};
  buffers_.push_back(std::move(buffer));
  return v;
}

Value ProgramSet::persistent(std::string name, BufferClass cls, DType dtype, Shape shape) {
  return add_buffer(
      {.name = std::move(name), .cls = cls, .storage = Storage::persistent, .dtype = dtype, .shape = shape});
}

int ProgramSet::find(std::string_view program_name) const {
  for (std::size_t i = 0; i < programs_.size(); ++i)
    if (programs_[i].name == program_name) return static_cast<int>(i);
  return -1;
}

}  // namespace stacklab
