// Final norm, logits, soft cap, log-sum-exp, loss and gradients, over chunks of tokens.
#include <algorithm>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/loss_rows.h"
#include "kernels/cpu/norm_product.h"

namespace stacklab::cpu {
namespace {

struct Space {
  std::int64_t rows, ld, blocks;  // of a chunk
  double (*parts)[2];
  float *scales, *logits, *block_scales, *block_sums, *target_logits, *forward;
  NormProductScratch backward;
  std::int64_t bytes;

  Space(const op::LossHead& o, Carver space)
      : rows(std::min(o.chunk, o.x.rows())),
        // Rows that are not a power of two apart share the cache better.
        ld((o.w.rows() + 15) / 16 * 16 + 16),
        blocks((o.w.rows() + column_step - 1) / column_step),
        parts(space.take<double[2]>(o.x.rows())),
        scales(space.take<float>(o.gain.present() ? rows : 0)),
        // Without gradients they pass by.
        logits(space.take<float>(o.dx.present() || !fits_one_depth(o.x.cols()) ? rows * ld : 0)),
        block_scales(space.take<float>(rows * blocks)),
        block_sums(space.take<float>(rows * blocks)),
        target_logits(space.take<float>(rows)),
        forward(space.take<float>(gemm_workspace(o.w.rows(), o.x.cols()))),
        backward(space, rows, o.w.rows(), o.x.cols(), o.gain.present(), o.dx.present(), o.dgain.present(),
                 o.dw.present()),
        bytes(space.bytes()) {}
};

}  // namespace

Needs needs(const op::LossHead& o) { return {.workspace = Space(o, Carver()).bytes}; }

void run(const op::LossHead& o, const KernelContext& context) {
  const Space space(o, Carver(o.workspace));
  const std::int64_t tokens = o.x.rows(), d = o.x.cols(), vocabulary = o.w.rows();
  for (std::int64_t begin = 0; begin < tokens; begin += o.chunk) {
    const std::int64_t count = std::min(o.chunk, tokens - begin);
    const LossRows rows{.vocabulary = vocabulary,
                        .ld = space.ld,
                        .soft_cap = o.soft_cap,
                        .z_coef = o.z_coef,
                        .gradient = o.dx.present(),
                        .targets = o.targets.as<std::int32_t>() + begin,
                        .coefficients = o.coefficients.as<float>() + begin,
                        .exponentials = space.logits,
                        .scales = space.block_scales,
                        .sums = space.block_sums,
                        .target_logits = space.target_logits};
    const NormProduct product{count,
                              vocabulary,
                              d,
                              o.eps,
                              o.x.as<float>() + begin * d,
                              o.gain.present() ? o.gain.as<float>() : nullptr,
                              Stored(o.w),
                              space.scales};
    const auto block_done = [&](const Block& block) { loss_block(rows, block); };
    Gemm logits{.c = fits_one_depth(d) ? nullptr : space.logits, .ldc = space.ld};
    logits.finished = BlockHook(block_done);
    logits.workspace = space.forward;
    norm_product(product, logits, context);

    constexpr std::int64_t rows_per_task = 8;
    for_each_worth(context, (count + rows_per_task - 1) / rows_per_task, 300.0 * static_cast<double>(count),
                   [&](std::int64_t task) {
                     loss_rows(rows, task * rows_per_task, std::min(count, (task + 1) * rows_per_task),
                               space.parts + begin);
                   });
    if (!o.dx.present()) continue;
    const auto dlogits = [&](bool transposed) {
      return Operand::block_scaled(space.logits, space.ld, space.block_scales, space.blocks, transposed);
    };
    // The first chunk assigns where that is asked for, the others add to it.
    const auto target = [](const GradView& g) { return g.present() ? g.view.as<float>() : nullptr; };
    const bool later = begin > 0;
    norm_product_backward(product,
                          {.dy = dlogits(false),
                           .dy_transposed = dlogits(true),
                           .dx = o.dx.as<float>() + begin * d,
                           .dgain = target(o.dgain),
                           .dw = target(o.dw),
                           .add_dx = false,
                           .add_dgain = later || o.dgain.accumulate,
                           .add_dw = later || o.dw.accumulate},
                          space.backward, context);
  }
  double sums[2] = {0, 0};
  for (std::int64_t t = 0; t < tokens; ++t) sums[0] += space.parts[t][0], sums[1] += space.parts[t][1];
  std::copy(sums, sums + 2, o.sums.as<double>());
}

}  // namespace stacklab::cpu
