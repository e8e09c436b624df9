// Fixed cuts of elementwise work: where blocks begin depends on the number of elements alone, so that sums over them
// do not depend on the number of threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/gemm.h"

namespace stacklab::cpu {

struct Blocks {
  static constexpr std::int64_t most = 256;
  static constexpr std::int64_t step = 16;  // blocks begin at multiples of it: whole cache lines of f32
  std::int64_t n, each, count;
  // Blocks begin at multiples of `multiple`, which step divides and fewest is a multiple of.
  explicit Blocks(std::int64_t elements, std::int64_t multiple = step) : n(elements) {
    constexpr std::int64_t fewest = 4096;
    each = std::max(fewest, ((n + most - 1) / most + multiple - 1) / multiple * multiple);
    count = (n + each - 1) / each;
  }
  std::int64_t begin(std::int64_t block) const { return block * each; }
  std::int64_t end(std::int64_t block) const { return std::min(n, (block + 1) * each); }
};

// Calls f(begin, end) for every block. nanoseconds: of an element, roughly.
template <class F>
void for_blocks(const KernelContext& context, std::int64_t n, double nanoseconds, F&& f) {
  const Blocks blocks(n);
  for_each_worth(context, blocks.count, nanoseconds * static_cast<double>(n),
                 [&](std::int64_t block) { f(blocks.begin(block), blocks.end(block)); });
}

// The same for f that returns a double: their sum, in the order of blocks.
template <class F>
double sum_over_blocks(const KernelContext& context, std::int64_t n, double nanoseconds, F&& f,
                       std::int64_t multiple = Blocks::step) {
  const Blocks blocks(n, multiple);
  double partial[Blocks::most];
  for_each_worth(context, blocks.count, nanoseconds * static_cast<double>(n),
                 [&](std::int64_t block) { partial[block] = f(blocks.begin(block), blocks.end(block)); });
  double sum = 0;
  for (std::int64_t block = 0; block < blocks.count; ++block) sum += partial[block];
  return sum;
}

}  // namespace stacklab::cpu
