#include "kernels/cpu/gemm.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemm.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/pack-inl.h"
#include "kernels/cpu/targets.h"
#include "kernels/cpu/tile-inl.h"

// What does not depend on the instruction set: once.
#ifndef STACKLAB_KERNELS_CPU_GEMM_ONCE_
#define STACKLAB_KERNELS_CPU_GEMM_ONCE_
namespace stacklab::cpu {
namespace {

constexpr std::int64_t deepest_block = 512;
// Depth blocks, the fixed order of summation: up to 512 is one block, more is cut evenly.
constexpr std::int64_t depth_block_of(std::int64_t k) {
  if (k <= deepest_block) return k;
  const std::int64_t blocks = (k + 383) / 384;
  return ((k + blocks - 1) / blocks + 15) / 16 * 16;
}

constexpr std::int64_t widest_tile = 32;                // columns, of any instruction set
constexpr std::int64_t packed_floats = 3 << 19;         // B that is packed at once: 6 MiB stay in the last cache
constexpr std::int64_t step_of_rows = 6;                // a tile of narrow instruction sets: lower ones are slower
constexpr std::int64_t widest_group = 2 * column_step;  // the narrowest part of B

constexpr std::int64_t round_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

// The part of B that is packed at once: nb columns (of each half where paired) and kb of the depth.
struct Blocking {
  std::int64_t halves, width, nb, kb;
  Blocking(std::int64_t n, std::int64_t k, bool paired) : halves(paired ? 2 : 1), width(n / halves) {
    const std::int64_t depth = depth_block_of(k), wide = halves * round_up(width, widest_tile);
    const std::int64_t narrow = halves * std::min(round_up(width, widest_tile), widest_group);
    // Cut in depth while two blocks of all columns fit, since a cut in columns packs A again.
    const std::int64_t cols = wide * 2 * depth <= packed_floats ? wide : narrow;
    kb = k * cols <= packed_floats ? k : std::max(depth, packed_floats / cols / depth * depth);
    nb = std::max(widest_group, packed_floats / (kb * halves) / widest_group * widest_group);
    if (cols == wide) nb = width;
    nb = std::min(nb, width);
  }
  bool whole(std::int64_t k) const { return nb == width && kb == k; }
  std::int64_t floats() const { return halves * round_up(nb, widest_tile) * kb; }
  // Columns (of each half) that are worked on together: their part of B in one depth block should stay in the second
  // cache.
  std::int64_t group() const { return column_step / halves; }
};

constexpr std::int64_t most_rows = 160;  // of a block

// Blocks of rows, a power of two while they fit, so that threads get equal shares.
RowCut rows_of(std::int64_t m, const Blocking& s) {
  const std::int64_t group_floats = s.halves * std::min(s.nb, s.group()) * s.kb;
  // Where a group's part of B stays in the second cache, few rows suffice.
  const std::int64_t fewest_rows = group_floats <= 64 << 10 ? 8 : 64;
  std::int64_t blocks = 1;
  while (blocks < 16 && m / (2 * blocks) >= fewest_rows) blocks *= 2;
  if (m > most_rows * blocks) blocks = 16 * ((m + 16 * most_rows - 1) / (16 * most_rows));
  return {m, blocks, m / blocks >= 8 * step_of_rows ? step_of_rows : 1};
}

// The same where only a triangle of C is made: blocks are equal in area.
std::int64_t triangle_begin(const RowCut& cut, std::int64_t block) {
  if (block == cut.blocks) return cut.m;
  const double part = std::sqrt(static_cast<double>(block) / static_cast<double>(cut.blocks));
  return std::llround(static_cast<double>(cut.m) * part / static_cast<double>(cut.step)) * cut.step;
}

}  // namespace
}  // namespace stacklab::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace stacklab::cpu::HWY_NAMESPACE {
namespace {

// Panels of A that are packed at once, on the stack, and worked on with each group of B.
constexpr std::int64_t most_panels = tile_rows < 8 ? 16 : 12;
constexpr std::int64_t panels_finished = 4;  // at once, while they are in cache
// Distances of packed rows and panels: not powers of two, whose lines would share few places in the cache.
constexpr int row_stride = deepest_block + 8;
constexpr std::int64_t panel_stride = std::max<std::int64_t>(tile_rows * row_stride, column_stride* deepest_block + 16);

// Products in bf16 are made of words: two steps along the depth each.
constexpr bool can_pair = HWY_TARGET == HWY_AVX3;
static_assert(!can_pair ||
              (tile_rows == bf16_tile_rows && tile_cols == bf16_tile_cols && row_stride == bf16_row_stride));
template <bool pairs>
constexpr std::int64_t words(std::int64_t depth) {
  return pairs ? (depth + 1) / 2 : depth;
}

// Panels p0 .. p1 of A, whose whole depth is `depth`.
template <bool pairs>
void pack_a(const Operand& a, std::int64_t depth, const Panels& rows, std::int64_t p0, std::int64_t p1, std::int64_t k0,
            std::int64_t k1, float* out) {
  const std::int64_t whole_rows = a.ld >= 2 * lanes ? depth - 1 : 0;
  const auto pack = [&](const auto& source, std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = p0; p < p1; ++p) {
      const std::int64_t m0 = rows.begin(p), m1 = rows.begin(p + 1);
      float* to = out + (p - p0) * panel_stride;
      if constexpr (pairs)
        a.transposed ? pack_columns(PairsOfRows{source, k1}, m0, m1, begin / 2, words<pairs>(end), whole_rows / 2,
                                    to + words<pairs>(begin - k0) * column_stride)
                     : pack_rows_of_pairs(source, m0, m1, begin, end, to, row_stride);
      else
        a.transposed ? pack_columns(source, m0, m1, begin, end, whole_rows, to + (begin - k0) * column_stride)
                     : pack_rows(source, m0, m1, begin, end, to, row_stride);
    }
  };
  const auto pack_all = [&](const auto& source) {
    // Where rows of memory hold several panels, a few of them at a time.
    const std::int64_t each = a.transposed ? 8 * (pairs ? 2 : 1) : k1 - k0;
    for (std::int64_t k = k0; k < k1; k += each) pack(source, k, std::min(k1, k + each));
  };
  switch (a.kind) {
    case Operand::Kind::plain:
      return a.data.bf16 ? pack_all(PlainSource<std::uint16_t>(a)) : pack_all(PlainSource<float>(a));
    case Operand::Kind::normed:
      return pack(NormedSource(a), k0, k1);
    case Operand::Kind::block_scaled:
      return pack_all(BlockScaledSource(a));
  }
}

