// The CPU backend in f32; products of operands kept in bf16 are made in bf16 with sums in f32 where the processor can,
// and elsewhere converted while they are packed. One pair of functions per operation, defined in the file of its
// family. What is not declared here runs on the reference.
#pragma once

#include "kernels/backend.h"

namespace stacklab::cpu {

// Whether this processor runs it at all.
bool available();

// products.cpp, loss_head.cpp, attention_ops.cpp, embedding.cpp, optimiser.cpp, adamw_compact.cpp, muon.cpp, fine.cpp:
// needs(op) and run(op, context) of each operation.
Needs needs(const op::NormMatmul& o);
void run(const op::NormMatmul& o, const KernelContext& context);
Needs needs(const op::NormMatmulBackward& o);
void run(const op::NormMatmulBackward& o, const KernelContext& context);
Needs needs(const op::ProjectAdd& o);
void run(const op::ProjectAdd& o, const KernelContext& context);
Needs needs(const op::ProjectAddBackward& o);
void run(const op::ProjectAddBackward& o, const KernelContext& context);
Needs needs(const op::NormSwiglu& o);
void run(const op::NormSwiglu& o, const KernelContext& context);
Needs needs(const op::SwigluProjectBackward& o);
void run(const op::SwigluProjectBackward& o, const KernelContext& context);
Needs needs(const op::NormSwigluBackward& o);
void run(const op::NormSwigluBackward& o, const KernelContext& context);
Needs needs(const op::Logits& o);
void run(const op::Logits& o, const KernelContext& context);
Needs needs(const op::LossHead& o);
void run(const op::LossHead& o, const KernelContext& context);
Needs needs(const op::Attention& o);
void run(const op::Attention& o, const KernelContext& context);
Needs needs(const op::AttentionBackward& o);
void run(const op::AttentionBackward& o, const KernelContext& context);
Needs needs(const op::Rope& o);
void run(const op::Rope& o, const KernelContext& context);
Needs needs(const op::RaggedAttention& o);
void run(const op::RaggedAttention& o, const KernelContext& context);
Needs needs(const op::RaggedAttentionBackward& o);
void run(const op::RaggedAttentionBackward& o, const KernelContext& context);

inline Needs needs(const op::Embedding&) { return {}; }
void run(const op::Embedding& o, const KernelContext& context);
inline Needs needs(const op::EmbeddingBackward&) { return {}; }
void run(const op::EmbeddingBackward& o, const KernelContext& context);

inline Needs needs(const op::SumSquares&) { return {}; }
void run(const op::SumSquares& o, const KernelContext& context);
inline Needs needs(const op::AdamW&) { return {}; }
void run(const op::AdamW& o, const KernelContext& context);
inline Needs needs(const op::AdamWCompact&) { return {}; }
void run(const op::AdamWCompact& o, const KernelContext& context);
Needs needs(const op::Muon& o);
void run(const op::Muon& o, const KernelContext& context);
Needs needs(const op::NewtonSchulz& o);
void run(const op::NewtonSchulz& o, const KernelContext& context);
inline Needs needs(const op::QkClipHeads&) { return {}; }
void run(const op::QkClipHeads& o, const KernelContext& context);
inline Needs needs(const op::Cast&) { return {}; }
void run(const op::Cast& o, const KernelContext& context);

inline Needs needs(const op::RmsNorm&) { return {}; }
void run(const op::RmsNorm& o, const KernelContext& context);
Needs needs(const op::RmsNormBackward& o);
void run(const op::RmsNormBackward& o, const KernelContext& context);
inline Needs needs(const op::Swiglu&) { return {}; }
void run(const op::Swiglu& o, const KernelContext& context);
inline Needs needs(const op::SwigluBackward&) { return {}; }
void run(const op::SwigluBackward& o, const KernelContext& context);

// Operations that are declared above.
template <class T>
concept Own = requires(const T& o, const KernelContext& context) {
  needs(o);
  run(o, context);
};

Needs needs_of(const Op& operation);
void run_on(const Op& operation, const KernelContext& context);

}  // namespace stacklab::cpu
