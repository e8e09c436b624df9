// The fine operations: what the coarse ones are made of, for decoding, other models and tests. See ops.h for
// conventions.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/access.h"
#include "kernels/tensor_view.h"

namespace stacklab {

// Ragged attention of given queries, keys and values. A document may have more keys than queries (the earlier ones came
// before): its last query is level with its last key.
struct RaggedShape {
  double scale = 0;         // of q . k
  double soft_cap = 0;      // c tanh(s / c); 0: off
  std::int64_t window = 0;  // a query sees this many keys, its own included; 0: all before it
  double max_len = 0;       // keys of the longest document: for counting work only
};

namespace op {

// y = x / sqrt(mean(x^2) + eps) * gain, over the last dimension
struct RmsNorm {
  static constexpr std::string_view name = "rmsnorm";
  TensorView x;     // [rows, d]
  TensorView gain;  // [d]
  TensorView y;     // [rows, d] =
  double eps = 0;

  template <class Self, class F>
  static void operands(Self& s, F&& f) {
    f("x", s.x, Access::read), f("gain", s.gain, Access::read), f("y", s.y, Access::write);
  }
  const char* check() const;
  double flops() const { return 4.0 * static_cast<double>(x.size()); }
};

struct RmsNormBackward {
  static constexpr std::string_view name = "rmsnorm_backward";
  TensorView dy;         // [rows, d]
  TensorView x;          // [rows, d]
  TensorView gain;       // [d]
  GradView dx;           // [rows, d] = or +=
  GradView dgain;        // [d] = or +=
  TensorView workspace;  // bytes
  double eps = 0;

  template <class Self, class F>
  static void operands(Self& s, F&& f) {
    f("dy", s.dy, Access::read), f("x", s.x, Access::read), f("gain", s.gain, Access::read);
    f("dx", s.dx), f("dgain", s.dgain), f("workspace", s.workspace, Access::scratch);
  }
  const char* check() const;
  double flops() const { return 10.0 * static_cast<double>(x.size()); }
};

// Rotates the halves (i, i + D/2) of each head by position * theta^(-2i/D); inverse turns back, which is the gradient.
struct Rope {
  static constexpr std::string_view name = "rope";
  TensorView x;          // [T, heads, D]
  TensorView positions;  // [T] i32
  TensorView y;          // [T, heads, D] =
  TensorView workspace;  // bytes
  double theta = 10000;
  bool inverse = false;

  template <class Self, class F>
  static void operands(Self& s, F&& f) {
    f("x", s.x, Access::read), f("positions", s.positions, Access::read), f("y", s.y, Access::write);
    f("workspace", s.workspace, Access::scratch);
  }
  const char* check() const;
  double flops() const { return 3.0 * static_cast<double>(x.size()); }
};

// u = silu(gate) * up
struct Swiglu {
  static constexpr std::string_view name = "swiglu";
  TensorView gate, up;  // [rows, F]
  TensorView u;         // [rows, F] =

  template <class Self, class F>
  static void operands(Self& s, F&& f) {
    f("gate", s.gate, Access::read), f("up", s.up, Access::read), f("u", s.u, Access::write);
  }
  const char* check() const;
  double flops() const { return 4.0 * static_cast<double>(u.size()); }
};

struct SwigluBackward {
  static constexpr std::string_view name = "swiglu_backward";
  TensorView du, gate, up;  // [rows, F]
  TensorView dgate, dup;    // [rows, F] =

  template <class Self, class F>
  static void operands(Self& s, F&& f) {
    f("du", s.du, Access::read), f("gate", s.gate, Access::read), f("up", s.up, Access::read);
    f("dgate", s.dgate, Access::write), f("dup", s.dup, Access::write);
  }
  const char* check() const;
  double flops() const { return 9.0 * static_cast<double>(du.size()); }
};

struct RaggedAttention {
  static constexpr std::string_view name = "ragged_attention";
  TensorView q;          // [Nq, Hq, D]
  TensorView k;          // [Nk, Hk, D]
  TensorView v;          // [Nk, Hk, Dv]
  TensorView cu_q;       // [documents + 1] i32
  TensorView cu_k;       // [documents + 1] i32
  TensorView out;        // [Nq, Hq, Dv] = ; 0 for a query that sees no key
  TensorView lse;        // [Nq, Hq] = ; of the capped logits
  TensorView max_logit;  // [Hq] = ; before the cap, over visible pairs
  TensorView workspace;  // bytes
  RaggedShape shape;

  template <class Self, class F>
  static void operands(Self& s, F&& f) {
    f("q", s.q, Access::read), f("k", s.k, Access::read), f("v", s.v, Access::read);
    f("cu_q", s.cu_q, Access::read), f("cu_k", s.cu_k, Access::read), f("out", s.out, Access::write);
    f("lse", s.lse, Access::write), f("max_logit", s.max_logit, Access::write);
    f("workspace", s.workspace, Access::scratch);
  }
  const char* check() const;
  double flops() const;
};

struct RaggedAttentionBackward {
  static constexpr std::string_view name = "ragged_attention_backward";
  TensorView dout;                           // [Nq, Hq, Dv]
  TensorView q, k, v, cu_q, cu_k, out, lse;  // as in forward
  TensorView dq, dk, dv;                     // like q, k, v =
  TensorView workspace = {};                 // bytes
  RaggedShape shape;

  template <class Self, class F>
  static void operands(Self& s, F&& f) {
    f("dout", s.dout, Access::read), f("q", s.q, Access::read), f("k", s.k, Access::read), f("v", s.v, Access::read);
    f("cu_q", s.cu_q, Access::read), f("cu_k", s.cu_k, Access::read), f("out", s.out, Access::read);
    f("lse", s.lse, Access::read), f("dq", s.dq, Access::write), f("dk", s.dk, Access::write);
    f("dv", s.dv, Access::write), f("workspace", s.workspace, Access::scratch);
  }
  const char* check() const;
  double flops() const;
};

// y = the polar factor of x, nearly: quintic Newton-Schulz steps (3.4445, -4.7750, 2.0315) on x / (|x|_F + eps)
struct NewtonSchulz {
  static constexpr std::string_view name = "newton_schulz";
  TensorView x;          // [rows, cols]
  TensorView y;          // [rows, cols] =
  TensorView workspace;  // bytes
  std::int64_t steps = 5;
  double eps = 1e-7;

  template <class Self, class F>
  static void operands(Self& s, F&& f) {
    f("x", s.x, Access::read), f("y", s.y, Access::write), f("workspace", s.workspace, Access::scratch);
  }
  const char* check() const;
  double flops() const;
  // 4 m^2 n + 2 m^3 a step, with m <= n the sides
  static double flops(std::int64_t rows, std::int64_t cols, std::int64_t steps);
};

}  // namespace op
}  // namespace stacklab
