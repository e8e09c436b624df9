// NormMatmul, ProjectAdd, NormSwiglu and Logits of the CPU backend against the reference in double, on the same
// numbers: every instruction set, any threads and order of tasks, operands in f32 and bf16.
#include <gtest/gtest.h>

#include "tests/kernels/product_bounds.h"

namespace stacklab::test {
namespace {

constexpr double eps = 1e-5;

const Backend& fast() { return *find_backend("cpu"); }
const Backend& reference() { return *find_backend("reference"); }

struct Size {
  std::int64_t tokens, out, in;
  std::string text() const { return std::to_string(tokens) + " x " + std::to_string(out) + " x " + std::to_string(in); }
};
// One row, one column, less than a tile, edges beside tiles, several depth blocks in either direction, and a width
// whose rows do not come whole, and weights that are packed in parts.
const std::vector<Size> sizes = {{1, 1, 1},     {1, 7, 5},      {3, 1, 9},      {64, 96, 64},
                                 {37, 50, 70},  {65, 129, 300}, {130, 21, 530}, {19, 40, 1100},
                                 {600, 17, 23}, {5, 400, 2100}, {5, 1000, 400}};

struct Wish {
  Wanted dx, dgain, dw;
};
std::vector<Wish> wishes(const Size& s) {
  const Wanted yes{true, false}, more{true, true}, no{false, false};
  if (s.in > 1000 || s.out > 500) return {{more, yes, yes}};
  return {{more, yes, yes}, {more, more, more}, {yes, no, no}, {no, yes, no}, {no, no, more}, {more, no, yes}};
}

// Results that are wanted, in the order of dx, dgain, dw.
struct Grads {
  Held dx, dgain, dw;
  Grads(const Size& s, std::int64_t out) : dx({s.tokens, s.in}, 21), dgain({s.in}, 22), dw({out, s.in}, 23) {}
  std::vector<float> values(const Wish& w) const {
    std::vector<float> all;
    if (w.dx.present) dx.append_to(all);
    if (w.dgain.present) dgain.append_to(all);
    if (w.dw.present) dw.append_to(all);
    EXPECT_TRUE(dx.intact() && dgain.intact() && dw.intact());
    return all;
  }
  // What this has become after the oracle ran on it, from what it was before.
  std::vector<Expected> expected(const Wish& w, const Grads& before, const ProductErrors& errors) const {
    std::vector<Expected> all;
    if (w.dx.present) all.emplace_back("dx", dx, w.dx.error(before.dx, errors.dx, 1));
    if (w.dgain.present) all.emplace_back("dgain", dgain, w.dgain.error(before.dgain, errors.dgain, 16));
    if (w.dw.present) all.emplace_back("dw", dw, w.dw.error(before.dw, errors.dw, dx.shape[0]));
    return all;
  }
};

class CpuProducts : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Storage, CpuProducts, testing::Values(false, true),
                         [](const auto& i) { return i.param ? "bf16" : "f32"; });

struct NormMatmulCase {
  Held x, gain, w, y, dy;
  NormMatmulCase(const Size& s, bool bf16)
      : x({s.tokens, s.in}, 1, false, 3),
        gain({s.in}, 2),
        w({s.out, s.in}, 3, bf16, 0.1),
        y({s.tokens, s.out}, 4, bf16),
        dy({s.tokens, s.out}, 5, bf16) {}
  void forward(const Backend& backend, bool oracle, std::vector<std::uint8_t>& saved, ParallelFor* parallel) {
    const auto v = [oracle](Held& h) { return oracle ? h.oracle() : h.view(); };
    run_op(backend,
           op::NormMatmul{.x = v(x), .gain = v(gain), .w = v(w), .y = v(y), .saved = {}, .workspace = {}, .eps = eps},
           &saved, parallel);
  }
  void backward(const Backend& backend, bool oracle, std::vector<std::uint8_t>& saved, ParallelFor* parallel,
                const Wish& wish, Grads& g) {
    const auto v = [oracle](Held& h) { return oracle ? h.oracle() : h.view(); };
    run_op(backend,
           op::NormMatmulBackward{.dy = v(dy),
                                  .x = v(x),
                                  .gain = v(gain),
                                  .w = v(w),
                                  .saved = {},
                                  .dx = wish.dx.of(v(g.dx)),
                                  .dgain = wish.dgain.of(v(g.dgain)),
                                  .dw = wish.dw.of(v(g.dw)),
                                  .workspace = {},
                                  .eps = eps},
           &saved, parallel);
  }
  bool intact() const { return x.intact() && gain.intact() && w.intact() && y.intact() && dy.intact(); }
};

TEST_P(CpuProducts, NormMatmul) {
  for (const Size& s : sizes) {
    NormMatmulCase c(s, GetParam());
    std::vector<std::uint8_t> saved;
    c.forward(reference(), true, saved, nullptr);
    const NormSizes norm(c.x, &c.gain, eps);
    ByNarrowing expected(GetParam(), [&](double narrowed) -> std::vector<Expected> {
      return {{"y", c.y, norm.product_error(c.w.sizes(), narrowed)}};
    });
    on_every_path(
        "norm_matmul " + s.text(),
        [&](ParallelFor* parallel) {
          NormMatmulCase mine(s, GetParam());
          std::vector<float> values;
          mine.forward(fast(), false, saved, parallel);
          mine.y.append_to(values);
          EXPECT_TRUE(mine.intact());
          return values;
        },
        [&](const std::string& where, const std::vector<float>& got) { expect_all(where, got, expected()); });
  }
}

// A result in bf16 is the one in f32, rounded once: to the bit, whether sums run over one depth block or several.
TEST(CpuProducts16, ResultsAreRoundedOnce) {
  for (const Size& s : sizes)
    for (const std::string_view set : cpu::instruction_sets()) {
      const OnInstructionSet on(set);
      NormMatmulCase narrow(s, true), wide(s, true);
      wide.y = Held(wide.y.shape, 4);
      std::vector<std::uint8_t> saved;
      narrow.forward(fast(), false, saved, nullptr), wide.forward(fast(), false, saved, nullptr);
      for (std::size_t i = 0; i < wide.y.wide.size(); ++i)
        ASSERT_EQ(narrow.y.narrow[i].bits, BFloat16(wide.y.wide[i]).bits) << s.text() << " on " << set;
    }
}

TEST_P(CpuProducts, NormMatmulBackward) {
  for (const Size& s : sizes)
    for (const Wish& wish : wishes(s)) {
      NormMatmulCase c(s, GetParam());
      const Grads before(s, s.out);
      Grads after = before;
      std::vector<std::uint8_t> none, saved;
      c.backward(reference(), true, none, nullptr, wish, after);
      const NormSizes norm(c.x, &c.gain, eps);
      ByNarrowing expected(GetParam(), [&](double narrowed) {
        const ProductErrors errors(norm, c.w.sizes(), {c.dy.sizes(), Matrix(s.tokens, s.out)}, narrowed);
        return after.expected(wish, before, errors);
      });
      on_every_path(
          "norm_matmul_backward " + s.text(),
          [&](ParallelFor* parallel) {
            Grads g = before;
            c.forward(fast(), false, saved, parallel);
            c.backward(fast(), false, saved, parallel, wish, g);
            EXPECT_TRUE(c.intact());
            return g.values(wish);
          },
          [&](const std::string& where, const std::vector<float>& got) { expect_all(where, got, expected()); });
    }
}

TEST_P(CpuProducts, ProjectAdd) {
  for (const Size& s : sizes) {
    Held a({s.tokens, s.in}, 1, GetParam()), w({s.out, s.in}, 2, GetParam()), x({s.tokens, s.out}, 3);
    Held out({s.tokens, s.out}, 4);
    run_op(reference(), op::ProjectAdd{.a = a.oracle(), .w = w.oracle(), .x = x.oracle(), .out = out.oracle()});
    const Matrix error = unit32 * (depth(s.in) * (a.sizes() * w.sizes().transposed()) + x.sizes());
    for (const bool in_place : {false, true})
      on_every_path(
          "project_add " + s.text(),
          [&](ParallelFor* parallel) {
            Held to({s.tokens, s.out}, in_place ? 3 : 4);
            run_op(fast(),
                   op::ProjectAdd{.a = a.view(), .w = w.view(), .x = in_place ? to.view() : x.view(), .out = to.view()},
                   nullptr, parallel);
            EXPECT_TRUE(a.intact() && w.intact() && x.intact() && to.intact());
            std::vector<float> values;
            to.append_to(values);
            return values;
          },
          [&](const std::string& where, const std::vector<float>& got) {
            expect_all(where, got, {{"out", out, error}});
          });
  }
}

TEST_P(CpuProducts, ProjectAddBackward) {
  for (const Size& s : sizes)
    for (const Wanted& wish : {Wanted{true, false}, Wanted{true, true}, Wanted{false, false}}) {
      Held a({s.tokens, s.in}, 1, GetParam()), w({s.out, s.in}, 2, GetParam()), dout({s.tokens, s.out}, 3);
      Held da({s.tokens, s.in}, 4, GetParam());
      const Held before({s.out, s.in}, 5);
      Held dw = before;
      const auto backward = [&](const Backend& backend, bool oracle, Held& to_a, Held& to_w, ParallelFor* parallel) {
        const auto v = [oracle](Held& h) { return oracle ? h.oracle() : h.view(); };
        run_op(backend,
               op::ProjectAddBackward{.dout = v(dout), .a = v(a), .w = v(w), .da = v(to_a), .dw = wish.of(v(to_w))},
               nullptr, parallel);
      };
      backward(reference(), true, da, dw, nullptr);
      ByNarrowing expected(GetParam(), [&](double narrowed) {
        std::vector<Expected> all = {{"da", da, (narrowed + unit32 * depth(s.out)) * (dout.sizes() * w.sizes())}};
        if (!wish.present) return all;
        const Matrix own = (narrowed + unit32 * depth(s.tokens)) * (dout.sizes().transposed() * a.sizes());
        all.emplace_back("dw", dw, wish.error(before, own, s.tokens));
        return all;
      });
      on_every_path(
          "project_add_backward " + s.text(),
          [&](ParallelFor* parallel) {
            Held to_a({s.tokens, s.in}, 6, GetParam()), to_w = before;
            backward(fast(), false, to_a, to_w, parallel);
            EXPECT_TRUE(a.intact() && w.intact() && dout.intact() && to_a.intact() && to_w.intact());
            std::vector<float> values;
            to_a.append_to(values);
            if (wish.present) to_w.append_to(values);
            return values;
          },
          [&](const std::string& where, const std::vector<float>& got) { expect_all(where, got, expected()); });
    }
}

// The whole way of the FFN: u, and through out = x + u wd^T back to x.
struct SwigluCase {
  std::int64_t f;
  Held x, gain, w, u, wd, dout;
  SwigluCase(const Size& s, bool bf16)
      : f(s.out),
        x({s.tokens, s.in}, 1, false, 3),
        gain({s.in}, 2),
        w({2 * s.out, s.in}, 3, bf16, 2 / std::sqrt(static_cast<double>(s.in))),
        u({s.tokens, s.out}, 4, bf16),
        wd({s.in, s.out}, 5, bf16, 1 / std::sqrt(static_cast<double>(s.in))),
        dout({s.tokens, s.in}, 6) {}
  void forward(const Backend& backend, bool oracle, std::vector<std::uint8_t>& saved, ParallelFor* parallel) {
    const auto v = [oracle](Held& h) { return oracle ? h.oracle() : h.view(); };
    run_op(backend,
           op::NormSwiglu{
               .x = v(x), .gain = v(gain), .w_gate_up = v(w), .u = v(u), .saved = {}, .workspace = {}, .eps = eps},
           &saved, parallel);
  }
  // again: u is made again. dwd: the gradient of wd, like wd in f32.
  void backward(const Backend& backend, bool oracle, std::vector<std::uint8_t>& saved, ParallelFor* parallel,
                const Wish& wish, bool again, Held& dwd, Grads& g) {
    const auto v = [oracle](Held& h) { return oracle ? h.oracle() : h.view(); };
    run_op(backend,
           op::SwigluProjectBackward{.dout = v(dout),
                                     .w = v(wd),
                                     .u = again ? TensorView{} : v(u),
                                     .saved = {},
                                     .dw = wish.dw.of(v(dwd)),
                                     .workspace = {},
                                     .u_type = v(u).dtype},
           &saved, parallel);
    run_op(backend,
           op::NormSwigluBackward{.x = v(x),
                                  .gain = v(gain),
                                  .w_gate_up = v(w),
                                  .saved = {},
                                  .dx = wish.dx.of(v(g.dx)),
                                  .dgain = wish.dgain.of(v(g.dgain)),
                                  .dw = wish.dw.of(v(g.dw)),
                                  .workspace = {},
                                  .eps = eps},
           &saved, parallel);
  }
  bool intact() const {
    return x.intact() && gain.intact() && w.intact() && u.intact() && wd.intact() && dout.intact();
  }

