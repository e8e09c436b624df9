// NormMatmul, ProjectAdd, NormSwiglu, Logits and their gradients, on the products of gemm.h.
#include <algorithm>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/norm_product.h"
#include "kernels/cpu/rows.h"

namespace stacklab::cpu {
namespace {

bool narrow(const TensorView& v) { return v.dtype == DType::bf16; }
float* target(const GradView& g) { return g.present() ? g.view.as<float>() : nullptr; }

// What g's product becomes: itself in f32, or rounded to bf16 once, block by block as it is finished. Lives as long as
// g.
class Result {
 public:
  // Sums of several depth blocks want a place in f32.
  static std::int64_t floats(const TensorView& to, std::int64_t k) {
    return narrow(to) && !fits_one_depth(k) ? to.size() : 0;
  }
  Result(Gemm& g, const TensorView& to, float* sums, std::int64_t k) : hook_{Kept(to), to.cols()} {
    g.ldc = to.cols();
    g.c = !narrow(to) ? to.as<float>() : fits_one_depth(k) ? nullptr : sums;
    if (narrow(to)) g.finished = BlockHook(hook_);
  }
  Result(const Result&) = delete;
  Result& operator=(const Result&) = delete;

 private:
  struct Hook {
    Kept to;
    std::int64_t ld;
    void operator()(const Block& block) const { keep_block(block, to, ld); }
  } hook_;
};

NormProduct product_of(const TensorView& x, const TensorView& gain, const TensorView& w, double eps, float* scales) {
  return {x.rows(),  w.rows(), x.cols(), eps, x.as<float>(), gain.present() ? gain.as<float>() : nullptr,
          Stored(w), scales};
}

// Gradients of NormMatmul and NormSwiglu.
template <class AnyOp>
NormProductScratch scratch_of(const AnyOp& o, const TensorView& w, Carver& space) {
  return {space, o.x.rows(), w.rows(), o.x.cols(), true, o.dx.present(), o.dgain.present(), o.dw.present()};
}
template <class AnyOp>
NormProductGrads grads_of(const AnyOp& o, const Operand& dy, const Operand& dy_transposed) {
  return {dy,           dy_transposed,   target(o.dx),       target(o.dgain),
          target(o.dw), o.dx.accumulate, o.dgain.accumulate, o.dw.accumulate};
}

struct NormMatmulSpace {
  float *sums, *gemm;
  NormMatmulSpace(const op::NormMatmul& o, Carver space)
      : sums(space.take<float>(Result::floats(o.y, o.x.cols()))),
        gemm(space.take<float>(gemm_workspace(o.w.rows(), o.x.cols()))),
        bytes(space.bytes()) {}
  std::int64_t bytes;
};

struct ProjectAddBackwardSpace {
  float *sums, *gemm;
  ProjectAddBackwardSpace(const op::ProjectAddBackward& o, Carver space)
      : sums(space.take<float>(Result::floats(o.da, o.dout.cols()))),
        gemm(space.take<float>(std::max(gemm_workspace(o.a.cols(), o.w.rows()),
                                        o.dw.present() ? gemm_workspace(o.a.cols(), o.a.rows()) : 0))),
        bytes(space.bytes()) {}
  std::int64_t bytes;
};

// Forward keeps 1 / rms of each row, and the slopes of u by gate and up, or gate and up themselves, in the type of u.
struct SwigluSaved {
  float* scales;
  Kept pairs;
  SwigluSaved(const TensorView& u, Carver space)
      : scales(space.take<float>(u.rows())),
        pairs(narrow(u) ? static_cast<void*>(space.take<BFloat16>(2 * u.size())) : space.take<float>(2 * u.size()),
              narrow(u)),
        bytes(space.bytes()) {}
  std::int64_t bytes;
};

struct NormSwigluSpace {
  float *sums, *gemm;
  NormSwigluSpace(const op::NormSwiglu& o, Carver space)
      : sums(space.take<float>(narrow(o.u) && !fits_one_depth(o.x.cols()) ? 2 * o.u.size() : 0)),
        gemm(space.take<float>(gemm_workspace(o.w_gate_up.rows(), o.x.cols(), true))),
        bytes(space.bytes()) {}
  std::int64_t bytes;
};

struct LogitsSpace {
  float *scales, *gemm;
  LogitsSpace(const op::Logits& o, Carver space)
      : scales(space.take<float>(o.gain.present() ? o.x.rows() : 0)),
        gemm(space.take<float>(gemm_workspace(o.w.rows(), o.x.cols()))),
        bytes(space.bytes()) {}
  std::int64_t bytes;
};

}  // namespace

Needs needs(const op::NormMatmul& o) {
  return {.saved = o.x.rows() * size_of(DType::f32), .workspace = NormMatmulSpace(o, Carver()).bytes};
}

void run(const op::NormMatmul& o, const KernelContext& context) {
  const NormMatmulSpace space(o, Carver(o.workspace));
  Gemm g;
  g.workspace = space.gemm;
  const Result result(g, o.y, space.sums, o.x.cols());
  norm_product(product_of(o.x, o.gain, o.w, o.eps, o.saved.as<float>()), g, context);
}

Needs needs(const op::NormMatmulBackward& o) {
  Carver space;
  scratch_of(o, o.w, space);
  return {.workspace = space.bytes()};
}

void run(const op::NormMatmulBackward& o, const KernelContext& context) {
  Carver space(o.workspace);
  const NormProductScratch scratch = scratch_of(o, o.w, space);
  const Stored dy(o.dy);
  norm_product_backward(product_of(o.x, o.gain, o.w, o.eps, o.saved.as<float>()),
                        grads_of(o, Operand::plain(dy, o.dy.cols()), Operand::plain(dy, o.dy.cols(), true)), scratch,
                        context);
}

Needs needs(const op::ProjectAdd& o) {
  return {.workspace = gemm_workspace(o.w.rows(), o.w.cols()) * size_of(DType::f32)};
}

void run(const op::ProjectAdd& o, const KernelContext& context) {
  const std::int64_t d = o.w.rows(), k = o.w.cols();
  Gemm g{.m = o.a.rows(), .n = d, .k = k};
  g.a = Operand::plain(Stored(o.a), k), g.b = Operand::plain(Stored(o.w), k, true);
  g.c = o.out.as<float>(), g.ldc = d;
  g.base = o.x.as<float>(), g.ld_base = d;
  g.bf16 = narrow(o.w);
  g.workspace = o.workspace.as<float>();
  gemm(g, context);
}

Needs needs(const op::ProjectAddBackward& o) { return {.workspace = ProjectAddBackwardSpace(o, Carver()).bytes}; }

void run(const op::ProjectAddBackward& o, const KernelContext& context) {
  const std::int64_t rows = o.a.rows(), d = o.w.rows(), k = o.w.cols();
  const ProjectAddBackwardSpace space(o, Carver(o.workspace));
  const float* dout = o.dout.as<float>();
  Gemm da{.m = rows, .n = k, .k = d, .a = Operand::plain(dout, d), .b = Operand::plain(Stored(o.w), k)};
  da.bf16 = narrow(o.w);
  da.workspace = space.gemm;
  const Result result(da, o.da, space.sums, d);
  gemm(da, context);
  if (!o.dw.present()) return;
  Gemm dw{.m = d, .n = k, .k = rows, .a = Operand::plain(dout, d, true), .b = Operand::plain(Stored(o.a), k)};
  dw.c = target(o.dw), dw.ldc = k;
  if (o.dw.accumulate) dw.base = dw.c, dw.ld_base = k;
  dw.bf16 = narrow(o.w);
  dw.workspace = space.gemm;
  gemm(dw, context);
}

Needs needs(const op::NormSwiglu& o) {
  return {.saved = SwigluSaved(o.u, Carver()).bytes, .workspace = NormSwigluSpace(o, Carver()).bytes};
}

void run(const op::NormSwiglu& o, const KernelContext& context) {
  const NormSwigluSpace space(o, Carver(o.workspace));
  const SwigluSaved saved(o.u, Carver(o.saved));
  const std::int64_t f = o.u.cols();
  Gemm g;
  g.ldc = 2 * f;
  g.paired = true;
  g.workspace = space.gemm;
  // Gate and up pass by; sums of several depth blocks want a place in f32.
  if (!fits_one_depth(o.x.cols())) g.c = saved.pairs.bf16 ? space.sums : static_cast<float*>(saved.pairs.data);
  const Kept u(o.u);
  const auto activate = [&](const Block& pairs) {
    o.keep_pairs ? keep_swiglu(pairs, f, u, saved.pairs) : finish_swiglu(pairs, f, u, saved.pairs);
  };
  g.finished = BlockHook(activate);
  norm_product(product_of(o.x, o.gain, o.w_gate_up, o.eps, saved.scales), g, context);
}

void run(const op::SwigluRecompute& o, const KernelContext& context) {
  const SwigluSaved saved(o.u, Carver(o.saved));
  const std::int64_t f = o.u.cols(), rows = std::max<std::int64_t>(1, 8192 / f);
  for_each_worth(context, (o.u.rows() + rows - 1) / rows, 1.5 * static_cast<double>(o.u.size()),
                 [&](std::int64_t block) {
                   recompute_swiglu(saved.pairs, f, block * rows, std::min((block + 1) * rows, o.u.rows()), Kept(o.u));
                 });
}

Needs needs(const op::NormSwigluBackward& o) {
  Carver space;
  scratch_of(o, o.w_gate_up, space);
  return {.workspace = space.bytes()};
}

void run(const op::NormSwigluBackward& o, const KernelContext& context) {
  Carver space(o.workspace);
  const NormProductScratch scratch = scratch_of(o, o.w_gate_up, space);
  const SwigluSaved saved(o.du, Carver(o.saved));
  Stored slopes(static_cast<const float*>(saved.pairs.data));
  slopes.bf16 = saved.pairs.bf16;
  const auto dy = [&](bool transposed) { return Operand::swiglu_grad(slopes, o.du.cols(), Stored(o.du), transposed); };
  norm_product_backward(product_of(o.x, o.gain, o.w_gate_up, o.eps, saved.scales), grads_of(o, dy(false), dy(true)),
                        scratch, context);
}

Needs needs(const op::Logits& o) { return {.workspace = LogitsSpace(o, Carver()).bytes}; }

void run(const op::Logits& o, const KernelContext& context) {
  const LogitsSpace space(o, Carver(o.workspace));
  Gemm g{.c = o.logits.as<float>(), .ldc = o.logits.cols()};
  g.workspace = space.gemm;
  const auto cap = [&](const Block& block) { soft_cap_block(block, o.soft_cap); };
  if (o.soft_cap != 0) g.finished = BlockHook(cap);
  norm_product(product_of(o.x, o.gain, o.w, o.eps, space.scales), g, context);
}

}  // namespace stacklab::cpu
