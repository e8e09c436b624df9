#include "engine/bench/memory_rate.h"

#include <cstring>
#include <limits>

#include "engine/bench/memory.h"
#include "engine/bench/timing.h"

namespace stacklab::bench {

Result<double> memory_bytes_per_second(ParallelFor& threads, double seconds) {
  constexpr std::int64_t count = 32 << 20;
  float *from = nullptr, *to = nullptr;
  const auto memory =
      carve([&](cpu::Carver& carver) { from = carver.take<float>(count), to = carver.take<float>(count); });
  if (!memory) return tl::unexpected(memory.error());
  fill(from, count, 17);
  KernelContext context;
  context.parallel = &threads;
  const std::int64_t tasks = threads.threads(), each = count / tasks;
  double best = std::numeric_limits<double>::infinity();
  const double begin = steady_seconds();
  for (int round = 0; round < 3 || steady_seconds() - begin < seconds; ++round)
    time_into(best, [&] {
      context.for_each(tasks, [&](std::int64_t task) {
        std::memcpy(to + task * each, from + task * each, static_cast<std::size_t>(each) * sizeof(float));
      });
    });
  return 2.0 * sizeof(float) * static_cast<double>(tasks * each) / best;
}

}  // namespace stacklab::bench