  // u from gate and up in double: |silu'| <= 1.1, |silu''| <= 1/2.
  Matrix u_error(const Matrix& gate_up, const Matrix& e) const {
    return {u.shape[0], f, [&](std::int64_t t, std::int64_t i) {
              const double gate = std::abs(gate_up(t, i)), up = std::abs(gate_up(t, f + i));
              return 1.1 * e(t, i) * (up + e(t, f + i)) + gate * e(t, f + i) + 8 * unit32 * gate * up;
            }};
  }
  // Of gate and up, from du, which is off by du_error; kept in the type of the weights.
  Gradient gate_up_gradient(const Matrix& gate_up, const Matrix& e, double narrowed) const {
    const Matrix du = dout.numbers() * wd.numbers(),
                 du_error = (narrowed + unit32 * depth(dout.shape[1])) * (dout.sizes() * wd.sizes());
    Gradient of{Matrix(u.shape[0], 2 * f), Matrix(u.shape[0], 2 * f)};
    for (std::int64_t t = 0; t < u.shape[0]; ++t)
      for (std::int64_t i = 0; i < f; ++i) {
        const double gate = std::abs(gate_up(t, i)), up = std::abs(gate_up(t, f + i)), g = std::abs(du(t, i));
        const double slopes[] = {up * 1.1, gate};
        const double slope_errors[] = {
            (up + e(t, f + i)) * e(t, i) / 2 + 1.1 * e(t, f + i) + 8 * unit32 * up * (1 + gate / 4),
            1.1 * e(t, i) + 8 * unit32 * gate};
        for (const std::int64_t half : {0, 1}) {
          double &size = of.size(t, half * f + i), &error = of.error(t, half * f + i);
          size = g * slopes[half];
          error = g * slope_errors[half] + du_error(t, i) * (slopes[half] + slope_errors[half]);
          if (w.bf16) error += unit16 * (size + error);
        }
      }
    return of;
  }
  Matrix dwd_error(const Matrix& u_off, double narrowed) const {
    Matrix off = u_off;
    for (std::size_t i = 0; u.bf16 && i < off.v.size(); ++i)
      off.v[i] += unit16 * (std::abs(u.exact.data[i]) + off.v[i]);
    const Matrix dout_columns = dout.sizes().transposed();
    return dout_columns * off + (narrowed + unit32 * depth(dout.shape[0])) * (dout_columns * (u.sizes() + off));
  }
};

// What the oracle saved, in double.
Matrix saved_gate_up(const std::vector<std::uint8_t>& saved, std::int64_t tokens, std::int64_t f) {
  Matrix m(tokens, 2 * f);
  EXPECT_EQ(saved.size(), m.v.size() * sizeof(double));
  std::memcpy(m.v.data(), saved.data(), saved.size());
  return m;
}

// Whether u was kept or is made again, every bit is the same.
TEST_P(CpuProducts, NormSwigluAndBackward) {
  for (const Size& s : sizes) {
    SwigluCase c(s, GetParam());
    std::vector<std::uint8_t> oracle_saved;
    c.forward(reference(), true, oracle_saved, nullptr);
    const Matrix gate_up = saved_gate_up(oracle_saved, s.tokens, s.out);
    const NormSizes norm(c.x, &c.gain, eps);
    struct Errors {
      Matrix u, dwd;
      ProductErrors gradients;
    };
    ByNarrowing errors(GetParam(), [&](double narrowed) {
      Matrix e = norm.product_error(c.w.sizes(), narrowed);
      for (std::size_t i = 0; GetParam() && i < e.v.size(); ++i) e.v[i] += unit16 * (std::abs(gate_up.v[i]) + e.v[i]);
      const Matrix u = c.u_error(gate_up, e);
      return Errors{u, c.dwd_error(u, narrowed),
                    ProductErrors(norm, c.w.sizes(), c.gate_up_gradient(gate_up, e, narrowed), narrowed)};
    });
    for (const Wish& wish : wishes(s)) {
      const Grads before(s, 2 * s.out);
      const Held dwd_before({s.in, s.out}, 24);
      Grads after = before;
      Held dwd = dwd_before;
      std::vector<std::vector<double>> exact;
      for (const bool again : {false, true}) {
        after = before, dwd = dwd_before;
        std::vector<std::uint8_t> saved = oracle_saved;
        c.backward(reference(), true, saved, nullptr, wish, again, dwd, after);
        exact.push_back(dwd.exact.data);
        for (const Held* h : {&after.dx, &after.dgain, &after.dw})
          exact.back().insert(exact.back().end(), h->exact.data.begin(), h->exact.data.end());
      }
      EXPECT_EQ(exact[0], exact[1]);
      const auto expected = [&] {
        std::vector<Expected> all = {{"u", c.u, errors().u}};
        if (wish.dw.present) all.emplace_back("dw of down", dwd, wish.dw.error(dwd_before, errors().dwd, s.tokens));
        for (Expected& gradient : after.expected(wish, before, errors().gradients)) all.push_back(std::move(gradient));
        return all;
      };
      on_every_path(
          "norm_swiglu " + s.text(),
          [&](ParallelFor* parallel) {
            std::vector<float> kept;
            for (const bool again : {false, true}) {
              SwigluCase mine(s, GetParam());
              Grads g = before;
              Held down = dwd_before;
              std::vector<std::uint8_t> saved;
              mine.forward(fast(), false, saved, parallel);
              std::vector<float> values;
              mine.u.append_to(values);
              mine.backward(fast(), false, saved, parallel, wish, again, down, g);
              EXPECT_TRUE(mine.intact() && down.intact());
              if (wish.dw.present) down.append_to(values);
              const std::vector<float> gradients = g.values(wish);
              values.insert(values.end(), gradients.begin(), gradients.end());
              if (again) {
                EXPECT_EQ(values, kept) << s.text();
              }
              kept = std::move(values);
            }
            return kept;
          },
          [&](const std::string& where, const std::vector<float>& got) { expect_all(where, got, expected()); });
    }
  }
}

TEST_P(CpuProducts, Logits) {
  for (const Size& s : sizes)
    for (const bool normed : {true, false})
      for (const double cap : {0.0, 3.0}) {
        Held x({s.tokens, s.in}, 1), gain({s.in}, 2), w({s.out, s.in}, 3, GetParam(), 0.3), out({s.tokens, s.out}, 4);
        const auto run = [&](const Backend& backend, bool oracle, Held& to, ParallelFor* parallel) {
          const auto v = [oracle](Held& h) { return oracle ? h.oracle() : h.view(); };
          run_op(backend,
                 op::Logits{.x = v(x),
                            .gain = normed ? v(gain) : TensorView{},
                            .w = v(w),
                            .logits = v(to),
                            .workspace = {},
                            .eps = eps,
                            .soft_cap = cap},
                 nullptr, parallel);
        };
        run(reference(), true, out, nullptr);
        const NormSizes norm(x, normed ? &gain : nullptr, eps);
        // The slope of the cap is at most 1; tanh has a few roundings of its own.
        ByNarrowing error(GetParam(), [&](double narrowed) {
          return norm.product_error(w.sizes(), narrowed) + 8 * unit32 * out.sizes();
        });
        on_every_path(
            "logits " + s.text(),
            [&](ParallelFor* parallel) {
              Held to({s.tokens, s.out}, 5);
              run(fast(), false, to, parallel);
              EXPECT_TRUE(x.intact() && gain.intact() && w.intact() && to.intact());
              std::vector<float> values;
              to.append_to(values);
              return values;
            },
            [&](const std::string& where, const std::vector<float>& got) {
              expect_all(where, got, {{"logits", out, error()}});
            });
      }
}

// A NaN in a row of x spoils what depends on that row and nothing else; one in dy spoils gradients.
TEST_P(CpuProducts, NaNStaysVisible) {
  const Size s{40, 70, 48};
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::string_view set : cpu::instruction_sets()) {
    const OnInstructionSet on(set);
    SwigluCase c(s, GetParam());
    c.x.set(5 * 48 + 3, nan);
    std::vector<std::uint8_t> saved;
    c.forward(fast(), false, saved, nullptr);
    for (std::size_t i = 0; i < c.u.wide.size(); ++i) ASSERT_EQ(std::isnan(c.u[i]), i / 70 == 5) << i;
    NormMatmulCase p(s, GetParam());
    p.forward(fast(), false, saved, nullptr);
    p.dy.set(7 * 70 + 2, nan);
    Grads g(s, s.out);
    p.backward(fast(), false, saved, nullptr, {}, g);
    for (std::size_t i = 0; i < g.dx.wide.size(); ++i) ASSERT_EQ(std::isnan(g.dx[i]), i / 48 == 7) << i;
    for (std::size_t i = 0; i < g.dw.wide.size(); ++i) ASSERT_EQ(std::isnan(g.dw[i]), i / 48 == 2) << i;
    for (std::size_t i = 0; i < g.dgain.wide.size(); ++i) ASSERT_TRUE(std::isnan(g.dgain[i])) << i;
  }
}

