#include "kernels/cpu/gemm.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemm.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/pack-inl.h"
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

// Blocks of rows, a power of two while they fit, so that threads get equal shares.
std::int64_t row_blocks(std::int64_t m, const Blocking& s) {
  constexpr std::int64_t most_rows = 160;
  const std::int64_t group_floats = s.halves * std::min(s.nb, s.group()) * s.kb;
  // Where a group's part of B stays in the second cache, few rows suffice.
  const std::int64_t fewest_rows = group_floats <= 64 << 10 ? 8 : 64;
  std::int64_t blocks = 1;
  while (blocks < 16 && m / (2 * blocks) >= fewest_rows) blocks *= 2;
  return m > most_rows * blocks ? 16 * ((m + 16 * most_rows - 1) / (16 * most_rows)) : blocks;
}

// Where rows are cut so that blocks of a triangle are equal in area.
std::int64_t triangle_cut(std::int64_t m, std::int64_t block, std::int64_t blocks) {
  return std::llround(static_cast<double>(m) * std::sqrt(static_cast<double>(block) / static_cast<double>(blocks)));
}

}  // namespace
}  // namespace stacklab::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace stacklab::cpu::HWY_NAMESPACE {
namespace {

constexpr std::int64_t panels_at_once = 4;  // of A, packed on the stack
// Distance of packed rows: not a power of two, whose lines would share few places in the cache.
constexpr int row_stride = deepest_block + 8;
constexpr std::int64_t panel_floats = std::max<std::int64_t>(tile_rows * row_stride, column_stride* deepest_block);

void pack_a(const Operand& a, std::int64_t m0, std::int64_t m1, std::int64_t k0, std::int64_t k1, float* out) {
  const auto pack = [&](const auto& source) {
    a.transposed ? pack_columns(source, m0, m1, k0, k1, out) : pack_rows(source, m0, m1, k0, k1, out, row_stride);
  };
  switch (a.kind) {
    case Operand::Kind::plain:
      return a.data.bf16 ? pack(PlainSource<std::uint16_t>(a)) : pack(PlainSource<float>(a));
    case Operand::Kind::normed:
      return pack_rows(NormedSource(a), m0, m1, k0, k1, out, row_stride);
    case Operand::Kind::swiglu_grad:
      return pack(SwigluGradSource(a));
    case Operand::Kind::block_scaled:
      return pack(BlockScaledSource(a));
  }
}

// Columns n0 .. n1, which begin a panel.
void pack_b(const Operand& b, std::int64_t n0, std::int64_t n1, std::int64_t k0, std::int64_t k1, float* out) {
  if (b.transposed) {
    for (std::int64_t n = n0; n < n1; n += tile_cols, out += (k1 - k0) * tile_cols) {
      const std::int64_t end = std::min(n1, n + tile_cols);
      b.data.bf16 ? pack_panel_transposed(static_cast<const std::uint16_t*>(b.data.data), b.ld, n, end, k0, k1, out)
                  : pack_panel_transposed(static_cast<const float*>(b.data.data), b.ld, n, end, k0, k1, out);
    }
  } else if (b.kind == Operand::Kind::normed) {
    pack_panels(NormedSource(b), n0, n1, k0, k1, out);
  } else {
    b.data.bf16 ? pack_panels(PlainSource<std::uint16_t>(b), n0, n1, k0, k1, out)
                : pack_panels(PlainSource<float>(b), n0, n1, k0, k1, out);
  }
}

// The packed part of B: depth blocks, in each the panels of the first half, then those of the second.
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
    return g.workspace + ((k - k0) * panels() + (half * half_panels + panel) * depth(k)) * tile_cols;
  }
  void pack(std::int64_t k, std::int64_t first, std::int64_t last) const {
    for (std::int64_t half = 0; half < halves; ++half) {
      // The panels of this half among them.
      const std::int64_t p0 = std::clamp(first - half * half_panels, std::int64_t{0}, half_panels),
                         p1 = std::clamp(last - half * half_panels, std::int64_t{0}, half_panels);
      if (p0 == p1) continue;
      const std::int64_t begin = half * width + n0 + p0 * tile_cols,
                         end = half * width + std::min(n1, n0 + p1 * tile_cols);
      pack_b(g.b, begin, end, k, k + depth(k), at(k, half, p0));
    }
  }
};

