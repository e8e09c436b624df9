// Buffers of a measurement as the executor's: of one arena, each at the beginning of a cache line.
#pragma once

#include "engine/tensor/arena.h"
#include "kernels/cpu/workspace.h"

namespace stacklab::bench {

// layout(carver) takes every buffer: once to count, once to have them.
template <class Layout>
Result<Arena> carve(const Layout& layout) {
  cpu::Carver counting;
  layout(counting);
  auto arena = Arena::allocate(counting.bytes(), "buffers to measure with");
  if (!arena) return arena;
  TensorView view;
  view.data = arena->data();
  cpu::Carver carver(view);
  layout(carver);
  return arena;
}

// Numbers that repeat.
inline void fill(float* v, std::int64_t count, int period) {
  for (std::int64_t i = 0, at = 0; i < count; ++i, at = at + 1 < period ? at + 1 : 0)
    v[i] = static_cast<float>(at) * 0.125f - 1;
}

}  // namespace stacklab::bench
