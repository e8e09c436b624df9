// What this computer can do, measured.
#include <fmt/format.h>

#include <memory>

#include "app/cli/bench.h"
#include "app/cli/common.h"
#include "app/cli/console.h"
#include "engine/base/environment.h"
#include "engine/base/text.h"
#include "engine/service/benches.h"

namespace stacklab::cli {
namespace {

constexpr std::int64_t tokens = 2048, head_tokens = 1024;  // of a micro-batch, and of a chunk of the loss head

struct Options {
  std::string isa, seconds;
};

std::string rate_text(double gflop_per_second) {
  return gflop_per_second > 0 ? fmt::format("{:.1f}", gflop_per_second) : "–";
}

Status gemm(Context& context, const Options& options) {
  if (context.common.threads && *context.common.threads < 1)
    return usage_error(fmt::format("--threads: {} is less than one", *context.common.threads));
  GemmBenchOptions bench_options;
  bench_options.threads = static_cast<int>(context.common.threads.value_or(usable_threads()));
  bench_options.isa = options.isa;
  if (!options.seconds.empty()) {
    const std::optional<double> seconds = parse_double(options.seconds);
    if (!seconds || !(*seconds >= 0) || *seconds > 3600)
      return usage_error(fmt::format("--seconds: \"{}\" is not a number of seconds", printable(options.seconds)));
    bench_options.seconds = *seconds;
  }
  bench_options.onednn = true;
  bench_options.report = [&](const GemmMeasurement& row) {
    context.console.note(
        fmt::format("{} {}: {:.1f} GFLOP/s", row.product.layer, row.product.product, row.gflop_per_second()));
  };
  const Result<GemmBench> bench = bench_gemm(training_products(ModelConfig{}, tokens, head_tokens), bench_options);
  if (!bench) return tl::unexpected(bench.error());

  std::vector<std::vector<std::string>> rows = {{"layer", "product", "m x n x k", "GFLOP/s", "oneDNN", "ratio"}};
  JsonWriter w(2);
  w.begin_object();
  w.member("cpu", cpu_model());
  w.member("isa", bench->isa);
  w.member("threads", bench->threads);
  w.key("onednn"), bench->onednn.empty() ? w.null() : w.value(bench->onednn);
  w.key("rows");
  w.begin_array();
  for (const GemmMeasurement& row : bench->rows) {
    const GemmProduct& p = row.product;
    const double ours = row.gflop_per_second(), theirs = row.onednn_gflop_per_second();
    rows.push_back({p.layer, p.product, fmt::format("{} x {} x {}", p.m, p.n, p.k), rate_text(ours), rate_text(theirs),
                    row.ratio > 0 ? fmt::format("{:.3f}", row.ratio) : "–"});
    w.begin_object();
    w.member("layer", p.layer);
    w.member("product", p.product);
    w.member("m", p.m);
    w.member("n", p.n);
    w.member("k", p.k);
    w.member("seconds", row.seconds);
    w.member("gflop_per_second", ours);
    w.key("onednn_gflop_per_second"), theirs > 0 ? w.value(theirs) : w.null();
    w.key("ratio"), row.ratio > 0 ? w.value(row.ratio) : w.null();
    w.end_object();
  }
  w.end_array();
  w.end_object();
  std::string title =
      fmt::format("{}, {}, {} threads; fp32, the best of many rounds", cpu_model(), bench->isa, bench->threads);
  title += bench->onednn.empty() ? fmt::format("\n{}", bench->without_onednn)
                                 : fmt::format(", beside oneDNN {}", bench->onednn);
  context.console.print(title + "\n" + table(rows, {false, false, false, true, true, true}));
  context.console.print_json(w.text());
  return {};
}

}  // namespace

Verb bench_verb() {
  const auto options = std::make_shared<Options>();
  Verb gemm_verb{
      "gemm",
      "Matrix products at the merged training shapes of Stack-100M, beside oneDNN's",
      "stacklab bench gemm --threads 1 --isa AVX2",
      {{"--isa", "NAME", "Instruction set to use (default: the best)", &options->isa},
       {"--seconds", "S", "For each product, at most 200 rounds (default: 0.5; at least 3 rounds are done)",
        &options->seconds}},
      {},
      [options](Context& context) { return gemm(context, *options); },
      "Both sides take turns: rates are those of the best round, the ratio is the median of the rounds' own. On a\n"
      "computer with other work to do, only ratios mean something."};
  return {"bench",
          "What this computer can do, measured",
          "stacklab bench gemm",
          {},
          {std::move(gemm_verb), bench_store_verb(), bench_tokenizer_verb(), bench_train_verb()},
          {},
          {}};
}

}  // namespace stacklab::cli
