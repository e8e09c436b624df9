// What this computer can do, measured.
#include <fmt/format.h>

#include <memory>
#include <tuple>

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
  std::string isa, seconds, precision;
};

std::string rate_text(double gflop_per_second) {
  return gflop_per_second > 0 ? fmt::format("{:.1f}", gflop_per_second) : "–";
}

// The options of a measurement of kernels.
template <class To>
Status apply(const Context& context, const Options& options, To& to) {
  if (context.common.threads && *context.common.threads < 1)
    return usage_error(fmt::format("--threads: {} is less than one", *context.common.threads));
  to.threads = static_cast<int>(context.common.threads.value_or(usable_threads()));
  to.isa = options.isa;
  if (!options.seconds.empty()) {
    const std::optional<double> seconds = parse_double(options.seconds);
    if (!seconds || !(*seconds >= 0) || *seconds > 3600)
      return usage_error(fmt::format("--seconds: \"{}\" is not a number of seconds", printable(options.seconds)));
    to.seconds = *seconds;
  }
  return {};
}

const char* word_of(DType stored) { return stored == DType::bf16 ? "bf16" : "fp32"; }

Status apply_precision(const Options& options, DType& stored) {
  if (options.precision == "bf16")
    stored = DType::bf16;
  else if (!options.precision.empty() && options.precision != "fp32")
    return usage_error(fmt::format("--precision: \"{}\" is neither fp32 nor bf16", printable(options.precision)));
  return {};
}

Status gemm(Context& context, const Options& options) {
  GemmBenchOptions bench_options;
  if (Status ok = apply(context, options, bench_options); !ok) return ok;
  if (Status ok = apply_precision(options, bench_options.stored); !ok) return ok;
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
  w.member("precision", word_of(bench_options.stored));
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
  std::string title = fmt::format("{}, {}, {} threads; {}, the best of many rounds", cpu_model(), bench->isa,
                                  bench->threads, word_of(bench_options.stored));
  title += bench->onednn.empty() ? fmt::format("\n{}", bench->without_onednn)
                                 : fmt::format(", beside oneDNN {}", bench->onednn);
  context.console.print(title + "\n" + table(rows, {false, false, false, true, true, true}));
  context.console.print_json(w.text());
  return {};
}

Status attention(Context& context, const Options& options) {
  AttentionBenchOptions bench_options;
  if (Status ok = apply(context, options, bench_options); !ok) return ok;
  if (Status ok = apply_precision(options, bench_options.stored); !ok) return ok;
  const auto case_text = [](const AttentionCase& c) {
    return fmt::format("{} x {}, {} / {} heads of {}", c.documents, c.length, c.n_heads, c.n_kv_heads, c.head_dim);
  };
  bench_options.report = [&](const AttentionMeasurement& row) {
    context.console.note(fmt::format("{}: {:.1f} and {:.1f} GFLOP/s", case_text(row.which),
                                     row.forward_flops_per_second() * 1e-9, row.backward_flops_per_second() * 1e-9));
  };
  const Result<AttentionBench> bench = bench_attention(attention_cases(), bench_options);
  if (!bench) return tl::unexpected(bench.error());

  std::vector<std::vector<std::string>> rows = {
      {"documents", "product GFLOP/s", "forward", "of it", "ms", "backward", "of it", "ms"}};
  JsonWriter w(2);
  w.begin_object();
  w.member("cpu", cpu_model());
  w.member("isa", bench->isa);
  w.member("threads", bench->threads);
  w.key("rows");
  w.begin_array();
  for (const AttentionMeasurement& row : bench->rows) {
    const double product = row.gemm_flops_per_second;
    rows.push_back({case_text(row.which), fmt::format("{:.1f}", product * 1e-9)});
    w.begin_object();
    w.member("documents", row.which.documents);
    w.member("length", row.which.length);
    w.member("n_heads", row.which.n_heads);
    w.member("n_kv_heads", row.which.n_kv_heads);
    w.member("head_dim", row.which.head_dim);
    w.member("gemm_gflop_per_second", product * 1e-9);
    for (const auto& [name, seconds, rate] :
         {std::tuple("forward", row.forward_seconds, row.forward_flops_per_second()),
          std::tuple("backward", row.backward_seconds, row.backward_flops_per_second())}) {
      rows.back().insert(rows.back().end(), {fmt::format("{:.1f}", rate * 1e-9), fmt::format("{:.2f}", rate / product),
                                             fmt::format("{:.3f}", 1e3 * seconds)});
      w.member(fmt::format("{}_seconds", name), seconds);
      w.member(fmt::format("{}_gflop_per_second", name), rate * 1e-9);
    }
    w.end_object();
  }
  w.end_array();
  w.end_object();
  context.console.print(fmt::format("{}, {}, {} threads; {}, the best of many rounds\n", cpu_model(), bench->isa,
                                    bench->threads, options.precision.empty() ? "fp32" : options.precision) +
                        table(rows, {false, true, true, true, true, true, true, true}));
  context.console.print_json(w.text());
  return {};
}

Verb bench_attention_verb() {
  const auto options = std::make_shared<Options>();
  return {
      "attention",
      "Attention, forward and backward, beside the rate of a product",
      "stacklab bench attention --threads 1",
      {{"--isa", "NAME", "Instruction set to use (default: the best)", &options->isa},
       {"--precision", "NAME", "What q, k, v and outputs are stored in: fp32 (default) or bf16", &options->precision},
       {"--seconds", "S", "For each case, at most 200 rounds (default: 0.5; at least 3 rounds are done)",
        &options->seconds}},
      {},
      [options](Context& context) { return attention(context, *options); },
      "Counted are the products of every query with the keys that it sees: two forward, five backward. All three\n"
      "take turns, and the best of many rounds counts."};
}

}  // namespace

Verb bench_verb() {
  const auto options = std::make_shared<Options>();
  Verb gemm_verb{
      "gemm",
      "Matrix products at the merged training shapes of Stack-100M, beside oneDNN's",
      "stacklab bench gemm --threads 1 --isa AVX2",
      {{"--isa", "NAME", "Instruction set to use (default: the best)", &options->isa},
       {"--precision", "NAME", "What both factors are stored in: fp32 (default) or bf16", &options->precision},
       {"--seconds", "S", "For each product, at most 200 rounds (default: 0.5; at least 3 rounds are done)",
        &options->seconds}},
      {},
      [options](Context& context) { return gemm(context, *options); },
      "Both sides take turns: rates are those of the best round, the ratio is the median of the rounds' own. On a\n"
      "computer with other work to do, only ratios mean something. bf16 is measured alone."};
  return {
      "bench",
      "What this computer can do, measured",
      "stacklab bench gemm",
      {},
      {bench_attention_verb(), std::move(gemm_verb), bench_store_verb(), bench_tokenizer_verb(), bench_train_verb()},
      {},
      {}};
}

}  // namespace stacklab::cli
