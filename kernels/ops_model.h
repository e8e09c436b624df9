// The coarse operations of the model: see ops.h for shapes and conventions.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/access.h"
#include "kernels/tensor_view.h"

namespace stacklab {

// What attention forward and backward share.
struct AttentionShape {
  std::int64_t n_heads = 0;     // Hq
  std::int64_t n_kv_heads = 0;  // Hk; query head h reads key-value head h / (Hq / Hk)
  std::int64_t head_dim = 0;    // Dh
  std::int64_t max_len = 0;     // longest document, in tokens: for counting work only
  bool rope = true;             // rotate halves (i, i + Dh/2) by position * theta^(-2i/Dh) (Su et al. 2021)
  double rope_theta = 10000;
  double scale = 0;     // of q . k
  double soft_cap = 0;  // c tanh(s / c) on the scaled logits; 0: off
  double norm_eps = 0;  // of QK-norm

  std::int64_t qkv_width() const { return (n_heads + 2 * n_kv_heads) * head_dim; }
  // real: the type that is computed in
  const char* check(DType real, const TensorView& qkv, const TensorView& q_gain, const TensorView& k_gain,
                    const TensorView& positions, const TensorView& cu_seqlens) const;
  // 4 Hq Dh multiply-adds over the causal half of max_len, per token.
  double flops(std::int64_t tokens) const {
    return 2.0 * static_cast<double>(tokens) * static_cast<double>(max_len) * static_cast<double>(n_heads * head_dim);
  }
};

namespace op {

// x[t] = table[ids[t]]
struct Embedding {
  static constexpr std::string_view name = "embedding";
  TensorView ids;             // [T] i32, 0 <= id < V
  TensorView table;           // [V, d] bf16
  TensorView x;               // [T, d] =
  TensorView workspace = {};  // bytes

  template <class Self, class F>
  static void operands(Self& s, F&& f) {
    f("ids", s.ids, Access::read), f("table", s.table, Access::read), f("x", s.x, Access::write);
    f("workspace", s.workspace, Access::scratch);
  }
  const char* check() const;
  double flops() const { return 0; }
};

// dtable[ids[t]] += dx[t], in the order of t for each row
struct EmbeddingBackward {
  static constexpr std::string_view name = "embedding_backward";
  TensorView ids;   // [T] i32
  TensorView dx;    // [T, d]
  GradView dtable;  // [V, d] = or +=

  template <class Self, class F>
  static void operands(Self& s, F&& f) {
    f("ids", s.ids, Access::read), f("dx", s.dx, Access::read), f("dtable", s.dtable);
  }
  const char* check() const;
  double flops() const { return 0; }
};

// y = rmsnorm(x) * gain, times w transposed. rmsnorm(x) = x / sqrt(mean(x^2) + eps), per row (Zhang and Sennrich 2019,
// eq. 4).
struct NormMatmul {
  static constexpr std::string_view name = "norm_matmul";
  TensorView x;          // [T, d]
  TensorView gain;       // [d]
  TensorView w;          // [N, d] bf16
  TensorView y;          // [T, N] bf16 =
  TensorView saved;      // bytes = for backward
  TensorView workspace;  // bytes
  double eps = 0;

  template <class Self, class F>
  static void operands(Self& s, F&& f) {
    f("x", s.x, Access::read), f("gain", s.gain, Access::read), f("w", s.w, Access::read), f("y", s.y, Access::write);
    f("saved", s.saved, Access::write), f("workspace", s.workspace, Access::scratch);
  }
  const char* check() const;
  double flops() const { return 2.0 * static_cast<double>(x.rows()) * static_cast<double>(w.size()); }
};

struct NormMatmulBackward {
  static constexpr std::string_view name = "norm_matmul_backward";
  TensorView dy;         // [T, N] bf16
  TensorView x;          // [T, d]
  TensorView gain;       // [d]
  TensorView w;          // [N, d] bf16
  TensorView saved;      // what forward saved
  GradView dx;           // [T, d] += : the gradient of the residual stream
  GradView dgain;        // [d] = or +=
  GradView dw;           // [N, d] = or +=
  TensorView workspace;  // bytes
  double eps = 0;

