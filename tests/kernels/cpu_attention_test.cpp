// Attention of the CPU backend against the reference in double, on every instruction set, for any threads and order of
// tasks.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <numeric>

#include "kernels/backend.h"
#include "kernels/bf16.h"
#include "kernels/cpu/attention.h"
#include "tests/kernels/cpu_harness.h"
#include "tests/kernels/op_harness.h"

namespace stacklab::test {
namespace {

using Vector = std::vector<double>;

struct Case {
  std::string name;
  std::int64_t heads, kv_heads, head_dim;
  std::vector<std::int64_t> documents;
  bool qk_norm = true, rope = true;
  double soft_cap = 0;
  double deviation = 1;  // of q, k and v
  bool gaps = false;     // in positions
  bool bf16 = false;     // how heads are stored
};

// Operands of both operations, in T; heads are stored in S.
template <class T, class S = T>
struct Operands {
  AttentionShape shape;
  std::int64_t tokens, documents;
  Guarded<S> qkv, out, dout, dqkv;
  Guarded<T> q_gain, k_gain, lse, max_logit, dq_gain, dk_gain;
  Guarded<std::int32_t> positions, cu;

  explicit Operands(const Case& c) : tokens(std::reduce(c.documents.begin(), c.documents.end())) {
    documents = static_cast<std::int64_t>(c.documents.size());
    shape.n_heads = c.heads, shape.n_kv_heads = c.kv_heads, shape.head_dim = c.head_dim;
    shape.max_len = *std::max_element(c.documents.begin(), c.documents.end());
    shape.rope = c.rope, shape.rope_theta = 1000, shape.scale = 1 / std::sqrt(static_cast<double>(c.head_dim));
    shape.soft_cap = c.soft_cap, shape.norm_eps = 1e-6;
    const std::int64_t wide = c.heads * c.head_dim;
    qkv = random<S>(tokens * shape.qkv_width(), 1, c.deviation, c.bf16), dout = random<S>(tokens * wide, 2, 1, c.bf16);
    if (c.qk_norm) q_gain = random<T>(c.head_dim, 3, 1, false), k_gain = random<T>(c.head_dim, 4, 1, false);
    const float garbage = std::numeric_limits<float>::quiet_NaN();
    out = Guarded<S>(tokens * wide, S(garbage)), dqkv = Guarded<S>(tokens * shape.qkv_width(), S(garbage));
    lse = Guarded<T>(tokens * c.heads, garbage), max_logit = Guarded<T>(c.heads, garbage);
    dq_gain = Guarded<T>(c.head_dim, garbage), dk_gain = Guarded<T>(c.head_dim, garbage);
    positions = Guarded<std::int32_t>(tokens), cu = Guarded<std::int32_t>(documents + 1);
    std::int32_t at = 0;
    for (std::size_t e = 0; e < c.documents.size(); ++e) {
      std::int32_t position = c.gaps ? 37 * static_cast<std::int32_t>(e) : 0;
      for (std::int64_t i = 0; i < c.documents[e]; ++i, position += c.gaps ? 1 + at % 3 : 1)
        positions[static_cast<std::size_t>(at++)] = position;
      cu[e + 1] = at;
    }
  }
  bool intact() const {
    return qkv.intact() && q_gain.intact() && k_gain.intact() && out.intact() && lse.intact() && max_logit.intact() &&
           dout.intact() && dqkv.intact() && dq_gain.intact() && dk_gain.intact() && positions.intact() && cu.intact();
  }
  // The same numbers in every type: those of float, or of bf16.
  template <class N>
  static Guarded<N> random(std::int64_t n, std::uint32_t seed, double deviation, bool bf16) {
    const Guarded<float> g = random_guarded<float>(n, seed, deviation);
    Guarded<N> to(n);
    for (std::size_t i = 0; i < g.size(); ++i) to[i] = static_cast<N>(bf16 ? static_cast<float>(BFloat16(g[i])) : g[i]);
    return to;
  }
  TensorView gain(Guarded<T>& g) { return g.size() > 0 ? view_of(g, {shape.head_dim}) : TensorView(); }
  op::Attention forward() {
    return {.qkv = view_of(qkv, {tokens, shape.qkv_width()}),
            .q_gain = gain(q_gain),
            .k_gain = gain(k_gain),
            .positions = view_of(positions, {tokens}),
            .cu_seqlens = view_of(cu, {documents + 1}),
            .out = view_of(out, {tokens, shape.n_heads * shape.head_dim}),
            .lse = view_of(lse, {tokens, shape.n_heads}),
            .max_logit = view_of(max_logit, {shape.n_heads}),
            .saved = {},
            .workspace = {},
            .shape = shape};
  }
  op::AttentionBackward backward() {
    const op::Attention f = forward();
    op::AttentionBackward b;
    b.dout = view_of(dout, f.out.shape), b.qkv = f.qkv, b.q_gain = f.q_gain, b.k_gain = f.k_gain;
    b.positions = f.positions, b.cu_seqlens = f.cu_seqlens, b.out = f.out, b.lse = f.lse;
    b.dqkv = view_of(dqkv, f.qkv.shape), b.shape = shape;
    if (q_gain.size() > 0) b.dq_gain = {gain(dq_gain), false}, b.dk_gain = {gain(dk_gain), false};
    return b;
  }
};

// Runs an operation in guarded memory of its own.
template <class AnyOp>
void run_guarded(const Backend& backend, AnyOp o, ParallelFor* parallel = nullptr) {
  const std::int64_t bytes = backend.needs(Op(o)).workspace;
  Guarded<double> workspace((bytes + 7) / 8, std::numeric_limits<double>::quiet_NaN());
  o.workspace = view_of(workspace, {bytes});
  o.workspace.dtype = DType::u8;
  ASSERT_EQ(check(Op(o)), nullptr);
  KernelContext context;
  context.parallel = parallel;
  backend.run(Op(o), context);
  EXPECT_TRUE(workspace.intact()) << "workspace";
}

const Backend& cpu_backend() { return *find_backend("cpu"); }
const Backend& reference_backend() { return *find_backend("reference"); }

template <class T, class S>
void run_both(const Backend& backend, Operands<T, S>& o, ParallelFor* parallel = nullptr) {
  run_guarded(backend, o.forward(), parallel);
  run_guarded(backend, o.backward(), parallel);
}

// What rounding may do: unit32 x depth x norm. Operands are random and roundings independent of one another, so that
// sums of n terms wander like sqrt(n), and a product of heads is sqrt(head_dim) smaller than its norms allow.
class Allowed {
 public:
  Allowed(const Case& c, Operands<double>& exact)
      : c_(c), o_(exact), root_(std::sqrt(static_cast<double>(c.head_dim))) {
    const AttentionShape& s = o_.shape;
    const double longest = static_cast<double>(s.max_len);
    for (std::int64_t t = 0; t < o_.tokens; ++t)
      for (std::int64_t h = 0; h < s.n_heads + 2 * s.n_kv_heads; ++h) {
        const bool is_q = h < s.n_heads, is_v = h >= s.n_heads + s.n_kv_heads;
        const double length = is_v ? norm(&o_.qkv[at(t, h)]) : prepared_norm(t, h);
        double& longest_head = is_v ? v_ : is_q ? q_ : k_;
        longest_head = std::max(longest_head, length);
        for (std::int64_t i = 0; is_v && i < c.head_dim; ++i)
          v_element_ = std::max(v_element_, std::abs(o_.qkv[at(t, h) + static_cast<std::size_t>(i)]));
      }
    for (std::size_t i = 0; i < o_.dout.size(); ++i) dout_element_ = std::max(dout_element_, std::abs(o_.dout[i]));
    for (std::int64_t i = 0; i < o_.tokens * s.n_heads; ++i)
      dout_ = std::max(dout_, norm(&o_.dout[static_cast<std::size_t>(i * c.head_dim)]));
    // Norm, rotation and scale round a few times.
    logit_ = max_logit();
    if (c.soft_cap > 0) logit_ += unit32 * 8 * c.soft_cap;
    weight_ = 2 * logit_ + unit32 * (12 + 2 * std::sqrt(longest) + 2 * root_);
    // Sums of weights over the queries that see a key: the gradient of values when that of every output is 1.
    Operands<double> ones(c);
    run_guarded(reference_backend(), ones.forward());
    std::fill(ones.dout.data(), ones.dout.data() + ones.dout.size(), 1.0);
    run_guarded(reference_backend(), ones.backward());
    seen_.resize(static_cast<std::size_t>(o_.tokens * s.n_kv_heads));
    for (std::int64_t t = 0; t < o_.tokens; ++t)
      for (std::int64_t h = 0; h < s.n_kv_heads; ++h)
        seen_[static_cast<std::size_t>(t * s.n_kv_heads + h)] = ones.dqkv[at(t, s.n_heads + s.n_kv_heads + h)];
  }
  double out() const { return weight_ * v_element_; }
  double lse() const { return logit_ + unit32 * (8 + std::log(static_cast<double>(o_.shape.max_len))); }
  double max_logit() const { return unit32 * (24 + 2 * root_) * o_.shape.scale * q_ * k_ / root_; }
  // Element i of dqkv.
  double dqkv(std::size_t i) const {
    const AttentionShape& s = o_.shape;
    const auto t = static_cast<std::int64_t>(i) / s.qkv_width(),
               h = static_cast<std::int64_t>(i) % s.qkv_width() / s.head_dim;
    if (h >= s.n_heads + s.n_kv_heads) return weight_ * dout_element_ * seen(t, h - s.n_heads - s.n_kv_heads);
    return prepared(t, h) * (c_.qk_norm ? 4 * inverse(t, h) * gain(h < s.n_heads) : 2);
  }
  // Errors of rows are independent of one another.
  double gain_gradient(bool of_q) const {
    const AttentionShape& s = o_.shape;
    double sum = 0;
    for (std::int64_t t = 0; t < o_.tokens; ++t)
      for (std::int64_t h = of_q ? 0 : s.n_heads; h < (of_q ? s.n_heads : s.n_heads + s.n_kv_heads); ++h)
        sum += std::pow(4 * prepared(t, h), 2);
    return std::sqrt(sum);
  }

