// How fast this computer's memory is, with a number of threads.
#pragma once

#include "engine/base/result.h"
#include "kernels/context.h"

namespace stacklab::bench {

// Bytes per second of x = y + a z over arrays that no cache holds, each element read or written counted once, the best
// round. Errors: not enough memory.
Result<double> memory_bytes_per_second(ParallelFor& threads, double seconds);

}  // namespace stacklab::bench
