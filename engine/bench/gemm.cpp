#include "engine/bench/gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "engine/base/clock.h"
#include "engine/bench/instruction_set.h"
#include "engine/bench/memory.h"
#include "engine/bench/onednn.h"
#include "engine/bench/timing.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/targets.h"

namespace stacklab {
namespace {

Result<GemmMeasurement> measure(const GemmProduct& p, DType stored, bench::Team& team, const OneDnn* onednn,
                                double seconds) {
  const bool bf16 = stored == DType::bf16;
  float *a = nullptr, *b = nullptr, *c = nullptr, *workspace = nullptr;
  BFloat16 *a16 = nullptr, *b16 = nullptr;
  const auto memory = bench::carve([&](cpu::Carver& carver) {
    a = carver.take<float>(p.m * p.k), b = carver.take<float>(p.k * p.n), c = carver.take<float>(p.m * p.n);
    workspace = carver.take<float>(cpu::gemm_workspace(p.n, p.k));
    if (bf16) a16 = carver.take<BFloat16>(p.m * p.k), b16 = carver.take<BFloat16>(p.k * p.n);
  });
  if (!memory) return tl::unexpected(memory.error());
  bench::fill(a, p.m * p.k, 17), bench::fill(b, p.k * p.n, 13);
  const std::int64_t lda = p.a_transposed ? p.m : p.k, ldb = p.b_transposed ? p.k : p.n;
  cpu::Gemm g{.m = p.m, .n = p.n, .k = p.k};
  if (bf16) {
    std::transform(a, a + p.m * p.k, a16, [](float x) { return BFloat16(x); });
    std::transform(b, b + p.k * p.n, b16, [](float x) { return BFloat16(x); });
  }
  g.a = cpu::Operand::plain(bf16 ? cpu::Stored(a16) : cpu::Stored(a), lda, p.a_transposed);
  g.b = cpu::Operand::plain(bf16 ? cpu::Stored(b16) : cpu::Stored(b), ldb, p.b_transposed);
  g.bf16 = bf16;
  g.c = c, g.ldc = p.n, g.workspace = workspace;
  KernelContext context;
  context.parallel = &team;
  constexpr double unknown = std::numeric_limits<double>::infinity();
  constexpr std::size_t least = 3, most = 200;  // rounds
  GemmMeasurement best{.product = p, .seconds = unknown, .onednn_seconds = onednn ? unknown : 0};
  std::vector<double> ratios;
  // Rounds go on for a while of the clock, whatever they are measured by.
  const double begin = steady_seconds();
  for (std::size_t round = 0; round < most && (round < least || steady_seconds() - begin < seconds); ++round) {
    double ours = unknown, theirs = unknown;
    bench::time_into(ours, [&] { cpu::gemm(g, context); });
    best.seconds = std::min(best.seconds, ours);
    if (!onednn) continue;
    bench::time_into(theirs, [&] { onednn->sgemm(p.a_transposed, p.b_transposed, p.m, p.n, p.k, a, lda, b, ldb, c); });
    best.onednn_seconds = std::min(best.onednn_seconds, theirs);
    ratios.push_back(theirs / ours);
  }
  if (!ratios.empty()) {
    const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2);
    std::nth_element(ratios.begin(), middle, ratios.end());
    best.ratio = *middle;
  }
  return best;
}

}  // namespace

std::vector<GemmProduct> training_products(const ModelConfig& m, std::int64_t tokens, std::int64_t head_tokens) {
  struct Layer {
    const char* name;
    std::int64_t tokens, in, out;
  };
  const std::int64_t queries = m.n_heads * m.head_dim, keys = m.n_kv_heads * m.head_dim;
  std::vector<Layer> layers = {{"qkv", tokens, m.d_model, queries + 2 * keys},
                               {"o", tokens, queries, m.d_model},
                               {"gate_up", tokens, m.d_model, 2 * m.intermediate},
                               {"down", tokens, m.intermediate, m.d_model}};
  if (head_tokens > 0) layers.push_back({"head", head_tokens, m.d_model, m.vocab_size});
  std::vector<GemmProduct> products;
  for (const Layer& l : layers) {
    products.push_back({l.name, "forward", l.tokens, l.out, l.in, false, true});
    products.push_back({l.name, "dX", l.tokens, l.in, l.out, false, false});
    products.push_back({l.name, "dW", l.out, l.in, l.tokens, true, false});
  }
  return products;
}

double gemm_flops_per_second(const GemmBench& bench) {
  double flops = 0, seconds = 0;
  for (const GemmMeasurement& row : bench.rows) flops += row.product.flops(), seconds += row.seconds;
  return flops / seconds;
}

Result<GemmBench> bench_gemm(const std::vector<GemmProduct>& products, const GemmBenchOptions& options) {
  if (Status ok = bench::check_instruction_set(options.isa); !ok) return tl::unexpected(ok.error());
  const bench::InstructionSet restricted(options.isa);
  bench::Team team(options.threads);
  GemmBench done;
  done.isa = cpu::instruction_set();
  done.threads = team.threads();
  std::unique_ptr<OneDnn> onednn;
  if (options.stored != DType::f32) {
    done.without_onednn = "oneDNN is measured in fp32 only";
  } else if (options.onednn) {
    auto opened = OneDnn::open(team.threads(), done.isa == "AVX2");
    if (opened) {
      onednn = std::move(*opened);
      done.onednn = onednn->version();
    } else {
      done.without_onednn = opened.error().message();
    }
  }
  for (const GemmProduct& p : products) {
    const auto row = measure(p, options.stored, team, onednn.get(), options.seconds);
    if (!row) return tl::unexpected(row.error());
    done.rows.push_back(*row);
    if (options.report) options.report(done.rows.back());
  }
  return done;
}

}  // namespace stacklab
