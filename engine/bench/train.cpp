#include "engine/bench/train.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "engine/base/clock.h"
#include "engine/base/environment.h"
#include "engine/base/philox.h"
#include "engine/base/text.h"
#include "engine/base/thread_team.h"
#include "engine/bench/gemm.h"
#include "engine/bench/memory_rate.h"
#include "engine/config/config_io.h"
#include "engine/model/counts.h"
#include "engine/train/train_step.h"

namespace stacklab {
namespace {

struct Preset {
  std::string_view name;
  std::int64_t vocab_size, d_model, n_layers, n_heads, n_kv_heads, intermediate;
  std::int64_t seq_len, batch;
};
constexpr Preset presets[] = {{"stack100m", 32768, 512, 30, 8, 2, 1408, 2048, 1},
                              {"rungA", 8192, 256, 8, 4, 2, 704, 512, 8},
                              {"tiny", 4096, 128, 4, 2, 1, 352, 256, 16}};

// Rows of random tokens, each one document; every token has a target.
StepBatch random_batch(const LoaderShape& shape, std::int64_t vocab_size) {
  StepBatch batch;
  MicroBatch& m = batch.micro.emplace_back();
  const Philox numbers(1, 0);
  const auto token = [&](std::int64_t i) {
    return static_cast<std::int32_t>(numbers.uniform(static_cast<std::uint64_t>(i)) * static_cast<double>(vocab_size));
  };
  for (std::int64_t row = 0; row < shape.micro_batch; ++row)
    for (std::int64_t t = 0; t < shape.seq_len; ++t) {
      const std::int64_t i = row * (shape.seq_len + 1) + t;
      m.ids.push_back(token(i));
      m.targets.push_back(token(i + 1));
      m.positions.push_back(static_cast<std::int32_t>(t));
    }
  for (std::int64_t d = 0; d <= shape.max_documents(); ++d)
    m.cu_seqlens.push_back(static_cast<std::int32_t>(std::min(d, shape.micro_batch) * shape.seq_len));
  batch.targets = shape.tokens();
  return batch;
}

void sum_up(TrainBench& bench, const Trace& trace, std::vector<double> seconds) {
  const double steps = static_cast<double>(bench.steps), total = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  std::sort(seconds.begin(), seconds.end());
  bench.step_seconds = seconds[seconds.size() / 2];
  bench.mean_seconds = total / steps;
  bench.fastest_seconds = seconds.front(), bench.slowest_seconds = seconds.back();
  double forward = 0, backward = 0, optimiser = 0;
  for (const Trace::Entry& e : trace.entries) {
    (e.segment->name == "forward" ? forward : e.segment->name == "backward" ? backward : optimiser) += e.seconds;
    bench.executed_flops += flops_of(e.record->op) / steps;
  }
  const double share = bench.step_seconds / total;
  bench.forward_seconds = forward * share, bench.backward_seconds = backward * share;
  bench.optimiser_seconds = optimiser * share;
  for (const Trace::Total& t : trace.totals())
    bench.operations.push_back(
        {std::string(t.op), t.calls / bench.steps, t.seconds / steps, t.flops / steps, t.bytes / steps});
}

}  // namespace

Result<RunConfig> train_bench_config(const TrainBenchOptions& options) {
  const auto preset =
      std::find_if(std::begin(presets), std::end(presets), [&](const Preset& p) { return p.name == options.preset; });
  if (preset == std::end(presets)) {
    std::string names;
    for (const Preset& p : presets) names += (names.empty() ? "" : ", ") + std::string(p.name);
    return usage_error(fmt::format("preset: \"{}\" is none of {}", printable(options.preset), names));
  }
  RunConfig c;
  c.name = fmt::format("bench-{}", preset->name);
  c.model.vocab_size = preset->vocab_size, c.model.d_model = preset->d_model, c.model.n_layers = preset->n_layers;
  c.model.n_heads = preset->n_heads, c.model.n_kv_heads = preset->n_kv_heads;
  c.model.intermediate = preset->intermediate;
  c.optim.matrices = options.matrices;
  c.train.seq_len = options.seq_len > 0 ? options.seq_len : preset->seq_len;
  const std::int64_t rows = options.batch > 0 ? options.batch : preset->batch;
  c.model.max_seq_len = std::max(c.model.max_seq_len, c.train.seq_len);
  c.train.batch_tokens = rows * c.train.seq_len;
  c.train.tokens = c.train.batch_tokens * (options.steps + 2);
  c.train.precision = options.precision;
  c.run.device = options.device, c.run.threads = options.threads, c.run.micro_batch = rows;
  c.run.loss_chunk = options.loss_chunk;
  return c;
}

Result<TrainBench> bench_train(const TrainBenchOptions& options) {
  if (options.steps < 1) return usage_error("steps: at least one must be measured");
  auto config = train_bench_config(options);
  if (!config) return tl::unexpected(config.error());
  if (Status ok = check_step(*config); !ok) return tl::unexpected(ok.error());
  const auto shape = loader_shape(*config);
  if (!shape) return tl::unexpected(shape.error());
  auto backend = training_backend(*config);
  if (!backend) return tl::unexpected(backend.error());

  TrainBench bench;
  bench.config = *config;
  bench.device = (*backend)->name();
  ThreadTeam team(threads_for(options.threads));
  bench.threads = team.threads();
  auto created = TrainStep::create(*config, *shape, **backend, &team);
  if (!created) return tl::unexpected(created.error());
  TrainStep& step = **created;
  step.initialise(static_cast<std::uint64_t>(config->train.seed));
  const StepBatch batch = random_batch(*shape, config->model.vocab_size);
  const TrainStep::Rates rates{config->optim.adam_lr, config->optim.muon_lr};
  bench.first_loss = step.run(batch, rates).loss();
  step.run(batch, rates);
  Trace trace;
  step.executor().set_trace(&trace);
  std::vector<double> seconds;
  const double begin = steady_seconds();
  while (bench.steps < options.steps && (bench.steps < 3 || steady_seconds() - begin < options.seconds)) {
    const double at = steady_seconds();
    bench.loss = step.run(batch, rates).loss();
    seconds.push_back(steady_seconds() - at);
    ++bench.steps;
    if (options.report) options.report(bench.steps, seconds.back());
  }
  sum_up(bench, trace, std::move(seconds));
  const auto tokens = static_cast<double>(shape->tokens());
  bench.tokens_per_second = tokens / bench.step_seconds;
  bench.useful_flops = tokens * static_cast<double>(flops_per_token(config->model, config->train.seq_len).total());
  bench.plan_bytes = step.executor().allocated_bytes();
  bench.peak_bytes = peak_resident_bytes();
  created->reset();
  constexpr std::int64_t gemm_tokens = 2048, head_tokens = 1024;  // enough for the rate of more
  if (bench.device != "cpu") return bench;
  if (const auto products = bench_gemm(
          training_products(config->model, std::min(shape->tokens(), gemm_tokens),
                            std::min(shape->tokens(), head_tokens)),
          {.threads = bench.threads, .isa = {}, .stored = storage_type(*config), .seconds = 0.2, .report = {}}))
    bench.gemm_flops_per_second = gemm_flops_per_second(*products);
  if (const auto rate = bench::memory_bytes_per_second(team, 0.5)) bench.memory_bytes_per_second = *rate;
  return bench;
}

}  // namespace stacklab