// Columns n0 .. n1, which begin a panel.
template <bool pairs>
void pack_b(const Operand& b, std::int64_t n0, std::int64_t n1, std::int64_t k0, std::int64_t k1, float* out) {
  const auto pack = [&](const auto& source) {
    if constexpr (pairs)
      pack_panels(PairsOfRows{source, k1}, n0, n1, k0 / 2, words<pairs>(k1), out);
    else
      pack_panels(source, n0, n1, k0, k1, out);
  };
  if (b.transposed) {
    for (std::int64_t n = n0; n < n1; n += tile_cols, out += words<pairs>(k1 - k0) * tile_cols) {
      const std::int64_t end = std::min(n1, n + tile_cols);
      if constexpr (pairs)
        pack_pairs_transposed(PlainSource<std::uint16_t>(b), n, end, k0, k1, out);
      else
        b.data.bf16 ? pack_panel_transposed(PlainSource<std::uint16_t>(b), n, end, k0, k1, out)
                    : pack_panel_transposed(PlainSource<float>(b), n, end, k0, k1, out);
    }
  } else if (b.kind == Operand::Kind::normed) {
    pack(NormedSource(b));
  } else {
    b.data.bf16 ? pack(PlainSource<std::uint16_t>(b)) : pack(PlainSource<float>(b));
  }
}

// The packed part of B: depth blocks, in each the panels of the first half, then those of the second.
template <bool pairs>
struct PackedB {
  const Gemm& g;
  std::int64_t halves, width;   // of C
  std::int64_t n0, n1, k0, k1;  // columns (of each half) and depth that are packed
  std::int64_t half_panels, depth_block;

  PackedB(const Gemm& gemm, const Blocking& s, std::int64_t n, std::int64_t k)
      : g(gemm),
        halves(s.halves),
        width(s.width),
        n0(n),
        n1(std::min(s.width, n + s.nb)),
        k0(k),
        k1(std::min(gemm.k, k + s.kb)),
        half_panels((n1 - n0 + tile_cols - 1) / tile_cols),
        depth_block(depth_block_of(gemm.k)) {}
  std::int64_t panels() const { return halves * half_panels; }
  std::int64_t depth(std::int64_t k) const { return std::min(depth_block, k1 - k); }
  float* at(std::int64_t k, std::int64_t half, std::int64_t panel) const {
    return g.workspace +
           (words<pairs>(k - k0) * panels() + (half * half_panels + panel) * words<pairs>(depth(k))) * tile_cols;
  }
  void pack(std::int64_t k, std::int64_t first, std::int64_t last) const {
    for (std::int64_t half = 0; half < halves; ++half) {
      // The panels of this half among them.
      const std::int64_t p0 = std::clamp(first - half * half_panels, std::int64_t{0}, half_panels),
                         p1 = std::clamp(last - half * half_panels, std::int64_t{0}, half_panels);
      if (p0 == p1) continue;
      const std::int64_t begin = half * width + n0 + p0 * tile_cols,
                         end = half * width + std::min(n1, n0 + p1 * tile_cols);
      pack_b<pairs>(g.b, begin, end, k, k + depth(k), at(k, half, p0));
    }
  }
};

