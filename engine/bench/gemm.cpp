#include "engine/bench/gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "engine/base/clock.h"
#include "engine/bench/onednn.h"
#include "engine/bench/timing.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/targets.h"

namespace stacklab {
namespace {

std::vector<float> numbers(std::int64_t count, std::size_t period) {
  std::vector<float> v(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>(i % period) * 0.125f - 1;
  return v;
}

GemmMeasurement measure(const GemmProduct& p, bench::Team& team, const OneDnn* onednn, double seconds) {
  const std::vector<float> a = numbers(p.m * p.k, 17), b = numbers(p.k * p.n, 13);
  std::vector<float> c(static_cast<std::size_t>(p.m * p.n));
  std::vector<float> workspace(static_cast<std::size_t>(cpu::gemm_workspace(p.n, p.k)));
  const std::int64_t lda = p.a_transposed ? p.m : p.k, ldb = p.b_transposed ? p.k : p.n;
  cpu::Gemm g{.m = p.m, .n = p.n, .k = p.k};
  g.a = cpu::Operand::plain(a.data(), lda, p.a_transposed), g.b = cpu::Operand::plain(b.data(), ldb, p.b_transposed);
  g.c = c.data(), g.ldc = p.n, g.workspace = workspace.data();
  KernelContext context;
  context.parallel = &team;
  constexpr double unknown = std::numeric_limits<double>::infinity();
  constexpr int least = 3, most = 200;  // rounds
  double ours = unknown, theirs = unknown;
  // Rounds go on for a while of the clock, whatever they are measured by.
  const double begin = steady_seconds();
  for (int round = 0; round < most && (round < least || steady_seconds() - begin < seconds); ++round) {
    bench::time_into(ours, [&] { cpu::gemm(g, context); });
    if (onednn)
      bench::time_into(theirs, [&] {
        onednn->sgemm(p.a_transposed, p.b_transposed, p.m, p.n, p.k, a.data(), lda, b.data(), ldb, c.data());
      });
  }
  return {p, ours, onednn ? theirs : 0};
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
    done.rows.push_back(measure(p, team, onednn.get(), options.seconds));
    if (options.report) options.report(done.rows.back());
  }
  return done;
}

}  // namespace stacklab
