// GFLOP/s of the operations made of products at the shapes of Stack-100M (or of a first run: small), beside the bare
// products in them.
//   bench_products [THREADS] [INSTRUCTION SET] [ROUNDS] [f32 | bf16] [CHUNK OF THE HEAD] [small]
// Both sides in turn, the best of many rounds each: on a shared machine only ratios within one run mean something.
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>
#include <vector>

#include "engine/base/thread_team.h"
#include "engine/bench/timing.h"
#include "kernels/backend.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/targets.h"

namespace {

using namespace stacklab;
using bench::time_into;
using cpu::Operand;

struct Widths {
  std::int64_t tokens = 2048, d = 512, qkv = 768, f = 1408, vocabulary = 32768;
};

class Bench {
 public:
  Bench(int threads, int rounds, DType stored, std::int64_t chunk, const Widths& widths)
      : team_(threads), rounds_(rounds), stored_(stored), chunk_(chunk), widths_(widths) {
    context_.parallel = &team_;
  }

  TensorView tensor(Shape shape, DType type) {
    TensorView v;
    v.dtype = type, v.shape = shape;
    memory_.emplace_back(static_cast<std::size_t>(v.bytes() + 63) / 64 * 64 + 64);
    v.data = memory_.back().data();
    v.data += (64 - reinterpret_cast<std::uintptr_t>(v.data) % 64) % 64;
    std::uint32_t seed = 7;
    for (std::int64_t i = 0; i < v.size(); ++i) {
      seed = seed * 1664525u + 1013904223u;
      const float x = static_cast<float>(seed >> 8) * 0x1p-24f - 0.5f;
      if (type == DType::f32) v.as<float>()[i] = x;
      if (type == DType::bf16) v.as<BFloat16>()[i] = BFloat16(x);
      if (type == DType::i32) v.as<std::int32_t>()[i] = static_cast<std::int32_t>(seed >> 8) % 256;
    }
    return v;
  }
  TensorView wide(Shape shape) { return tensor(shape, DType::f32); }
  TensorView stored(Shape shape) { return tensor(shape, stored_); }

  template <class AnyOp>
  void room(AnyOp& o, TensorView& saved) {
    const Needs needs = backend_.needs(Op(o));
    if constexpr (requires { o.saved; }) {
      if (needs.saved > 0) saved = tensor({needs.saved}, DType::u8);
      o.saved = saved;
    }
    o.workspace = tensor({needs.workspace}, DType::u8);
  }

  // One operation and the products it consists of: m, n, k, both transpositions.
  struct Product {
    std::int64_t m, n, k;
    bool a_transposed, b_transposed;
    int times = 1;
  };
  template <class AnyOp>
  void compare(const char* name, const AnyOp& o, const std::vector<Product>& products) {
    std::vector<cpu::Gemm> bare;
    double flop = 0;
    for (const Product& p : products) {
      cpu::Gemm g{.m = p.m, .n = p.n, .k = p.k};
      g.a = Operand::plain(wide({p.m, p.k}).as<float>(), p.a_transposed ? p.m : p.k, p.a_transposed);
      g.b = Operand::plain(wide({p.k, p.n}).as<float>(), p.b_transposed ? p.k : p.n, p.b_transposed);
      g.c = wide({p.m, p.n}).as<float>(), g.ldc = p.n;
      g.workspace = wide({cpu::gemm_workspace(p.n, p.k)}).as<float>();
      for (int i = 0; i < p.times; ++i) bare.push_back(g);
      flop += 2.0 * p.times * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
    }
    const Op operation = o;
    double ours = 1e30, theirs = 1e30;
    const int rounds = flop > 1e11 ? std::max(3, rounds_ / 8) : rounds_;
    for (int r = 0; r < rounds; ++r) {
      time_into(ours, [&] { backend_.run(operation, context_); });
      time_into(theirs, [&] {
        for (const cpu::Gemm& g : bare) cpu::gemm(g, context_);
      });
    }
    std::printf("%-34s %9.1f %9.1f %7.3f %9.3f ms\n", name, 1e-9 * flop / ours, 1e-9 * flop / theirs, theirs / ours,
                1e3 * ours);
    std::fflush(stdout);
  }

