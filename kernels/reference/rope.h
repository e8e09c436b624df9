// Rotary positions: the table of angles, and the rotation of one head.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/reference/matmul.h"
#include "kernels/tensor_view.h"

namespace stacklab::reference {

// cos and sin of position * theta^(-2i/D) for each token: [T, D], cosines first. Angles are taken in the run's own
// precision.
template <class T>
void angle_table(const KernelContext& context, T* table, const TensorView& positions, std::int64_t head_dim,
                 double theta) {
  const std::int64_t half = head_dim / 2;
  for_row_blocks(context, positions.rows(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = 0; i < half; ++i) {
      const T frequency =
          static_cast<T>(std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim)));
      for (std::int64_t t = begin; t < end; ++t) {
        const T angle = static_cast<T>(positions.as<std::int32_t>()[t]) * frequency;
        table[t * head_dim + i] = std::cos(angle);
        table[t * head_dim + half + i] = std::sin(angle);
      }
    }
  });
}

// Rotates the halves (i, i + D/2) of a head by one row of the table; direction -1 turns back.
template <class T>
void rotate(T* head, const T* angles, std::int64_t head_dim, int direction) {
  const std::int64_t half = head_dim / 2;
  for (std::int64_t i = 0; i < half; ++i) {
    const T c = angles[i], s = static_cast<T>(direction) * angles[half + i];
    const T a = head[i], b = head[i + half];
    head[i] = a * c - b * s;
    head[i + half] = b * c + a * s;
  }
}

}  // namespace stacklab::reference
