// Nothing allocates after the first step: malloc and its like, or under a sanitizer operator new, are counted over the
// next ones.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <new>

#include "engine/base/thread_team.h"
#include "engine/train/train_step.h"
#include "tests/engine/train/train_harness.h"

namespace {

std::atomic<bool> counting{false};
std::atomic<long> allocations{0};

}  // namespace

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// Every allocation of the process, those of C libraries and of operator new among them, comes down to these.
extern "C" {
void* __libc_malloc(std::size_t bytes) noexcept;
void* __libc_calloc(std::size_t count, std::size_t bytes) noexcept;
void* __libc_realloc(void* p, std::size_t bytes) noexcept;
void* __libc_memalign(std::size_t alignment, std::size_t bytes) noexcept;

void* malloc(std::size_t bytes) noexcept {
  if (counting) ++allocations;
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) noexcept {
  if (counting) ++allocations;
  return __libc_calloc(count, bytes);
}
void* realloc(void* p, std::size_t bytes) noexcept {
  if (counting) ++allocations;
  return __libc_realloc(p, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
  if (counting) ++allocations;
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept { return memalign(alignment, bytes); }
int posix_memalign(void** p, std::size_t alignment, std::size_t bytes) noexcept {
  *p = memalign(alignment, bytes);
  return *p == nullptr ? ENOMEM : 0;
}
}
#else
namespace {

void* counted(std::size_t bytes, std::size_t alignment) {
  if (counting) ++allocations;
  void* p = alignment > alignof(std::max_align_t)
                ? std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment)
                : std::malloc(bytes > 0 ? bytes : 1);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}

}  // namespace

// All other forms of new and delete come down to these.
void* operator new(std::size_t bytes) { return counted(bytes, 0); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment));
}
// The sanitizer's own would not come down to these.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return counted(bytes, 0);
  } catch (...) {
    return nullptr;
  }
}
[[gnu::noinline]] void operator delete(void* p, const std::nothrow_t&) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
#endif

namespace stacklab::test {
namespace {

class Team final : public ParallelFor {
 public:
  void run(std::int64_t tasks, void (*fn)(void*, std::int64_t), void* self) override { team_.run(tasks, fn, self); }
  int threads() const override { return team_.threads(); }

 private:
  ThreadTeam team_{2};
};

// The allocations of steps 2 to 5 and of the second of two evaluations, batches included.
long allocations_of_later_steps(const RunConfig& c, const Dataset& data) {
  Team team;
  const LoaderShape shape = *loader_shape(c);
  const auto training = BatchLoader::training(data, shape, 1, Packing::fragment);
  const auto held_out = BatchLoader::validation(data, shape);
  EXPECT_TRUE(training && held_out);
  const BatchLoader &loader = *training, &validation = *held_out;
  auto step = TrainStep::create(c, shape, **training_backend(c), &team);
  EXPECT_TRUE(step) << step.error().message();
  initialise((*step)->programs().model.parameters(), 3, (*step)->executor());
  EXPECT_GE(loader.steps_per_epoch_rounded_up(), 6) << "a new epoch may allocate";
  StepBatch batch;
  (*step)->evaluate(validation, 1);
  loader.fill(0, batch);
  (*step)->run(batch, {1e-3, 1e-3});
  allocations = 0;
  counting = true;
  for (int s = 1; s < 5; ++s) {
    loader.fill(s, batch);
    const StepResult r = (*step)->run(batch, {1e-3, 1e-3});
    if (!(r.loss() > 0)) ++allocations;
  }
  (*step)->evaluate(validation, 1);
  counting = false;
  return allocations;
}

TEST(Allocations, AreCounted) {
  allocations = 0;
  counting = true;
  { const std::vector<int> memory(1000); }
  void* volatile memory = std::malloc(100);
  std::free(memory);
  counting = false;
  EXPECT_GE(allocations, 1) << "operator new is not counted";
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_EQ(allocations, 2) << "malloc is not counted";
#endif
}

TEST(Allocations, NoneAfterTheFirstStep) {
  const TemporaryFolder folder;
  const Dataset data = small_data(folder.path());
  for (const char* device : {"auto", "reference"})
    for (const char* matrices : {"adamw", "muon"})
      for (const char* precision : {"fp32", "bf16"}) {
        const std::int64_t micro = device == std::string("auto") ? 4 : 2;
        RunConfig c = small_config();
        c.train.precision = precision;
        c.run.device = device, c.optim.matrices = matrices, c.run.micro_batch = micro;
        for (const auto& [state, recompute] :
             {std::pair("fp32", "none"), std::pair("int8", "block"), std::pair("bf16", "swiglu")}) {
          c.optim.adam_state = state, c.run.recompute = recompute;
          EXPECT_EQ(allocations_of_later_steps(c, data), 0)
              << device << ", " << matrices << ", " << precision << ", " << state << ", " << recompute;
        }
      }
}

}  // namespace
}  // namespace stacklab::test
