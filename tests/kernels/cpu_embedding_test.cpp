// Gathering and scattering of the CPU backend against the reference, on every instruction set, for any threads and
// order of tasks.
#include <gtest/gtest.h>

#include "kernels/bf16.h"
#include "tests/kernels/cpu_harness.h"
#include "tests/kernels/op_harness.h"

namespace stacklab::test {
namespace {

const Backend& fast() { return *find_backend("cpu"); }
const Backend& reference() { return *find_backend("reference"); }

struct Size {
  std::int64_t tokens, vocabulary, d;
};
const std::vector<Size> sizes = {{1, 1, 1}, {40, 7, 3}, {53, 300, 64}, {97, 11, 67}, {301, 1000, 133}};

// Some ids many times, some never.
Guarded<std::int32_t> ids_of(const Size& s) {
  Guarded<std::int32_t> ids(s.tokens);
  std::mt19937 engine(7);
  for (std::size_t t = 0; t < ids.size(); ++t) {
    const auto id = static_cast<std::int32_t>(engine() % static_cast<std::uint32_t>(s.vocabulary));
    ids[t] = engine() % 3 == 0 ? static_cast<std::int32_t>(s.vocabulary - 1) : id / 2;
  }
  return ids;
}

TEST(CpuEmbedding, RowsAreCopied) {
  for (const Size& s : sizes) {
    Guarded<std::int32_t> ids = ids_of(s);
    Guarded<float> table = random_guarded<float>(s.vocabulary * s.d, 1);
    Guarded<BFloat16> narrow(s.vocabulary * s.d, BFloat16(0));
    for (std::size_t i = 0; i < narrow.size(); ++i) narrow[i] = BFloat16(table[i]);
    for (const bool in_bf16 : {false, true}) {
      const TensorView from = in_bf16 ? view_of(narrow, {s.vocabulary, s.d}) : view_of(table, {s.vocabulary, s.d});
      on_every_path(
          "embedding of " + std::to_string(s.d),
          [&](ParallelFor* parallel) {
            Guarded<float> x(s.tokens * s.d);
            run_op(fast(),
                   op::Embedding{.ids = view_of(ids, {s.tokens}), .table = from, .x = view_of(x, {s.tokens, s.d})},
                   nullptr, parallel);
            EXPECT_TRUE(ids.intact() && table.intact() && narrow.intact() && x.intact());
            return x.values();
          },
          [&](const std::string& what, const std::vector<float>& got) {
            for (std::size_t i = 0; i < got.size(); ++i) {
              const auto d = static_cast<std::size_t>(s.d);
              const std::size_t at = static_cast<std::size_t>(ids[i / d]) * d + i % d;
              ASSERT_EQ(got[i], in_bf16 ? static_cast<float>(narrow[at]) : table[at]) << what;
            }
          });
    }
  }
}

// Each row sums in the order of tokens, as the reference does: the same bits.
TEST(CpuEmbedding, GradientsAreTheReferenceToTheBit) {
  for (const Size& s : sizes)
    for (const bool accumulate : {false, true}) {
      Guarded<std::int32_t> ids = ids_of(s);
      Guarded<float> dx = random_guarded<float>(s.tokens * s.d, 3);
      const auto scatter = [&](const Backend& backend, ParallelFor* parallel) {
        Guarded<float> dtable = random_guarded<float>(s.vocabulary * s.d, 4);
        run_op(backend,
               op::EmbeddingBackward{.ids = view_of(ids, {s.tokens}),
                                     .dx = view_of(dx, {s.tokens, s.d}),
                                     .dtable = {view_of(dtable, {s.vocabulary, s.d}), accumulate}},
               nullptr, parallel);
        EXPECT_TRUE(ids.intact() && dx.intact() && dtable.intact());
        return dtable.values();
      };
      const std::vector<float> expected = scatter(reference(), nullptr);
      on_every_path(
          "scatter of " + std::to_string(s.d), [&](ParallelFor* parallel) { return scatter(fast(), parallel); },
          [&](const std::string& what, const std::vector<float>& got) { EXPECT_EQ(got, expected) << what; });
    }
}

}  // namespace
}  // namespace stacklab::test