  void run() {
    const auto [tokens, d, qkv, f, vocabulary] = widths_;
    const TensorView x = wide({tokens, d}), gain = wide({d}), dx = wide({tokens, d}), dgain = wide({d});
    {
      TensorView saved;
      const TensorView w = stored({qkv, d}), y = stored({tokens, qkv}), dw = wide({qkv, d});
      op::NormMatmul forward{.x = x, .gain = gain, .w = w, .y = y, .saved = {}, .workspace = {}, .eps = 1e-6};
      room(forward, saved);
      compare("norm_matmul (qkv)", forward, {{tokens, qkv, d, false, true}});
      op::NormMatmulBackward back{.dy = y,
                                  .x = x,
                                  .gain = gain,
                                  .w = w,
                                  .saved = {},
                                  .dx = {dx, true},
                                  .dgain = {dgain, false},
                                  .dw = {dw, false},
                                  .workspace = {},
                                  .eps = 1e-6};
      room(back, saved);
      compare("norm_matmul_backward", back, {{tokens, d, qkv, false, false}, {qkv, d, tokens, true, false}});
    }
    for (const std::int64_t k : {d, f}) {
      TensorView none;
      const TensorView a = stored({tokens, k}), w = stored({d, k}), out = wide({tokens, d}), dw = wide({d, k});
      op::ProjectAdd forward{.a = a, .w = w, .x = x, .out = out};
      room(forward, none);
      compare(k == d ? "project_add (o)" : "project_add (down)", forward, {{tokens, d, k, false, true}});
      op::ProjectAddBackward back{.dout = out, .a = a, .w = w, .da = stored({tokens, k}), .dw = {dw, false}};
      room(back, none);
      compare("project_add_backward", back, {{tokens, k, d, false, false}, {d, k, tokens, true, false}});
    }
    {
      TensorView saved;
      const TensorView w = stored({2 * f, d}), u = stored({tokens, f}), dw = wide({2 * f, d});
      op::NormSwiglu forward{.x = x, .gain = gain, .w_gate_up = w, .u = u, .saved = {}, .workspace = {}, .eps = 1e-6};
      room(forward, saved);
      compare("norm_swiglu", forward, {{tokens, 2 * f, d, false, true}});
      const TensorView wd = stored({d, f}), dwd = wide({d, f}), dout = wide({tokens, d});
      op::SwigluProjectBackward through{
          .dout = dout, .w = wd, .u = {}, .saved = {}, .dw = {dwd, false}, .workspace = {}, .u_type = wd.dtype};
      room(through, saved);
      compare("swiglu_project_backward", through, {{tokens, f, d, false, false}, {d, f, tokens, true, false}});
      op::NormSwigluBackward back{.x = x,
                                  .gain = gain,
                                  .w_gate_up = w,
                                  .saved = {},
                                  .dx = {dx, true},
                                  .dgain = {dgain, false},
                                  .dw = {dw, false},
                                  .workspace = {},
                                  .eps = 1e-6};
      room(back, saved);
      compare("norm_swiglu_backward", back, {{tokens, d, 2 * f, false, false}, {2 * f, d, tokens, true, false}});
    }
    {
      TensorView none;
      const TensorView w = stored({vocabulary, d}), dw = wide({vocabulary, d});
      op::LossHead head{.x = x,
                        .gain = gain,
                        .w = w,
                        .targets = tensor({tokens}, DType::i32),
                        .coefficients = wide({tokens}),
                        .sums = tensor({2}, DType::f64),
                        .dx = dx,
                        .dgain = {dgain, false},
                        .dw = {dw, false},
                        .workspace = {},
                        .chunk = chunk_,
                        .eps = 1e-6,
                        .soft_cap = 0,
                        .z_coef = 1e-4};
      room(head, none);
      const int chunks = static_cast<int>((tokens + chunk_ - 1) / chunk_);
      const std::int64_t rows = std::min(chunk_, tokens);
      compare("loss_head", head,
              {{rows, vocabulary, d, false, true, chunks},
               {rows, d, vocabulary, false, false, chunks},
               {vocabulary, d, rows, true, false, chunks}});
      head.dx = {}, head.dgain = {}, head.dw = {};
      room(head, none);
      compare("loss_head, forward only", head, {{rows, vocabulary, d, false, true, chunks}});
    }
  }

 private:
  const Backend& backend_ = *find_backend("cpu");
  ThreadTeam team_;
  KernelContext context_;
  int rounds_;
  DType stored_;
  std::int64_t chunk_;
  Widths widths_;
  std::deque<std::vector<std::byte>> memory_;
};

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  cpu::restrict_instruction_set(argc > 2 ? argv[2] : "");
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 20;
  const bool narrow = argc > 4 && std::string(argv[4]) == "bf16";
  const std::int64_t chunk = argc > 5 ? std::atoll(argv[5]) : 1024;
  const bool small = argc > 6 && std::string(argv[6]) == "small";
  const std::string size = argc > 6 ? argv[6] : "";
  const Widths widths = small             ? Widths{1024, 64, 128, 176, 256}
                        : size == "rungA" ? Widths{4096, 256, 512, 704, 8192}
                        : size == "tiny"  ? Widths{4096, 128, 256, 352, 4096}
                                          : Widths{};
  bench::own_time = threads == 1;
  std::printf("%s, %d threads, operands in %s, head by %lld\n%-34s %9s %9s %7s\n",
              std::string(cpu::instruction_set()).c_str(), threads, narrow ? "bf16" : "f32",
              static_cast<long long>(chunk), "GFLOP/s", "operation", "bare f32", "ratio");
  Bench(threads, rounds, narrow ? DType::bf16 : DType::f32, chunk, widths).run();
  return 0;
}
