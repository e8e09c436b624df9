// Matrix products of the CPU backend, in f32 or bf16 with sums in f32: C = base + A B with any transposition, elements
// of A and B transformed while they are packed, and a hook on finished blocks of C.
//
// Sums run over fixed blocks of K, each in order, blocks added in order: results depend on the instruction set alone,
// never on threads, cuts of M and N, or workspace.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/bf16.h"
#include "kernels/context.h"

namespace stacklab::cpu {

// Columns of C come, and block_scaled rows are scaled, in blocks of so many.
inline constexpr std::int64_t column_step = 256;

// Numbers kept in f32 or bf16.
struct Stored {
  const void* data = nullptr;
  bool bf16 = false;

  Stored() = default;
  Stored(const float* p) : data(p) {}
  Stored(const BFloat16* p) : data(p), bf16(true) {}
  explicit Stored(const TensorView& v) : data(v.data), bf16(v.dtype == DType::bf16) {}
  std::int64_t element() const { return bf16 ? 2 : 4; }
};

// One factor: a row-major matrix, and what is done to element (r, c) of it on the way.
struct Operand {
  enum class Kind : std::uint8_t {
    plain,         // data[r, c]
    normed,        // data[r, c] * row_scale[r] * col_gain[c]
    block_scaled,  // data[r, c] * row_scale[r * ld_scale + c / column_step]
  };
  Stored data = {};
  std::int64_t ld = 0;
  // A is [M, K] and B is [K, N]; transposed: A is given as [K, M], B as [N, K].
  bool transposed = false;
  Kind kind = Kind::plain;
  const float* row_scale = nullptr;
  const float* col_gain = nullptr;
  std::int64_t ld_scale = 0;

  static Operand plain(Stored data, std::int64_t ld, bool transposed = false) { return {data, ld, transposed}; }
  static Operand normed(const float* data, std::int64_t ld, const float* row_scale, const float* col_gain) {
    return {data, ld, false, Kind::normed, row_scale, col_gain};
  }
  static Operand block_scaled(const float* data, std::int64_t ld, const float* scales, std::int64_t ld_scale,
                              bool transposed = false) {
    return {data, ld, transposed, Kind::block_scaled, scales, nullptr, ld_scale};
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
// Rows row0 .. row1 and columns col0 .. col1 of C (of its first half where paired), which lie at data; the other
// column of each pair lies `pair` further.
struct Block {
  float* data = nullptr;
  std::int64_t ld = 0, pair = 0;
  std::int64_t row0 = 0, row1 = 0, col0 = 0, col1 = 0;
  float* row(std::int64_t r) const { return data + (r - row0) * ld; }
  std::int64_t cols() const { return col1 - col0; }
};
struct BlockHook {
  void (*fn)(const void* self, const Block& block) = nullptr;
  const void* self = nullptr;

  BlockHook() = default;
  template <class F>
  explicit BlockHook(const F& f)
      : fn([](const void* s, const Block& block) { (*static_cast<const F*>(s))(block); }), self(&f) {}
};

// Kinds that exist: A plain, normed (not transposed), block_scaled; B plain, normed (not transposed).
// bf16 is read in plain.
struct Gemm {
  std::int64_t m = 0, n = 0, k = 0;
  Operand a = {}, b = {};
  // Null where fits_one_depth(k) and nobody wants C itself: then it exists in `finished` alone.
  float* c = nullptr;
  std::int64_t ldc = 0;
  // What is added to the product: null, c itself (accumulate), or another matrix (residual).
  const float* base = nullptr;
  std::int64_t ld_base = 0;
  // Columns j and n / 2 + j are finished together.
  bool paired = false;
  // Called once for each finished block of C, by the task that made it, while it is in cache. Columns begin at
  // multiples of column_step and are at most so many; where paired, half of it, in the first half.
  BlockHook finished = {};
  // finished gets all columns of C at once, rows in order within each block of the RowCut. Only where
  // gives_whole_rows(n, k) and c is given.
  bool whole_rows = false;
  // Only what lies on or below the diagonal of C is made (m is n), which halves the work where C is symmetric: what
  // lies above holds anything. Neither paired nor whole_rows.
  bool lower = false;
  // Independent work that is done while B is packed; A may depend on it, B may not.
  Tasks before = {};
  // Both operands are bf16, as in mixed precision: where multiplies_bf16(), what is not kept in bf16 is rounded to it
  // while it is packed; elsewhere it stays f32. A transposed B must be kept in bf16.
  bool bf16 = false;
  float* workspace = nullptr;  // gemm_workspace(n, k, paired) floats
  // The workspace holds this B from the last call with the same b, n, k; heeded when B was packed whole.
  bool b_is_packed = false;
};

// The blocks of rows of C that a task makes, by shapes alone.
struct RowCut {
  std::int64_t m = 0, blocks = 1;
  std::int64_t step = 1;  // blocks begin at multiples of it
  std::int64_t begin(std::int64_t block) const {
    return block == blocks ? m : (m * block / blocks + step / 2) / step * step;
  }
  std::int64_t block_of(std::int64_t row) const {
    std::int64_t block = std::min(blocks - 1, (row + step) * blocks / m);
    while (begin(block) > row) --block;
    return block;
  }
};
RowCut row_cut(std::int64_t m, std::int64_t n, std::int64_t k, bool paired = false);
bool gives_whole_rows(std::int64_t n, std::int64_t k);
bool fits_one_depth(std::int64_t k);

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
