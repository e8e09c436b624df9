// Newton-Schulz orthogonalisation and Muon.
//
// With A = X X^T a step is X = P X, where P = a + b A + c A^2, and the next A is P A P: all of them are polynomials of
// the first A, hence symmetric, and commute. So several steps can be made on small matrices alone, half of which
// suffices, and their product Q be applied once. What rounding costs: a direction whose singular value is small grows
// by a = 3.4 a step, its eigenvalue of A by a^2, and an error of A (u times the largest eigenvalue) with it. Three
// steps leave a^4 u = 140 u in the last P, which is what the plain iteration's own rounding of X grows to in its five
// steps (a^4 u); after them A is made afresh. All five at once would leave a^8 u, 1e-3 of a singular value.
#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/gemm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/muon.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/wide-inl.h"

#ifndef STACKLAB_KERNELS_CPU_MUON_ONCE_
#define STACKLAB_KERNELS_CPU_MUON_ONCE_
namespace stacklab::cpu {
namespace {

// out[i, j] and out[j, i] = product[i, j] * product_factor + added[i, j] * added_factor, plus diagonal where i = j; for
// j <= i. added: null for nothing.
struct Mirror {
  float* out;
  std::int64_t m;
  float product_factor = 1;
  const float* added = nullptr;
  float added_factor = 0, diagonal = 0;
};

struct MuonNumbers {
  float *w, *m, *u;
  const float* g;
  double lr, scale, momentum, weight_decay, factor;
};

}  // namespace
}  // namespace stacklab::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace stacklab::cpu::HWY_NAMESPACE {
namespace {

// Four rows of four change places with four columns.
template <class D>
HWY_INLINE void transpose4(D d, hn::Vec<D> (&r)[4]) {
  const hn::RepartitionToWide<D> pair;
  const auto low01 = hn::BitCast(pair, hn::InterleaveLower(d, r[0], r[1])),
             low23 = hn::BitCast(pair, hn::InterleaveLower(d, r[2], r[3])),
             up01 = hn::BitCast(pair, hn::InterleaveUpper(d, r[0], r[1])),
             up23 = hn::BitCast(pair, hn::InterleaveUpper(d, r[2], r[3]));
  r[0] = hn::BitCast(d, hn::InterleaveLower(pair, low01, low23));
  r[1] = hn::BitCast(d, hn::InterleaveUpper(pair, low01, low23));
  r[2] = hn::BitCast(d, hn::InterleaveLower(pair, up01, up23));
  r[3] = hn::BitCast(d, hn::InterleaveUpper(pair, up01, up23));
}

template <class D>
HWY_INLINE hn::Vec<D> mirrored(D d, const Mirror& s, const Block& b, std::int64_t i, std::int64_t j) {
  const auto v = hn::Mul(hn::LoadU(d, b.row(i) + (j - b.col0)), hn::Set(d, s.product_factor));
  return s.added ? hn::MulAdd(hn::LoadU(d, s.added + i * s.m + j), hn::Set(d, s.added_factor), v) : v;
}

void mirror(const Mirror& s, const Block& b) {
  const hn::FixedTag<float, 4> d;
  const hn::FixedTag<float, 1> one;
  const auto single = [&](std::int64_t i, std::int64_t j) HWY_ATTR {
    const float v = hn::GetLane(mirrored(one, s, b, i, j)) + (i == j ? s.diagonal : 0);
    s.out[i * s.m + j] = s.out[j * s.m + i] = v;
  };
  std::int64_t i = b.row0;
  for (; i + 4 <= b.row1; i += 4) {
    std::int64_t j = b.col0;
    for (; j + 4 <= std::min(i, b.col1); j += 4) {
      hn::Vec<decltype(d)> r[4];
      for (int l = 0; l < 4; ++l) {
        r[l] = mirrored(d, s, b, i + l, j);
        hn::StoreU(r[l], d, s.out + (i + l) * s.m + j);
      }
      transpose4(d, r);
      for (int l = 0; l < 4; ++l) hn::StoreU(r[l], d, s.out + (j + l) * s.m + i);
    }
    for (std::int64_t l = i; l < i + 4; ++l)
      for (std::int64_t k = j; k < std::min(l + 1, b.col1); ++k) single(l, k);
  }
  for (; i < b.row1; ++i)
    for (std::int64_t j = b.col0; j < std::min(i + 1, b.col1); ++j) single(i, j);
}

// m = momentum m + g, u = g + momentum m. Returns the sum of squares of u.
double momentum(const MuonNumbers& a, std::int64_t begin, std::int64_t end) {
  return sum_wide(begin, end, [&](auto d, std::int64_t i) HWY_ATTR {
    const auto mu = hn::Set(d, a.momentum), g = hn::Mul(load_wide(d, a.g + i), hn::Set(d, a.scale));
    const auto m = hn::Add(hn::Mul(mu, load_wide(d, a.m + i)), g), u = hn::Add(g, hn::Mul(mu, m));
    store_narrow(d, m, a.m + i);
    store_narrow(d, u, a.u + i);
    const auto kept = narrowed(d, u);
    return hn::Mul(kept, kept);
  });
}

// Returns the sum of squares of what is taken from w.
double update(const MuonNumbers& a, const float* direction, std::int64_t begin, std::int64_t end) {
  return sum_wide(begin, end, [&](auto d, std::int64_t i) HWY_ATTR {
    const auto w = load_wide(d, a.w + i), u = load_wide(d, direction + i);
    const auto wanted = hn::Add(hn::Mul(hn::Set(d, a.factor), u), hn::Mul(hn::Set(d, a.weight_decay), w));
    const auto taken = hn::Mul(hn::Set(d, a.lr), wanted);
    store_narrow(d, hn::Sub(w, taken), a.w + i);
    return hn::Mul(taken, taken);
  });
}

double sum_of_squares(const float* x, std::int64_t begin, std::int64_t end) {
  return sum_wide(begin, end, [&](auto d, std::int64_t i) HWY_ATTR {
    const auto v = load_wide(d, x + i);
    return hn::Mul(v, v);
  });
}

// to may be from
void divide(const float* from, float* to, double by, std::int64_t begin, std::int64_t end) {
  for_wide(begin, end, [&](auto d, std::int64_t i) HWY_ATTR {
    store_narrow(d, hn::Div(load_wide(d, from + i), hn::Set(d, by)), to + i);
  });
}

}  // namespace
}  // namespace stacklab::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stacklab::cpu {

