// Rows of a table by token id, and their gradients back.
#include <algorithm>

#include "kernels/reference/matmul.h"
#include "kernels/reference/reference.h"

namespace stacklab::reference {

template <class T>
void run(const op::Embedding& o, const KernelContext& context) {
  const std::int64_t d = o.table.cols();
  for_row_blocks(context, o.x.rows(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      const T* row = o.table.as<T>() + std::int64_t{o.ids.as<std::int32_t>()[t]} * d;
      std::copy(row, row + d, o.x.as<T>() + t * d);
    }
  });
}

template <class T>
void run(const op::EmbeddingBackward& o, const KernelContext& context) {
  if (!o.dtable.present()) return;
  const std::int64_t d = o.dx.cols();
  const std::int32_t* ids = o.ids.as<std::int32_t>();
  // A task owns some rows of the table and looks through all tokens for them, so that each row sums in the order of
  // tokens.
  for_row_blocks(context, o.dtable.view.rows(), [&](std::int64_t begin, std::int64_t end) {
    T* table = o.dtable.view.as<T>();
    if (!o.dtable.accumulate) std::fill(table + begin * d, table + end * d, T(0));
    for (std::int64_t t = 0; t < o.dx.rows(); ++t)
      if (ids[t] >= begin && ids[t] < end) axpy(table + ids[t] * d, T(1), o.dx.as<T>() + t * d, d);
  });
}

#define INSTANTIATE(OP)                                      \
  template void run<float>(const OP&, const KernelContext&); \
  template void run<double>(const OP&, const KernelContext&)
INSTANTIATE(op::Embedding);
INSTANTIATE(op::EmbeddingBackward);
#undef INSTANTIATE

}  // namespace stacklab::reference
