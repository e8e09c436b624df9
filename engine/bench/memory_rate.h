// How fast this computer's memory is, with a number of threads.
#pragma once

#include "engine/base/result.h"
#include "kernels/context.h"

namespace stacklab::bench {

// Bytes per second, read and written, of a copy that no cache holds, the best round. Errors: not enough memory.
Result<double> memory_bytes_per_second(ParallelFor& threads, double seconds);

}  // namespace stacklab::bench
