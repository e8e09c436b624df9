// The one place that knows which backends exist.
#include <array>
#include <variant>

#include "kernels/backend.h"
#include "kernels/reference/reference.h"

namespace stacklab {
namespace {

// The type that an operation computes in: that of its first real operand.
DType compute_type(const Op& operation) {
  DType found = DType::none;
  for_each_operand(operation, [&](std::string_view, const TensorView& v, Access) {
    if (found == DType::none && (v.dtype == DType::f32 || v.dtype == DType::f64)) found = v.dtype;
  });
  return found;
}

class ReferenceBackend final : public Backend {
 public:
  std::string_view name() const override { return "reference"; }
  bool supports(DType real) const override { return real == DType::f32 || real == DType::f64; }
  Needs needs(const Op& operation) const override {
    return std::visit([](const auto& o) { return reference::needs(o); }, operation);
  }
  void run(const Op& operation, const KernelContext& context) const override {
    const bool wide = compute_type(operation) == DType::f64;
    std::visit(
        [&](const auto& o) {
          if (wide)
            reference::run<double>(o, context);
          else
            reference::run<float>(o, context);
        },
        operation);
  }
};

const ReferenceBackend reference_backend;
const std::array<const Backend*, 1> backends = {&reference_backend};

}  // namespace

const Backend* find_backend(std::string_view name) {
  if (name == "auto") return backends.front();
  for (const Backend* b : backends)
    if (b->name() == name) return b;
  return nullptr;
}

const Backend* find_backend(std::string_view name, DType real) {
  for (const Backend* b : backends)
    if ((name == "auto" || b->name() == name) && b->supports(real)) return b;
  return nullptr;
}

std::vector<std::string_view> backend_names() {
  std::vector<std::string_view> names;
  for (const Backend* b : backends) names.push_back(b->name());
  return names;
}

}  // namespace stacklab