 private:
  std::size_t at(std::int64_t t, std::int64_t h) const {
    return static_cast<std::size_t>(t * o_.shape.qkv_width() + h * c_.head_dim);
  }
  double norm(const double* x) const {
    double sum = 0;
    for (std::int64_t i = 0; i < c_.head_dim; ++i) sum += x[i] * x[i];
    return std::sqrt(sum);
  }
  double inverse(std::int64_t t, std::int64_t h) const {
    const double n = norm(&o_.qkv[at(t, h)]);
    return c_.qk_norm ? 1 / std::sqrt(n * n / static_cast<double>(c_.head_dim) + o_.shape.norm_eps) : 1;
  }
  double prepared_norm(std::int64_t t, std::int64_t h) const {
    double sum = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(c_.head_dim); ++i) {
      const Guarded<double>& g = h < o_.shape.n_heads ? o_.q_gain : o_.k_gain;
      sum += std::pow(o_.qkv[at(t, h) + i] * (c_.qk_norm ? g[i] * inverse(t, h) : 1), 2);
    }
    return std::sqrt(sum);
  }
  double gain(bool of_q) const {
    double most = c_.qk_norm ? 0 : 1;
    const Guarded<double>& g = of_q ? o_.q_gain : o_.k_gain;
    for (std::size_t i = 0; i < g.size(); ++i) most = std::max(most, std::abs(g[i]));
    return most;
  }
  // What errors of weights add up to, where a sum over queries has no more than 1 each.
  double seen(std::int64_t t, std::int64_t kv) const {
    return 1 + std::sqrt(seen_[static_cast<std::size_t>(t * o_.shape.n_kv_heads + kv)]);
  }
  // Of the gradient of a prepared head: sum of weight x (dout v - mean) x an element of the other's head.
  double prepared(std::int64_t t, std::int64_t h) const {
    const double gradient = 2 * weight_ * dout_ * v_ / root_ * o_.shape.scale;
    return h < o_.shape.n_heads ? gradient * 3 * k_ / root_ : gradient * 3 * q_ / root_ * seen(t, h - o_.shape.n_heads);
  }

