#include "engine/service/bench_store.h"

#include <cmath>

#include "engine/base/atomic_file.h"
#include "engine/base/clock.h"
#include "engine/base/environment.h"
#include "engine/store/store.h"
#include "engine/store/store_reader.h"

namespace stacklab {
namespace {

constexpr std::int64_t metrics_of_a_step = 8;

MetricEvent event_of(std::int64_t step) {
  const double loss = 3 + 7 / std::sqrt(static_cast<double>(step));
  return {step,
          step * 4096,
          static_cast<double>(step) * 0.01,
          1.7e9 + static_cast<double>(step),
          {{metric::loss, loss},
           {metric::ce, loss - 0.01},
           {metric::z_loss, 0.01},
           {metric::adam_lr, 1e-3},
           {metric::grad_norm, 1 / loss},
           {metric::update_norm, 0.1 * loss},
           {metric::max_logit, 10 + loss},
           {metric::tokens_per_second, 1e5}}};
}

}  // namespace

Result<std::vector<StoreMeasurement>> bench_store(const StoreBenchOptions& options) {
  // Never committed: it vanishes with this function.
  auto folder = AtomicDirectory::create(options.folder / "store-bench");
  if (!folder) return tl::unexpected(folder.error());
  const std::filesystem::path workspace = folder->path();
  std::vector<StoreMeasurement> rows;
  double begin = steady_seconds();
  const auto add = [&](const char* task, std::int64_t values) {
    std::error_code ec;
    std::int64_t bytes = 0;
    for (const char* file : {"stacklab.db", "stacklab.db-wal"}) {
      const auto size = std::filesystem::file_size(workspace / file, ec);
      if (!ec) bytes += static_cast<std::int64_t>(size);
    }
    rows.push_back({task, values, steady_seconds() - begin, bytes, peak_resident_bytes()});
    begin = steady_seconds();
  };

  auto store = Store::open(workspace);
  if (!store) return tl::unexpected(store.error());
  ClaimRequest request;
  request.id = "000000000000";
  request.name = "bench";
  request.folder = "bench";
  request.config_json = "{}";
  request.total_steps = options.steps;
  const auto claim = (*store)->claim(request, {});
  if (!claim) return tl::unexpected(claim.error());
  const std::int64_t values = options.steps * metrics_of_a_step;
  begin = steady_seconds();
  {
    const auto sink = (*store)->sink(*claim);
    for (std::int64_t step = 1; step <= options.steps; ++step) sink->metrics(event_of(step));
    add("report", values);
    if (Status flushed = (*store)->flush(); !flushed) return tl::unexpected(flushed.error());
    add("commit", values);
    rows.back().seconds += rows.front().seconds;  // from the first report on
  }
  auto reader = open_store_reader(workspace);
  if (!reader) return tl::unexpected(reader.error());
  begin = steady_seconds();
  if (const auto runs = (*reader)->runs(); !runs) return tl::unexpected(runs.error());
  add("run list", 1);
  const auto curve = (*reader)->series(claim->run, std::string(metric::loss), 0, options.steps);
  if (!curve) return tl::unexpected(curve.error());
  if (std::ssize(*curve) != options.steps) return failed("the store gave back fewer values than it took");
  add("curve", std::ssize(*curve));
  const std::int64_t last = std::max<std::int64_t>(0, options.steps - 1000);
  const auto end = (*reader)->series(claim->run, std::string(metric::loss), last, 1000);
  if (!end) return tl::unexpected(end.error());
  add("end of curve", std::ssize(*end));
  reader->reset();
  if (Status ended = (*store)->end(*claim, {.state = RunState::finished, .cause = {}}); !ended)
    return tl::unexpected(ended.error());
  return rows;
}

}  // namespace stacklab
