// The CPU backend in f32 (operands kept in bf16 are converted while they are packed): one pair of functions per
// operation, defined in the file of its family. What is not declared here runs on the reference.
#pragma once

#include "kernels/backend.h"

namespace stacklab::cpu {

// Whether this processor runs it at all.
bool available();

// products.cpp, loss_head.cpp, attention.cpp, optimiser.cpp: needs(op) and run(op, context) of each operation.

// Operations that are declared above.
template <class T>
concept Own = requires(const T& o, const KernelContext& context) {
  needs(o);
  run(o, context);
};

Needs needs_of(const Op& operation);
void run_on(const Op& operation, const KernelContext& context);

}  // namespace stacklab::cpu
