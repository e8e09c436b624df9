// What attention forward and backward do before they multiply. Included once for each instruction set.
#if defined(STACKLAB_KERNELS_CPU_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STACKLAB_KERNELS_CPU_ATTENTION_INL_H_
#undef STACKLAB_KERNELS_CPU_ATTENTION_INL_H_
#else
#define STACKLAB_KERNELS_CPU_ATTENTION_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/attention.h"
#include "kernels/cpu/heads-inl.h"
#include "kernels/cpu/pack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stacklab::cpu::HWY_NAMESPACE {

// A gain as rows in work want it, or null.
struct PaddedGain {
  HeadRow row;
  const float* at = nullptr;
  PaddedGain(const float* gain, const AttentionSizes& s) {
    if (!gain) return;
    widen_row(gain, s.head_dim, row.at, s.width());
    at = row.at;
  }
};

// The front of the workspace: frequencies, and a row of angles for each token.
struct Angles {
  double* frequencies;
  float* table;
  float* rest;
  std::int64_t width;  // 0: no rotation

  template <class E>
  explicit Angles(const AttentionCall<E>& call)
      : frequencies(reinterpret_cast<double*>(call.workspace)),
        table(call.workspace + call.sizes.frequencies()),
        rest(table + call.sizes.angles()),
        width(call.sizes.rope ? call.sizes.width() : 0) {
    if (width > 0) write_frequencies(call.rope_theta, call.sizes.head_dim, frequencies);
  }
  const float* row(std::int64_t t) const { return width > 0 ? table + t * width : nullptr; }
  void write(const std::int32_t* positions, std::int64_t begin, std::int64_t end) const {
    for (std::int64_t t = begin; width > 0 && t < end; ++t)
      angle_row(frequencies, positions[t], width, table + t * width);
  }
};

// Panels of keys of one head, which begin where a document or a block of it begins.
struct KeyPanels {
  float* base;
  std::int64_t dim, head_floats;
  KeyPanels(float* at, const AttentionSizes& s, std::int64_t head_dim)
      : base(at), dim(head_dim), head_floats(s.panels(head_dim)) {}
  // Key j of document e, where a panel begins.
  float* at(const Documents& docs, std::int64_t e, std::int64_t j, std::int64_t head) const {
    return base + head * head_floats + (Documents::block_number(docs.cu_k, e, 0, tile_cols) * tile_cols + j) * dim;
  }
  // From rows of keys.
  void pack(const float* rows, std::int64_t width, std::int64_t keys, float* to) const {
    for (std::int64_t c = 0; c < keys; c += tile_cols)
      pack_panel_transposed(rows, width, c, std::min(keys, c + tile_cols), 0, dim, to + c * dim);
  }
};

}  // namespace stacklab::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
