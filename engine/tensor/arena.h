// One aligned block of memory. Arenas and mapped files own memory; nothing else does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "engine/base/result.h"

namespace stacklab {

class Arena {
 public:
  static constexpr std::int64_t alignment = 64;

  Arena() = default;
  // Zeroed memory. Fails with the size wanted when there is not enough; what names its use in that message.
  static Result<Arena> allocate(std::int64_t bytes, std::string_view what);

  std::byte* data() const { return memory_.get(); }
  std::int64_t bytes() const { return bytes_; }

 private:
  struct Unmap {
    void* mapping;
    std::size_t length;
    void operator()(std::byte* p) const;
  };
  std::unique_ptr<std::byte, Unmap> memory_;
  std::int64_t bytes_ = 0;
};

}  // namespace stacklab