  template <class Self, class F>
  static void operands(Self& s, F&& f) {
    f("dy", s.dy, Access::read), f("x", s.x, Access::read), f("gain", s.gain, Access::read), f("w", s.w, Access::read);
    f("saved", s.saved, Access::read), f("dx", s.dx), f("dgain", s.dgain), f("dw", s.dw),
        f("workspace", s.workspace, Access::scratch);
  }
  const char* check() const;
  double flops() const {
    const double product = 2.0 * static_cast<double>(x.rows()) * static_cast<double>(w.size());
    return product * (1 + (dw.present() ? 1 : 0));
  }
};

// Causal attention inside each document, with QK-norm (RMSNorm over Dh, before rotation) and rotary positions applied
// to raw q and k. Document e is tokens cu_seqlens[e] .. cu_seqlens[e+1]; equal neighbours are empty documents.
struct Attention {
  static constexpr std::string_view name = "attention";
  TensorView qkv;             // [T, (Hq + 2 Hk) Dh] bf16, raw projections
  TensorView q_gain, k_gain;  // [Dh], or not present: no QK-norm
  TensorView positions;       // [T] i32
  TensorView cu_seqlens;      // [D + 1] i32
  TensorView out;             // [T, Hq Dh] like qkv =
  TensorView lse;             // [T, Hq] = log-sum-exp of the (soft-capped) logits
  TensorView max_logit;       // [Hq] = largest scaled logit before the cap, over visible pairs
  TensorView saved;           // bytes = for backward
  TensorView workspace;       // bytes
  AttentionShape shape;

  template <class Self, class F>
  static void operands(Self& s, F&& f) {
    f("qkv", s.qkv, Access::read), f("q_gain", s.q_gain, Access::read), f("k_gain", s.k_gain, Access::read);
    f("positions", s.positions, Access::read), f("cu_seqlens", s.cu_seqlens, Access::read);
    f("out", s.out, Access::write), f("lse", s.lse, Access::write), f("max_logit", s.max_logit, Access::write);
    f("saved", s.saved, Access::write), f("workspace", s.workspace, Access::scratch);
  }
  const char* check() const;
  double flops() const { return shape.flops(qkv.rows()); }
};

struct AttentionBackward {
  static constexpr std::string_view name = "attention_backward";
  TensorView dout;                                                         // [T, Hq Dh] like qkv
  TensorView qkv, q_gain, k_gain, positions, cu_seqlens, out, lse, saved;  // as in forward
  TensorView dqkv;                                                         // like qkv =
  GradView dq_gain, dk_gain;                                               // [Dh] = or +=
  TensorView workspace;                                                    // bytes
  AttentionShape shape;

  template <class Self, class F>
  static void operands(Self& s, F&& f) {
    f("dout", s.dout, Access::read), f("qkv", s.qkv, Access::read), f("q_gain", s.q_gain, Access::read);
    f("k_gain", s.k_gain, Access::read), f("positions", s.positions, Access::read);
    f("cu_seqlens", s.cu_seqlens, Access::read), f("out", s.out, Access::read), f("lse", s.lse, Access::read);
    f("saved", s.saved, Access::read), f("dqkv", s.dqkv, Access::write), f("dq_gain", s.dq_gain),
        f("dk_gain", s.dk_gain);
    f("workspace", s.workspace, Access::scratch);
  }
  const char* check() const;
  double flops() const { return 2 * shape.flops(qkv.rows()); }
};

// out = x + a w^T. out may be x.
struct ProjectAdd {
  static constexpr std::string_view name = "project_add";
  TensorView a;               // [T, K] bf16
  TensorView w;               // [d, K] bf16
  TensorView x;               // [T, d]
  TensorView out;             // [T, d] =
  TensorView workspace = {};  // bytes

