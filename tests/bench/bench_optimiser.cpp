// AdamW beside a copy of as many bytes; Muon on the matrices of a layer of Stack-100M beside the bare
// rate of its products.
//   bench_optimiser [THREADS] [INSTRUCTION SET] [ROUNDS]
// Both sides in turn, the best of many rounds each: on a shared machine only ratios within one run mean something.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "engine/bench/timing.h"
#include "kernels/backend.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/targets.h"

namespace {

using namespace stacklab;
using bench::time_into;

template <class T>
TensorView view(std::vector<T>& v, Shape shape) {
  TensorView t;
  t.data = reinterpret_cast<std::byte*>(v.data());
  t.dtype = dtype_of<T>;
  t.shape = shape;
  return t;
}

std::vector<float> noise(std::int64_t n, std::uint32_t seed) {
  std::vector<float> v(static_cast<std::size_t>(n));
  for (float& x : v) {
    seed = seed * 1664525u + 1013904223u;
    x = static_cast<float>(seed >> 8) * 0x1p-24f - 0.5f;
  }
  return v;
}

void adamw(const Backend& backend, const KernelContext& context, std::int64_t n, int rounds) {
  std::vector<float> w = noise(n, 1), g = noise(n, 2), m = noise(n, 3), v(static_cast<std::size_t>(n), 0.1f);
  std::vector<double> lr = {1e-3}, scale = {1}, updates = {5}, sum = {0};
  const Shape shape = {n};
  const Op update = op::AdamW{.w = view(w, shape),
                              .g = view(g, shape),
                              .m = view(m, shape),
                              .v = view(v, shape),
                              .lr = view(lr, {1}),
                              .scale = view(scale, {1}),
                              .updates = view(updates, {1}),
                              .change = view(sum, {1}),
                              .beta1 = 0.9,
                              .beta2 = 0.95,
                              .eps = 1e-8,
                              .weight_decay = 0.1};
  const Op squares = op::SumSquares{.g = view(g, shape), .out = view(sum, {1})};
  double ours = 1e30, plain = 1e30, norm = 1e30, read = 1e30;
  std::vector<double> partial(64);
  // As many bytes read as written: three and a half streams each.
  const std::vector<float> from(static_cast<std::size_t>(n) * 7 / 2);
  std::vector<float> to(from.size());
  for (int r = 0; r < rounds; ++r) {
    time_into(ours, [&] { backend.run(update, context); });
    time_into(plain, [&] {
      context.for_each(64, [&](std::int64_t task) {
        const auto begin = static_cast<std::size_t>(n * task / 64), end = static_cast<std::size_t>(n * (task + 1) / 64);
        for (std::size_t half = 0; half < 7; ++half)
          std::memcpy(to.data() + (half * to.size() / 7 + begin / 2), from.data() + (half * to.size() / 7 + begin / 2),
                      (end - begin) / 2 * sizeof(float));
      });
    });
    time_into(norm, [&] { backend.run(squares, context); });
    time_into(read, [&] {
      context.for_each(64, [&](std::int64_t task) {
        constexpr std::size_t lanes = 128;
        float some[lanes] = {};
        for (std::int64_t i = n * task / 64; i + 128 <= n * (task + 1) / 64; i += 128)
          for (std::size_t l = 0; l < lanes; ++l) some[l] += g[static_cast<std::size_t>(i) + l];
        partial[static_cast<std::size_t>(task)] = static_cast<double>(*std::max_element(some, some + lanes));
      });
    });
  }
  const double gb = 1e-9 * 4 * static_cast<double>(n);
  std::printf(
      "%9lld elements, GB/s ours / copy or read (ratio): AdamW %6.1f / %6.1f (%4.2f), sum of squares %6.1f / %6.1f "
      "(%4.2f)\n",
      static_cast<long long>(n), 7 * gb / ours, 7 * gb / plain, plain / ours, gb / norm, gb / read, read / norm);
}

struct Matrix {
  const char* name;
  std::int64_t rows, cols;
  int in_a_layer;
};

// GFLOP/s of a plain product.
double bare_rate(std::int64_t m, std::int64_t n, std::int64_t k, const KernelContext& context, int rounds) {
  const std::vector<float> a = noise(m * k, 1), b = noise(k * n, 2);
  std::vector<float> c(static_cast<std::size_t>(m * n)), space(static_cast<std::size_t>(cpu::gemm_workspace(n, k)));
  cpu::Gemm g{.m = m, .n = n, .k = k};
  g.a = cpu::Operand::plain(a.data(), k), g.b = cpu::Operand::plain(b.data(), n);
  g.c = c.data(), g.ldc = n, g.workspace = space.data();
  double best = 1e30;
  for (int r = 0; r < rounds; ++r) time_into(best, [&] { cpu::gemm(g, context); });
  return 2e-9 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) / best;
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  cpu::restrict_instruction_set(argc > 2 ? argv[2] : "");
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 10;
  bench::Team team(threads);
  KernelContext context;
  context.parallel = &team;
  const Backend& backend = *find_backend("cpu");
  const std::string in_use(cpu::instruction_set());
  std::printf("%s, %d threads\n", in_use.c_str(), threads);
  for (const std::int64_t n : {std::int64_t{1} << 24, std::int64_t{1} << 16}) adamw(backend, context, n, rounds);

  constexpr int layers = 30;
  double step = 0, useful = 0, at_bare_rate = 0;
  for (const Matrix& s : {Matrix{"q, o", 512, 512, 2}, Matrix{"k, v", 128, 512, 2}, Matrix{"gate, up", 1408, 512, 2},
                          Matrix{"down", 512, 1408, 1}}) {
    std::vector<float> w = noise(s.rows * s.cols, 1), g = noise(s.rows * s.cols, 2), m = noise(s.rows * s.cols, 3);
    std::vector<double> lr = {1e-3}, scale = {1}, change = {0};
    const Shape shape = {s.rows, s.cols};
    op::Muon muon{.w = view(w, shape),
                  .g = view(g, shape),
                  .m = view(m, shape),
                  .lr = view(lr, {1}),
                  .scale = view(scale, {1}),
                  .change = view(change, {1}),
                  .workspace = {},
                  .momentum = 0.95,
                  .weight_decay = 0.1,
                  .factor = 1};
    std::vector<std::uint8_t> space(static_cast<std::size_t>(backend.needs(Op(muon)).workspace));
    muon.workspace = view(space, {static_cast<std::int64_t>(space.size())});
    const Op operation = muon;
    double best = 1e30, bare = 0;
    for (int r = 0; r < rounds; ++r) {
      time_into(best, [&] { backend.run(operation, context); });
      bare = std::max(bare, bare_rate(s.rows, s.cols, std::min(s.rows, s.cols), context, 2));
    }
    const double gflop = 1e-9 * flops_of(operation);
    std::printf("%-9s %4lld x %4lld: %7.2f ms, useful GFLOP/s %6.1f, bare product %6.1f (ratio %4.2f)\n", s.name,
                static_cast<long long>(s.rows), static_cast<long long>(s.cols), 1e3 * best, gflop / best, bare,
                gflop / best / bare);
    step += layers * s.in_a_layer * best;
    useful += layers * s.in_a_layer * gflop, at_bare_rate += layers * s.in_a_layer * gflop / bare;
  }
  std::printf("a step of %d layers: %.2f s, useful GFLOP/s %.1f; plainly at the bare rate %.2f s (ratio %4.2f)\n",
              layers, step, useful / step, at_bare_rate, step / at_bare_rate);
  return 0;
}
