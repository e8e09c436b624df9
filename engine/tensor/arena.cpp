#include "engine/tensor/arena.h"

#include <fmt/core.h>
#include <sys/mman.h>

namespace stacklab {

void Arena::Unmap::operator()(std::byte* p) const { munmap(p, length); }

Result<Arena> Arena::allocate(std::int64_t bytes, std::string_view what) {
  Arena arena;
  if (bytes == 0) return arena;
  // Fresh pages from the kernel are zero and page-aligned, and count as resident only once touched.
  void* p = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED)
    return failed(fmt::format("{}: {:.3f} GB of memory cannot be had", what, static_cast<double>(bytes) / 1e9),
                  "use a smaller run.micro_batch or model, or free memory");
  arena.memory_ = {static_cast<std::byte*>(p), Unmap{static_cast<std::size_t>(bytes)}};
  arena.bytes_ = bytes;
  return arena;
}

}  // namespace stacklab
