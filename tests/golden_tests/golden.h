// What the golden tests share: a case on disk, the backend that it runs on, and the comparison.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/safetensors.h"
#include "engine/config/run_config.h"
#include "kernels/backend.h"

namespace stacklab::golden {

inline constexpr double eps32 = 1.2e-7;

// A JSON file and, for most kinds, a safetensors file of the same name.
struct Case {
  std::filesystem::path json_path;
  std::string name;  // "model/docmask"
  std::shared_ptr<const nlohmann::json> document;
  std::optional<Safetensors> tensors;

  const nlohmann::json& json() const { return *document; }
  const SafetensorsEntry& entry(const std::string& tensor) const;  // throws when it is missing
  bool has(const std::string& tensor) const { return tensors && tensors->find(tensor) != nullptr; }
  std::vector<double> reals(const std::string& tensor) const;
  std::vector<std::int32_t> ints(const std::string& tensor) const;
  Shape shape(const std::string& tensor) const;
  // The measured error of a quantity: [absolute, relative to the largest]; the group's worst where the case has none.
  std::pair<double, double> measured(const std::string& quantity, double worst_relative) const;
  // The error of the same reference under bf16 autocast; negative where it was not measured.
  double measured_bf16(const std::string& quantity) const;
};

struct Setup {
  const Backend* backend = nullptr;
  DType real = DType::f64;
  bool mixed = false;  // matrices and operands of products are stored in bf16, and real is f32
  bool in_double() const { return real == DType::f64; }
};

// Collects comparisons of one case; the one closest to (or furthest over) its tolerance is shown.
class Comparison {
 public:
  // One tolerance for all elements.
  void close(const std::string& what, const std::vector<double>& got, const std::vector<double>& oracle,
             double allowed);
  // A tolerance for each row of the last dimension, relative to the row's own largest value.
  void rows_close(const std::string& what, const std::vector<double>& got, const std::vector<double>& oracle,
                  std::int64_t width, double relative);
  void exactly(const std::string& what, const std::vector<double>& got, const std::vector<double>& oracle);
  // A comparison of nothing has not passed.
  bool passed() const { return failures_.empty() && worst_ratio_ >= 0; }
  std::string summary() const;

 private:
  void note(const std::string& what, double error, double allowed, std::size_t at, double got, double oracle);
  std::string worst_;
  double worst_ratio_ = -1;
  std::vector<std::string> failures_;
};

// The tolerance of an oracle that is stored as fp64: 1e-9 of the largest for a program in double, else 8 times what was
// measured, never less than 4 eps of the largest.
double allowed(const Setup& setup, const std::vector<double>& oracle, double measured_absolute);
double largest(const std::vector<double>& values);

// A tensor that owns its memory, of the run's real type or i32.
class Tensor {
 public:
  Tensor(DType dtype, Shape shape)
      : dtype_(dtype), shape_(shape), bytes_(static_cast<std::size_t>(shape.size() * size_of(dtype))) {}
  static Tensor real(const Setup& setup, const Case& c, const std::string& name);
  static Tensor zeros(const Setup& setup, Shape shape) { return Tensor(setup.real, shape); }
  static Tensor ints(const Case& c, const std::string& name);
  static Tensor scalar(double value);

  TensorView view();
  std::vector<double> values() const;
  void set(const std::vector<double>& values);

 private:
  DType dtype_;
  Shape shape_;
  std::vector<std::byte> bytes_;
};

// Runs one operation with garbage in its workspace.
template <class AnyOp>
void run(const Setup& setup, AnyOp operation) {
  const Needs needs = setup.backend->needs(Op(operation));
  std::vector<double> workspace(static_cast<std::size_t>(needs.workspace + 7) / 8, -7.25e33);
  if constexpr (requires { operation.workspace; })
    if (needs.workspace > 0) {
      operation.workspace.data = reinterpret_cast<std::byte*>(workspace.data());
      operation.workspace.dtype = DType::u8;
      operation.workspace.shape = Shape{needs.workspace};
    }
  const Op op = operation;
  if (const char* why = check(op)) throw std::runtime_error(std::string(name_of(op)) + ": " + why);
  setup.backend->run(op, KernelContext{});
}

// Runs a case and compares, in mixed precision only what has a bound there; throws what is wrong with the case itself.
using Runner = std::function<void(const Case&, const Setup&, Comparison&)>;

struct Kind {
  std::string prefix;  // of the file's name, within its folder: "ops/rmsnorm_"
  Runner run;          // empty: skipped
  std::string skip;    // why
  bool in_mixed_precision = false;
};
std::vector<Kind> model_kinds();
std::vector<Kind> op_kinds();
std::vector<Kind> optim_kinds();

ModelConfig model_config(const nlohmann::json& config);

// Why a model of this config cannot be built yet; empty: it can.
std::string missing_mixer(const Case& c);

// A backend with one fault of a known name, for proving that the oracles see it. Null: no such fault.
std::unique_ptr<Backend> with_fault(const Backend& backend, std::string_view fault);
std::vector<std::string> fault_names();

}  // namespace stacklab::golden
