#include "engine/model/parameters.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace stacklab {

std::int64_t ParameterTable::count() const {
  std::int64_t sum = 0;
  for (const ParameterBuffer& b : buffers) sum += b.value.size();
  return sum;
}

Value ParameterTable::part_of(const Value& gradient, const Parameter& parameter) const {
  Value part = gradient;
  part.shape = parameter.view.shape;
  part.place.offset += parameter.view.place.offset;
  return part;
}

double residual_init_std(const ModelConfig& config) {
  return init_std / std::sqrt(2.0 * static_cast<double>(config.n_layers));
}

Value ParameterBuilder::declare(const std::string& name, ParameterKind kind, Shape shape, DType storage) {
  const DType real = real_of(storage);
  ParameterBuffer b;
  b.kind = kind;
  const bool copied = storage != real && (kind == ParameterKind::embedding ? masters_.embeddings : masters_.matrices);
  b.master = set_.persistent(copied ? name + ".master" : name, BufferClass::parameter, copied ? real : storage, shape);
  b.value = copied ? set_.persistent(name, BufferClass::parameter, storage, shape) : b.master;
  table_.buffers.push_back(b);
  return b.value;
}

void ParameterBuilder::list(const std::string& name, ParameterKind kind, const Value& view, double std) {
  table_.parameters.push_back({name, view, table_.buffers.size() - 1, kind, std});
}

Value ParameterBuilder::gain(const std::string& name, std::int64_t width) {
  const Value v = declare(name, ParameterKind::gain, {width}, real_of(storage_));
  list(name, ParameterKind::gain, table_.buffers.back().master, 0);
  return v;
}

Value ParameterBuilder::embedding(const std::string& name, std::int64_t rows, std::int64_t width, bool multiplied) {
  const Value v = declare(name, ParameterKind::embedding, {rows, width}, multiplied ? storage_ : real_of(storage_));
  list(name, ParameterKind::embedding, table_.buffers.back().master, init_std);
  return v;
}

Value ParameterBuilder::matrix(const std::string& name, std::int64_t out, std::int64_t in, double std) {
  const Value v = declare(name, ParameterKind::matrix, {out, in}, storage_);
  list(name, ParameterKind::matrix, table_.buffers.back().master, std);
  return v;
}

Value ParameterBuilder::merged(const std::string& name, std::int64_t in, double std, const std::vector<Part>& parts) {
  std::int64_t rows = 0;
  for (const Part& part : parts) rows += part.rows;
  const Value v = declare(name, ParameterKind::matrix, {rows, in}, storage_);
  const Value master = table_.buffers.back().master;
  std::int64_t row = 0;
  for (const Part& part : parts) {
    list(part.name, ParameterKind::matrix, master.row_range(row, row + part.rows), std);
    row += part.rows;
  }
  return v;
}

Value ParameterBuilder::master(const std::string& name) const {
  const auto at = std::find_if(table_.parameters.begin(), table_.parameters.end(),
                               [&](const Parameter& p) { return p.name == name; });
  if (at == table_.parameters.end()) throw std::logic_error("no parameter is called " + name);
  return at->view;
}

void append_working_copies(Builder& p, const ParameterTable& table) {
  p.scope("working copies");
  for (const ParameterBuffer& b : table.buffers)
    if (b.is_copy()) p.cast(b.master, b.value);
}

}  // namespace stacklab
