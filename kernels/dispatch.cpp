// The one place that knows which backends exist.
#include "kernels/backend.h"
#include "kernels/cpu/cpu.h"
#include "kernels/reference/backend.h"

namespace stacklab {
namespace {

class ReferenceBackend final : public Backend {
 public:
  std::string_view name() const override { return "reference"; }
  bool supports(DType real) const override { return real == DType::f32 || real == DType::f64; }
  Needs needs(const Op& operation) const override { return reference::needs_of(operation); }
  void run(const Op& operation, const KernelContext& context) const override { reference::run_on(operation, context); }
};

class CpuBackend final : public Backend {
 public:
  std::string_view name() const override { return "cpu"; }
  bool supports(DType real) const override { return real == DType::f32; }
  Needs needs(const Op& operation) const override { return cpu::needs_of(operation); }
  void run(const Op& operation, const KernelContext& context) const override { cpu::run_on(operation, context); }
};

const CpuBackend cpu_backend;
const ReferenceBackend reference_backend;

// Best first.
const std::vector<const Backend*>& backends() {
  static const std::vector<const Backend*> all = cpu::available()
                                                     ? std::vector<const Backend*>{&cpu_backend, &reference_backend}
                                                     : std::vector<const Backend*>{&reference_backend};
  return all;
}

}  // namespace

const Backend* find_backend(std::string_view name) {
  if (name == "auto") return backends().front();
  for (const Backend* b : backends())
    if (b->name() == name) return b;
  return nullptr;
}

const Backend* find_backend(std::string_view name, DType real) {
  for (const Backend* b : backends())
    if ((name == "auto" || b->name() == name) && b->supports(real)) return b;
  return nullptr;
}

std::vector<std::string_view> backend_names() {
  std::vector<std::string_view> names;
  for (const Backend* b : backends()) names.push_back(b->name());
  return names;
}

}  // namespace stacklab
