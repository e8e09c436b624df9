#include "engine/bench/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/bench/instruction_set.h"
#include "engine/bench/memory.h"
#include "engine/bench/timing.h"
#include "kernels/backend.h"
#include "kernels/bf16.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/targets.h"

namespace stacklab {
namespace {

constexpr std::int64_t product = 1024;  // each way

AttentionShape shape_of(const AttentionCase& c) {
  AttentionShape s;
  s.n_heads = c.n_heads, s.n_kv_heads = c.n_kv_heads, s.head_dim = c.head_dim, s.max_len = c.length;
  s.scale = 1 / std::sqrt(static_cast<double>(c.head_dim)), s.norm_eps = 1e-6;
  return s;
}

void fill(const TensorView& v) {
  for (std::int64_t i = 0; i < v.size(); ++i) {
    const float x = static_cast<float>((i * 7919) % 1009) / 504.5f - 1;
    if (v.dtype == DType::bf16)
      v.as<BFloat16>()[i] = BFloat16(x);
    else
      v.as<float>()[i] = x;
  }
}

Result<AttentionMeasurement> measure(const AttentionCase& c, const AttentionBenchOptions& options, bench::Team& team) {
  const Backend& backend = *find_backend("cpu");
  const AttentionShape shape = shape_of(c);
  const std::int64_t tokens = c.documents * c.length;
  op::Attention forward;
  op::AttentionBackward backward;
  forward.shape = backward.shape = shape;
  float *a = nullptr, *b = nullptr, *product_out = nullptr, *product_workspace = nullptr;
  const auto memory = bench::carve([&](cpu::Carver& carver) {
    const auto tensor = [&](DType type, Shape s) {
      TensorView v;
      v.dtype = type, v.shape = s;
      v.data = carver.take<std::byte>(v.bytes());
      return v;
    };
    const DType stored = options.stored;
    forward.qkv = tensor(stored, {tokens, shape.qkv_width()});
    forward.q_gain = tensor(DType::f32, {c.head_dim}), forward.k_gain = tensor(DType::f32, {c.head_dim});
    forward.positions = tensor(DType::i32, {tokens}), forward.cu_seqlens = tensor(DType::i32, {c.documents + 1});
    forward.out = tensor(stored, {tokens, c.n_heads * c.head_dim});
    forward.lse = tensor(DType::f32, {tokens, c.n_heads}), forward.max_logit = tensor(DType::f32, {c.n_heads});
    backward.qkv = forward.qkv, backward.q_gain = forward.q_gain, backward.k_gain = forward.k_gain;
    backward.positions = forward.positions, backward.cu_seqlens = forward.cu_seqlens;
    backward.out = forward.out, backward.lse = forward.lse;
    backward.dout = tensor(stored, forward.out.shape), backward.dqkv = tensor(stored, forward.qkv.shape);
    backward.dq_gain = {tensor(DType::f32, {c.head_dim}), false};
    backward.dk_gain = {tensor(DType::f32, {c.head_dim}), false};
    const std::int64_t workspace = std::max(backend.needs(forward).workspace, backend.needs(backward).workspace);
    forward.workspace = backward.workspace = tensor(DType::u8, {workspace});
    a = carver.take<float>(product * product), b = carver.take<float>(product * product);
    product_out = carver.take<float>(product * product);
    product_workspace = carver.take<float>(cpu::gemm_workspace(product, product));
  });
  if (!memory) return tl::unexpected(memory.error());
  fill(forward.qkv), fill(forward.q_gain), fill(forward.k_gain), fill(backward.dout);
  for (std::int64_t t = 0; t < tokens; ++t)
    forward.positions.as<std::int32_t>()[t] = static_cast<std::int32_t>(t % c.length);
  for (std::int64_t d = 0; d <= c.documents; ++d)
    forward.cu_seqlens.as<std::int32_t>()[d] = static_cast<std::int32_t>(d * c.length);
  bench::fill(a, product * product, 17), bench::fill(b, product * product, 13);
  cpu::Gemm g{.m = product, .n = product, .k = product};
  g.a = cpu::Operand::plain(a, product), g.b = cpu::Operand::plain(b, product, true);
  g.c = product_out, g.ldc = product, g.workspace = product_workspace;
  KernelContext context;
  context.parallel = &team;
  constexpr double unknown = std::numeric_limits<double>::infinity();
  constexpr int least = 3, most = 200;  // rounds
  AttentionMeasurement best{.which = c, .forward_seconds = unknown, .backward_seconds = unknown};
  double product_seconds = unknown;
  const double begin = steady_seconds();
  for (int round = 0; round < most && (round < least || steady_seconds() - begin < options.seconds); ++round) {
    bench::time_into(best.forward_seconds, [&] { backend.run(forward, context); });
    bench::time_into(best.backward_seconds, [&] { backend.run(backward, context); });
    bench::time_into(product_seconds, [&] { cpu::gemm(g, context); });
  }
  best.gemm_flops_per_second = 2.0 * static_cast<double>(product * product * product) / product_seconds;
  return best;
}

}  // namespace

std::vector<AttentionCase> attention_cases() {
  std::vector<AttentionCase> cases;
  for (const std::int64_t length : {8192, 2048, 512, 256, 64, 16})
    cases.push_back({.n_heads = 8,
                     .n_kv_heads = 2,
                     .head_dim = 64,
                     .documents = std::max<std::int64_t>(1, 2048 / length),
                     .length = length});
  cases.push_back({.n_heads = 2, .n_kv_heads = 1, .head_dim = 64, .documents = 16, .length = 256});
  cases.push_back({.n_heads = 4, .n_kv_heads = 4, .head_dim = 16, .documents = 8, .length = 128});
  return cases;
}

Result<AttentionBench> bench_attention(const std::vector<AttentionCase>& cases, const AttentionBenchOptions& options) {
  if (Status ok = bench::check_instruction_set(options.isa); !ok) return tl::unexpected(ok.error());
  const bench::InstructionSet restricted(options.isa);
  bench::Team team(options.threads);
  AttentionBench done;
  done.isa = cpu::instruction_set();
  done.threads = team.threads();
  for (const AttentionCase& c : cases) {
    const auto row = measure(c, options, team);
    if (!row) return tl::unexpected(row.error());
    done.rows.push_back(*row);
    if (options.report) options.report(*row);
  }
  return done;
}

}  // namespace stacklab
