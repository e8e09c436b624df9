#include "engine/tensor/arena.h"

#include <fmt/core.h>
#include <sys/mman.h>

#include <cstdint>

namespace stacklab {
namespace {

constexpr std::int64_t huge_page = 2 << 20;

}  // namespace

void Arena::Unmap::operator()(std::byte*) const { munmap(mapping, length); }

Result<Arena> Arena::allocate(std::int64_t bytes, std::string_view what) {
  Arena arena;
  if (bytes == 0) return arena;
  // Fresh pages from the kernel are zero, and count as resident only once touched. Huge ones, where it grants them:
  // products walk through many rows at once, each in a page of its own, and packing them takes half as long again.
  const auto length = static_cast<std::size_t>(bytes + (bytes >= huge_page ? huge_page : 0));
  void* p = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED)
    return failed(fmt::format("{}: {:.3f} GB of memory cannot be had", what, static_cast<double>(bytes) / 1e9),
                  "use a smaller run.micro_batch or model, or free memory");
  auto* start = static_cast<std::byte*>(p);
  if (bytes >= huge_page) {
    start += (huge_page - reinterpret_cast<std::uintptr_t>(p) % huge_page) % huge_page;
    // Whole ones: the last would otherwise be resident beyond the plan.
    madvise(start, static_cast<std::size_t>(bytes / huge_page * huge_page), MADV_HUGEPAGE);
  }
  arena.memory_ = {start, Unmap{p, length}};
  arena.bytes_ = bytes;
  return arena;
}

}  // namespace stacklab