  Case c_;
  Operands<double>& o_;
  double root_, q_ = 0, k_ = 0, v_ = 0, v_element_ = 0, dout_ = 0, dout_element_ = 0, logit_, weight_;
  Vector seen_;
};

template <class T>
Vector doubles(const Guarded<T>& g) {
  Vector v;
  for (std::size_t i = 0; i < g.size(); ++i) v.push_back(static_cast<double>(static_cast<float>(g[i])));
  return v;
}

template <class S>
void expect_agrees(const std::string& what, const Case& c, Operands<float, S>& got, Operands<double>& exact,
                   const Allowed& allowed) {
  // What is stored in bf16 is rounded once more.
  const double unit = c.bf16 ? 0x1p-8 : 0;
  expect_close(what + ", out", doubles(got.out), exact.out,
               [&](std::size_t i) { return allowed.out() + unit * std::abs(exact.out[i]); });
  expect_close(what + ", lse", got.lse, exact.lse, [&](std::size_t) { return allowed.lse(); });
  expect_close(what + ", max logits", got.max_logit, exact.max_logit, [&](std::size_t) { return allowed.max_logit(); });
  expect_close(what + ", dqkv", doubles(got.dqkv), exact.dqkv,
               [&](std::size_t i) { return allowed.dqkv(i) + unit * std::abs(exact.dqkv[i]); });
  if (!c.qk_norm) return;
  expect_close(what + ", dq_gain", got.dq_gain, exact.dq_gain,
               [&](std::size_t) { return allowed.gain_gradient(true); });
  expect_close(what + ", dk_gain", got.dk_gain, exact.dk_gain,
               [&](std::size_t) { return allowed.gain_gradient(false); });
}

template <class T>
bool same_bits(const Guarded<T>& a, const Guarded<T>& b) {
  return a.size() == b.size() && (a.size() == 0 || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

// Forward, then backward from what forward rounded and stored.
template <class S>
void expect_agrees_everywhere(const Case& c) {
  Operands<double> exact(c);
  run_both(reference_backend(), exact);
  const Allowed allowed(c, exact);
  ReversedTasks reversed;
  ThreadTeam two(2), three(3);
  for (const std::string_view set : cpu::instruction_sets()) {
    const OnInstructionSet on(set);
    const std::string what = c.name + " on " + std::string(set);
    Operands<float, S> first(c);
    run_both(cpu_backend(), first);
    EXPECT_TRUE(first.intact()) << what;
    if (c.bf16) {
      const Guarded<double> out = exact.out;
      for (std::size_t i = 0; i < out.size(); ++i) exact.out[i] = static_cast<float>(first.out[i]);
      run_guarded(reference_backend(), exact.backward());
      exact.out = out;
    }
    expect_agrees(what, c, first, exact, allowed);
    for (ParallelFor* parallel :
         {static_cast<ParallelFor*>(&reversed), static_cast<ParallelFor*>(&two), static_cast<ParallelFor*>(&three)}) {
      Operands<float, S> again(c);
      run_both(cpu_backend(), again, parallel);
      EXPECT_TRUE(again.intact()) << what;
      EXPECT_TRUE(same_bits(first.out, again.out) && same_bits(first.lse, again.lse) &&
                  same_bits(first.max_logit, again.max_logit) && same_bits(first.dqkv, again.dqkv) &&
                  same_bits(first.dq_gain, again.dq_gain) && same_bits(first.dk_gain, again.dk_gain))
          << what << ", bits on " << parallel->threads() << " threads";
    }
  }
}

class AttentionTest : public testing::TestWithParam<Case> {};

TEST_P(AttentionTest, AgreesWithTheReferenceInDouble) {
  if (GetParam().bf16)
    expect_agrees_everywhere<BFloat16>(GetParam());
  else
    expect_agrees_everywhere<float>(GetParam());
}

std::vector<Case> cases() {
  std::vector<Case> all;
  const auto add = [&](Case c) {
    c.name = "h" + std::to_string(c.heads) + "kv" + std::to_string(c.kv_heads) + "d" + std::to_string(c.head_dim) +
             (c.qk_norm ? "norm" : "") + (c.rope ? "rope" : "") + (c.soft_cap > 0 ? "cap" : "") +
             (c.gaps ? "gaps" : "") + (c.bf16 ? "bf16" : "") + "n" + std::to_string(all.size());
    all.push_back(c);
  };
  // Document lengths: none, one, either side of every block, many tiny ones.
  const std::vector<std::int64_t> edges = {0, 1, 63, 64, 0, 65, 127}, more_edges = {128, 129, 255, 0, 256, 257};
  const std::vector<std::int64_t> tiny = {1, 2, 0, 3, 5, 1, 1, 7, 2, 4, 0, 6, 1, 2, 3, 9, 1, 13, 14, 15, 31, 33};
  for (const std::int64_t dim : {8, 16, 20, 64, 128})
    for (const auto& [heads, kv] : {std::pair(4, 4), std::pair(4, 2), std::pair(4, 1)})
      add({"", heads, kv, dim, dim == 20 ? edges : tiny, kv != 2, kv != 4, kv == 1 ? 5.0 : 0.0, 1, kv == 2});
  add({"", 3, 3, 7, tiny, true, false});  // an odd width cannot rotate
  add({"", 1, 1, 1, {5, 40}, true, false});
  add({"", 2, 1, 256, {40, 1, 130}});
  add({"", 2, 1, 64, edges});
  add({"", 2, 2, 16, more_edges});
  add({"", 2, 1, 64, more_edges, true, true, 20, 1, true});
  add({"", 4, 1, 32, {700}});
  add({"", 2, 2, 64, {700, 3}, false, true, 0, 1, true});
  add({"", 1, 1, 64, {1}, true, true, 3});
  add({"", 2, 1, 264, {20, 9}});  // wider than any block: the reference does it
  for (const bool norm_and_rope : {true, false}) {
    add({"", 4, 2, 16, tiny, norm_and_rope, norm_and_rope, 0, 1, true, true});
    add({"", 4, 1, 20, edges, norm_and_rope, norm_and_rope, 5, 1, false, true});
    add({"", 2, 1, 64, more_edges, norm_and_rope, norm_and_rope, 0, 1, false, true});
  }
  add({"", 2, 1, 264, {20, 9}, true, true, 0, 1, false, true});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Shapes, AttentionTest, testing::ValuesIn(cases()), [](const auto& i) { return i.param.name; });

// What a document gives does not depend, to the bit, on what it is packed with.
TEST(AttentionTest, PackedDocumentsAreAsEachAlone) {
  const Case packed{"packed", 4, 2, 20, {3, 1, 0, 64, 130, 2, 257, 31}};
  for (const std::string_view set : cpu::instruction_sets()) {
    const OnInstructionSet on(set);
    Operands<float> all(packed);
    run_both(cpu_backend(), all);
    std::vector<float> largest(4, -std::numeric_limits<float>::infinity());
    for (std::size_t e = 0; e < packed.documents.size(); ++e) {
      const std::int64_t tokens = packed.documents[e], first = all.cu[e];
      if (tokens == 0) continue;
      Case alone = packed;
      alone.documents = {tokens};
      Operands<float> one(alone);
      const auto from = [&](const auto& source, std::int64_t width) {
        return source.data() + static_cast<std::size_t>(first * width);
      };
      const std::int64_t width = one.shape.qkv_width(), wide = one.shape.n_heads * one.shape.head_dim;
      std::copy_n(from(all.qkv, width), tokens * width, one.qkv.data());
      std::copy_n(from(all.dout, wide), tokens * wide, one.dout.data());
      run_both(cpu_backend(), one);
      EXPECT_EQ(std::memcmp(from(all.out, wide), one.out.data(), one.out.size() * sizeof(float)), 0) << set << " " << e;
      EXPECT_EQ(std::memcmp(from(all.lse, 4), one.lse.data(), one.lse.size() * sizeof(float)), 0) << set << " " << e;
      EXPECT_EQ(std::memcmp(from(all.dqkv, width), one.dqkv.data(), one.dqkv.size() * sizeof(float)), 0)
          << set << " " << e;
      for (std::size_t h = 0; h < 4; ++h) largest[h] = std::max(largest[h], one.max_logit[h]);
    }
    EXPECT_EQ(all.max_logit.values(), largest);
  }
}

// Later tokens change nothing before them, to the bit.
TEST(AttentionTest, NobodySeesTheFuture) {
  const Case c{"future", 2, 1, 16, {300}};
  for (const std::string_view set : cpu::instruction_sets()) {
    const OnInstructionSet on(set);
    Operands<float> before(c), after(c);
    run_guarded(cpu_backend(), before.forward());
    for (const std::int64_t cut : {1, 7, 63, 64, 129, 256, 299}) {
      for (std::size_t i = static_cast<std::size_t>(cut * after.shape.qkv_width()); i < after.qkv.size(); ++i)
        after.qkv[i] = 3 - after.qkv[i];
      run_guarded(cpu_backend(), after.forward());
      const std::size_t n = static_cast<std::size_t>(cut) * 32;
      EXPECT_EQ(std::memcmp(before.out.data(), after.out.data(), n * sizeof(float)), 0) << set << " " << cut;
      EXPECT_NE(std::memcmp(&before.out[n], &after.out[n], 32 * sizeof(float)), 0) << set << " " << cut;
      after.qkv = before.qkv;
    }
  }
}

// Shared key-value heads are the same as repeated ones.
TEST(AttentionTest, SharedHeadsAreRepeatedHeads) {
  const Case shared{"shared", 6, 2, 24, {90, 140}}, repeated{"repeated", 6, 6, 24, {90, 140}};
  for (const std::string_view set : cpu::instruction_sets()) {
    const OnInstructionSet on(set);
    Operands<float> few(shared), many(repeated);
    many.q_gain = few.q_gain, many.k_gain = few.k_gain, many.dout = few.dout;
    const auto head = [&](auto& values, const AttentionShape& s, std::int64_t t, std::int64_t h) {
      return values.data() + static_cast<std::size_t>(t * s.qkv_width() + h * s.head_dim);
    };
    // q, k and v: where head h of the many lies among the few
    const auto source = [](std::int64_t h) { return h < 6 ? h : h < 12 ? 6 + (h - 6) / 3 : 8 + (h - 12) / 3; };
    for (std::int64_t t = 0; t < few.tokens; ++t)
      for (std::int64_t h = 0; h < 18; ++h)
        std::copy_n(head(few.qkv, few.shape, t, source(h)), 24, head(many.qkv, many.shape, t, h));
    run_both(cpu_backend(), few), run_both(cpu_backend(), many);
    EXPECT_TRUE(same_bits(few.out, many.out) && same_bits(few.lse, many.lse) &&
                same_bits(few.max_logit, many.max_logit))
        << set;
    // Gradients of queries to the bit, those of keys and values as sums over the three.
    Vector sums, summed, sizes;
    for (std::int64_t t = 0; t < few.tokens; ++t) {
      EXPECT_EQ(std::memcmp(head(few.dqkv, few.shape, t, 0), head(many.dqkv, many.shape, t, 0), 6 * 24 * sizeof(float)),
                0);
      for (std::int64_t h = 6; h < 10; ++h)
        for (std::int64_t i = 0; i < 24; ++i) {
          double sum = 0, size = 0;
          for (std::int64_t m = 6; m < 18; ++m)
            if (source(m) == h)
              sum += head(many.dqkv, many.shape, t, m)[i], size += std::abs(head(many.dqkv, many.shape, t, m)[i]);
          summed.push_back(head(few.dqkv, few.shape, t, h)[i]), sums.push_back(sum), sizes.push_back(size);
        }
    }
    const double largest = *std::max_element(sizes.begin(), sizes.end());
    expect_close(std::string(set), summed, sums,
                 [&](std::size_t) { return unit32 * (12 + 2 * std::sqrt(140.0)) * largest; });
  }
}

// Logits of tens of thousands: nothing overflows, and what is left is the largest.
TEST(AttentionTest, HugeLogitsStayFinite) {
  for (const double cap : {0.0, 30.0}) {
    Case c{"huge", 2, 1, 64, {150, 30}, false, false, cap, 150};
    Operands<double> exact(c);
    run_both(reference_backend(), exact);
    EXPECT_GT(*std::max_element(exact.max_logit.data(), exact.max_logit.data() + 2), 7e4);
    for (const std::string_view set : cpu::instruction_sets()) {
      const OnInstructionSet on(set);
      Operands<float> o(c);
      run_both(cpu_backend(), o);
      expect_agrees("huge on " + std::string(set), c, o, exact, Allowed(c, exact));
      for (std::size_t i = 0; i < o.dqkv.size(); ++i) ASSERT_TRUE(std::isfinite(o.dqkv[i])) << set;
    }
  }
}

// A NaN shows in every row that sees it and in the largest logit, and in no other document.
TEST(AttentionTest, BrokenInputsShow) {
  const Case c{"broken", 2, 2, 16, {100, 200, 60}};
  for (const std::string_view set : cpu::instruction_sets()) {
    const OnInstructionSet on(set);
    for (const std::int64_t token : {100, 137, 299}) {
      Operands<float> o(c);
      o.qkv[static_cast<std::size_t>(token * o.shape.qkv_width() + 2 * 16 + 3)] =
          std::numeric_limits<float>::quiet_NaN();
      run_both(cpu_backend(), o);
      EXPECT_TRUE(std::isnan(o.max_logit[0]) && std::isfinite(o.max_logit[1])) << set;
      for (std::int64_t t = 0; t < o.tokens; ++t) {
        const bool sees = t >= token && t < 300, beside = t < 100 || t >= 300;
        const float* row = &o.out[static_cast<std::size_t>(t * 32)];
        for (const float x : {row[0], row[15]}) ASSERT_EQ(std::isnan(x), sees) << set << " row " << t;
        EXPECT_TRUE(std::isfinite(row[16])) << set << " row " << t;
        for (std::int64_t i = 0; beside && i < o.shape.qkv_width(); ++i)
          ASSERT_TRUE(std::isfinite(o.dqkv[static_cast<std::size_t>(t * o.shape.qkv_width() + i)]))
              << set << " row " << t;
      }
    }
  }
}

TEST(AttentionTest, GainGradientsAssignAddOrStayFrozen) {
  const Case c{"gains", 4, 2, 16, {70, 100}};
  for (const std::string_view set : cpu::instruction_sets()) {
    const OnInstructionSet on(set);
    Operands<float> assigned(c), added(c);
    run_both(cpu_backend(), assigned);
    run_guarded(cpu_backend(), added.forward());
    op::AttentionBackward b = added.backward();
    b.dq_gain.accumulate = true;
    b.dk_gain = {};
    std::fill(added.dq_gain.data(), added.dq_gain.data() + 16, 0.5f);
    const Guarded<float> untouched = added.dk_gain;
    run_guarded(cpu_backend(), b);
    EXPECT_TRUE(same_bits(added.dk_gain, untouched)) << set;
    EXPECT_TRUE(same_bits(added.dqkv, assigned.dqkv)) << set;
    double size = 0;
    for (std::size_t i = 0; i < 16; ++i) size = std::max(size, 1.0 + std::abs(assigned.dq_gain[i]));
    Vector expected;
    for (std::size_t i = 0; i < 16; ++i) expected.push_back(0.5 + assigned.dq_gain[i]);
    expect_close(std::string(set), added.dq_gain, expected, [&](std::size_t) { return 16 * unit32 * size; });
  }
}

// Tokens beyond the last document have no gradient, and nothing else of them is touched.
TEST(AttentionTest, TokensBeyondTheDocumentsStayOut) {
  const Case c{"beyond", 2, 1, 16, {50, 40}};
  for (const std::string_view set : cpu::instruction_sets()) {
    const OnInstructionSet on(set);
    Operands<float> o(c);
    o.cu[2] = 75;
    run_both(cpu_backend(), o);
    EXPECT_TRUE(std::isfinite(o.out[75 * 32 - 1]) && std::isnan(o.out[75 * 32]));
    EXPECT_TRUE(std::isfinite(o.lse[75 * 2 - 1]) && std::isnan(o.lse[75 * 2]));
    const auto width = static_cast<std::size_t>(o.shape.qkv_width());
    for (std::size_t i = 75 * width; i < o.dqkv.size(); ++i) ASSERT_EQ(o.dqkv[i], 0) << set;
    EXPECT_NE(o.dqkv[75 * width - 1], 0);
  }
}

// Every item is done once, and no thread has more than its part and one item.
TEST(AttentionTest, SharesOfWorkAreWholeAndAlike) {
  std::mt19937 engine(1);
  for (const int threads : {1, 2, 3, 8, 16})
    for (const int items : {1, 2, 7, 40, 333}) {
      std::vector<std::int64_t> costs;
      for (int i = 0; i < items; ++i) costs.push_back(i % 5 == 0 ? 0 : 1 + static_cast<std::int64_t>(engine() % 9000));
      ThreadTeam team(threads);
      KernelContext context;
      context.parallel = &team;
      const auto list = [&](auto&& f) {
        for (std::size_t i = 0; i < costs.size(); ++i) f(i, costs[i]);
      };
      std::vector<std::atomic<int>> done(costs.size());
      cpu::run_shares(context, list, [&](std::size_t i) { ++done[i]; });
      for (const auto& n : done) EXPECT_EQ(n, 1);
      const cpu::Shares shares(context, list);
      std::vector<std::int64_t> loads(static_cast<std::size_t>(shares.count));
      std::int64_t owner_before = 0;
      shares.for_each(list, [&](std::int64_t owner, std::size_t, std::int64_t cost) {
        EXPECT_LE(owner_before, owner);
        owner_before = owner;
        loads[static_cast<std::size_t>(owner)] += cost;
      });
      const std::int64_t largest = *std::max_element(costs.begin(), costs.end());
      for (const std::int64_t load : loads) EXPECT_LE(load, shares.total / shares.count + largest + 1);
      const std::int64_t most = *std::max_element(loads.begin(), loads.end());
      const std::int64_t wanted = shares.total < 4000 ? 1 : threads;  // that should not wait
      EXPECT_EQ(cpu::shares_are_even(context, list), most * wanted <= shares.total + shares.total / 16);
    }
}

// One long document is work for every thread.
TEST(AttentionTest, OneDocumentIsSharedByAllThreads) {
  struct Counting final : ParallelFor {
    void run(std::int64_t tasks, void (*fn)(void*, std::int64_t), void* self) override {
      most = std::max(most, tasks);
      for (std::int64_t i = 0; i < tasks; ++i) fn(self, i);
    }
    int threads() const override { return 3; }
    std::int64_t most = 0;
  };
  Operands<float> o(Case{"one", 4, 2, 16, {700}});
  Counting forward, backward;
  run_guarded(cpu_backend(), o.forward(), &forward);
  run_guarded(cpu_backend(), o.backward(), &backward);
  EXPECT_EQ(forward.most, 3);
  EXPECT_EQ(backward.most, 3);
}

// A Program is planned for other machines too.
TEST(AttentionTest, NeedsAreTheSameOnEveryInstructionSet) {
  const Case c{"needs", 4, 2, 20, {50, 40}};
  Operands<float> o(c);
  const Needs f = cpu_backend().needs(o.forward()), b = cpu_backend().needs(o.backward());
  for (const std::string_view set : cpu::instruction_sets()) {
    const OnInstructionSet on(set);
    EXPECT_EQ(cpu_backend().needs(o.forward()).workspace, f.workspace);
    EXPECT_EQ(cpu_backend().needs(o.backward()).workspace, b.workspace);
  }
}

}  // namespace
}  // namespace stacklab::test