// Fetches the rows of a matrix into cache, a few lines at a time.
struct Ahead {
  const char* row = nullptr;
  std::int64_t ld = 0, rows = 0, length = 0, at = 0;  // bytes
  HWY_INLINE void fetch(std::int64_t lines) {
    for (; lines > 0 && rows > 0; --lines) {
      __builtin_prefetch(row + at, 0, 2);
      if ((at += 64) >= length) at = 0, row += ld, --rows;
    }
  }
  std::int64_t lines() const { return rows * ((length + 63) / 64); }
};

// Rows m0 .. m1 of A through a depth, as they lie in memory.
Ahead ahead(const Operand& a, std::int64_t m0, std::int64_t m1, std::int64_t k0, std::int64_t k1) {
  if (m0 >= m1 || k0 >= k1) return {};
  const std::int64_t size = a.data.element();
  const std::int64_t r0 = a.transposed ? k0 : m0, r1 = a.transposed ? k1 : m1;
  const std::int64_t c0 = a.transposed ? m0 : k0, c1 = a.transposed ? m1 : k1;
  return {static_cast<const char*>(a.data.data) + (r0 * a.ld + c0) * size, a.ld * size, r1 - r0, (c1 - c0) * size};
}

// A block of rows of some columns, through the packed depth.
void multiply(const PackedB& b, std::int64_t row0, std::int64_t row1, std::int64_t panel0, std::int64_t panel1,
              std::int64_t group) {
  const Gemm& g = b.g;
  alignas(64) float packed[panels_at_once * panel_floats];
  // Where C is not kept.
  constexpr std::int64_t ld_passing = column_step + 16;
  alignas(64) float passing[panels_at_once * tile_rows * ld_passing];
  const auto& functions = g.a.transposed ? tiles<1> : tiles<row_stride>;
  const Panels panels(row1 - row0);
  // Panels of columns that rows before `row` want.
  const auto wanted = [&](std::int64_t row) {
    return g.lower ? std::clamp((row - b.n0 + tile_cols - 1) / tile_cols, panel0, panel1) : panel1;
  };
  if (wanted(row1) == panel0) return;
  for (std::int64_t k = b.k0; k < b.k1; k += b.depth_block) {
    const std::int64_t depth = b.depth(k);
    const bool last = k + depth == g.k;
    const float* base = k == 0 ? g.base : g.c;
    const std::int64_t ld_base = k == 0 ? g.ld_base : g.ldc;
    for (std::int64_t p0 = 0; p0 < panels.count; p0 += panels_at_once) {
      const std::int64_t p1 = std::min(panels.count, p0 + panels_at_once);
      for (std::int64_t p = p0; p < p1; ++p)
        pack_a(g.a, row0 + panels.begin(p), row0 + panels.begin(p + 1), k, k + depth, packed + (p - p0) * panel_floats);
      Ahead next = p1 < panels.count
                       ? ahead(g.a, row0 + panels.begin(p1),
                               row0 + panels.begin(std::min(panels.count, p1 + panels_at_once)), k, k + depth)
                       : ahead(g.a, row0, row0 + panels.begin(std::min(panels.count, panels_at_once)), k + depth,
                               std::min(b.k1, k + depth + b.depth_block));
      const std::int64_t lines = next.lines() / (b.halves * (panel1 - panel0) * (p1 - p0)) + 1;
      const std::int64_t first_row = row0 + panels.begin(p0), last_row = row0 + panels.begin(p1);
      const auto finish = [&](Block block, std::int64_t q0, std::int64_t q1) {
        block.row0 = first_row, block.row1 = last_row;
        block.col0 = b.n0 + q0 * tile_cols, block.col1 = std::min(b.n1, b.n0 + q1 * tile_cols);
        if (g.c) block.data = g.c + first_row * g.ldc + block.col0;
        g.finished.fn(g.finished.self, block);
      };
      const Block kept{.ld = g.ldc, .pair = b.width};
      const std::int64_t end = wanted(last_row);
      for (std::int64_t q0 = panel0; q0 < end; q0 += group) {
        const std::int64_t q1 = std::min(end, q0 + group);
        for (std::int64_t p = p0; p < p1; ++p) {
          const std::int64_t m = row0 + panels.begin(p);
          const int rows = static_cast<int>(row0 + panels.begin(p + 1) - m);
          const TileFunction function = functions[static_cast<std::size_t>(rows - 1)];
          const float* a = packed + (p - p0) * panel_floats;
          const std::int64_t limit = std::min(q1, wanted(m + rows));
          for (std::int64_t half = 0; half < b.halves; ++half)
            for (std::int64_t panel = q0; panel < limit; ++panel) {
              next.fetch(lines);
              const std::int64_t n = b.n0 + panel * tile_cols, col = half * b.width + n;
              float* c = g.c ? g.c + m * g.ldc + col
                             : passing + (m - first_row) * ld_passing + (half * group + panel - q0) * tile_cols;
              tile_at(function, rows, b.n1 - n, depth, a, column_stride, b.at(k, half, panel), tile_cols, c,
                      g.c ? g.ldc : ld_passing, base ? base + m * ld_base + col : nullptr, ld_base);
            }
        }
        if (last && g.finished.fn && !g.whole_rows)
          finish(g.c ? kept : Block{.data = passing, .ld = ld_passing, .pair = group * tile_cols}, q0, q1);
      }
      if (last && g.finished.fn && g.whole_rows) finish(kept, panel0, panel1);
    }
  }
}

