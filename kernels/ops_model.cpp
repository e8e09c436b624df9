#include "kernels/ops_model.h"

#include "kernels/checks.h"

namespace stacklab {

const char* AttentionShape::check(DType real, const TensorView& qkv, const TensorView& q_gain, const TensorView& k_gain,
                                  const TensorView& positions, const TensorView& cu_seqlens) const {
  if (n_heads <= 0 || n_kv_heads <= 0 || head_dim <= 0) return "heads and head width must be positive";
  if (n_heads % n_kv_heads != 0) return "the query heads are not a multiple of the key-value heads";
  if (rope && head_dim % 2 != 0) return "rotary positions need an even head width";
  if (!is_stored(qkv.dtype, real) || qkv.shape.rank != 2 || qkv.cols() != qkv_width())
    return "qkv is not [T, (Hq + 2 Hk) Dh]";
  if (q_gain.present() != k_gain.present()) return "QK-norm needs both gains or none";
  if (q_gain.present() && (!is(q_gain, real, {head_dim}) || !is(k_gain, real, {head_dim})))
    return "a QK-norm gain is not [Dh]";
  if (!is(positions, DType::i32, {qkv.rows()})) return "positions is not i32 [T]";
  if (cu_seqlens.dtype != DType::i32 || cu_seqlens.shape.rank != 1 || cu_seqlens.rows() < 2)
    return "cu_seqlens is not i32 [D + 1]";
  return nullptr;
}

namespace op {

const char* Embedding::check() const {
  if (!is_real(x) || x.shape.rank != 2) return "x is not a real matrix [T, d]";
  if (!is(ids, DType::i32, {x.rows()})) return "ids is not i32 [T]";
  if (!is_stored(table, x.dtype, {table.rows(), x.cols()})) return "table is not [V, d]";
  return nullptr;
}

const char* EmbeddingBackward::check() const {
  if (!is_real(dx) || dx.shape.rank != 2) return "dx is not a real matrix [T, d]";
  if (!is(ids, DType::i32, {dx.rows()})) return "ids is not i32 [T]";
  if (!fits(dtable, dx.dtype, {dtable.view.rows(), dx.cols()})) return "dtable is not [V, d]";
  return nullptr;
}

const char* NormMatmul::check() const {
  if (!is_real(x) || x.shape.rank != 2) return "x is not a real matrix [T, d]";
  if (!is(gain, x.dtype, {x.cols()})) return "gain is not [d]";
  if (!is_stored(w, x.dtype, {w.rows(), x.cols()})) return "w is not [N, d]";
  if (!is_stored(y, x.dtype, {x.rows(), w.rows()})) return "y is not [T, N]";
  return nullptr;
}

const char* NormMatmulBackward::check() const {
  if (!is_real(x) || x.shape.rank != 2) return "x is not a real matrix [T, d]";
  if (!is(gain, x.dtype, {x.cols()})) return "gain is not [d]";
  if (!is_stored(w, x.dtype, {w.rows(), x.cols()})) return "w is not [N, d]";
  if (!is_stored(dy, x.dtype, {x.rows(), w.rows()})) return "dy is not [T, N]";
  if (!fits(dx, x.dtype, x.shape)) return "dx is not [T, d]";
  if (!fits(dgain, x.dtype, gain.shape)) return "dgain is not [d]";
  if (!fits(dw, x.dtype, w.shape)) return "dw is not [N, d]";
  return nullptr;
}

const char* Attention::check() const {
  if (!is_real(lse) || !is(lse, lse.dtype, {qkv.rows(), shape.n_heads})) return "lse is not [T, Hq]";
  if (const char* why = shape.check(lse.dtype, qkv, q_gain, k_gain, positions, cu_seqlens)) return why;
  if (!is(out, qkv.dtype, {qkv.rows(), shape.n_heads * shape.head_dim})) return "out is not [T, Hq Dh]";
  if (!is(max_logit, lse.dtype, {shape.n_heads})) return "max_logit is not [Hq]";
  return nullptr;
}

const char* AttentionBackward::check() const {
  if (!is_real(lse) || !is(lse, lse.dtype, {qkv.rows(), shape.n_heads})) return "lse is not [T, Hq]";
  if (const char* why = shape.check(lse.dtype, qkv, q_gain, k_gain, positions, cu_seqlens)) return why;
  const Shape wide = {qkv.rows(), shape.n_heads * shape.head_dim};
  if (!is(dout, qkv.dtype, wide) || !is(out, qkv.dtype, wide)) return "out or dout is not [T, Hq Dh]";
  if (!is(dqkv, qkv.dtype, qkv.shape)) return "dqkv is not like qkv";
  if (!fits(dq_gain, lse.dtype, {shape.head_dim}) || !fits(dk_gain, lse.dtype, {shape.head_dim}))
    return "the gradient of a QK-norm gain is not [Dh]";
  return nullptr;
}

const char* ProjectAdd::check() const {
  if (!is_real(x) || x.shape.rank != 2) return "x is not a real matrix [T, d]";
  if (!is_stored(a, x.dtype, {x.rows(), a.cols()})) return "a is not [T, K]";
  if (!is_stored(w, x.dtype, {x.cols(), a.cols()})) return "w is not [d, K]";
  if (!is(out, x.dtype, x.shape)) return "out is not [T, d]";
  return nullptr;
}

const char* ProjectAddBackward::check() const {
  if (!is_real(dout) || dout.shape.rank != 2) return "dout is not a real matrix [T, d]";
  if (!is_stored(a, dout.dtype, {dout.rows(), a.cols()})) return "a is not [T, K]";
  if (!is_stored(w, dout.dtype, {dout.cols(), a.cols()})) return "w is not [d, K]";
  if (!is(da, a.dtype, a.shape)) return "da is not like a";
  if (!fits(dw, dout.dtype, w.shape)) return "dw is not [d, K]";
  return nullptr;
}

const char* NormSwiglu::check() const {
  if (!is_real(x) || x.shape.rank != 2) return "x is not a real matrix [T, d]";
  if (!is(gain, x.dtype, {x.cols()})) return "gain is not [d]";
  if (w_gate_up.rows() % 2 != 0 || !is_stored(w_gate_up, x.dtype, {w_gate_up.rows(), x.cols()}))
    return "w_gate_up is not [2 F, d]";
  if (!is_stored(u, x.dtype, {x.rows(), w_gate_up.rows() / 2})) return "u is not [T, F]";
  return nullptr;
}

const char* SwigluProjectBackward::check() const {
  if (!is_real(dout) || dout.shape.rank != 2) return "dout is not a real matrix [T, d]";
  if (!is_stored(w, dout.dtype, {dout.cols(), w.cols()})) return "w is not [d, F]";
  if (u_type != w.dtype) return "u has not the type of w";
  if (u.present() && !is(u, w.dtype, {dout.rows(), w.cols()})) return "u is not [T, F]";
  if (!saved.present()) return "saved is missing";
  if (!fits(dw, dout.dtype, w.shape)) return "dw is not [d, F]";
  return nullptr;
}

const char* NormSwigluBackward::check() const {
  if (!is_real(x) || x.shape.rank != 2) return "x is not a real matrix [T, d]";
  if (!is(gain, x.dtype, {x.cols()})) return "gain is not [d]";
  if (w_gate_up.rows() % 2 != 0 || !is_stored(w_gate_up, x.dtype, {w_gate_up.rows(), x.cols()}))
    return "w_gate_up is not [2 F, d]";
  if (!saved.present()) return "saved is missing";
  if (!fits(dx, x.dtype, x.shape)) return "dx is not [T, d]";
  if (!fits(dgain, x.dtype, gain.shape)) return "dgain is not [d]";
  if (!fits(dw, x.dtype, w_gate_up.shape)) return "dw is not [2 F, d]";
  return nullptr;
}

const char* Logits::check() const {
  if (!is_real(x) || x.shape.rank != 2) return "x is not a real matrix [T, d]";
  if (gain.present() && !is(gain, x.dtype, {x.cols()})) return "gain is not [d]";
  if (!is_stored(w, x.dtype, {w.rows(), x.cols()})) return "w is not [V, d]";
  if (!is(logits, x.dtype, {x.rows(), w.rows()})) return "logits is not [T, V]";
  return nullptr;
}

const char* LossHead::check() const {
  if (!is_real(x) || x.shape.rank != 2) return "x is not a real matrix [T, d]";
  if (gain.present() && !is(gain, x.dtype, {x.cols()})) return "gain is not [d]";
  if (!is_stored(w, x.dtype, {w.rows(), x.cols()})) return "w is not [V, d]";
  if (!is(targets, DType::i32, {x.rows()})) return "targets is not i32 [T]";
  if (!is(coefficients, x.dtype, {x.rows()})) return "coefficients is not [T]";
  if (!is(sums, DType::f64, {2})) return "sums is not f64 [2]";
  if (chunk <= 0) return "chunk must be positive";
  if (!dx.present() && (dgain.present() || dw.present())) return "gradients of parameters need dx";
  if (dx.present() && !is(dx, x.dtype, x.shape)) return "dx is not [T, d]";
  if (dgain.present() && !gain.present()) return "dgain without gain";
  if (!fits(dgain, x.dtype, gain.shape)) return "dgain is not [d]";
  if (!fits(dw, x.dtype, w.shape)) return "dw is not [V, d]";
  return nullptr;
}

}  // namespace op
}  // namespace stacklab
