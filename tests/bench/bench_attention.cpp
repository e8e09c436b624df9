// GFLOP/s of attention, forward and backward, at training shapes, beside the rate of a product in the same run. Counted
// is the causal half inside documents: 2 products forward, 5 backward.
//   bench_attention [THREADS] [INSTRUCTION SET] [ROUNDS] [f32|bf16] [NAME OF A CASE]
// Everything in turn, the best of many rounds: on a shared machine only ratios within one run mean something.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "engine/bench/timing.h"
#include "kernels/backend.h"
#include "kernels/bf16.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/targets.h"

namespace {

using namespace stacklab;

struct Memory {
  std::vector<std::byte> bytes;
  TensorView view;
  Memory(DType t, Shape s) : bytes(static_cast<std::size_t>(s.size() * size_of(t) + 64)) {
    view.dtype = t, view.shape = s;
    const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
    view.data = bytes.data() + (64 - address % 64) % 64;
  }
  void fill() {
    for (std::int64_t i = 0; i < view.size(); ++i) {
      const float x = static_cast<float>((i * 7919) % 1009) / 504.5f - 1;
      if (view.dtype == DType::bf16)
        view.as<BFloat16>()[i] = BFloat16(x);
      else
        view.as<float>()[i] = x;
    }
  }
};

struct Case {
  const char* name;
  std::int64_t heads, kv_heads, head_dim, length, documents;
};

struct Bench {
  Case c;
  AttentionShape shape;
  Memory qkv, q_gain, k_gain, positions, cu, out, lse, max_logit, dout, dqkv, dq_gain, dk_gain;
  op::Attention forward;
  op::AttentionBackward backward;
  std::vector<float> workspace;
  double best_forward = 1e30, best_backward = 1e30;

  static AttentionShape shape_of(const Case& c) {
    AttentionShape s;
    s.n_heads = c.heads, s.n_kv_heads = c.kv_heads, s.head_dim = c.head_dim, s.max_len = c.length;
    s.scale = 1 / std::sqrt(static_cast<double>(c.head_dim)), s.norm_eps = 1e-6;
    return s;
  }
  Bench(const Case& which, DType stored)
      : c(which),
        shape(shape_of(c)),
        qkv(stored, {tokens(), shape.qkv_width()}),
        q_gain(DType::f32, {c.head_dim}),
        k_gain(DType::f32, {c.head_dim}),
        positions(DType::i32, {tokens()}),
        cu(DType::i32, {c.documents + 1}),
        out(stored, {tokens(), c.heads * c.head_dim}),
        lse(DType::f32, {tokens(), c.heads}),
        max_logit(DType::f32, {c.heads}),
        dout(stored, out.view.shape),
        dqkv(stored, qkv.view.shape),
        dq_gain(DType::f32, {c.head_dim}),
        dk_gain(DType::f32, {c.head_dim}) {
    qkv.fill(), q_gain.fill(), k_gain.fill(), dout.fill();
    for (std::int64_t t = 0; t < tokens(); ++t)
      positions.view.as<std::int32_t>()[t] = static_cast<std::int32_t>(t % c.length);
    for (std::int64_t e = 0; e <= c.documents; ++e)
      cu.view.as<std::int32_t>()[e] = static_cast<std::int32_t>(e * c.length);
    forward = {.qkv = qkv.view,
               .q_gain = q_gain.view,
               .k_gain = k_gain.view,
               .positions = positions.view,
               .cu_seqlens = cu.view,
               .out = out.view,
               .lse = lse.view,
               .max_logit = max_logit.view,
               .saved = {},
               .workspace = {},
               .shape = shape};
    backward.dout = dout.view, backward.qkv = qkv.view, backward.q_gain = q_gain.view, backward.k_gain = k_gain.view;
    backward.positions = positions.view, backward.cu_seqlens = cu.view, backward.out = out.view;
    backward.lse = lse.view, backward.dqkv = dqkv.view, backward.shape = shape;
    backward.dq_gain = {dq_gain.view, false}, backward.dk_gain = {dk_gain.view, false};
    const Backend& cpu = *find_backend("cpu");
    const std::int64_t bytes = std::max(cpu.needs(forward).workspace, cpu.needs(backward).workspace);
    workspace.resize(static_cast<std::size_t>(bytes / 4 + 16));
    TensorView space;
    space.dtype = DType::u8, space.shape = {bytes}, space.data = reinterpret_cast<std::byte*>(workspace.data());
    forward.workspace = backward.workspace = space;
  }
  std::int64_t tokens() const { return c.length * c.documents; }
  void round(const KernelContext& context) {
    const Backend& cpu = *find_backend("cpu");
    bench::time_into(best_forward, [&] { cpu.run(forward, context); });
    bench::time_into(best_backward, [&] { cpu.run(backward, context); });
  }
  // Of forward: every query with every key that it sees.
  double gflop() const {
    const double pairs = 0.5 * static_cast<double>(tokens()) * static_cast<double>(c.length + 1);
    return 4e-9 * pairs * static_cast<double>(c.heads * c.head_dim);
  }
};

// A large product, as the products of a model are.
struct Product {
  std::int64_t n = 1024;
  std::vector<float> a, b, c, workspace;
  double best = 1e30;
  Product()
      : a(static_cast<std::size_t>(n * n), 0.5f),
        b(a),
        c(a),
        workspace(static_cast<std::size_t>(cpu::gemm_workspace(n, n))) {}
  void round(const KernelContext& context) {
    cpu::Gemm g{.m = n, .n = n, .k = n};
    g.a = cpu::Operand::plain(a.data(), n), g.b = cpu::Operand::plain(b.data(), n, true);
    g.c = c.data(), g.ldc = n, g.workspace = workspace.data();
    bench::time_into(best, [&] { cpu::gemm(g, context); });
  }
  double rate() const { return 2e-9 * static_cast<double>(n * n * n) / best; }
};

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 20;
  const DType stored = argc > 4 && std::string(argv[4]) == "bf16" ? DType::bf16 : DType::f32;
  cpu::restrict_instruction_set(argc > 2 ? argv[2] : "");
  bench::Team team(threads);
  KernelContext context;
  context.parallel = &team;
  const std::string in_use(cpu::instruction_set());
  std::printf("%s, %d threads, %s; GFLOP/s (part of the product's rate), milliseconds\n", in_use.c_str(), threads,
              name_of(stored));
  for (const Case& c :
       {Case{"Stack-100M, 1 x 2048", 8, 2, 64, 2048, 1}, Case{"Stack-100M, 4 x 512", 8, 2, 64, 512, 4},
        Case{"Stack-100M, 16 x 256", 8, 2, 64, 256, 16}, Case{"Stack-100M, 128 x 16", 8, 2, 64, 16, 128},
        Case{"tiny, 8 x 128", 4, 4, 16, 128, 8}, Case{"tiny, 16 x 256", 4, 4, 16, 256, 16}}) {
    if (argc > 5 && std::string(c.name).find(argv[5]) == std::string::npos) continue;
    Bench b(c, stored);
    Product product;
    for (int r = 0; r < rounds; ++r) {
      if (r % 4 == 0) product.round(context);
      b.round(context);
    }
    const double f = b.gflop() / b.best_forward, g = 2.5 * b.gflop() / b.best_backward;
    std::printf("%-22s product %6.1f  forward %6.1f (%4.2f) %7.3f ms  backward %6.1f (%4.2f) %7.3f ms\n", c.name,
                product.rate(), f, f / product.rate(), 1e3 * b.best_forward, g, g / product.rate(),
                1e3 * b.best_backward);
    std::fflush(stdout);
  }
  return 0;
}
