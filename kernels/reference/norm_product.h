// y = rmsnorm(x) gain w^T and its gradients: the body of NormMatmul, NormSwiglu and the loss head. Without gain (null)
// there is no norm.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/reference/matmul.h"
#include "kernels/reference/norm.h"
#include "kernels/tensor_view.h"

namespace stacklab::reference {

struct NormProductShape {
  std::int64_t rows = 0, n = 0, d = 0;
  double eps = 0;
  std::int64_t blocks() const { return (rows + rows_per_task - 1) / rows_per_task; }
  // Elements of scratch: forward holds the normalised rows; backward also their gradient and a partial dgain for each
  // row block.
  std::int64_t forward_scratch() const { return rows * d; }
  std::int64_t backward_scratch() const { return 2 * rows * d + blocks() * d; }
};

template <class T>
void normalise_rows(const KernelContext& context, T* out, const T* x, const T* gain, const NormProductShape& s) {
  for_row_blocks(context, s.rows, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) rmsnorm_row(out + t * s.d, x + t * s.d, gain, s.d, s.eps);
  });
}

template <class T>
void norm_product(const KernelContext& context, T* y, const T* x, const T* gain, const T* w, const NormProductShape& s,
                  T* scratch) {
  if (gain) normalise_rows(context, scratch, x, gain, s);
  matmul_nt<T>(context, y, gain ? scratch : x, w, nullptr, s.rows, s.n, s.d);
}

// Where a gradient goes: null means that it is not wanted.
template <class T>
struct GradTarget {
  T* data = nullptr;
  bool accumulate = false;
  GradTarget(T* p, bool add) : data(p), accumulate(add) {}
  explicit GradTarget(const GradView& g) : data(g.present() ? g.view.as<T>() : nullptr), accumulate(g.accumulate) {}
};

template <class T>
void norm_product_backward(const KernelContext& context, const T* dy, const T* x, const T* gain, const T* w,
                           GradTarget<T> dx, GradTarget<T> dgain, GradTarget<T> dw, const NormProductShape& s,
                           T* scratch) {
  T* normalised = scratch;
  T* dnormalised = normalised + s.rows * s.d;
  T* partial = dnormalised + s.rows * s.d;
  if (dw.data) {
    if (gain) normalise_rows(context, normalised, x, gain, s);
    matmul_tn<T>(context, dw.data, dy, gain ? normalised : x, dw.accumulate, s.rows, s.n, s.d);
  }
  if (!gain && dx.data) matmul_nn(context, dx.data, dy, w, dx.accumulate, s.rows, s.n, s.d);
  if (!gain || (!dx.data && !dgain.data)) return;
  matmul_nn(context, dnormalised, dy, w, false, s.rows, s.n, s.d);
  // Without dx the rows of `normalised` take what nobody wants.
  T* dx_rows = dx.data ? dx.data : normalised;
  context.for_each(s.blocks(), [&](std::int64_t block) {
    const std::int64_t begin = block * rows_per_task, end = std::min(s.rows, begin + rows_per_task);
    if (!dx.data || !dx.accumulate) std::fill(dx_rows + begin * s.d, dx_rows + end * s.d, T(0));
    std::fill(partial + block * s.d, partial + (block + 1) * s.d, T(0));
    for (std::int64_t t = begin; t < end; ++t)
      rmsnorm_row_backward(dx_rows + t * s.d, partial + block * s.d, dnormalised + t * s.d, x + t * s.d, gain, s.d,
                           s.eps);
  });
  if (!dgain.data) return;
  if (!dgain.accumulate) std::fill(dgain.data, dgain.data + s.d, T(0));
  for (std::int64_t block = 0; block < s.blocks(); ++block) axpy(dgain.data, T(1), partial + block * s.d, s.d);
}

}  // namespace stacklab::reference
