// Norm and matrix products: NormMatmul, ProjectAdd, NormSwiglu, Logits.
#include "kernels/bf16.h"
#include "kernels/reference/norm_product.h"
#include "kernels/reference/reference.h"
#include "kernels/reference/softcap.h"
#include "kernels/reference/swiglu.h"

namespace stacklab::reference {
namespace {

NormProductShape shape_of(const TensorView& x, const TensorView& w, double eps) {
  return {x.rows(), w.rows(), x.cols(), eps};
}

}  // namespace

Needs needs(const op::NormMatmul& o) {
  return {.workspace = shape_of(o.x, o.w, o.eps).forward_scratch() * size_of(o.x.dtype)};
}

template <class T>
void run(const op::NormMatmul& o, const KernelContext& context) {
  norm_product(context, o.y.as<T>(), o.x.as<T>(), o.gain.as<T>(), o.w.as<T>(), shape_of(o.x, o.w, o.eps),
               o.workspace.as<T>());
}

Needs needs(const op::NormMatmulBackward& o) {
  return {.workspace = shape_of(o.x, o.w, o.eps).backward_scratch() * size_of(o.x.dtype)};
}

template <class T>
void run(const op::NormMatmulBackward& o, const KernelContext& context) {
  norm_product_backward(context, o.dy.as<T>(), o.x.as<T>(), o.gain.as<T>(), o.w.as<T>(), GradTarget<T>(o.dx),
                        GradTarget<T>(o.dgain), GradTarget<T>(o.dw), shape_of(o.x, o.w, o.eps), o.workspace.as<T>());
}

template <class T>
void run(const op::ProjectAdd& o, const KernelContext& context) {
  matmul_nt(context, o.out.as<T>(), o.a.as<T>(), o.w.as<T>(), o.x.as<T>(), o.a.rows(), o.w.rows(), o.w.cols());
}

template <class T>
void run(const op::ProjectAddBackward& o, const KernelContext& context) {
  matmul_nn(context, o.da.as<T>(), o.dout.as<T>(), o.w.as<T>(), false, o.a.rows(), o.w.rows(), o.w.cols());
  if (o.dw.present())
    matmul_tn(context, o.dw.view.as<T>(), o.dout.as<T>(), o.a.as<T>(), o.dw.accumulate, o.a.rows(), o.w.rows(),
              o.w.cols());
}

// saved: gate and up, [T, 2 F]
Needs needs(const op::NormSwiglu& o) {
  return {.saved = o.x.rows() * o.w_gate_up.rows() * size_of(o.x.dtype),
          .workspace = shape_of(o.x, o.w_gate_up, o.eps).forward_scratch() * size_of(o.x.dtype)};
}

template <class T>
void run(const op::NormSwiglu& o, const KernelContext& context) {
  T* gate_up = o.saved.as<T>();
  norm_product(context, gate_up, o.x.as<T>(), o.gain.as<T>(), o.w_gate_up.as<T>(), shape_of(o.x, o.w_gate_up, o.eps),
               o.workspace.as<T>());
  const std::int64_t f = o.u.cols();
  for_row_blocks(context, o.x.rows(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      const T* gate = gate_up + t * 2 * f;
      const T* up = gate + f;
      T* u = o.u.as<T>() + t * f;
      for (std::int64_t i = 0; i < f; ++i) u[i] = swiglu(gate[i], up[i]);
    }
  });
}

// workspace: the gradient of u [T, F], then u
Needs needs(const op::SwigluProjectBackward& o) {
  return {.workspace = (o.u.present() ? 1 : 2) * o.dout.rows() * o.w.cols() * size_of(o.dout.dtype)};
}

template <class T>
void run(const op::SwigluProjectBackward& o, const KernelContext& context) {
  const std::int64_t rows = o.dout.rows(), d = o.w.rows(), f = o.w.cols();
  T* du = o.workspace.as<T>();
  matmul_nn(context, du, o.dout.as<T>(), o.w.as<T>(), false, rows, d, f);
  T* again = o.u.present() ? nullptr : du + rows * f;
  for_row_blocks(context, rows, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      T* gates = o.saved.as<T>() + t * 2 * f;
      T* ups = gates + f;
      for (std::int64_t i = 0; i < f; ++i) {
        const T gate = gates[i], up = ups[i];
        if (again) {
          const T u = swiglu(gate, up);
          again[t * f + i] =
              o.u_type == DType::bf16 ? static_cast<T>(static_cast<float>(BFloat16(static_cast<float>(u)))) : u;
        }
        swiglu_backward(du[t * f + i], gate, up, gates[i], ups[i]);
      }
    }
  });
  if (o.dw.present())
    matmul_tn(context, o.dw.view.as<T>(), o.dout.as<T>(), again ? static_cast<const T*>(again) : o.u.as<T>(),
              o.dw.accumulate, rows, d, f);
}

Needs needs(const op::NormSwigluBackward& o) {
  return {.workspace = shape_of(o.x, o.w_gate_up, o.eps).backward_scratch() * size_of(o.x.dtype)};
}

template <class T>
void run(const op::NormSwigluBackward& o, const KernelContext& context) {
  norm_product_backward(context, static_cast<const T*>(o.saved.as<T>()), o.x.as<T>(), o.gain.as<T>(),
                        o.w_gate_up.as<T>(), GradTarget<T>(o.dx), GradTarget<T>(o.dgain), GradTarget<T>(o.dw),
                        shape_of(o.x, o.w_gate_up, o.eps), o.workspace.as<T>());
}

Needs needs(const op::Logits& o) {
  return {.workspace = shape_of(o.x, o.w, o.eps).forward_scratch() * size_of(o.x.dtype)};
}

template <class T>
void run(const op::Logits& o, const KernelContext& context) {
  const auto s = shape_of(o.x, o.w, o.eps);
  norm_product(context, o.logits.as<T>(), o.x.as<T>(), o.gain.as<T>(), o.w.as<T>(), s, o.workspace.as<T>());
  if (o.soft_cap == 0) return;
  T* logits = o.logits.as<T>();
  for_row_blocks(context, s.rows, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin * s.n; i < end * s.n; ++i) logits[i] = soft_capped(logits[i], o.soft_cap);
  });
}

#define INSTANTIATE(OP)                                      \
  template void run<float>(const OP&, const KernelContext&); \
  template void run<double>(const OP&, const KernelContext&)
INSTANTIATE(op::NormMatmul);
INSTANTIATE(op::NormMatmulBackward);
INSTANTIATE(op::ProjectAdd);
INSTANTIATE(op::ProjectAddBackward);
INSTANTIATE(op::NormSwiglu);
INSTANTIATE(op::SwigluProjectBackward);
INSTANTIATE(op::NormSwigluBackward);
INSTANTIATE(op::Logits);
#undef INSTANTIATE

}  // namespace stacklab::reference
