#include "engine/bench/memory_rate.h"

#include <limits>

#include "engine/bench/memory.h"
#include "engine/bench/timing.h"

namespace stacklab::bench {

Result<double> memory_bytes_per_second(ParallelFor& threads, double seconds) {
  constexpr std::int64_t count = 24 << 20, tasks = 64, each = count / tasks;
  float *x = nullptr, *y = nullptr, *z = nullptr;
  const auto memory = carve([&](cpu::Carver& carver) {
    x = carver.take<float>(count), y = carver.take<float>(count), z = carver.take<float>(count);
  });
  if (!memory) return tl::unexpected(memory.error());
  fill(y, count, 17), fill(z, count, 13);
  KernelContext context;
  context.parallel = &threads;
  double best = std::numeric_limits<double>::infinity();
  const double begin = steady_seconds();
  for (int round = 0; round < 3 || steady_seconds() - begin < seconds; ++round)
    time_into(best, [&] {
      context.for_each(tasks, [&](std::int64_t task) {
        for (std::int64_t i = task * each; i < (task + 1) * each; ++i) x[i] = y[i] + 0.5f * z[i];
      });
    });
  return 3.0 * sizeof(float) * static_cast<double>(count) / best;
}

}  // namespace stacklab::bench
