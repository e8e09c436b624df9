#include "kernels/ops_optimiser.h"

#include "kernels/checks.h"
#include "kernels/ops_fine.h"
#include "kernels/rounding.h"

namespace stacklab {
namespace op {

const char* SumSquares::check() const {
  if (!is_real(g)) return "g is not real";
  return is_scalar(out) ? nullptr : "out is not f64 [1]";
}

const char* ClipScale::check() const {
  if (partials.dtype != DType::f64 || partials.shape.rank != 1) return "partials is not f64 [n]";
  return is_scalar(norm) && is_scalar(scale) && is_scalar(updates) ? nullptr : "norm, scale or updates is not f64 [1]";
}

const char* AdamW::check() const {
  if (!is_real(w)) return "w is not real";
  for (const TensorView* t : {&g, &m, &v})
    if (!is(*t, w.dtype, w.shape)) return "g, m or v is not like w";
  if (change.present() && !is_scalar(change)) return "change is not f64 [1]";
  return is_scalar(lr) && is_scalar(scale) && is_scalar(updates) ? nullptr : "lr, scale or updates is not f64 [1]";
}

const char* AdamWCompact::check() const {
  if (!is_real(g)) return "g is not real";
  if (!is_stored(w, g.dtype, g.shape)) return "w is not like g";
  if ((m.dtype != DType::bf16 && m.dtype != DType::u8) || m.shape != g.shape) return "m is not like g in bf16 or u8";
  if (!is(v, m.dtype, g.shape)) return "v is not like m";
  if (m.dtype == DType::u8) {
    const Shape blocks = {(g.size() + moment_block - 1) / moment_block};
    if (!is(m_scales, g.dtype, blocks) || !is(v_scales, g.dtype, blocks)) return "m_scales or v_scales is not [blocks]";
  } else if (m_scales.present() || v_scales.present()) {
    return "bf16 has no scales";
  }
  if (change.present() && !is_scalar(change)) return "change is not f64 [1]";
  return is_scalar(lr) && is_scalar(scale) && is_scalar(updates) ? nullptr : "lr, scale or updates is not f64 [1]";
}

const char* Muon::check() const {
  if (!is_real(w) || w.shape.rank != 2) return "w is not a real matrix";
  if (!is(g, w.dtype, w.shape) || !is(m, w.dtype, w.shape)) return "g or m is not like w";
  if (ns_steps < 0) return "the number of Newton-Schulz steps is negative";
  if (change.present() && !is_scalar(change)) return "change is not f64 [1]";
  return is_scalar(lr) && is_scalar(scale) ? nullptr : "lr or scale is not f64 [1]";
}

double Muon::flops() const {
  return NewtonSchulz::flops(w.rows(), w.cols(), ns_steps) + 6.0 * static_cast<double>(w.size());
}

const char* QkClipHeads::check() const {
  if (n_heads <= 0 || n_kv_heads <= 0 || n_heads % n_kv_heads != 0)
    return "the query heads are not a multiple of the key-value heads";
  if (!is_real(wq) || wq.shape.rank != 2 || wq.rows() % n_heads != 0) return "wq is not [Hq Dh, d]";
  if (!is(wk, wq.dtype, {wq.rows() / n_heads * n_kv_heads, wq.cols()})) return "wk is not [Hk Dh, d]";
  if (!is(max_logit, wq.dtype, {n_heads})) return "max_logit is not [Hq]";
  return threshold > 0 ? nullptr : "the threshold must be positive";
}

const char* QkClipGains::check() const {
  if (!is_real(q_gain) || q_gain.shape.rank != 1) return "q_gain is not [Dh]";
  if (!is(k_gain, q_gain.dtype, q_gain.shape)) return "k_gain is not like q_gain";
  return threshold > 0 ? nullptr : "the threshold must be positive";
}

const char* Cast::check() const {
  if (!is_stored(from.dtype, DType::f32) || !is_stored(to.dtype, DType::f32)) return "from and to are f32 or bf16";
  return from.shape == to.shape ? nullptr : "to is not like from";
}

}  // namespace op
}  // namespace stacklab