  static constexpr bool may_alias(std::string_view written, std::string_view other) {
    return written == "out" && other == "x";
  }
  template <class Self, class F>
  static void operands(Self& s, F&& f) {
    f("a", s.a, Access::read), f("w", s.w, Access::read), f("x", s.x, Access::read), f("out", s.out, Access::write);
    f("workspace", s.workspace, Access::scratch);
  }
  const char* check() const;
  double flops() const { return 2.0 * static_cast<double>(a.rows()) * static_cast<double>(w.size()); }
};

// The gradient of x is dout itself.
struct ProjectAddBackward {
  static constexpr std::string_view name = "project_add_backward";
  TensorView dout;            // [T, d]
  TensorView a;               // [T, K] bf16
  TensorView w;               // [d, K] bf16
  TensorView da;              // [T, K] like a =
  GradView dw;                // [d, K] = or +=
  TensorView workspace = {};  // bytes

  template <class Self, class F>
  static void operands(Self& s, F&& f) {
    f("dout", s.dout, Access::read), f("a", s.a, Access::read), f("w", s.w, Access::read);
    f("da", s.da, Access::write), f("dw", s.dw), f("workspace", s.workspace, Access::scratch);
  }
  const char* check() const;
  double flops() const {
    return 2.0 * static_cast<double>(a.rows()) * static_cast<double>(w.size()) * (1 + (dw.present() ? 1 : 0));
  }
};

// u = silu(gate) * up with gate and up = n w_gate^T and n w_up^T, rounded to the type of u, n = rmsnorm(x) * gain
// (Shazeer 2020, SwiGLU). Saves gate and up, which SwigluProjectBackward turns into their gradients.
struct NormSwiglu {
  static constexpr std::string_view name = "norm_swiglu";
  TensorView x;          // [T, d]
  TensorView gain;       // [d]
  TensorView w_gate_up;  // [2 F, d] bf16
  TensorView u;          // [T, F] bf16 =
  TensorView saved;      // bytes = for SwigluProjectBackward
  TensorView workspace;  // bytes
  double eps = 0;

  template <class Self, class F>
  static void operands(Self& s, F&& f) {
    f("x", s.x, Access::read), f("gain", s.gain, Access::read), f("w_gate_up", s.w_gate_up, Access::read);
    f("u", s.u, Access::write), f("saved", s.saved, Access::write), f("workspace", s.workspace, Access::scratch);
  }
  const char* check() const;
  double flops() const { return 2.0 * static_cast<double>(x.rows()) * static_cast<double>(w_gate_up.size()); }
};

// Gradients of out = x + u w^T with the u of NormSwiglu; that of x is dout itself. The gradient of u does not outlive
// the operation: in saved stand those of gate and up afterwards.
struct SwigluProjectBackward {
  static constexpr std::string_view name = "swiglu_project_backward";
  TensorView dout;       // [T, d]
  TensorView w;          // [d, F] bf16
  TensorView u;          // [T, F] bf16, or not present: it is made again, to the bit
  TensorView saved;      // updated
  GradView dw;           // [d, F] = or +=
  TensorView workspace;  // bytes
  DType u_type = DType::f32;

  template <class Self, class F>
  static void operands(Self& s, F&& f) {
    f("dout", s.dout, Access::read), f("w", s.w, Access::read), f("u", s.u, Access::read);
    f("saved", s.saved, Access::update), f("dw", s.dw), f("workspace", s.workspace, Access::scratch);
  }
  const char* check() const;
  double flops() const {
    return 2.0 * static_cast<double>(dout.rows()) * static_cast<double>(w.size()) * (1 + (dw.present() ? 1 : 0));
  }
};

struct NormSwigluBackward {
  static constexpr std::string_view name = "norm_swiglu_backward";
  TensorView x;          // [T, d]
  TensorView gain;       // [d]
  TensorView w_gate_up;  // [2 F, d] bf16
  TensorView saved;      // what SwigluProjectBackward left
  GradView dx;           // [T, d] += : the gradient of the residual stream
  GradView dgain;        // [d] = or +=
  GradView dw;           // [2 F, d] = or +=
  TensorView workspace;  // bytes
  double eps = 0;