// A plan holds on every processor.
TEST_P(CpuProducts, NeedsDependOnShapesAlone) {
  for (const Size& s : sizes) {
    SwigluCase swiglu(s, GetParam());
    NormMatmulCase matmul(s, GetParam());
    Grads g(s, 2 * s.out), m(s, s.out);
    Held down(swiglu.wd.shape, 7);
    const Wish all;
    const std::vector<Op> operations = {op::NormMatmul{.x = matmul.x.view(),
                                                       .gain = matmul.gain.view(),
                                                       .w = matmul.w.view(),
                                                       .y = matmul.y.view(),
                                                       .saved = {},
                                                       .workspace = {}},
                                        op::NormMatmulBackward{.dy = matmul.dy.view(),
                                                               .x = matmul.x.view(),
                                                               .gain = matmul.gain.view(),
                                                               .w = matmul.w.view(),
                                                               .saved = {},
                                                               .dx = all.dx.of(m.dx.view()),
                                                               .dgain = all.dgain.of(m.dgain.view()),
                                                               .dw = all.dw.of(m.dw.view()),
                                                               .workspace = {}},
                                        op::NormSwiglu{.x = swiglu.x.view(),
                                                       .gain = swiglu.gain.view(),
                                                       .w_gate_up = swiglu.w.view(),
                                                       .u = swiglu.u.view(),
                                                       .saved = {},
                                                       .workspace = {}},
                                        op::SwigluProjectBackward{.dout = swiglu.dout.view(),
                                                                  .w = swiglu.wd.view(),
                                                                  .u = {},
                                                                  .saved = {},
                                                                  .dw = all.dw.of(down.view()),
                                                                  .workspace = {},
                                                                  .u_type = swiglu.u.view().dtype},
                                        op::NormSwigluBackward{.x = swiglu.x.view(),
                                                               .gain = swiglu.gain.view(),
                                                               .w_gate_up = swiglu.w.view(),
                                                               .saved = {},
                                                               .dx = all.dx.of(g.dx.view()),
                                                               .dgain = all.dgain.of(g.dgain.view()),
                                                               .dw = all.dw.of(g.dw.view()),
                                                               .workspace = {}}};
    for (const Op& operation : operations) {
      const Needs here = fast().needs(operation);
      EXPECT_GT(here.workspace, 0);
      for (const std::string_view set : cpu::instruction_sets()) {
        const OnInstructionSet on(set);
        const Needs there = fast().needs(operation);
        EXPECT_TRUE(here.saved == there.saved && here.workspace == there.workspace) << name_of(operation) << set;
      }
    }
  }
}

}  // namespace
}  // namespace stacklab::test
