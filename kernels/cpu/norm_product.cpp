#include "kernels/cpu/norm_product.h"

#include <algorithm>

#include "kernels/cpu/rows.h"

namespace stacklab::cpu {

void norm_product(const NormProduct& p, Gemm g, const KernelContext& context) {
  g.m = p.rows, g.n = p.n, g.k = p.d, g.bf16 = p.w.bf16;
  g.a = p.normed_x();
  g.b = Operand::plain(p.w, p.d, true);
  // Tasks of a few microseconds.
  const std::int64_t each = std::clamp<std::int64_t>((1 << 15) / p.d, 1, p.rows);
  const auto scale = [&](std::int64_t task) {
    const std::int64_t begin = task * each, end = std::min(p.rows, begin + each);
    inverse_rms(p.x + begin * p.d, end - begin, p.d, p.eps, p.scales + begin);
  };
  if (p.gain) g.before = Tasks((p.rows + each - 1) / each, scale);
  gemm(g, context);
}

NormProductScratch::NormProductScratch(Carver& space, std::int64_t rows, std::int64_t n, std::int64_t d, bool norm,
                                       bool dx, bool dgain, bool dw) {
  if (norm && (dx || dgain)) dn = space.take<float>(rows * d);
  if (norm && dgain) dgains = space.take<float>(row_cut(rows, d, n).blocks * d);
  gemm = space.take<float>(std::max(dx || dgain ? gemm_workspace(d, n) : 0, dw ? gemm_workspace(d, rows) : 0));
}

namespace {

void input_gradients(const NormProduct& p, const NormProductGrads& g, const NormProductScratch& scratch,
                     const KernelContext& context) {
  Gemm product{.m = p.rows, .n = p.d, .k = p.n, .a = g.dy, .b = Operand::plain(p.w, p.d)};
  product.c = p.gain ? scratch.dn : g.dx;
  product.ldc = p.d, product.bf16 = p.w.bf16;
  product.workspace = scratch.gemm;
  if (!p.gain) {
    if (g.add_dx) product.base = g.dx, product.ld_base = p.d;
    return gemm(product, context);
  }
  const RowCut cut = row_cut(p.rows, p.d, p.n);
  const NormBackward norm{p.d, p.x, p.scales, p.gain, g.dx, g.add_dx};
  // Each block of rows has its part of dgain.
  const auto rows_done = [&](const Block& block) {
    const std::int64_t at = cut.block_of(block.row0);
    float* dgain = g.dgain ? scratch.dgains + at * p.d : nullptr;
    if (dgain && block.row0 == cut.begin(at)) std::fill(dgain, dgain + p.d, 0.0f);
    norm_backward(norm, block, dgain);
  };
  if (gives_whole_rows(p.d, p.n)) {
    product.whole_rows = true;
    product.finished = BlockHook(rows_done);
    gemm(product, context);
  } else {
    gemm(product, context);
    context.for_each(cut.blocks, [&](std::int64_t block) {
      const std::int64_t begin = cut.begin(block);
      rows_done({scratch.dn + begin * p.d, p.d, 0, begin, cut.begin(block + 1), 0, p.d});
    });
  }
  if (!g.dgain) return;
  if (!g.add_dgain) std::fill(g.dgain, g.dgain + p.d, 0.0f);
  for (std::int64_t block = 0; block < cut.blocks; ++block)
    for (std::int64_t i = 0; i < p.d; ++i) g.dgain[i] += scratch.dgains[block * p.d + i];
}

}  // namespace

void norm_product_backward(const NormProduct& p, const NormProductGrads& g, const NormProductScratch& scratch,
                           const KernelContext& context) {
  if (g.dx || g.dgain) input_gradients(p, g, scratch, context);
  if (!g.dw) return;
  Gemm product{.m = p.n, .n = p.d, .k = p.rows, .a = g.dy_transposed, .b = p.normed_x(), .c = g.dw, .ldc = p.d};
  if (g.add_dw) product.base = g.dw, product.ld_base = p.d;
  product.bf16 = p.w.bf16;
  product.workspace = scratch.gemm;
  gemm(product, context);
}

}  // namespace stacklab::cpu