  template <class Self, class F>
  static void operands(Self& s, F&& f) {
    f("x", s.x, Access::read), f("gain", s.gain, Access::read), f("w_gate_up", s.w_gate_up, Access::read);
    f("saved", s.saved, Access::read);
    f("dx", s.dx), f("dgain", s.dgain), f("dw", s.dw), f("workspace", s.workspace, Access::scratch);
  }
  const char* check() const;
  double flops() const {
    return 2.0 * static_cast<double>(x.rows()) * static_cast<double>(w_gate_up.size()) * (1 + (dw.present() ? 1 : 0));
  }
};

// logits = cap(rmsnorm(x) * gain, times w transposed): [T, V]; without gain x is taken as it is. For decoding and
// tests; training never holds them.
struct Logits {
  static constexpr std::string_view name = "logits";
  TensorView x;          // [T, d]
  TensorView gain;       // [d]
  TensorView w;          // [V, d] bf16
  TensorView logits;     // [T, V] =
  TensorView workspace;  // bytes
  double eps = 0;
  double soft_cap = 0;  // 0: off

  template <class Self, class F>
  static void operands(Self& s, F&& f) {
    f("x", s.x, Access::read), f("gain", s.gain, Access::read), f("w", s.w, Access::read);
    f("logits", s.logits, Access::write), f("workspace", s.workspace, Access::scratch);
  }
  const char* check() const;
  double flops() const { return 2.0 * static_cast<double>(x.rows()) * static_cast<double>(w.size()); }
};

// Final norm, logits, soft cap, log-sum-exp, loss and gradients in one pass over chunks of tokens.
//   log p_t = logit[target_t] - lse_t
//   sums[0] = sum_t coefficient_t * log p_t           (the objective; cross-entropy when coefficient = -1/n)
//   sums[1] = sum_t z_coef * |coefficient_t| * lse_t^2  (z-loss, PaLM section 5)
// Gradients are of sums[0] + sums[1]. A row with target < 0 contributes nothing, and its dx is 0.
struct LossHead {
  static constexpr std::string_view name = "loss_head";
  TensorView x;             // [T, d] the residual stream
  TensorView gain;          // [d] of the final norm, or not present: x is normalised already
  TensorView w;             // [V, d] bf16
  TensorView targets;       // [T] i32
  TensorView coefficients;  // [T] dL/dlog p
  TensorView sums;          // [2] f64 =
  TensorView dx;            // [T, d] =, or not present: no gradients at all
  GradView dgain;           // [d] = or +=
  GradView dw;              // [V, d] = or +=
  TensorView workspace;     // bytes
  std::int64_t chunk = 0;   // tokens whose logits exist at once
  double eps = 0;
  double soft_cap = 0;
  double z_coef = 0;

  template <class Self, class F>
  static void operands(Self& s, F&& f) {
    f("x", s.x, Access::read), f("gain", s.gain, Access::read), f("w", s.w, Access::read);
    f("targets", s.targets, Access::read), f("coefficients", s.coefficients, Access::read);
    f("sums", s.sums, Access::write), f("dx", s.dx, Access::write), f("dgain", s.dgain), f("dw", s.dw);
    f("workspace", s.workspace, Access::scratch);
  }
  const char* check() const;
  double flops() const {
    return 2.0 * static_cast<double>(x.rows()) * static_cast<double>(w.size()) *
           (1 + (dx.present() ? 1 : 0) + (dw.present() ? 1 : 0));
  }
};

}  // namespace op
}  // namespace stacklab
