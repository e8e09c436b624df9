// What backward computes again is what forward computed, to the bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "engine/program/checker.h"
#include "tests/engine/model/model_harness.h"

namespace stacklab::test {
namespace {

ModelConfig five_blocks() {
  ModelConfig c;
  c.vocab_size = 13, c.d_model = 24, c.n_layers = 5, c.n_heads = 4, c.n_kv_heads = 2, c.head_dim = 8;
  c.intermediate = 20, c.max_seq_len = 16, c.nope_every = 2, c.z_loss_coef = 0.05;
  return c;
}

const PackedTokens batch = {{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5},
                            {1, 4, 1, -100, 9, 2, 6, 5, 3, 5, -100},
                            {0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 6},
                            {0, 4, 4, 11}};

struct Outcome {
  std::vector<std::vector<double>> values;  // loss, largest logits, gradients
  double flops = 0;
  std::int64_t arena = 0;
};

Outcome outcome(DType dtype, const Backend& backend, Recompute recompute) {
  ModelOnBatch m(five_blocks(), dtype, 11, 4, 3, backend, recompute);
  EXPECT_EQ(check_program(m.set(), 0), std::vector<std::string>{});
  initialise(m.model().parameters(), 7, m.executor());
  m.set_batch(batch);
  m.run();
  Outcome o;
  o.values = {{m.ce(), m.z_loss()}, m.max_logits()};
  for (std::size_t i = 0; i < m.model().parameters().parameters.size(); ++i) o.values.push_back(m.gradient(i));
  o.flops = m.set().program(0).flops();
  o.arena = m.executor().plan().step_bytes;
  return o;
}

bool same_bits(const Outcome& a, const Outcome& b) {
  return std::equal(a.values.begin(), a.values.end(), b.values.begin(), b.values.end(),
                    [](const std::vector<double>& x, const std::vector<double>& y) {
                      return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(double)) == 0;
                    });
}

struct Device {
  const char* backend;
  DType dtype;
};
const std::vector<Device> devices = {{"reference", DType::f64},
                                     {"reference", DType::f32},
                                     {"reference", DType::bf16},
                                     {"cpu", DType::f32},
                                     {"cpu", DType::bf16}};

TEST(Recompute, BlocksGiveTheSameGradients) {
  for (const Device& device : devices) {
    const Backend* backend = find_backend(device.backend);
    if (!backend) continue;
    const Outcome kept = outcome(device.dtype, *backend, {});
    double largest = 0;
    for (const auto& values : kept.values)
      for (const double v : values) largest = std::max(largest, std::abs(v));
    EXPECT_GT(largest, 0);
    for (const std::int64_t blocks : {1, 2, 3, 5, 9}) {
      const Outcome again = outcome(device.dtype, *backend, {.blocks = blocks});
      EXPECT_TRUE(same_bits(kept, again)) << device.backend << name_of(device.dtype) << blocks;
      EXPECT_GT(again.flops, kept.flops);
      if (blocks < 5) {
        EXPECT_LT(again.arena, kept.arena) << device.backend << name_of(device.dtype) << blocks;
      }
    }
  }
}

TEST(Recompute, SwigluGivesTheSameGradients) {
  for (const Device& device : devices) {
    const Backend* backend = find_backend(device.backend);
    if (!backend) continue;
    const Outcome kept = outcome(device.dtype, *backend, {}), again = outcome(device.dtype, *backend, {.swiglu = true});
    EXPECT_TRUE(same_bits(kept, again)) << device.backend << name_of(device.dtype);
    EXPECT_LT(again.arena, kept.arena) << device.backend << name_of(device.dtype);
    // Blocks that are computed again do with it what they did before.
    const Outcome both = outcome(device.dtype, *backend, {.blocks = 2, .swiglu = true});
    EXPECT_TRUE(same_bits(again, both)) << device.backend << name_of(device.dtype);
  }
}

// One forward pass of the blocks more, less the last product of each stretch.
TEST(Recompute, CostsOneMoreForwardPassOfTheBlocks) {
  const ModelConfig c = five_blocks();
  const Backend& reference = *find_backend("reference");
  const double tokens = 11, queries = static_cast<double>(c.n_heads * c.head_dim),
               keys = static_cast<double>(c.n_kv_heads * c.head_dim), d = static_cast<double>(c.d_model),
               f = static_cast<double>(c.intermediate);
  const double attention = 2 * tokens * (d * (queries + 2 * keys) + queries * d) + 2 * tokens * tokens * queries;
  const double down = 2 * tokens * d * f, ffn = 2 * tokens * d * 2 * f + down;
  const double kept = outcome(DType::f32, reference, {}).flops;
  for (const std::int64_t blocks : {1, 2, 5}) {
    const double stretches = static_cast<double>((c.n_layers + blocks - 1) / blocks);
    EXPECT_DOUBLE_EQ(outcome(DType::f32, reference, {.blocks = blocks}).flops - kept,
                     static_cast<double>(c.n_layers) * (attention + ffn) - stretches * down);
  }
}

}  // namespace
}  // namespace stacklab::test
