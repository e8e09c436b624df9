#include "kernels/ops.h"

namespace stacklab {
namespace {

template <class T>
concept HasAliases = requires {
  T::may_alias(std::string_view{}, std::string_view{});
};

}  // namespace

std::string_view name_of(const Op& operation) {
  return std::visit([](const auto& o) { return o.name; }, operation);
}

const char* check(const Op& operation) {
  return std::visit([](const auto& o) { return o.check(); }, operation);
}

double flops_of(const Op& operation) {
  return std::visit([](const auto& o) { return o.flops(); }, operation);
}

double bytes_of(const Op& operation) {
  double bytes = 0;
  for_each_operand(operation, [&](std::string_view, const TensorView& v, Access a) {
    if (a == Access::scratch) return;
    bytes += static_cast<double>(v.bytes()) * ((reads(a) ? 1 : 0) + (writes(a) ? 1 : 0));
  });
  return bytes;
}

bool may_alias(const Op& operation, std::string_view written, std::string_view other) {
  return std::visit(
      [&](const auto& o) {
        using T = std::remove_cvref_t<decltype(o)>;
        if constexpr (HasAliases<T>)
          return T::may_alias(written, other);
        else
          return false;
      },
      operation);
}

}  // namespace stacklab
