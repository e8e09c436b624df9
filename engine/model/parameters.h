// The parameters of a model under the names that checkpoints and other programs use. Merged matrices (QKV; gate and up)
// are one buffer; their parts are row ranges of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/config/run_config.h"
#include "engine/program/builder.h"
#include "engine/program/program.h"

namespace stacklab {

enum class ParameterKind : std::uint8_t { embedding, gain, matrix };

// One buffer, as gradients and optimisers see it.
struct ParameterBuffer {
  Value value;   // what operations read
  Value master;  // what is trained, saved and loaded: the f32 original of a bf16 value if it has one, else value
  ParameterKind kind = ParameterKind::matrix;

  bool is_copy() const { return value.place.buffer != master.place.buffer; }
};

// One tensor of a checkpoint: a whole buffer or rows of one.
struct Parameter {
  std::string name;        // "blocks.3.attn.wq.weight"
  Value view;              // of the master
  std::size_t buffer = 0;  // its place in ParameterTable::buffers
  ParameterKind kind = ParameterKind::matrix;
  double init_std = 0;  // normal with this deviation around 0; a gain starts at 1
};

// What QK-clip rescales in one attention layer: views of masters. The gains are not present without QK-norm.
struct AttentionParameters {
  std::int64_t layer = 0;
  Value wq, wk;  // [Hq Dh, d], [Hk Dh, d]
  Value q_gain, k_gain;
  std::int64_t n_heads = 0, n_kv_heads = 0;
};

struct ParameterTable {
  std::vector<ParameterBuffer> buffers;
  std::vector<Parameter> parameters;
  std::vector<AttentionParameters> attention;  // in the order of layers

  std::int64_t count() const;
  // Of a gradient of the whole buffer, the part that belongs to this parameter.
  Value part_of(const Value& gradient, const Parameter& parameter) const;
};

// Deviation of initial matrices, and of those that write into the residual stream: 2 L of them keep its variance
// (Radford et al. 2019, section 2.3).
inline constexpr double init_std = 0.02;
double residual_init_std(const ModelConfig& config);

// Which parameters that are kept in bf16 have an f32 original, which is trained in their place.
struct Masters {
  bool embeddings = true, matrices = true;
};

// Declares parameters in a ProgramSet. storage: f32, f64, or bf16 for mixed precision, where matrices get an f32 master
// unless told otherwise and gains are f32.
class ParameterBuilder {
 public:
  ParameterBuilder(ProgramSet& set, DType storage, ParameterTable& table, Masters masters = {})
      : set_(set), storage_(storage), table_(table), masters_(masters) {}

  Value gain(const std::string& name, std::int64_t width);
  // multiplied: whether a product reads it too (a head); looking rows up needs no copy of lower precision.
  Value embedding(const std::string& name, std::int64_t rows, std::int64_t width, bool multiplied);
  Value matrix(const std::string& name, std::int64_t out, std::int64_t in, double std);
  struct Part {
    std::string name;
    std::int64_t rows = 0;
  };
  // One buffer whose rows are several logical matrices, one after another.
  Value merged(const std::string& name, std::int64_t in, double std, const std::vector<Part>& parts);
  // The master of the parameter that was declared under this name.
  Value master(const std::string& name) const;
  void attention(AttentionParameters a) { table_.attention.push_back(a); }

 private:
  Value declare(const std::string& name, ParameterKind kind, Shape shape, DType storage);
  void list(const std::string& name, ParameterKind kind, const Value& view, double std);

  ProgramSet& set_;
  DType storage_;
  ParameterTable& table_;
  Masters masters_;
};

// Rounds every master into the copy that operations read. Appends nothing where there are no copies.
void append_working_copies(Builder& p, const ParameterTable& table);

}  // namespace stacklab
