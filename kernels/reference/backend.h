// The reference as a backend: every operation in float and double. Operands kept in bf16 are widened to f32 in the
// workspace and rounded back.
#pragma once

#include "kernels/backend.h"

namespace stacklab::reference {

Needs needs_of(const Op& operation);
void run_on(const Op& operation, const KernelContext& context);

}  // namespace stacklab::reference
