// The operations that are attention: where their heads lie, and what happens to q and k first.
#include "kernels/cpu/attention.h"
#include "kernels/cpu/cpu.h"
#include "kernels/reference/backend.h"

namespace stacklab::cpu {
namespace {

AttentionSizes sizes_of(const AttentionShape& s, const TensorView& qkv, const TensorView& cu_seqlens) {
  return {.q_rows = qkv.rows(),
          .k_rows = qkv.rows(),
          .documents = cu_seqlens.rows() - 1,
          .q_heads = s.n_heads,
          .k_heads = s.n_kv_heads,
          .head_dim = s.head_dim,
          .v_dim = s.head_dim,
          .rope = s.rope};
}

// Rows like qkv's.
template <class T>
struct Merged {
  Heads<T> q, k, v;
  Merged(T* base, const AttentionShape& s) {
    q = {base, s.qkv_width(), s.head_dim};
    k = {base + s.n_heads * s.head_dim, s.qkv_width(), s.head_dim};
    v = {base + (s.n_heads + s.n_kv_heads) * s.head_dim, s.qkv_width(), s.head_dim};
  }
};

template <class E, class AnyAttention>
AttentionCall<E> call_of(const AnyAttention& o) {
  const AttentionShape& s = o.shape;
  const auto gain = [](const TensorView& v) { return v.present() ? v.as<const float>() : nullptr; };
  AttentionCall<E> call;
  call.sizes = sizes_of(s, o.qkv, o.cu_seqlens);
  const std::int32_t* cu = o.cu_seqlens.template as<std::int32_t>();
  call.documents = {cu, cu, o.cu_seqlens.rows() - 1, 0};
  call.scale = s.scale, call.soft_cap = s.soft_cap;
  call.q_gain = gain(o.q_gain), call.k_gain = gain(o.k_gain), call.norm_eps = s.norm_eps;
  call.positions = o.positions.template as<std::int32_t>(), call.rope_theta = s.rope_theta;
  const Merged<const E> heads(o.qkv.template as<E>(), s);
  call.q = heads.q, call.k = heads.k, call.v = heads.v;
  call.out = {o.out.template as<E>(), o.out.cols(), s.head_dim};
  call.lse = o.lse.template as<float>();
  call.workspace = o.workspace.template as<float>();
  return call;
}

template <class E>
void forward(const op::Attention& o, const KernelContext& context) {
  AttentionCall<E> call = call_of<E>(o);
  call.max_logit = o.max_logit.as<float>();
  attend(call, context);
}

// Where gradients gather: in dqkv itself, or, where it is kept in bf16, in f32 behind everything else.
std::int64_t gathered_floats(const op::AttentionBackward& o) { return o.dqkv.dtype == DType::f32 ? 0 : o.dqkv.size(); }

template <class E>
void backward(const op::AttentionBackward& o, const KernelContext& context) {
  AttentionCall<E> call = call_of<E>(o);
  call.dout = {o.dout.as<E>(), o.dout.cols(), o.shape.head_dim};
  const bool in_place = gathered_floats(o) == 0;
  const Merged<float> gathered(in_place ? o.dqkv.as<float>() : call.workspace + call.sizes.backward(), o.shape);
  call.dq = gathered.q, call.dk = gathered.k, call.dv = gathered.v;
  if (o.dq_gain.present()) call.dq_gain = o.dq_gain.view.as<float>(), call.add_q_gain = o.dq_gain.accumulate;
  if (o.dk_gain.present()) call.dk_gain = o.dk_gain.view.as<float>(), call.add_k_gain = o.dk_gain.accumulate;
  if (call.q_gain || call.dq_gain || call.dk_gain || o.shape.rope || !in_place) {
    const Merged<E> raw(o.dqkv.as<E>(), o.shape);
    call.dq_raw = raw.q, call.dk_raw = raw.k;
    if (!in_place) call.dv_raw = raw.v;
  }
  attend_backward(call, context);
}

template <class AnyRagged>
AttentionSizes sizes_of(const AnyRagged& o) {
  return {.q_rows = o.q.rows(),
          .k_rows = o.k.rows(),
          .documents = o.cu_q.rows() - 1,
          .q_heads = o.q.shape[1],
          .k_heads = o.k.shape[1],
          .head_dim = o.q.shape[2],
          .v_dim = o.v.shape[2],
          .rope = false};
}

template <class T>
Heads<T> heads_of(const TensorView& v) {
  return {v.as<T>(), v.cols(), v.shape[2]};
}

template <class AnyRagged>
AttentionCall<float> ragged_call(const AnyRagged& o) {
  AttentionCall<float> call;
  call.sizes = sizes_of(o);
  call.documents = {o.cu_q.template as<std::int32_t>(), o.cu_k.template as<std::int32_t>(), call.sizes.documents,
                    o.shape.window};
  call.scale = o.shape.scale, call.soft_cap = o.shape.soft_cap;
  call.q = heads_of<const float>(o.q), call.k = heads_of<const float>(o.k), call.v = heads_of<const float>(o.v);
  call.out = heads_of<float>(o.out);
  call.lse = o.lse.template as<float>();
  call.workspace = o.workspace.template as<float>();
  return call;
}

}  // namespace

Needs needs(const op::Attention& o) {
  const AttentionSizes sizes = sizes_of(o.shape, o.qkv, o.cu_seqlens);
  if (!sizes.fits()) return reference::needs_of(o);
  return {.workspace = sizes.forward() * size_of(DType::f32)};
}

void run(const op::Attention& o, const KernelContext& context) {
  if (!sizes_of(o.shape, o.qkv, o.cu_seqlens).fits()) return reference::run_on(o, context);
  o.qkv.dtype == DType::f32 ? forward<float>(o, context) : forward<std::uint16_t>(o, context);
}

Needs needs(const op::AttentionBackward& o) {
  const AttentionSizes sizes = sizes_of(o.shape, o.qkv, o.cu_seqlens);
  if (!sizes.fits()) return reference::needs_of(o);
  return {.workspace = (sizes.backward() + gathered_floats(o)) * size_of(DType::f32)};
}

void run(const op::AttentionBackward& o, const KernelContext& context) {
  if (!sizes_of(o.shape, o.qkv, o.cu_seqlens).fits()) return reference::run_on(o, context);
  o.qkv.dtype == DType::f32 ? backward<float>(o, context) : backward<std::uint16_t>(o, context);
}

Needs needs(const op::RaggedAttention& o) {
  const AttentionSizes sizes = sizes_of(o);
  if (!sizes.fits()) return reference::needs_of(o);
  return {.workspace = sizes.forward() * size_of(DType::f32)};
}

void run(const op::RaggedAttention& o, const KernelContext& context) {
  if (!sizes_of(o).fits()) return reference::run_on(o, context);
  AttentionCall<float> call = ragged_call(o);
  call.max_logit = o.max_logit.as<float>();
  attend(call, context);
}

Needs needs(const op::RaggedAttentionBackward& o) {
  const AttentionSizes sizes = sizes_of(o);
  if (!sizes.fits()) return reference::needs_of(o);
  return {.workspace = sizes.backward() * size_of(DType::f32)};
}

void run(const op::RaggedAttentionBackward& o, const KernelContext& context) {
  if (!sizes_of(o).fits()) return reference::run_on(o, context);
  AttentionCall<float> call = ragged_call(o);
  call.dout = heads_of<const float>(o.dout);
  call.dq = heads_of<float>(o.dq), call.dk = heads_of<float>(o.dk), call.dv = heads_of<float>(o.dv);
  attend_backward(call, context);
}

}  // namespace stacklab::cpu
