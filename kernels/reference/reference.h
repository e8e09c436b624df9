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

// Operations without needs of their own want nothing.
template <class AnyOp>
Needs needs(const AnyOp&) {
  return {};
}
Needs needs(const op::NormMatmul& o);
Needs needs(const op::NormMatmulBackward& o);
Needs needs(const op::Attention& o);
Needs needs(const op::AttentionBackward& o);
Needs needs(const op::NormSwiglu& o);
Needs needs(const op::NormSwigluBackward& o);
Needs needs(const op::Logits& o);
Needs needs(const op::LossHead& o);

}  // namespace stacklab::reference
