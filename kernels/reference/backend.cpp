#include "kernels/reference/backend.h"

#include <algorithm>
#include <variant>

#include "kernels/bf16.h"
#include "kernels/reference/reference.h"

namespace stacklab::reference {
namespace {

template <class T>
concept HasWorkspace = requires(T& o) {
  o.workspace;
};

constexpr std::int64_t alignment = 64;
constexpr std::int64_t aligned(std::int64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

// The same operation with f32 operands instead of bf16 ones, which lie one after another from `space` on. Returns the
// bytes that they take. f(narrow, wide, access) is called for each.
template <class F>
std::int64_t widen(Op& operation, std::byte* space, F&& f) {
  std::int64_t used = 0;
  for_each_operand(operation, [&](std::string_view, TensorView& v, Access a) {
    if (v.dtype != DType::bf16) return;
    const TensorView narrow = v;
    v.dtype = DType::f32;
    v.data = space ? space + used : nullptr;
    used += aligned(v.bytes());
    f(narrow, v, a);
  });
  return used;
}

template <class From, class To>
void convert(const TensorView& from, const TensorView& to, const KernelContext& context) {
  constexpr std::int64_t block = 1 << 14;
  context.for_each((from.size() + block - 1) / block, [&](std::int64_t task) {
    for (std::int64_t i = task * block; i < std::min(from.size(), (task + 1) * block); ++i)
      to.as<To>()[i] = static_cast<To>(from.as<From>()[i]);
  });
}

// The type that an operation computes in: that of its first real operand.
DType compute_type(const Op& operation) {
  DType found = DType::none;
  for_each_operand(operation, [&](std::string_view, const TensorView& v, Access) {
    if (found == DType::none && (v.dtype == DType::f32 || v.dtype == DType::f64)) found = v.dtype;
  });
  return found;
}

void run_plain(const Op& operation, const KernelContext& context) {
  const bool in_double = compute_type(operation) == DType::f64;
  std::visit(
      [&](const auto& o) {
        if (in_double)
          run<double>(o, context);
        else
          run<float>(o, context);
      },
      operation);
}

// Rounds what it keeps in bf16 in its own way.
bool keeps_storage(const Op& operation) { return std::holds_alternative<op::AdamWCompact>(operation); }
bool is_cast(const Op& operation) { return std::holds_alternative<op::Cast>(operation); }

}  // namespace

// workspace: the widened operands, then the operation's own
Needs needs_of(const Op& operation) {
  if (is_cast(operation) || keeps_storage(operation)) return {};
  Op wide = operation;
  const std::int64_t extra = widen(wide, nullptr, [](const TensorView&, const TensorView&, Access) {});
  Needs n = std::visit([](const auto& o) { return needs(o); }, wide);
  n.workspace += extra;
  return n;
}

void run_on(const Op& operation, const KernelContext& context) {
  if (keeps_storage(operation)) return run_plain(operation, context);
  if (is_cast(operation)) {
    const auto& [from, to] = std::get<op::Cast>(operation);
    if (from.dtype == to.dtype)
      std::copy(from.data, from.data + from.bytes(), to.data);
    else if (to.dtype == DType::bf16)
      convert<float, BFloat16>(from, to, context);
    else
      convert<BFloat16, float>(from, to, context);
    return;
  }
  Op wide = operation;
  std::byte* space = std::visit(
      [](auto& o) -> std::byte* {
        if constexpr (HasWorkspace<decltype(o)>) return o.workspace.data;
        return nullptr;
      },
      wide);
  const std::int64_t used = widen(wide, space, [&](const TensorView& narrow, const TensorView& v, Access a) {
    if (reads(a)) convert<BFloat16, float>(narrow, v, context);
  });
  std::visit(
      [&](auto& o) {
        if constexpr (HasWorkspace<decltype(o)>)
          if (used > 0) o.workspace.data += used, o.workspace.shape.dim[0] -= used;
      },
      wide);
  run_plain(wide, context);
  Op again = operation;
  widen(again, space, [&](const TensorView& narrow, const TensorView& v, Access a) {
    if (writes(a) && a != Access::scratch) convert<float, BFloat16>(v, narrow, context);
  });
}

}  // namespace stacklab::reference