// Rows m0 .. m1 of A through a depth, as they lie in memory, to be fetched by so many tiles.
Ahead ahead(const Operand& a, std::int64_t m0, std::int64_t m1, std::int64_t k0, std::int64_t k1, std::int64_t tiles) {
  if (m0 >= m1 || k0 >= k1) return {};
  const std::int64_t size = a.data.element();
  const std::int64_t r0 = a.transposed ? k0 : m0, r1 = a.transposed ? k1 : m1;
  const std::int64_t c0 = a.transposed ? m0 : k0, c1 = a.transposed ? m1 : k1;
  Ahead next{static_cast<const char*>(a.data.data) + (r0 * a.ld + c0) * size, a.ld * size, (c1 - c0) * size};
  next.lines = (r1 - r0) * ((next.length + 63) / 64);
  next.each = next.lines / tiles + 1;
  return next;
}

template <bool pairs>
const auto& tiles_for(bool a_transposed) {
  if constexpr (pairs)
    return bf16_tiles(a_transposed);
  else
    return a_transposed ? tiles<1> : tiles<row_stride>;
}

// A block of rows of some columns, through the packed depth.
template <bool pairs>
void multiply(const PackedB<pairs>& b, std::int64_t row0, std::int64_t row1, std::int64_t panel0, std::int64_t panel1,
              std::int64_t group) {
  const Gemm& g = b.g;
  alignas(64) float packed[most_panels * panel_stride];
  // Where C is not kept.
  constexpr std::int64_t ld_passing = column_step + 16;
  alignas(64) float passing[panels_finished * tile_rows * ld_passing];
  const auto& functions = tiles_for<pairs>(g.a.transposed);
  const Panels rows(row0, row1);
  // Panels of columns that rows before `row` want.
  const auto wanted = [&](std::int64_t row) {
    return g.lower ? std::clamp((row - b.n0 + tile_cols - 1) / tile_cols, panel0, panel1) : panel1;
  };
  if (wanted(row1) == panel0) return;
  const auto finish = [&](std::int64_t p0, std::int64_t p1, std::int64_t q0, std::int64_t q1) {
    Block block{.data = passing, .ld = ld_passing, .pair = group * tile_cols};
    block.row0 = rows.begin(p0), block.row1 = rows.begin(p1);
    block.col0 = b.n0 + q0 * tile_cols, block.col1 = std::min(b.n1, b.n0 + q1 * tile_cols);
    if (g.c) block.data = g.c + block.row0 * g.ldc + block.col0, block.ld = g.ldc, block.pair = b.width;
    g.finished.fn(g.finished.self, block);
  };
  const std::int64_t parts = (rows.count + most_panels - 1) / most_panels;
  const auto part_begin = [&](std::int64_t part) { return rows.count * part / parts; };
  for (std::int64_t k = b.k0; k < b.k1; k += b.depth_block) {
    const std::int64_t depth = b.depth(k), deeper = k + depth;
    const bool last = deeper == g.k;
    const float* base = k == 0 ? g.base : g.c;
    const std::int64_t ld_base = k == 0 ? g.ld_base : g.ldc;
    for (std::int64_t part = 0; part < parts; ++part) {
      const std::int64_t p0 = part_begin(part), p1 = part_begin(part + 1);
      pack_a<pairs>(g.a, g.k, rows, p0, p1, k, deeper, packed);
      // What is packed next: more rows, or the same ones further on, or those of the task that follows.
      const std::int64_t here = b.halves * (panel1 - panel0) * (p1 - p0);
      Ahead next = part + 1 < parts ? ahead(g.a, rows.begin(p1), rows.begin(part_begin(part + 2)), k, deeper, here)
                   : deeper < b.k1 ? ahead(g.a, row0, rows.begin(part_begin(1)), deeper, deeper + b.depth(deeper), here)
                                   : ahead(g.a, row1, std::min(g.m, row1 + rows.begin(part_begin(1)) - row0), b.k0,
                                           b.k0 + b.depth(b.k0), here);
      const auto make_tiles = [&](std::int64_t p, std::int64_t row_passing, std::int64_t q0, std::int64_t q1) {
        const std::int64_t m = rows.begin(p), limit = std::min(q1, wanted(rows.begin(p + 1)));
        const int count = static_cast<int>(rows.begin(p + 1) - m);
        const TileFunction function = functions[static_cast<std::size_t>(count - 1)];
        for (std::int64_t half = 0; half < b.halves; ++half)
          for (std::int64_t panel = q0; panel < limit; ++panel) {
            const std::int64_t n = b.n0 + panel * tile_cols, col = half * b.width + n;
            float* c = g.c ? g.c + m * g.ldc + col
                           : passing + row_passing * ld_passing + (half * group + panel - q0) * tile_cols;
            tile_at(function, count, b.n1 - n, words<pairs>(depth), packed + (p - p0) * panel_stride, column_stride,
                    b.at(k, half, panel), tile_cols, c, g.c ? g.ldc : ld_passing,
                    base ? base + m * ld_base + col : nullptr, ld_base, &next);
          }
      };
      for (std::int64_t q0 = panel0; q0 < panel1; q0 += group)
        for (std::int64_t r0 = p0; r0 < p1; r0 += panels_finished) {
          const std::int64_t r1 = std::min(p1, r0 + panels_finished);
          const std::int64_t q1 = std::min(wanted(rows.begin(r1)), q0 + group);
          if (q0 >= q1) continue;
          for (std::int64_t p = r0; p < r1; ++p) make_tiles(p, rows.begin(p) - rows.begin(r0), q0, q1);
          if (!last || !g.finished.fn) continue;
          if (!g.whole_rows)
            finish(r0, r1, q0, q1);
          else if (q1 == panel1)
            finish(r0, r1, panel0, panel1);
        }
    }
  }
}

