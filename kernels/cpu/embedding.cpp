// Rows of a table by token id, and their gradients back.
#include <cstring>

#include "kernels/bf16.h"
#include "kernels/cpu/blocks.h"
#include "kernels/cpu/cpu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/embedding.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stacklab::cpu::HWY_NAMESPACE {
namespace {

void add_row(const float* from, float* to, std::int64_t n) {
  for_vectors(n, [&](auto d, std::int64_t i)
                     HWY_ATTR { hn::StoreU(hn::Add(hn::LoadU(d, to + i), hn::LoadU(d, from + i)), d, to + i); });
}

}  // namespace
}  // namespace stacklab::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stacklab::cpu {

HWY_EXPORT(widen);
HWY_EXPORT(add_row);

void run(const op::Embedding& o, const KernelContext& context) {
  constexpr std::int64_t rows_each = 16;
  const std::int64_t rows = o.x.rows(), d = o.x.cols();
  const std::int32_t* ids = o.ids.as<std::int32_t>();
  for_each_worth(context, (rows + rows_each - 1) / rows_each, 0.3 * static_cast<double>(rows * d),
                 [&](std::int64_t task) {
                   for (std::int64_t t = task * rows_each; t < std::min(rows, (task + 1) * rows_each); ++t) {
                     float* x = o.x.as<float>() + t * d;
                     if (o.table.dtype == DType::bf16)
                       HWY_DYNAMIC_DISPATCH(widen)(o.table.as<std::uint16_t>() + ids[t] * d, x, d);
                     else
                       std::memcpy(x, o.table.as<float>() + ids[t] * d, static_cast<std::size_t>(d) * sizeof(float));
                   }
                 });
}

void run(const op::EmbeddingBackward& o, const KernelContext& context) {
  if (!o.dtable.present()) return;
  const std::int64_t rows = o.dx.rows(), d = o.dx.cols();
  const std::int32_t* ids = o.ids.as<std::int32_t>();
  float* table = o.dtable.view.as<float>();
  if (!o.dtable.accumulate)
    for_blocks(context, o.dtable.view.size(), 0.2, [&](std::int64_t begin, std::int64_t end) {
      std::memset(table + begin, 0, static_cast<std::size_t>(end - begin) * sizeof(float));
    });
  // A task owns some columns of every fourth row of the table and looks through all tokens for them: each element sums
  // in the order of tokens, and frequent ids are shared out.
  constexpr std::int64_t columns_each = 64, classes = 4;
  const std::int64_t slices = (d + columns_each - 1) / columns_each;
  for_each_worth(context, slices * classes, 0.3 * static_cast<double>(rows * d), [&](std::int64_t task) {
    const std::int64_t begin = task / classes * columns_each, width = std::min(columns_each, d - begin);
    for (std::int64_t t = 0; t < rows; ++t)
      if (ids[t] % classes == task % classes)
        HWY_DYNAMIC_DISPATCH(add_row)(o.dx.as<float>() + t * d + begin, table + ids[t] * d + begin, width);
  });
}

}  // namespace stacklab::cpu
#endif
