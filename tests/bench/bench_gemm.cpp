// GFLOP/s of our products at the merged training shapes of Stack-100M, beside oneDNN's where it is installed.
//   bench_gemm [THREADS] [INSTRUCTION SET] [ROUNDS]
// Both sides in turn, the best of many rounds each: on a shared machine only ratios within one run mean something.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/targets.h"
#include "tests/bench/bench.h"
#ifdef STACKLAB_BENCH_DNNL
#include <omp.h>

#include <oneapi/dnnl/dnnl.hpp>
#endif

namespace {

using namespace stacklab;
using bench::Team;
using bench::time_into;
using cpu::Operand;

struct Product {
  const char* name;
  std::int64_t m, n, k;
  bool a_transposed, b_transposed;
};

struct Rates {
  double ours = 0, theirs = 0;
};

Rates measure(const Product& p, Team& team, int rounds) {
  const auto size = [](std::int64_t r, std::int64_t c) { return static_cast<std::size_t>(r * c); };
  std::vector<float> a(size(p.m, p.k), 0.5f), b(size(p.k, p.n), 0.25f), c(size(p.m, p.n));
  std::vector<float> workspace(static_cast<std::size_t>(cpu::gemm_workspace(p.n, p.k)));
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 17) * 0.125f - 1;
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 13) * 0.125f - 1;
  const std::int64_t lda = p.a_transposed ? p.m : p.k, ldb = p.b_transposed ? p.k : p.n;
  cpu::Gemm g{.m = p.m, .n = p.n, .k = p.k};
  g.a = Operand::plain(a.data(), lda, p.a_transposed), g.b = Operand::plain(b.data(), ldb, p.b_transposed);
  g.c = c.data(), g.ldc = p.n, g.workspace = workspace.data();
  KernelContext context;
  context.parallel = &team;
  double ours = 1e30, theirs = 1e30;
  for (int r = 0; r < rounds; ++r) {
    time_into(ours, [&] { cpu::gemm(g, context); });
#ifdef STACKLAB_BENCH_DNNL
    time_into(theirs, [&] {
      dnnl_sgemm(p.a_transposed ? 'T' : 'N', p.b_transposed ? 'T' : 'N', p.m, p.n, p.k, 1, a.data(), lda, b.data(), ldb,
                 0, c.data(), p.n);
    });
#endif
  }
  const double gflop = 2e-9 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
  return {gflop / ours, theirs < 1e29 ? gflop / theirs : 0};
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  const std::string set = argc > 2 ? argv[2] : "";
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 20;
  cpu::restrict_instruction_set(set);
#ifdef STACKLAB_BENCH_DNNL
  if (set == "AVX2") dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx2);
  omp_set_num_threads(threads);
#endif
  Team team(threads);
  const std::string in_use(cpu::instruction_set());
  std::printf("%s, %d threads, GFLOP/s ours / oneDNN (ratio)\n%-28s %26s %26s %26s\n", in_use.c_str(), threads,
              "T x in x out", "forward", "dX", "dW");
  struct Layer {
    const char* name;
    std::int64_t tokens, in, out;
  };
  for (const Layer& l :
       {Layer{"qkv", 2048, 512, 768}, Layer{"o", 2048, 512, 512}, Layer{"gate and up", 2048, 512, 2816},
        Layer{"down", 2048, 1408, 512}, Layer{"head chunk", 1024, 512, 32768}}) {
    char shape[64];
    std::snprintf(shape, sizeof shape, "%-12s%lldx%lldx%lld", l.name, static_cast<long long>(l.tokens),
                  static_cast<long long>(l.in), static_cast<long long>(l.out));
    std::printf("%-28s", shape);
    const int n = l.out > 10000 ? std::max(3, rounds / 8) : rounds;
    for (const Product& p :
         {Product{"forward", l.tokens, l.out, l.in, false, true}, Product{"dX", l.tokens, l.in, l.out, false, false},
          Product{"dW", l.out, l.in, l.tokens, true, false}}) {
      const Rates r = measure(p, team, n);
      std::printf("  %7.1f / %7.1f (%4.2f)", r.ours, r.theirs, r.theirs > 0 ? r.ours / r.theirs : 0);
      std::fflush(stdout);
    }
    std::printf("\n");
  }
  return 0;
}
