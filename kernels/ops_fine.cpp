#include "kernels/ops_fine.h"

#include <algorithm>

#include "kernels/checks.h"

namespace stacklab {
namespace {

const char* check_ragged(const TensorView& q, const TensorView& k, const TensorView& v, const TensorView& cu_q,
                         const TensorView& cu_k, const TensorView& out, const TensorView& lse) {
  if (!is_real(q) || q.shape.rank != 3) return "q is not real [Nq, Hq, D]";
  if (k.shape.rank != 3 || !is(k, q.dtype, {k.rows(), k.shape[1], q.shape[2]})) return "k is not [Nk, Hk, D]";
  if (k.shape[1] <= 0 || q.shape[1] % k.shape[1] != 0)
    return "the query heads are not a multiple of the key-value heads";
  if (v.shape.rank != 3 || !is(v, q.dtype, {k.rows(), k.shape[1], v.shape[2]})) return "v is not [Nk, Hk, Dv]";
  if (cu_q.dtype != DType::i32 || cu_q.shape.rank != 1 || cu_q.rows() < 2) return "cu_q is not i32 [documents + 1]";
  if (!is(cu_k, DType::i32, cu_q.shape)) return "cu_k is not like cu_q";
  if (!is(out, q.dtype, {q.rows(), q.shape[1], v.shape[2]})) return "out is not [Nq, Hq, Dv]";
  return is(lse, q.dtype, {q.rows(), q.shape[1]}) ? nullptr : "lse is not [Nq, Hq]";
}

double ragged_flops(const TensorView& q, const TensorView& v, const RaggedShape& s) {
  const double keys = s.window > 0 ? std::min(s.max_len, static_cast<double>(s.window)) : s.max_len / 2;
  return 2.0 * static_cast<double>(q.rows() * q.shape[1]) * keys * static_cast<double>(q.shape[2] + v.shape[2]);
}

}  // namespace

namespace op {

const char* RmsNorm::check() const {
  if (!is_real(x) || x.shape.rank != 2) return "x is not a real matrix [rows, d]";
  if (!is(gain, x.dtype, {x.cols()})) return "gain is not [d]";
  return is(y, x.dtype, x.shape) ? nullptr : "y is not like x";
}

const char* RmsNormBackward::check() const {
  if (!is_real(x) || x.shape.rank != 2) return "x is not a real matrix [rows, d]";
  if (!is(gain, x.dtype, {x.cols()})) return "gain is not [d]";
  if (!is(dy, x.dtype, x.shape)) return "dy is not like x";
  if (!fits(dx, x.dtype, x.shape)) return "dx is not like x";
  return fits(dgain, x.dtype, gain.shape) ? nullptr : "dgain is not [d]";
}

const char* Rope::check() const {
  if (!is_real(x) || x.shape.rank != 3 || x.shape[2] % 2 != 0) return "x is not real [T, heads, D] with an even D";
  if (!is(positions, DType::i32, {x.rows()})) return "positions is not i32 [T]";
  return is(y, x.dtype, x.shape) ? nullptr : "y is not like x";
}

const char* Swiglu::check() const {
  if (!is_real(gate)) return "gate is not real";
  return is(up, gate.dtype, gate.shape) && is(u, gate.dtype, gate.shape) ? nullptr : "up or u is not like gate";
}

const char* SwigluBackward::check() const {
  if (!is_real(gate)) return "gate is not real";
  for (const TensorView* t : {&du, &up, &dgate, &dup})
    if (!is(*t, gate.dtype, gate.shape)) return "du, up, dgate or dup is not like gate";
  return nullptr;
}

const char* RaggedAttention::check() const {
  if (const char* why = check_ragged(q, k, v, cu_q, cu_k, out, lse)) return why;
  return is(max_logit, q.dtype, {q.shape[1]}) ? nullptr : "max_logit is not [Hq]";
}

double RaggedAttention::flops() const { return ragged_flops(q, v, shape); }

const char* RaggedAttentionBackward::check() const {
  if (const char* why = check_ragged(q, k, v, cu_q, cu_k, out, lse)) return why;
  if (!is(dout, q.dtype, out.shape)) return "dout is not like out";
  return is(dq, q.dtype, q.shape) && is(dk, q.dtype, k.shape) && is(dv, q.dtype, v.shape)
             ? nullptr
             : "dq, dk or dv is not like q, k or v";
}

double RaggedAttentionBackward::flops() const { return 2 * ragged_flops(q, v, shape); }

const char* NewtonSchulz::check() const {
  if (!is_real(x) || x.shape.rank != 2) return "x is not a real matrix";
  if (steps < 0) return "the number of steps is negative";
  return is(y, x.dtype, x.shape) ? nullptr : "y is not like x";
}

double NewtonSchulz::flops() const { return flops(x.rows(), x.cols(), steps); }

double NewtonSchulz::flops(std::int64_t rows, std::int64_t cols, std::int64_t steps) {
  const double m = static_cast<double>(std::min(rows, cols)), n = static_cast<double>(std::max(rows, cols));
  return static_cast<double>(steps) * (4 * m * m * n + 2 * m * m * m);
}

}  // namespace op
}  // namespace stacklab
