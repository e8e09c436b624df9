// Cuts an operation's workspace (or what it saves) into pieces that begin on cache lines. Without memory it only
// counts: needs() and run() share one layout.
#pragma once

#include <cstdint>

#include "kernels/tensor_view.h"

namespace stacklab::cpu {

class Carver {
 public:
  Carver() = default;
  explicit Carver(const TensorView& memory) : start_(memory.data) {}

  template <class T>
  T* take(std::int64_t n) {
    T* piece = start_ ? reinterpret_cast<T*>(start_ + used_) : nullptr;
    used_ += (n * static_cast<std::int64_t>(sizeof(T)) + 63) / 64 * 64;
    return piece;
  }
  std::int64_t bytes() const { return used_; }

 private:
  std::byte* start_ = nullptr;
  std::int64_t used_ = 0;
};

}  // namespace stacklab::cpu
