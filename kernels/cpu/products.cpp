// NormMatmul, ProjectAdd, NormSwiglu, Logits and their gradients, on the products of gemm.h.
#include <algorithm>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/norm_product.h"
#include "kernels/cpu/rows.h"

namespace stacklab::cpu {
namespace {

bool narrow(const TensorView& v) { return v.dtype == DType::bf16; }
Kept kept_in(Carver& space, DType dtype, std::int64_t count) {
  const bool bf16 = dtype == DType::bf16;
  return {bf16 ? static_cast<void*>(space.take<BFloat16>(count)) : space.take<float>(count), bf16};
}
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

// Forward keeps 1 / rms of each row, and gate and up, or after SwigluProjectBackward their gradients.
struct SwigluSaved {
  float* scales;
  Kept pairs;
  SwigluSaved(std::int64_t rows, std::int64_t f, DType stored, Carver space)
      : scales(space.take<float>(rows)), pairs(kept_in(space, stored, rows * 2 * f)), bytes(space.bytes()) {}
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

// The gradient of u is there block by block; sums of several depth blocks want a place in f32, which in f32 becomes u.
struct SwigluProjectSpace {
  Kept u;  // null: it is given
  float *sums, *gemm;
  SwigluProjectSpace(const op::SwigluProjectBackward& o, Carver space)
      : u(o.u.present() ? Kept(nullptr, narrow(o.u)) : kept_in(space, o.u_type, o.dout.rows() * o.w.cols())),
        sums(fits_one_depth(o.w.rows()) ? nullptr
             : u.data && !u.bf16        ? static_cast<float*>(u.data)
                                        : space.take<float>(o.dout.rows() * o.w.cols())),
        gemm(space.take<float>(std::max(gemm_workspace(o.w.cols(), o.w.rows()),
                                        o.dw.present() ? gemm_workspace(o.w.cols(), o.dout.rows()) : 0))),
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

// dw of out = a w^T, where it is wanted.
void weight_gradient(const GradView& dw, const float* dout, const Stored& a, std::int64_t rows, const TensorView& w,
                     float* workspace, const KernelContext& context) {
  if (!dw.present()) return;
  const std::int64_t d = w.rows(), k = w.cols();
  Gemm g{.m = d, .n = k, .k = rows, .a = Operand::plain(dout, d, true), .b = Operand::plain(a, k)};
  g.c = target(dw), g.ldc = k;
  if (dw.accumulate) g.base = g.c, g.ld_base = k;
  g.bf16 = narrow(w);
  g.workspace = workspace;
  gemm(g, context);
}

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
  weight_gradient(o.dw, dout, Stored(o.a), rows, o.w, space.gemm, context);
}

Needs needs(const op::NormSwiglu& o) {
  return {.saved = SwigluSaved(o.u.rows(), o.u.cols(), o.u.dtype, Carver()).bytes,
          .workspace = NormSwigluSpace(o, Carver()).bytes};
}

void run(const op::NormSwiglu& o, const KernelContext& context) {
  const NormSwigluSpace space(o, Carver(o.workspace));
  const std::int64_t f = o.u.cols();
  const SwigluSaved saved(o.u.rows(), f, o.u.dtype, Carver(o.saved));
  Gemm g;
  g.ldc = 2 * f;
  g.paired = true;
  g.workspace = space.gemm;
  if (!fits_one_depth(o.x.cols())) g.c = saved.pairs.bf16 ? space.sums : static_cast<float*>(saved.pairs.data);
  const Kept u(o.u);
  const auto activate = [&](const Block& pairs) { swiglu(pairs, f, u, saved.pairs); };
  g.finished = BlockHook(activate);
  norm_product(product_of(o.x, o.gain, o.w_gate_up, o.eps, saved.scales), g, context);
}

Needs needs(const op::SwigluProjectBackward& o) { return {.workspace = SwigluProjectSpace(o, Carver()).bytes}; }

void run(const op::SwigluProjectBackward& o, const KernelContext& context) {
  const std::int64_t rows = o.dout.rows(), d = o.w.rows(), f = o.w.cols();
  const SwigluProjectSpace space(o, Carver(o.workspace));
  const SwigluSaved saved(rows, f, o.w.dtype, Carver(o.saved));
  const float* dout = o.dout.as<float>();
  Gemm du{.m = rows, .n = f, .k = d, .a = Operand::plain(dout, d), .b = Operand::plain(Stored(o.w), f)};
  du.c = space.sums, du.ldc = f;
  du.bf16 = narrow(o.w);
  du.workspace = space.gemm;
  const auto pass_on = [&](const Block& block) { swiglu_backward(block, f, saved.pairs, space.u); };
  du.finished = BlockHook(pass_on);
  gemm(du, context);
  weight_gradient(o.dw, dout, o.u.present() ? Stored(o.u) : stored(space.u), rows, o.w, space.gemm, context);
}

Needs needs(const op::NormSwigluBackward& o) {
  Carver space;
  scratch_of(o, o.w_gate_up, space);
  return {.workspace = space.bytes()};
}

void run(const op::NormSwigluBackward& o, const KernelContext& context) {
  Carver space(o.workspace);
  const NormProductScratch scratch = scratch_of(o, o.w_gate_up, space);
  const std::int64_t pair = o.w_gate_up.rows();
  const SwigluSaved saved(o.x.rows(), pair / 2, o.w_gate_up.dtype, Carver(o.saved));
  const Stored dy = stored(saved.pairs);
  norm_product_backward(product_of(o.x, o.gain, o.w_gate_up, o.eps, saved.scales),
                        grads_of(o, Operand::plain(dy, pair), Operand::plain(dy, pair, true)), scratch, context);
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