template <bool pairs>
void make(const Gemm& g, const KernelContext& context) {
  const Blocking s(g.n, g.k, g.paired);
  const RowCut cut = rows_of(g.m, s);
  const std::int64_t blocks = cut.blocks, group_panels = s.group() / tile_cols;
  Tasks before = g.before;
  for (std::int64_t n = 0; n < s.width; n += s.nb)
    for (std::int64_t k = 0; k < g.k; k += s.kb) {
      const PackedB<pairs> b(g, s, n, k);
      const bool packed = g.b_is_packed && s.whole(g.k);
      // Packing tasks of about 32 Ki elements.
      const std::int64_t each = std::max<std::int64_t>(1, (128 / tile_cols)), runs = (b.panels() + each - 1) / each;
      const std::int64_t depths = (b.k1 - b.k0 + b.depth_block - 1) / b.depth_block,
                         packing = packed ? 0 : runs * depths;
      const double elements = static_cast<double>(packing ? b.panels() * tile_cols * (b.k1 - b.k0) : 0);
      for_each_worth(context, before.count + packing, elements * 0.15 + static_cast<double>(before.count) * 1000,
                     [&](std::int64_t task) {
                       if (task < before.count) return before.fn(before.self, task);
                       task -= before.count;
                       b.pack(b.k0 + task / runs * b.depth_block, task % runs * each,
                              std::min(b.panels(), (task % runs + 1) * each));
                     });
      before = {};
      // Wide products are cut in columns too, into whole groups: more would pack A more often.
      const std::int64_t parts = g.whole_rows ? 1 : std::max<std::int64_t>(1, b.half_panels / (8 * group_panels));
      const std::int64_t wide = (b.half_panels + parts * group_panels - 1) / (parts * group_panels) * group_panels;
      const double flops = 2.0 * static_cast<double>(g.m) * static_cast<double>(s.halves * (b.n1 - b.n0)) *
                           static_cast<double>(b.k1 - b.k0) * (g.lower ? 0.5 : 1);
      for_each_worth(context, (b.half_panels + wide - 1) / wide * blocks, flops * 0.01, [&](std::int64_t task) {
        const std::int64_t panel0 = task / blocks * wide, panel1 = std::min(b.half_panels, panel0 + wide);
        const auto begin = [&](std::int64_t block) { return g.lower ? triangle_begin(cut, block) : cut.begin(block); };
        multiply(b, begin(task % blocks), begin(task % blocks + 1), panel0, panel1, group_panels);
      });
    }
}

void run(const Gemm& g, const KernelContext& context) {
  if constexpr (can_pair)
    if (g.bf16 && multiplies_bf16()) {
      assert(!g.b.transposed || g.b.data.bf16);
      return make<true>(g, context);
    }
  make<false>(g, context);
}

}  // namespace
}  // namespace stacklab::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stacklab::cpu {

HWY_EXPORT(run);

std::int64_t gemm_workspace(std::int64_t n, std::int64_t k, bool paired) { return Blocking(n, k, paired).floats(); }

RowCut row_cut(std::int64_t m, std::int64_t n, std::int64_t k, bool paired) {
  return rows_of(m, Blocking(n, k, paired));
}

bool gives_whole_rows(std::int64_t n, std::int64_t k) { return Blocking(n, k, false).nb == n; }

bool fits_one_depth(std::int64_t k) { return k <= deepest_block; }

void gemm(const Gemm& g, const KernelContext& context) { HWY_DYNAMIC_DISPATCH(run)(g, context); }

}  // namespace stacklab::cpu
#endif
