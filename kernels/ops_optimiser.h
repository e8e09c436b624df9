// The operations of the optimiser segment: see ops.h for conventions.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/access.h"
#include "kernels/tensor_view.h"

namespace stacklab {
namespace op {

// out[slot] = sum of squares of g, in double
struct SumSquares {
  static constexpr std::string_view name = "sum_squares";
  TensorView g;    // any shape
  TensorView out;  // [1] f64 =: one slot of the partial sums

  template <class Self, class F>
  static void operands(Self& s, F&& f) {
    f("g", s.g, Access::read), f("out", s.out, Access::write);
  }
  const char* check() const;
  double flops() const { return 2.0 * static_cast<double>(g.size()); }
};

// norm = sqrt(sum of partials); scale = min(1, max_norm / (norm + 1e-6)), 1 where max_norm is 0.
// A norm that is not finite makes scale 0 and leaves the count of updates as it is: the updates that follow then change
// nothing.
struct ClipScale {
  static constexpr std::string_view name = "clip_scale";
  TensorView partials;  // [n] f64
  TensorView norm;      // [1] f64 =
  TensorView scale;     // [1] f64 =
  TensorView updates;   // [1] f64: updates applied so far; + 1 when the norm is finite
  double max_norm = 0;

  template <class Self, class F>
  static void operands(Self& s, F&& f) {
    f("partials", s.partials, Access::read), f("norm", s.norm, Access::write), f("scale", s.scale, Access::write);
    f("updates", s.updates, Access::update);
  }
  const char* check() const;
  double flops() const { return 0; }
};

// AdamW with bias correction, eps outside the root, decay by the raw rate (Loshchilov and Hutter 2019, algorithm 2).
// Nothing is changed when scale is 0.
struct AdamW {
  static constexpr std::string_view name = "adamw";
  TensorView w;        // any shape, updated
  TensorView g;        // like w
  TensorView m, v;     // like w, updated
  TensorView lr;       // [1] f64
  TensorView scale;    // [1] f64, of the gradient
  TensorView updates;  // [1] f64: this update's number, from 1
  TensorView change;   // [1] f64 = sum of squares of what was taken from w; or not present
  double beta1 = 0, beta2 = 0, eps = 0, weight_decay = 0;

  template <class Self, class F>
  static void operands(Self& s, F&& f) {
    f("w", s.w, Access::update), f("g", s.g, Access::read), f("m", s.m, Access::update), f("v", s.v, Access::update);
    f("lr", s.lr, Access::read), f("scale", s.scale, Access::read), f("updates", s.updates, Access::read);
    f("change", s.change, Access::write);
  }
  const char* check() const;
  double flops() const { return 14.0 * static_cast<double>(w.size()); }
};

// AdamW whose moments are kept in bf16, or in 8 bits (kernels/rounding.h), and the parameter perhaps in bf16 without an
// original in f32. All is computed as in AdamW, and what is kept is rounded by chance.
struct AdamWCompact {
  static constexpr std::string_view name = "adamw_compact";
  TensorView w;                   // any shape, bf16, updated
  TensorView g;                   // like w, real
  TensorView m, v;                // like w in bf16, or u8 codes, updated
  TensorView m_scales, v_scales;  // of codes: [blocks of moment_block elements], like g, updated; else not present
  TensorView lr, scale, updates;  // as in AdamW
  TensorView change;              // [1] f64 = sum of squares of what was taken from w, before rounding; or not present
  double beta1 = 0, beta2 = 0, eps = 0, weight_decay = 0;
  std::uint64_t seed = 0;  // of this tensor

  template <class Self, class F>
  static void operands(Self& s, F&& f) {
    f("g", s.g, Access::read), f("w", s.w, Access::update), f("m", s.m, Access::update), f("v", s.v, Access::update);
    f("m_scales", s.m_scales, Access::update), f("v_scales", s.v_scales, Access::update);
    f("lr", s.lr, Access::read), f("scale", s.scale, Access::read), f("updates", s.updates, Access::read);
    f("change", s.change, Access::write);
  }
  const char* check() const;
  double flops() const { return 30.0 * static_cast<double>(w.size()); }
};

// Muon (Jordan et al. 2024; scale and decay as Moonlight, Liu et al. 2025): m = momentum m + g; u = g + momentum m
// (Nesterov); w = w (1 - lr decay) - lr factor NS(u). rows = outputs. Nothing is changed when scale is 0.
struct Muon {
  static constexpr std::string_view name = "muon";
  TensorView w;          // [rows, cols], updated: one logical matrix, never merged ones
  TensorView g;          // like w
  TensorView m;          // like w, updated
  TensorView lr;         // [1] f64
  TensorView scale;      // [1] f64, of the gradient
  TensorView change;     // [1] f64 = sum of squares of what was taken from w; or not present
  TensorView workspace;  // bytes
  double momentum = 0, weight_decay = 0;
  double factor = 1;  // of the orthogonalised update
  std::int64_t ns_steps = 5;
  double ns_eps = 1e-7;

  template <class Self, class F>
  static void operands(Self& s, F&& f) {
    f("w", s.w, Access::update), f("g", s.g, Access::read), f("m", s.m, Access::update);
    f("lr", s.lr, Access::read), f("scale", s.scale, Access::read), f("change", s.change, Access::write);
    f("workspace", s.workspace, Access::scratch);
  }
  const char* check() const;
  double flops() const;
};

// QK-clip of a layer without QK-norm (Kimi K2, section 2.1), group form: gamma = min(1, tau / largest max logit of the
// group); the group's query rows and its key rows times sqrt(gamma). A NaN scales nothing.
struct QkClipHeads {
  static constexpr std::string_view name = "qk_clip_heads";
  TensorView wq;         // [Hq Dh, d], updated
  TensorView wk;         // [Hk Dh, d], updated
  TensorView max_logit;  // [Hq]
  std::int64_t n_heads = 0, n_kv_heads = 0;
  double threshold = 0;  // tau

  template <class Self, class F>
  static void operands(Self& s, F&& f) {
    f("wq", s.wq, Access::update), f("wk", s.wk, Access::update), f("max_logit", s.max_logit, Access::read);
  }
  const char* check() const;
  double flops() const { return 0; }
};

// QK-clip of a QK-normed layer: |logit| <= bound = sqrt(Dh) max|q_gain| max|k_gain|; above tau both gains times
// sqrt(tau / bound).
struct QkClipGains {
  static constexpr std::string_view name = "qk_clip_gains";
  TensorView q_gain, k_gain;  // [Dh], updated
  double threshold = 0;       // tau

  template <class Self, class F>
  static void operands(Self& s, F&& f) {
    f("q_gain", s.q_gain, Access::update), f("k_gain", s.k_gain, Access::update);
  }
  const char* check() const;
  double flops() const { return 0; }
};

// to = from, rounded to bf16 or widened to f32: the copy of a parameter that products work with.
struct Cast {
  static constexpr std::string_view name = "cast";
  TensorView from;  // any shape, f32 or bf16
  TensorView to;    // like from, f32 or bf16 =

  template <class Self, class F>
  static void operands(Self& s, F&& f) {
    f("from", s.from, Access::read), f("to", s.to, Access::write);
  }
  const char* check() const;
  double flops() const { return 0; }
};

}  // namespace op
}  // namespace stacklab
