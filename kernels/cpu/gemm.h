// fp32 matrix products of the CPU backend: C = base + A B with any transposition, elements of A and B transformed while
// they are packed, and a hook on finished blocks of C.
//
// Sums run over fixed blocks of K, each in order, blocks added in order: results depend on the instruction set alone,
// never on threads, cuts of M and N, or workspace.
#pragma once

#include <cstdint>

#include "kernels/context.h"

namespace stacklab::cpu {

// One factor: a row-major matrix, and what is done to element (r, c) of it on the way.
struct Operand {
  enum class Kind : std::uint8_t {
    plain,        // data[r, c]
    normed,       // data[r, c] * row_scale[r] * col_gain[c]
    swiglu_grad,  // gradient of [gate, up] from data = [gate, up] [rows, 2 F] and du [rows, F]
  };
  const float* data = nullptr;
  std::int64_t ld = 0;
  // A is [M, K] and B is [K, N]; transposed: A is given as [K, M], B as [N, K].
  bool transposed = false;
  Kind kind = Kind::plain;
  const float* row_scale = nullptr;
  const float* col_gain = nullptr;
  const float* du = nullptr;

  static Operand plain(const float* data, std::int64_t ld, bool transposed = false) { return {data, ld, transposed}; }
  static Operand normed(const float* data, std::int64_t ld, const float* row_scale, const float* col_gain) {
    return {data, ld, false, Kind::normed, row_scale, col_gain};
  }
  static Operand swiglu_grad(const float* gate_up, std::int64_t f, const float* du, bool transposed = false) {
    return {gate_up, 2 * f, transposed, Kind::swiglu_grad, nullptr, nullptr, du};
  }
};

// Something that is called later; refers to a callable, which must outlive it.
struct Tasks {
  std::int64_t count = 0;
  void (*fn)(const void* self, std::int64_t task) = nullptr;
  const void* self = nullptr;

  Tasks() = default;
  template <class F>
  Tasks(std::int64_t n, const F& f)
      : count(n), fn([](const void* s, std::int64_t task) { (*static_cast<const F*>(s))(task); }), self(&f) {}
};
struct BlockHook {
  void (*fn)(const void* self, std::int64_t row0, std::int64_t row1, std::int64_t col0, std::int64_t col1) = nullptr;
  const void* self = nullptr;

  BlockHook() = default;
  template <class F>
  explicit BlockHook(const F& f)
      : fn([](const void* s, std::int64_t r0, std::int64_t r1, std::int64_t c0, std::int64_t c1) {
          (*static_cast<const F*>(s))(r0, r1, c0, c1);
        }),
        self(&f) {}
};

// Kinds that exist: A plain, normed (not transposed), swiglu_grad; B plain, normed (not transposed).
struct Gemm {
  std::int64_t m = 0, n = 0, k = 0;
  Operand a = {}, b = {};
  float* c = nullptr;
  std::int64_t ldc = 0;
  // What is added to the product: null, c itself (accumulate), or another matrix (residual).
  const float* base = nullptr;
  std::int64_t ld_base = 0;
  // Columns j and n / 2 + j are finished together.
  bool paired = false;
  // Called once for each finished block of C, by the task that made it, while it is in cache. Columns begin and end at
  // multiples of column_step, or at n; where paired, of half of it, in the first half.
  BlockHook finished = {};
  // Independent work that is done while B is packed; A may depend on it, B may not.
  Tasks before = {};
  float* workspace = nullptr;  // gemm_workspace(n, k, paired) floats
  // The workspace holds this B from the last call with the same b, n, k; heeded when B was packed whole.
  bool b_is_packed = false;
};

inline constexpr std::int64_t column_step = 256;

std::int64_t gemm_workspace(std::int64_t n, std::int64_t k, bool paired = false);
void gemm(const Gemm& g, const KernelContext& context);

// context.for_each where the whole is worth waking threads for; otherwise on the calling thread.
template <class F>
void for_each_worth(const KernelContext& context, std::int64_t tasks, double nanoseconds, F&& f) {
  if (nanoseconds < 4000) {
    for (std::int64_t i = 0; i < tasks; ++i) f(i);
  } else {
    context.for_each(tasks, f);
  }
}

}  // namespace stacklab::cpu