HWY_EXPORT(mirror);
HWY_EXPORT(momentum);
HWY_EXPORT(update);
HWY_EXPORT(sum_of_squares);
HWY_EXPORT(divide);

namespace {

constexpr float ns_a = 3.4445f, ns_b = -4.7750f, ns_c = 2.0315f;
constexpr std::int64_t most_steps_at_once = 3;

// A matrix of m by n, m <= n, as it lies in memory: [m, n], or [n, m] where tall.
struct Matrix {
  std::int64_t rows, cols;
  bool tall() const { return rows > cols; }
  std::int64_t m() const { return std::min(rows, cols); }
  std::int64_t n() const { return std::max(rows, cols); }
  std::int64_t size() const { return rows * cols; }
  // Steps are made on small matrices where that is less work: for s steps 3 m^2 n + (4 s - 3) m^3, instead of 3 m^2 n +
  // m^3 each.
  std::int64_t steps_at_once() const { return 4 * n() >= 5 * m() ? most_steps_at_once : 1; }
};

struct Workspace {
  float *x, *y;      // like the matrix
  float* square[5];  // [m, m]
  float* gemm;

  static std::int64_t gemm_floats(const Matrix& s) {
    return std::max({gemm_workspace(s.m(), s.n()), gemm_workspace(s.m(), s.m()), gemm_workspace(s.cols, s.m())});
  }
  static std::int64_t floats(const Matrix& s) { return 2 * s.size() + 5 * s.m() * s.m() + gemm_floats(s); }
  Workspace(const Matrix& s, float* at) : x(at), y(at + s.size()) {
    at += 2 * s.size();
    for (float*& p : square) p = at, at += s.m() * s.m();
    gemm = at;
  }
};

class NewtonSchulz {
 public:
  NewtonSchulz(const Matrix& shape, const Workspace& space, const KernelContext& context)
      : s_(shape), space_(space), context_(context), m_(shape.m()) {}

  // Makes steps on space.x, which is normalised. Returns where the result lies: in `out`, or in space where that is
  // null.
  const float* run(std::int64_t steps, float* out) {
    const std::int64_t groups = (steps + s_.steps_at_once() - 1) / s_.steps_at_once();
    const auto begin = [&](std::int64_t group) { return (steps * group + groups - 1) / groups; };
    float *from = space_.x, *to = space_.y;
    for (std::int64_t i = 0; i < groups; ++i) {
      if (out && i + 1 == groups) to = out;
      apply(polynomial(from, begin(i + 1) - begin(i)), from, to);
      std::swap(from, to);
    }
    if (out && groups == 0) std::copy(from, from + s_.size(), out);
    return from;
  }

