// Ragged attention and rotation of the CPU backend against the reference in double, on every instruction set.
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/backend.h"
#include "tests/kernels/cpu_harness.h"
#include "tests/kernels/op_harness.h"

namespace stacklab::test {
namespace {

using Vector = std::vector<double>;

const Backend& cpu_backend() { return *find_backend("cpu"); }
const Backend& reference_backend() { return *find_backend("reference"); }

struct Case {
  std::string name;
  std::int64_t heads, kv_heads, dim, v_dim;
  std::vector<std::pair<std::int64_t, std::int64_t>> documents;  // queries, keys
  std::int64_t window = 0;
  double soft_cap = 0;
};

template <class T>
Tensor<T> same_random(Shape shape, std::uint32_t seed) {
  const Tensor<float> f = random_tensor<float>(shape, seed);
  return Tensor<T>(shape, std::vector<T>(f.data.begin(), f.data.end()));
}

template <class T>
struct Operands {
  Tensor<T> q, k, v, dout, out, lse, max_logit, dq, dk, dv;
  Tensor<std::int32_t> cu_q, cu_k;
  RaggedShape shape;

  explicit Operands(const Case& c) {
    std::vector<std::int32_t> at_q = {0}, at_k = {0};
    for (const auto& [queries, keys] : c.documents) {
      at_q.push_back(at_q.back() + static_cast<std::int32_t>(queries));
      at_k.push_back(at_k.back() + static_cast<std::int32_t>(keys));
    }
    const std::int64_t nq = at_q.back(), nk = at_k.back(), n = static_cast<std::int64_t>(at_q.size());
    cu_q = Tensor<std::int32_t>({n}, at_q), cu_k = Tensor<std::int32_t>({n}, at_k);
    q = same_random<T>({nq, c.heads, c.dim}, 1), k = same_random<T>({nk, c.kv_heads, c.dim}, 2);
    v = same_random<T>({nk, c.kv_heads, c.v_dim}, 3), dout = same_random<T>({nq, c.heads, c.v_dim}, 4);
    const T garbage = std::numeric_limits<T>::quiet_NaN();
    out = Tensor<T>(dout.shape, garbage), lse = Tensor<T>({nq, c.heads}, garbage);
    max_logit = Tensor<T>({c.heads}, garbage);
    dq = Tensor<T>(q.shape, garbage), dk = Tensor<T>(k.shape, garbage), dv = Tensor<T>(v.shape, garbage);
    shape = {.scale = 1 / std::sqrt(static_cast<double>(c.dim)), .soft_cap = c.soft_cap, .window = c.window};
  }
  void run(const Backend& backend, ParallelFor* parallel = nullptr) {
    run_op(backend,
           op::RaggedAttention{.q = q.view(),
                               .k = k.view(),
                               .v = v.view(),
                               .cu_q = cu_q.view(),
                               .cu_k = cu_k.view(),
                               .out = out.view(),
                               .lse = lse.view(),
                               .max_logit = max_logit.view(),
                               .workspace = {},
                               .shape = shape},
           nullptr, parallel);
    op::RaggedAttentionBackward b;
    b.dout = dout.view(), b.q = q.view(), b.k = k.view(), b.v = v.view(), b.cu_q = cu_q.view(), b.cu_k = cu_k.view();
    b.out = out.view(), b.lse = lse.view(), b.dq = dq.view(), b.dk = dk.view(), b.dv = dv.view(), b.shape = shape;
    run_op(backend, b, nullptr, parallel);
  }
};

double largest(const Tensor<double>& t) {
  double most = 0;
  for (const double x : t.data) most = std::max(most, std::abs(x));
  return most;
}

// The longest head.
double longest(const Tensor<double>& t) {
  double most = 0;
  for (std::size_t i = 0; i < t.data.size(); i += static_cast<std::size_t>(t.shape[2])) {
    double sum = 0;
    for (std::size_t j = i; j < i + static_cast<std::size_t>(t.shape[2]); ++j) sum += t.data[j] * t.data[j];
    most = std::max(most, sum);
  }
  return std::sqrt(most);
}

// Infinities stand for nothing seen; they must be where they are expected.
template <class T>
Vector without_infinities(const std::vector<T>& got, const Vector& exact) {
  Vector v;
  for (std::size_t i = 0; i < got.size(); ++i)
    v.push_back(std::isinf(exact[i]) && static_cast<double>(got[i]) == exact[i] ? 0 : static_cast<double>(got[i]));
  return v;
}

class RaggedTest : public testing::TestWithParam<Case> {};

TEST_P(RaggedTest, AgreesWithTheReferenceInDouble) {
  const Case& c = GetParam();
  Operands<double> exact(c);
  exact.run(reference_backend());
  // Sums of weights over the queries that see a key: the gradient of values when that of every output is 1.
  Operands<double> ones(c);
  std::fill(ones.dout.data.begin(), ones.dout.data.end(), 1.0);
  ones.run(reference_backend());
  double seen = 1;
  for (const double x : ones.dv.data) seen = std::max(seen, x);

  // Rounding adds up like a random walk, and products of random heads are smaller than their norms allow; see the test
  // of attention.
  std::int64_t most = 1;
  for (const auto& [queries, keys] : c.documents) most = std::max({most, queries, keys});
  const double root = std::sqrt(static_cast<double>(c.dim)), v_root = std::sqrt(static_cast<double>(c.v_dim));
  const double q = longest(exact.q), k = longest(exact.k), v = longest(exact.v), dout = longest(exact.dout);
  const double max_logit = unit32 * (24 + 2 * root) * exact.shape.scale * q * k / root;
  const double logit = max_logit + unit32 * 8 * c.soft_cap;
  const double weight = 2 * logit + unit32 * (12 + 2 * std::sqrt(static_cast<double>(most)) + 2 * v_root);
  const double dlogit = 2 * weight * dout * v / v_root * exact.shape.scale, seen_root = 1 + std::sqrt(seen);
  const auto within = [](double limit) { return [limit](std::size_t) { return limit; }; };

  ReversedTasks reversed;
  ThreadTeam two(2), three(3);
  for (const std::string_view set : cpu::instruction_sets()) {
    const OnInstructionSet on(set);
    const std::string what = c.name + " on " + std::string(set);
    Operands<float> got(c);
    got.run(cpu_backend());
    expect_close(what + ", out", got.out.data, exact.out.data, within(weight * largest(exact.v)));
    expect_close(what + ", lse", without_infinities(got.lse.data, exact.lse.data),
                 without_infinities(exact.lse.data, exact.lse.data),
                 within(logit + unit32 * (8 + std::log(static_cast<double>(most)))));
    expect_close(what + ", max logits", without_infinities(got.max_logit.data, exact.max_logit.data),
                 without_infinities(exact.max_logit.data, exact.max_logit.data), within(max_logit));
    expect_close(what + ", dq", got.dq.data, exact.dq.data, within(dlogit * 3 * k / root));
    expect_close(what + ", dk", got.dk.data, exact.dk.data, within(dlogit * 3 * q / root * seen_root));
    expect_close(what + ", dv", got.dv.data, exact.dv.data, within(weight * largest(exact.dout) * seen_root));
    for (ParallelFor* parallel :
         {static_cast<ParallelFor*>(&reversed), static_cast<ParallelFor*>(&two), static_cast<ParallelFor*>(&three)}) {
      Operands<float> again(c);
      again.run(cpu_backend(), parallel);
      EXPECT_TRUE(got.out.data == again.out.data && got.lse.data == again.lse.data &&
                  got.max_logit.data == again.max_logit.data && got.dq.data == again.dq.data &&
                  got.dk.data == again.dk.data && got.dv.data == again.dv.data)
          << what;
    }
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  const auto add = [&](Case c) {
    c.name = "h" + std::to_string(c.heads) + "kv" + std::to_string(c.kv_heads) + "d" + std::to_string(c.dim) + "v" +
             std::to_string(c.v_dim) + "w" + std::to_string(c.window) + (c.soft_cap > 0 ? "cap" : "") + "n" +
             std::to_string(all.size());
    all.push_back(c);
  };
  // Level, a cached prefix, one query of many keys, keys without queries, queries without keys, more queries than keys.
  const std::vector<std::pair<std::int64_t, std::int64_t>> mixed = {{40, 40}, {10, 150}, {1, 300},   {0, 5}, {3, 0},
                                                                    {70, 30}, {0, 0},    {130, 131}, {1, 1}};
  for (const std::int64_t window : {0, 1, 5, 64, 100, 257}) add({"", 4, 2, 16, 16, mixed, window});
  add({"", 2, 1, 20, 36, mixed, 0, 4});
  add({"", 2, 2, 64, 8, mixed, 33, 4});
  add({"", 3, 1, 64, 64, {{500, 600}, {200, 700}}, 0});
  add({"", 1, 1, 64, 64, {{500, 600}, {200, 700}}, 150});
  add({"", 2, 1, 5, 3, {{4, 0}, {0, 3}}});  // nobody sees anything
  add({"", 2, 1, 300, 16, mixed, 0});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Shapes, RaggedTest, testing::ValuesIn(cases()), [](const auto& i) { return i.param.name; });

TEST(RopeTest, AgreesWithTheReferenceInDouble) {
  for (const std::int64_t dim : {2, 8, 20, 64, 128, 256, 300}) {
    const Shape shape = {75, 3, dim};
    const Tensor<float> x = random_tensor<float>(shape, 1);
    const Tensor<double> wide(shape, Vector(x.data.begin(), x.data.end()));
    Tensor<std::int32_t> positions(Shape{75});
    for (std::size_t t = 0; t < 75; ++t) positions.data[t] = static_cast<std::int32_t>(t * t * t);
    for (const bool inverse : {false, true}) {
      Tensor<double> expected(shape);
      run_op(reference_backend(), op::Rope{.x = wide.view(),
                                           .positions = positions.view(),
                                           .y = expected.view(),
                                           .workspace = {},
                                           .theta = 1e6,
                                           .inverse = inverse});
      // Wider heads are the reference's, which takes angles in float: they are off by their own rounding.
      const double angle = dim > 256 ? unit32 * 2 * 74.0 * 74 * 74 : 0;
      for (const std::string_view set : cpu::instruction_sets()) {
        const OnInstructionSet on(set);
        Tensor<float> y(shape), again(shape);
        ThreadTeam two(2);
        op::Rope o{.x = x.view(),
                   .positions = positions.view(),
                   .y = y.view(),
                   .workspace = {},
                   .theta = 1e6,
                   .inverse = inverse};
        run_op(cpu_backend(), o);
        o.y = again.view();
        run_op(cpu_backend(), o, nullptr, &two);
        EXPECT_EQ(y.data, again.data);
        expect_close("width " + std::to_string(dim) + " on " + std::string(set), y.data, expected.data,
                     [&](std::size_t i) {
                       const std::size_t d = static_cast<std::size_t>(dim), half = d / 2, from = i / d * d + i % half;
                       return (4 * unit32 + angle) * (std::abs(wide.data[from]) + std::abs(wide.data[from + half]));
                     });
      }
    }
  }
}

}  // namespace
}  // namespace stacklab::test
