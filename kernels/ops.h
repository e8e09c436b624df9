// Every operation, declared once. An operation is as coarse as the widest fusion that any backend wants.
//
// An operation is a struct of operands (views) and attributes (doubles and counts). It says what it does to each
// operand, checks its shapes, and counts its work. While a Program is built the views have a place and no address; a
// backend sees them bound.
//
// Shapes: T tokens of the (flattened) micro-batch, d model width, V vocabulary, F hidden width of the FFN, Hq query
// heads, Hk key-value heads, Dh head width, D documents. Matrices are [out, in]. Merged matrices are row ranges of one
// buffer: w_qkv = [q; k; v], w_gate_up = [gate; up]. `saved` is what a backend keeps for its own backward: its size and
// contents are the backend's matter (Backend::needs). All real operands of one operation have one type (f32 or f64)
// unless said otherwise; those marked bf16 may also be kept in bf16 where the others are f32. Operands never overlap,
// except as `may_alias` allows.
#pragma once

#include <string_view>
#include <type_traits>
#include <variant>

#include "kernels/access.h"
#include "kernels/ops_fine.h"
#include "kernels/ops_model.h"
#include "kernels/ops_optimiser.h"
#include "kernels/tensor_view.h"

namespace stacklab {

using Op = std::variant<op::Embedding, op::EmbeddingBackward, op::NormMatmul, op::NormMatmulBackward, op::Attention,
                        op::AttentionBackward, op::ProjectAdd, op::ProjectAddBackward, op::NormSwiglu,
                        op::SwigluProjectBackward, op::NormSwigluBackward, op::Logits, op::LossHead, op::SumSquares,
                        op::ClipScale, op::AdamW, op::AdamWCompact, op::Muon, op::QkClipHeads, op::QkClipGains,
                        op::Cast, op::RmsNorm, op::RmsNormBackward, op::Rope, op::Swiglu, op::SwigluBackward,
                        op::RaggedAttention, op::RaggedAttentionBackward, op::NewtonSchulz>;

namespace op {

// Presents the operands that are there; a gradient is an operand that is written or added to.
template <class F>
struct PresentOperands {
  F& f;
  template <class View>
  void operator()(std::string_view operand, View& v, Access a) const {
    if (v.present()) f(operand, v, a);
  }
  template <class Gradient>
  void operator()(std::string_view operand, Gradient& g) const {
    if (g.present()) f(operand, g.view, g.accumulate ? Access::add : Access::write);
  }
};

}  // namespace op

// Calls f(name, view, access) for each operand that is present.
template <class AnyOp, class F>
void for_each_operand(AnyOp& operation, F&& f) {
  using Function = std::remove_reference_t<F>;
  std::visit([&](auto& o) { std::remove_cvref_t<decltype(o)>::operands(o, op::PresentOperands<Function>{f}); },
             operation);
}

std::string_view name_of(const Op& operation);
// Null when the operands fit together, else what does not: a static message.
const char* check(const Op& operation);
// Multiplications and additions.
double flops_of(const Op& operation);
// Bytes that must move when every operand is touched once (twice where it is read and written).
double bytes_of(const Op& operation);
// Whether the written operand may lie exactly where the other one lies.
bool may_alias(const Op& operation, std::string_view written, std::string_view other);

}  // namespace stacklab
