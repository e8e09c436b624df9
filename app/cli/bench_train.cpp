// stacklab bench train: whole steps of the models that others are measured with.
#include <fmt/format.h>

#include <memory>

#include "app/cli/bench.h"
#include "app/cli/common.h"
#include "app/cli/console.h"
#include "app/cli/operations.h"
#include "engine/base/environment.h"
#include "engine/base/text.h"
#include "engine/service/benches.h"

namespace stacklab::cli {
namespace {

struct Options {
  std::string preset, optimiser, precision;
  std::optional<std::int64_t> seq_len, batch, loss_chunk, steps;
};

Status at_least_one(std::string_view name, const std::optional<std::int64_t>& value) {
  if (!value || *value >= 1) return {};
  return usage_error(fmt::format("{}: {} is less than one", name, *value));
}

Limits limits_of(const TrainBench& b) { return {b.gemm_flops_per_second, b.memory_bytes_per_second}; }

void write_row(JsonWriter& w, const std::string& preset, const TrainBench& b) {
  const TrainConfig& t = b.config.train;
  w.begin_object();
  w.member("preset", preset);
  w.member("opt", b.config.optim.matrices);
  w.member("precision", t.precision);
  w.member("device", b.device);
  w.member("T", t.seq_len);
  w.member("batch", t.batch_tokens / t.seq_len);
  w.member("steps", b.steps);
  w.member("tokens_per_second", b.tokens_per_second);
  w.member("step_seconds", b.step_seconds);
  w.member("fastest_seconds", b.fastest_seconds);
  w.member("slowest_seconds", b.slowest_seconds);
  w.member("forward_seconds", b.forward_seconds);
  w.member("backward_seconds", b.backward_seconds);
  w.member("optimiser_seconds", b.optimiser_seconds);
  w.member("useful_flops", b.useful_flops);
  w.member("executed_flops", b.executed_flops);
  member_or_null(w, "gemm_flops_per_second",
                 b.gemm_flops_per_second > 0 ? std::optional(b.gemm_flops_per_second) : std::nullopt);
  member_or_null(w, "memory_bytes_per_second",
                 b.memory_bytes_per_second > 0 ? std::optional(b.memory_bytes_per_second) : std::nullopt);
  w.member("plan_bytes", b.plan_bytes);
  w.member("peak_bytes", b.peak_bytes);
  w.member("first_loss", b.first_loss);
  w.member("loss", b.loss);
  write_operations(w, b.operations, b.mean_seconds, limits_of(b));
  w.end_object();
}

Status train(Context& context, const Options& options) {
  for (const auto& [name, value] : {std::pair("--threads", context.common.threads), std::pair("--T", options.seq_len),
                                    std::pair("--batch", options.batch), std::pair("--steps", options.steps),
                                    std::pair("--loss-chunk", options.loss_chunk)})
    if (Status ok = at_least_one(name, value); !ok) return ok;
  TrainBenchOptions o;
  if (!options.preset.empty()) o.preset = options.preset;
  if (!options.optimiser.empty()) o.matrices = options.optimiser;
  if (!options.precision.empty()) o.precision = options.precision;
  if (!context.common.device.empty()) o.device = context.common.device;
  o.threads = static_cast<int>(context.common.threads.value_or(0));
  o.seq_len = options.seq_len.value_or(0), o.batch = options.batch.value_or(0);
  o.loss_chunk = options.loss_chunk.value_or(0), o.steps = options.steps.value_or(o.steps);
  o.report = [&](std::int64_t step, double seconds) {
    context.console.note(fmt::format("step {}: {:.3f} s", step, seconds));
  };
  const Result<TrainBench> bench = bench_train(o);
  if (!bench) return tl::unexpected(bench.error());
  const TrainBench& b = *bench;
  std::string text = fmt::format(
      "{}, {} threads: {} with {}, {}, {} x {} tokens a step\n"
      "{:.1f} tokens/s; a step takes {:.3f} s ({:.3f} to {:.3f}): forward {:.3f}, backward {:.3f}, optimiser {:.3f}\n",
      cpu_model(), b.threads, o.preset, o.matrices, o.precision, b.config.train.batch_tokens / b.config.train.seq_len,
      b.config.train.seq_len, b.tokens_per_second, b.step_seconds, b.fastest_seconds, b.slowest_seconds,
      b.forward_seconds, b.backward_seconds, b.optimiser_seconds);
  const double useful = b.useful_flops / b.step_seconds;
  text += fmt::format("{:.1f} GFLOP/s of useful work", useful * 1e-9);
  if (b.gemm_flops_per_second > 0)
    text += fmt::format(", {:.1f} % of the {:.1f} that these products reach alone",
                        100 * useful / b.gemm_flops_per_second, b.gemm_flops_per_second * 1e-9);
  if (b.memory_bytes_per_second > 0) text += fmt::format("; memory {:.1f} GB/s", b.memory_bytes_per_second * 1e-9);
  text += fmt::format("\nplanned {}, largest resident memory {}; loss {:.4f} to {:.4f}\n\n",
                      format_bytes(static_cast<double>(b.plan_bytes)), format_bytes(static_cast<double>(b.peak_bytes)),
                      b.first_loss, b.loss);
  context.console.print(text + operations_table(b.operations, b.mean_seconds, limits_of(b)));
  JsonWriter w(2);
  w.begin_object();
  w.member("cpu", cpu_model());
  w.member("threads", b.threads);
  w.key("rows");
  w.begin_array();
  write_row(w, o.preset, b);
  w.end_array();
  w.end_object();
  context.console.print_json(w.text());
  return {};
}

}  // namespace

Verb bench_train_verb() {
  const auto options = std::make_shared<Options>();
  return {
      "train",
      "Whole training steps on random tokens: tokens per second, memory, and what each operation cost",
      "stacklab bench train --preset tiny --opt adamw --T 256 --batch 16",
      {{"--preset", "NAME", "stack100m (default), rungA or tiny", &options->preset},
       {"--opt", "NAME", "What trains the hidden matrices: muon (default) or adamw", &options->optimiser},
       {"--precision", "NAME", "fp32 (default), bf16, or fp64 on the reference", &options->precision},
       {"--T", "N", "Tokens of a row (default: the preset's)", &options->seq_len},
       {"--batch", "N", "Rows of a step (default: the preset's)", &options->batch},
       {"--loss-chunk", "N", "Tokens of the loss head computed at once", &options->loss_chunk},
       {"--steps", "N", "Steps that are measured, after two that are not (default: 5)", &options->steps}},
      {},
      [options](Context& context) { return train(context, *options); },
      "The median step counts. Products alone and memory are measured after the steps, in the same process; what an\n"
      "operation reached of the limit is its rate over that of products or over that of memory, the larger."};
}

}  // namespace stacklab::cli
