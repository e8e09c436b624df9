// The rate of matrix products that model FLOPs utilisation on a CPU is held against: what this computer reaches on the
// merged training products of Stack-100M, weighted by their FLOPs. Measured once for each processor, build, instruction
// set, type and number of threads, and kept in the workspace.
#pragma once

#include <filesystem>

#include "engine/base/result.h"
#include "kernels/tensor_view.h"

namespace stacklab {

// FLOPs per second. The first call takes about a third of a second; later ones read <workspace>/gemm_rates.json. A file
// that cannot be read or written is no reason to fail: then it is measured, and measured again. Errors: the CPU backend
// does not run on this processor.
// stored: the type of the factors, f32 or bf16.
Result<double> gemm_rate(const std::filesystem::path& workspace, int threads, DType stored);

}  // namespace stacklab
