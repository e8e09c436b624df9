// A backend runs operations on one kind of device. Device choice happens in dispatch.cpp and nowhere else.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/context.h"
#include "kernels/ops.h"

namespace stacklab {

// What a backend wants beside an operation's operands. Depends on shapes and attributes alone, so that a Program can be
// planned for a device that is not there.
struct Needs {
  std::int64_t saved = 0;      // bytes kept from forward for the matching backward
  std::int64_t workspace = 0;  // bytes
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  // Whether it computes in this type (f32, f64).
  virtual bool supports(DType real) const = 0;
  virtual Needs needs(const Op& operation) const = 0;
  // The operation's operands are bound and have passed check().
  virtual void run(const Op& operation, const KernelContext& context) const = 0;
};

// The backend called so ("reference"), or null. "auto" is the best one of this build.
const Backend* find_backend(std::string_view name);
// The same for a run that computes in this type: "auto" is the best one that does; null where the one called so does
// not.
const Backend* find_backend(std::string_view name, DType real);
// What this build has, best first.
std::vector<std::string_view> backend_names();

}  // namespace stacklab
