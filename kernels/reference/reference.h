// The plain version of every operation: the oracle of every fast version, on float and double. Sums run in a fixed
// order, so results do not depend on the number of threads. One function per operation: needs() from shapes, run<T>()
// on bound views.
#pragma once

#include "kernels/backend.h"

namespace stacklab::reference {

template <class T>
void run(const op::Embedding& o, const KernelContext& context);
template <class T>
void run(const op::EmbeddingBackward& o, const KernelContext& context);
template <class T>
void run(const op::NormMatmul& o, const KernelContext& context);
template <class T>
void run(const op::NormMatmulBackward& o, const KernelContext& context);
template <class T>
void run(const op::Attention& o, const KernelContext& context);
template <class T>
void run(const op::AttentionBackward& o, const KernelContext& context);
template <class T>
void run(const op::ProjectAdd& o, const KernelContext& context);
template <class T>
void run(const op::ProjectAddBackward& o, const KernelContext& context);
template <class T>
void run(const op::NormSwiglu& o, const KernelContext& context);
template <class T>
void run(const op::SwigluProjectBackward& o, const KernelContext& context);
template <class T>
void run(const op::NormSwigluBackward& o, const KernelContext& context);
template <class T>
void run(const op::Logits& o, const KernelContext& context);
template <class T>
void run(const op::LossHead& o, const KernelContext& context);
template <class T>
void run(const op::SumSquares& o, const KernelContext& context);
template <class T>
void run(const op::ClipScale& o, const KernelContext& context);
template <class T>
void run(const op::AdamW& o, const KernelContext& context);
template <class T>
void run(const op::AdamWCompact& o, const KernelContext& context);
template <class T>
void run(const op::Muon& o, const KernelContext& context);
template <class T>
void run(const op::QkClipHeads& o, const KernelContext& context);
template <class T>
void run(const op::QkClipGains& o, const KernelContext& context);
template <class T>
void run(const op::RmsNorm& o, const KernelContext& context);
template <class T>
void run(const op::RmsNormBackward& o, const KernelContext& context);
template <class T>
void run(const op::Rope& o, const KernelContext& context);
template <class T>
void run(const op::Swiglu& o, const KernelContext& context);
template <class T>
void run(const op::SwigluBackward& o, const KernelContext& context);
template <class T>
void run(const op::RaggedAttention& o, const KernelContext& context);
template <class T>
void run(const op::RaggedAttentionBackward& o, const KernelContext& context);
template <class T>
void run(const op::NewtonSchulz& o, const KernelContext& context);

// Operations without needs of their own want nothing.
template <class AnyOp>
Needs needs(const AnyOp&) {
  return {};
}
// Cast is the backend's (backend.cpp): it is about storage.
template <class T>
void run(const op::Cast&, const KernelContext&) {}

Needs needs(const op::NormMatmul& o);
Needs needs(const op::NormMatmulBackward& o);
Needs needs(const op::Attention& o);
Needs needs(const op::AttentionBackward& o);
Needs needs(const op::NormSwiglu& o);
Needs needs(const op::SwigluProjectBackward& o);
Needs needs(const op::NormSwigluBackward& o);
Needs needs(const op::Logits& o);
Needs needs(const op::LossHead& o);
Needs needs(const op::Muon& o);
Needs needs(const op::NewtonSchulz& o);
Needs needs(const op::RmsNormBackward& o);
Needs needs(const op::Rope& o);
Needs needs(const op::RaggedAttention& o);

}  // namespace stacklab::reference
