// What is measured are the products of a training step, and the rate is measured once.
#include "engine/bench/gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "engine/base/atomic_file.h"
#include "engine/bench/gemm_rate.h"
#include "engine/bench/instruction_set.h"
#include "engine/bench/onednn.h"
#include "tests/temporary_folder.h"

namespace stacklab {
namespace {

bool no_cpu_backend() { return bench::instruction_sets().empty(); }

// Forward and backward of every matrix once: 6 FLOPs per parameter and token.
TEST(GemmBench, ProductsAreThoseOfTraining) {
  const ModelConfig stack_100m;
  double flops = 0;
  for (const GemmProduct& p : training_products(stack_100m, 2048, 1024)) flops += p.flops();
  EXPECT_EQ(flops, 6.0 * 2048 * (655'360 + 2'162'688) + 6.0 * 1024 * 16'777'216);
}

TEST(GemmBench, EveryProductIsMeasured) {
  if (no_cpu_backend()) GTEST_SKIP();
  ModelConfig m;
  m.d_model = 64, m.n_heads = 2, m.n_kv_heads = 1, m.head_dim = 32, m.intermediate = 96;
  const auto products = training_products(m, 32, 0);
  std::size_t reported = 0;
  GemmBenchOptions options{.threads = 2, .isa = bench::instruction_sets().back(), .seconds = 0, .report = {}};
  options.report = [&](const GemmMeasurement& row) { reported += row.seconds > 0; };
  const auto bench = bench_gemm(products, options);
  ASSERT_TRUE(bench) << bench.error().message();
  EXPECT_EQ(bench->rows.size(), products.size());
  EXPECT_EQ(reported, products.size());
  EXPECT_EQ(bench->isa, options.isa);
  EXPECT_EQ(bench_gemm(products, {.threads = 1, .isa = {}, .seconds = 0, .report = {}})->isa,
            bench::instruction_sets().front())
      << "what was restricted is free again";
  const auto narrow = bench_gemm(
      products, {.threads = 1, .isa = {}, .stored = DType::bf16, .onednn = true, .seconds = 0, .report = {}});
  ASSERT_TRUE(narrow) << narrow.error().message();
  EXPECT_EQ(narrow->rows.size(), products.size());
  EXPECT_TRUE(narrow->onednn.empty() && !narrow->without_onednn.empty());
  const auto wrong = bench_gemm(products, {.threads = 1, .isa = "abacus", .seconds = 0, .report = {}});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().kind, Error::Kind::usage);
}

// The other side multiplies the same matrices: A [M, K] or its transpose by B.
TEST(GemmBench, OneDnnMeansTheSameProduct) {
  const auto onednn = OneDnn::open(1, false);
  if (!onednn) GTEST_SKIP() << onednn.error().message();
  const std::int64_t m = 3, n = 5, k = 4;
  std::vector<float> a, b;
  for (int i = 0; i < m * k; ++i) a.push_back(static_cast<float>(i % 7 - 3));
  for (int i = 0; i < k * n; ++i) b.push_back(static_cast<float>(i % 5 - 2));
  for (const bool ta : {false, true})
    for (const bool tb : {false, true}) {
      std::vector<float> c(static_cast<std::size_t>(m * n), NAN);
      (*onednn)->sgemm(ta, tb, m, n, k, a.data(), ta ? m : k, b.data(), tb ? k : n, c.data());
      for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t j = 0; j < n; ++j) {
          float sum = 0;  // small whole numbers: exact
          for (std::int64_t p = 0; p < k; ++p)
            sum += a[static_cast<std::size_t>(ta ? p * m + i : i * k + p)] *
                   b[static_cast<std::size_t>(tb ? j * k + p : p * n + j)];
          EXPECT_EQ(c[static_cast<std::size_t>(i * n + j)], sum) << ta << tb << i << j;
        }
    }
}

TEST(GemmRate, IsMeasuredOnceAndKept) {
  if (no_cpu_backend()) GTEST_SKIP();
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / "gemm_rates.json";
  const auto first = gemm_rate(folder.path(), 1, DType::f32);
  ASSERT_TRUE(first) << first.error().message();
  EXPECT_GT(*first, 0);
  EXPECT_TRUE(std::filesystem::exists(file));
  EXPECT_EQ(*gemm_rate(folder.path(), 1, DType::f32), *first) << "a measurement would not repeat to the last bit";
  ASSERT_TRUE(gemm_rate(folder.path(), 2, DType::f32));
  ASSERT_TRUE(gemm_rate(folder.path(), 1, DType::bf16));
  nlohmann::json kept = nlohmann::json::parse(*read_file(file));
  ASSERT_EQ(kept.size(), 3u) << "by the number of threads, and by the type";
  // What is in the file is what is used, and only for this processor and build.
  kept[0]["flops_per_second"] = 1234.5;
  ASSERT_TRUE(write_file_atomically(file, kept.dump()));
  EXPECT_EQ(*gemm_rate(folder.path(), 1, DType::f32), 1234.5);
  kept[0]["fingerprint"] = "another";
  ASSERT_TRUE(write_file_atomically(file, kept.dump()));
  EXPECT_NE(*gemm_rate(folder.path(), 1, DType::f32), 1234.5);
  EXPECT_EQ(nlohmann::json::parse(*read_file(file)).size(), 4u);
}

TEST(GemmRate, AFileThatIsNoneIsReplaced) {
  if (no_cpu_backend()) GTEST_SKIP();
  const TemporaryFolder folder;
  for (const char* text : {"nonsense", "[1, {\"cpu\": 2}]"}) {
    ASSERT_TRUE(write_file_atomically(folder / "gemm_rates.json", text));
    const auto rate = gemm_rate(folder.path(), 1, DType::f32);
    ASSERT_TRUE(rate);
    EXPECT_EQ(*gemm_rate(folder.path(), 1, DType::f32), *rate) << text;
  }
  EXPECT_TRUE(gemm_rate("/proc/nowhere", 1, DType::f32)) << "it is measured all the same";
}

}  // namespace
}  // namespace stacklab
