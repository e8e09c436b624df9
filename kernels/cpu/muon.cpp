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

#include "kernels/cpu/storage-inl.h"
#include "kernels/cpu/wide-inl.h"

#ifndef STACKLAB_KERNELS_CPU_MUON_ONCE_
#define STACKLAB_KERNELS_CPU_MUON_ONCE_
namespace stacklab::cpu {
namespace {

// out[i, j] and out[j, i] = product[i, j] * product_factor + added[i, j] * added_factor, plus diagonal where i = j; for
// j <= i. added: null for nothing.
struct Mirror {
  float* out;
  std::int64_t ld;  // of out and added
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

template <bool adds>
HWY_INLINE void mirror_as(const Mirror& s, const Block& b) {
  const hn::FixedTag<float, 4> d;
  const hn::FixedTag<float, 1> one;
  // Known to stay as they are, whatever is stored.
  float* const out = s.out;
  const float *const added = s.added, *const product = b.data;
  const std::int64_t ld = s.ld, ld_product = b.ld, row0 = b.row0, row1 = b.row1, col0 = b.col0, col1 = b.col1;
  const auto value = [&](auto tag, std::int64_t i, std::int64_t j) HWY_ATTR {
    const auto v =
        hn::Mul(hn::LoadU(tag, product + (i - row0) * ld_product + (j - col0)), hn::Set(tag, s.product_factor));
    return adds ? hn::MulAdd(hn::LoadU(tag, added + i * ld + j), hn::Set(tag, s.added_factor), v) : v;
  };
  const auto single = [&](std::int64_t i, std::int64_t j) HWY_ATTR {
    const float v = hn::GetLane(value(one, i, j)) + (i == j ? s.diagonal : 0);
    out[i * ld + j] = out[j * ld + i] = v;
  };
  std::int64_t i = row0;
  for (; i + 4 <= row1; i += 4) {
    const std::int64_t end = std::min(i, col1) - 4;
    std::int64_t j = col0;
    for (; j <= end; j += 4) {
      const auto r0 = value(d, i, j), r1 = value(d, i + 1, j), r2 = value(d, i + 2, j), r3 = value(d, i + 3, j);
      float* below = out + i * ld + j;
      hn::StoreU(r0, d, below), hn::StoreU(r1, d, below + ld);
      hn::StoreU(r2, d, below + 2 * ld), hn::StoreU(r3, d, below + 3 * ld);
      store_turned(r0, r1, r2, r3, out + j * ld + i, ld);
    }
    for (std::int64_t l = i; l < i + 4; ++l)
      for (std::int64_t k = j; k < std::min(l + 1, col1); ++k) single(l, k);
  }
  for (; i < row1; ++i)
    for (std::int64_t j = col0; j < std::min(i + 1, col1); ++j) single(i, j);
}

void mirror(const Mirror& s, const Block& b) { s.added ? mirror_as<true>(s, b) : mirror_as<false>(s, b); }

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
  // Distance of the rows of small matrices: not a power of two, whose lines would share few places in the cache.
  std::int64_t ld() const { return (m() + 15) / 16 * 16 + 16; }
  // Steps are made on small matrices where that is less work: for s steps 3 m^2 n + (4 s - 3) m^3, instead of 3 m^2 n +
  // m^3 each.
  std::int64_t steps_at_once() const { return 4 * n() >= 5 * m() ? most_steps_at_once : 1; }
};

struct Workspace {
  float *x, *y;      // like the matrix
  float* square[5];  // [m, m], rows ld apart
  float* gemm;

  static std::int64_t gemm_floats(const Matrix& s) {
    return std::max({gemm_workspace(s.m(), s.n()), gemm_workspace(s.m(), s.m()), gemm_workspace(s.cols, s.m())});
  }
  static std::int64_t floats(const Matrix& s) { return 2 * s.size() + 5 * s.m() * s.ld() + gemm_floats(s); }
  Workspace(const Matrix& s, float* at) : x(at), y(at + s.size()) {
    at += 2 * s.size();
    for (float*& p : square) p = at, at += s.m() * s.ld();
    gemm = at;
  }
};

class NewtonSchulz {
 public:
  NewtonSchulz(const Matrix& shape, const Workspace& space, const KernelContext& context)
      : s_(shape), space_(space), context_(context), m_(shape.m()), ld_(shape.ld()) {}

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
                      {.out = gram, .ld = ld_});
    for (std::int64_t i = 0; i < steps; ++i) {
      float* p = spare[0];
      product(gram, gram, false,
              {.out = p, .ld = ld_, .product_factor = ns_c, .added = gram, .added_factor = ns_b, .diagonal = ns_a});
      bool packed = false;
      if (i + 1 < steps) {
        product(gram, p, false, {.out = spare[1], .ld = ld_});
        product(spare[1], p, true, {.out = gram, .ld = ld_});
        packed = true;
      }
      if (!q) {
        q = std::exchange(spare[0], spare[2]);
      } else {
        product(q, p, packed, {.out = spare[1], .ld = ld_});
        std::swap(q, spare[1]);
      }
    }
    return q;
  }

  // Of two matrices whose product is symmetric.
  void product(const float* left, const float* right, bool right_is_packed, const Mirror& to) {
    symmetric_product(m_, Operand::plain(left, ld_), Operand::plain(right, ld_), right_is_packed, to);
  }

  void symmetric_product(std::int64_t depth, Operand left, Operand right, bool right_is_packed, const Mirror& to) {
    const auto finished = [&](const Block& block) { HWY_DYNAMIC_DISPATCH(mirror)(to, block); };
    Gemm g{.m = m_, .n = m_, .k = depth, .a = left, .b = right};
    if (!fits_one_depth(depth)) g.c = space_.square[4], g.ldc = ld_;
    g.lower = true;
    g.finished = BlockHook(finished);
    g.workspace = space_.gemm;
    g.b_is_packed = right_is_packed;
    gemm(g, context_);
  }

  void apply(const float* q, const float* from, float* to) {
    Gemm g{.m = s_.rows, .n = s_.cols, .k = m_};
    g.a = s_.tall() ? Operand::plain(from, m_) : Operand::plain(q, ld_);
    g.b = s_.tall() ? Operand::plain(q, ld_) : Operand::plain(from, s_.cols);
    g.c = to, g.ldc = s_.cols, g.workspace = space_.gemm;
    gemm(g, context_);
  }

  const Matrix s_;
  const Workspace space_;
  const KernelContext& context_;
  const std::int64_t m_, ld_;
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
