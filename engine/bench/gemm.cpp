#include "engine/bench/gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "engine/base/clock.h"
#include "engine/bench/onednn.h"
#include "engine/bench/timing.h"
#include "engine/tensor/arena.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/targets.h"

namespace stacklab {
namespace {

// Buffers as the executor's: of one arena, each at the beginning of a cache line.
class Buffers {
 public:
  explicit Buffers(Arena arena) : arena_(std::move(arena)) {}
  static std::int64_t room(std::int64_t floats) { return (floats + 15) / 16 * 16; }
  // Numbers that repeat.
  float* take(std::int64_t floats, int period) {
    float* v = reinterpret_cast<float*>(arena_.data()) + used_;
    used_ += room(floats);
    for (std::int64_t i = 0, at = 0; i < floats; ++i, at = at + 1 < period ? at + 1 : 0)
      v[i] = static_cast<float>(at) * 0.125f - 1;
    return v;
  }

 private:
  Arena arena_;
  std::int64_t used_ = 0;
};

Result<GemmMeasurement> measure(const GemmProduct& p, bench::Team& team, const OneDnn* onednn, double seconds) {
  const std::int64_t workspace = cpu::gemm_workspace(p.n, p.k);
  auto arena = Arena::allocate(
      4 * (Buffers::room(p.m * p.k) + Buffers::room(p.k * p.n) + Buffers::room(p.m * p.n) + Buffers::room(workspace)),
      "factors and product");
  if (!arena) return tl::unexpected(arena.error());
  Buffers buffers(std::move(*arena));
  const float *a = buffers.take(p.m * p.k, 17), *b = buffers.take(p.k * p.n, 13);
  float* c = buffers.take(p.m * p.n, 1);
  const std::int64_t lda = p.a_transposed ? p.m : p.k, ldb = p.b_transposed ? p.k : p.n;
  cpu::Gemm g{.m = p.m, .n = p.n, .k = p.k};
  g.a = cpu::Operand::plain(a, lda, p.a_transposed), g.b = cpu::Operand::plain(b, ldb, p.b_transposed);
  g.c = c, g.ldc = p.n, g.workspace = buffers.take(workspace, 1);
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

// For as long as it lives.
class InstructionSet {
 public:
  explicit InstructionSet(std::string_view name) : restricted_(!name.empty()) {
    if (restricted_) cpu::restrict_instruction_set(name);
  }
  ~InstructionSet() {
    if (restricted_) cpu::restrict_instruction_set({});
  }
  InstructionSet(const InstructionSet&) = delete;
  InstructionSet& operator=(const InstructionSet&) = delete;

 private:
  const bool restricted_;
};

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

std::vector<std::string> gemm_instruction_sets() {
  if (!cpu::available()) return {};
  const auto names = cpu::instruction_sets();
  return {names.begin(), names.end()};
}

Result<GemmBench> bench_gemm(const std::vector<GemmProduct>& products, const GemmBenchOptions& options) {
  const std::vector<std::string> known = gemm_instruction_sets();
  if (known.empty()) return failed("this processor has none of the instruction sets that the CPU backend needs");
  if (!options.isa.empty() && std::find(known.begin(), known.end(), options.isa) == known.end())
    return usage_error(fmt::format("{} is not an instruction set of this processor and build", options.isa),
                       fmt::format("use one of: {}", fmt::join(known, ", ")));
  const InstructionSet restricted(options.isa);
  bench::Team team(options.threads);
  GemmBench done;
  done.isa = cpu::instruction_set();
  done.threads = team.threads();
  std::unique_ptr<OneDnn> onednn;
  if (options.onednn) {
    auto opened = OneDnn::open(team.threads(), done.isa == "AVX2");
    if (opened) {
      onednn = std::move(*opened);
      done.onednn = onednn->version();
    } else {
      done.without_onednn = opened.error().message();
    }
  }
  for (const GemmProduct& p : products) {
    const auto row = measure(p, team, onednn.get(), options.seconds);
    if (!row) return tl::unexpected(row.error());
    done.rows.push_back(*row);
    if (options.report) options.report(done.rows.back());
  }
  return done;
}

}  // namespace stacklab