 private:
  // The product of the polynomials of some steps.
  const float* polynomial(const float* x, std::int64_t steps) {
    float *gram = space_.square[0], *q = nullptr;
    float* spare[3] = {space_.square[1], space_.square[2], space_.square[3]};
    symmetric_product(s_.n(), Operand::plain(x, s_.cols, s_.tall()), Operand::plain(x, s_.cols, !s_.tall()), false,
                      {.out = gram, .m = m_});
    for (std::int64_t i = 0; i < steps; ++i) {
      float* p = spare[0];
      product(gram, gram, false,
              {.out = p, .m = m_, .product_factor = ns_c, .added = gram, .added_factor = ns_b, .diagonal = ns_a});
      bool packed = false;
      if (i + 1 < steps) {
        product(gram, p, false, {.out = spare[1], .m = m_});
        product(spare[1], p, true, {.out = gram, .m = m_});
        packed = true;
      }
      if (!q) {
        q = std::exchange(spare[0], spare[2]);
      } else {
        product(q, p, packed, {.out = spare[1], .m = m_});
        std::swap(q, spare[1]);
      }
    }
    return q;
  }

  // Of two matrices whose product is symmetric.
  void product(const float* left, const float* right, bool right_is_packed, const Mirror& to) {
    symmetric_product(m_, Operand::plain(left, m_), Operand::plain(right, m_), right_is_packed, to);
  }

  void symmetric_product(std::int64_t depth, Operand left, Operand right, bool right_is_packed, const Mirror& to) {
    const auto finished = [&](const Block& block) { HWY_DYNAMIC_DISPATCH(mirror)(to, block); };
    Gemm g{.m = m_, .n = m_, .k = depth, .a = left, .b = right};
    if (!fits_one_depth(depth)) g.c = space_.square[4], g.ldc = m_;
    g.lower = true;
    g.finished = BlockHook(finished);
    g.workspace = space_.gemm;
    g.b_is_packed = right_is_packed;
    gemm(g, context_);
  }

  void apply(const float* q, const float* from, float* to) {
    Gemm g{.m = s_.rows, .n = s_.cols, .k = m_};
    g.a = s_.tall() ? Operand::plain(from, m_) : Operand::plain(q, m_);
    g.b = s_.tall() ? Operand::plain(q, m_) : Operand::plain(from, s_.cols);
    g.c = to, g.ldc = s_.cols, g.workspace = space_.gemm;
    gemm(g, context_);
  }

  const Matrix s_;
  const Workspace space_;
  const KernelContext& context_;
  const std::int64_t m_;
};

void divide_all(const float* from, float* to, double by, std::int64_t n, const KernelContext& context) {
  for_blocks(context, n, 0.4, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(divide)(from, to, by, begin, end);
  });
}

}  // namespace

Needs needs(const op::NewtonSchulz& o) {
  return {.workspace = Workspace::floats({o.x.rows(), o.x.cols()}) * size_of(DType::f32)};
}

void run(const op::NewtonSchulz& o, const KernelContext& context) {
  const Matrix shape = {o.x.rows(), o.x.cols()};
  const Workspace space(shape, o.workspace.as<float>());
  const double squares = sum_over_blocks(context, shape.size(), 0.3, [&](std::int64_t begin, std::int64_t end) {
    return HWY_DYNAMIC_DISPATCH(sum_of_squares)(o.x.as<float>(), begin, end);
  });
  divide_all(o.x.as<float>(), space.x, std::sqrt(squares) + o.eps, shape.size(), context);
  NewtonSchulz(shape, space, context).run(o.steps, o.y.as<float>());
}

Needs needs(const op::Muon& o) {
  return {.workspace = Workspace::floats({o.w.rows(), o.w.cols()}) * size_of(DType::f32)};
}

void run(const op::Muon& o, const KernelContext& context) {
  double change = 0;
  if (const double scale = *o.scale.as<double>(); scale != 0) {
    const Matrix shape = {o.w.rows(), o.w.cols()};
    const Workspace space(shape, o.workspace.as<float>());
    const MuonNumbers n = {.w = o.w.as<float>(),
                           .m = o.m.as<float>(),
                           .u = space.x,
                           .g = o.g.as<float>(),
                           .lr = *o.lr.as<double>(),
                           .scale = scale,
                           .momentum = o.momentum,
                           .weight_decay = o.weight_decay,
                           .factor = o.factor};
    const double squares = sum_over_blocks(context, shape.size(), 1, [&](std::int64_t begin, std::int64_t end) {
      return HWY_DYNAMIC_DISPATCH(momentum)(n, begin, end);
    });
    divide_all(space.x, space.x, std::sqrt(squares) + o.ns_eps, shape.size(), context);
    const float* direction = NewtonSchulz(shape, space, context).run(o.ns_steps, nullptr);
    change = sum_over_blocks(context, shape.size(), 1, [&](std::int64_t begin, std::int64_t end) {
      return HWY_DYNAMIC_DISPATCH(update)(n, direction, begin, end);
    });
  }
  if (o.change.present()) *o.change.as<double>() = change;
}

}  // namespace stacklab::cpu
#endif