void run(const Gemm& g, const KernelContext& context) {
  const Blocking s(g.n, g.k, g.paired);
  const std::int64_t blocks = row_blocks(g.m, s), group_panels = s.group() / tile_cols;
  Tasks before = g.before;
  for (std::int64_t n = 0; n < s.width; n += s.nb)
    for (std::int64_t k = 0; k < g.k; k += s.kb) {
      const PackedB b(g, s, n, k);
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
      const std::int64_t cut = g.whole_rows ? 1 : std::max<std::int64_t>(1, b.half_panels / (8 * group_panels));
      const std::int64_t wide = (b.half_panels + cut * group_panels - 1) / (cut * group_panels) * group_panels;
      const double flops = 2.0 * static_cast<double>(g.m) * static_cast<double>(s.halves * (b.n1 - b.n0)) *
                           static_cast<double>(b.k1 - b.k0) * (g.lower ? 0.5 : 1);
      for_each_worth(context, (b.half_panels + wide - 1) / wide * blocks, flops * 0.01, [&](std::int64_t task) {
        const std::int64_t panel0 = task / blocks * wide, panel1 = std::min(b.half_panels, panel0 + wide);
        const auto cut_at = [&](std::int64_t block) {
          return g.lower ? triangle_cut(g.m, block, blocks) : g.m * block / blocks;
        };
        multiply(b, cut_at(task % blocks), cut_at(task % blocks + 1), panel0, panel1, group_panels);
      });
    }
}

}  // namespace
}  // namespace stacklab::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stacklab::cpu {

HWY_EXPORT(run);

std::int64_t gemm_workspace(std::int64_t n, std::int64_t k, bool paired) { return Blocking(n, k, paired).floats(); }

RowCut row_cut(std::int64_t m, std::int64_t n, std::int64_t k, bool paired) {
  return {m, row_blocks(m, Blocking(n, k, paired))};
}

bool gives_whole_rows(std::int64_t n, std::int64_t k) { return Blocking(n, k, false).nb == n; }

bool fits_one_depth(std::int64_t k) { return k <= deepest_block; }

void gemm(const Gemm& g, const KernelContext& context) { HWY_DYNAMIC_DISPATCH(run)(g, context); }

}  // namespace stacklab::cpu
#endif
