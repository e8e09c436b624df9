// Tensors that own their memory, and an operation run on them: what the tests of kernels share.
#pragma once

#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/backend.h"

namespace stacklab::test {

template <class T>
struct Tensor {
  Shape shape;
  std::vector<T> data;

  Tensor() = default;
  explicit Tensor(Shape s, T value = T(0)) : shape(s), data(static_cast<std::size_t>(s.size()), value) {}
  Tensor(Shape s, std::vector<T> values) : shape(s), data(std::move(values)) {}

  TensorView view() const {
    TensorView v;
    v.data = reinterpret_cast<std::byte*>(const_cast<T*>(data.data()));
    v.dtype = dtype_of<T>;
    v.shape = shape;
    return v;
  }
};

template <class T>
Tensor<T> random_tensor(Shape shape, std::uint32_t seed, double deviation = 1) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal(0, deviation);
  Tensor<T> t(shape);
  for (T& x : t.data) x = static_cast<T>(normal(engine));
  return t;
}

// Runs one operation on a backend; the workspace starts as garbage, between guards, and `saved` is kept by the caller.
template <class AnyOp>
void run_op(const Backend& backend, AnyOp operation, std::vector<std::uint8_t>* saved = nullptr,
            ParallelFor* parallel = nullptr) {
  const Needs needs = backend.needs(Op(operation));
  constexpr double garbage = -7.25e33;
  constexpr std::size_t guard = 64;
  const std::size_t words = static_cast<std::size_t>(needs.workspace + 7) / 8;
  std::vector<double> workspace(words + 2 * guard, garbage);
  const auto bytes = [](void* data, std::int64_t size) {
    TensorView v;
    v.data = static_cast<std::byte*>(data);
    v.dtype = DType::u8;
    v.shape = Shape{size};
    return v;
  };
  if constexpr (requires { operation.workspace; })
    if (needs.workspace > 0) operation.workspace = bytes(workspace.data() + guard, needs.workspace);
  if constexpr (requires { operation.saved; })
    if (saved) {
      if (needs.saved > 0) saved->resize(static_cast<std::size_t>(needs.saved));
      if (!saved->empty()) operation.saved = bytes(saved->data(), static_cast<std::int64_t>(saved->size()));
    }
  const Op op = operation;
  if (const char* why = check(op)) throw std::logic_error(std::string(name_of(op)) + ": " + why);
  KernelContext context;
  context.parallel = parallel;
  backend.run(op, context);
  for (std::size_t i = 0; i < guard; ++i)
    if (workspace[i] != garbage || workspace[guard + words + i] != garbage)
      throw std::logic_error(std::string(name_of(op)) + " wrote beyond its workspace");
}

// Runs tasks in reverse order: a kernel whose result depends on the order of its tasks is wrong.
class ReversedTasks final : public ParallelFor {
 public:
  void run(std::int64_t tasks, void (*fn)(void*, std::int64_t), void* self) override {
    for (std::int64_t i = tasks - 1; i >= 0; --i) fn(self, i);
  }
  int threads() const override { return 3; }
};

}  // namespace stacklab::test
