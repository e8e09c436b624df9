// The fine operations: norm, rotation, SwiGLU and attention on their own.
#include <algorithm>

#include "kernels/reference/norm.h"
#include "kernels/reference/ragged.h"
#include "kernels/reference/reference.h"
#include "kernels/reference/rope.h"
#include "kernels/reference/swiglu.h"

namespace stacklab::reference {
namespace {

template <class T>
Heads<T> heads(const TensorView& v) {
  return {v.as<std::remove_const_t<T>>(), v.cols(), v.shape[2]};
}

template <class T, class AnyAttention>
Ragged<T> ragged(const AnyAttention& o) {
  return {heads<const T>(o.q),
          heads<const T>(o.k),
          heads<const T>(o.v),
          o.cu_q.template as<std::int32_t>(),
          o.cu_k.template as<std::int32_t>(),
          o.cu_q.rows() - 1,
          o.q.shape[1],
          o.k.shape[1],
          o.shape,
          o.lse.template as<T>()};
}

}  // namespace

template <class T>
void run(const op::RmsNorm& o, const KernelContext& context) {
  const std::int64_t d = o.x.cols();
  for_row_blocks(context, o.x.rows(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r)
      rmsnorm_row(o.y.as<T>() + r * d, o.x.as<T>() + r * d, o.gain.as<T>(), d, o.eps);
  });
}

// workspace: a row for a dx that nobody wants
Needs needs(const op::RmsNormBackward& o) { return {.workspace = o.x.cols() * size_of(o.x.dtype)}; }

template <class T>
void run(const op::RmsNormBackward& o, const KernelContext&) {
  const std::int64_t d = o.x.cols();
  T* dgain = o.dgain.present() ? o.dgain.view.as<T>() : nullptr;
  if (dgain && !o.dgain.accumulate) std::fill(dgain, dgain + d, T(0));
  for (std::int64_t r = 0; r < o.x.rows(); ++r) {
    T* dx = o.dx.present() ? o.dx.view.as<T>() + r * d : o.workspace.as<T>();
    if (!o.dx.present() || !o.dx.accumulate) std::fill(dx, dx + d, T(0));
    rmsnorm_row_backward(dx, dgain, o.dy.as<T>() + r * d, o.x.as<T>() + r * d, o.gain.as<T>(), d, o.eps);
  }
}

// workspace: the angles [T, D]
Needs needs(const op::Rope& o) { return {.workspace = o.x.rows() * o.x.shape[2] * size_of(o.x.dtype)}; }

template <class T>
void run(const op::Rope& o, const KernelContext& context) {
  const std::int64_t n = o.x.shape[1], d = o.x.shape[2];
  T* angles = o.workspace.as<T>();
  angle_table(context, angles, o.positions, d, o.theta);
  std::copy(o.x.as<T>(), o.x.as<T>() + o.x.size(), o.y.as<T>());
  for (std::int64_t t = 0; t < o.x.rows(); ++t)
    for (std::int64_t h = 0; h < n; ++h) rotate(o.y.as<T>() + (t * n + h) * d, angles + t * d, d, o.inverse ? -1 : +1);
}

template <class T>
void run(const op::Swiglu& o, const KernelContext&) {
  for (std::int64_t i = 0; i < o.u.size(); ++i) o.u.as<T>()[i] = swiglu(o.gate.as<T>()[i], o.up.as<T>()[i]);
}

template <class T>
void run(const op::SwigluBackward& o, const KernelContext&) {
  for (std::int64_t i = 0; i < o.du.size(); ++i)
    swiglu_backward(o.du.as<T>()[i], o.gate.as<T>()[i], o.up.as<T>()[i], o.dgate.as<T>()[i], o.dup.as<T>()[i]);
}

// workspace: a row of scores for each query head
Needs needs(const op::RaggedAttention& o) { return {.workspace = o.q.shape[1] * o.k.rows() * size_of(o.q.dtype)}; }

template <class T>
void run(const op::RaggedAttention& o, const KernelContext& context) {
  const Ragged<T> r = ragged<T>(o);
  context.for_each(r.n_heads, [&](std::int64_t h) {
    attend_head(r, h, heads<T>(o.out), o.max_logit.as<T>() + h, o.workspace.as<T>() + h * o.k.rows());
  });
}

template <class T>
void run(const op::RaggedAttentionBackward& o, const KernelContext& context) {
  const Ragged<T> r = ragged<T>(o);
  for (const TensorView* t : {&o.dq, &o.dk, &o.dv}) std::fill(t->as<T>(), t->as<T>() + t->size(), T(0));
  context.for_each(r.n_kv_heads, [&](std::int64_t kv) {
    attend_group_backward(r, kv, heads<const T>(o.out), heads<const T>(o.dout), heads<T>(o.dq), heads<T>(o.dk),
                          heads<T>(o.dv));
  });
}

#define INSTANTIATE(OP)                                      \
  template void run<float>(const OP&, const KernelContext&); \
  template void run<double>(const OP&, const KernelContext&)
INSTANTIATE(op::RmsNorm);
INSTANTIATE(op::RmsNormBackward);
INSTANTIATE(op::Rope);
INSTANTIATE(op::Swiglu);
INSTANTIATE(op::SwigluBackward);
INSTANTIATE(op::RaggedAttention);
INSTANTIATE(op::RaggedAttentionBackward);
#undef INSTANTIATE

}  // namespace stacklab::reference
