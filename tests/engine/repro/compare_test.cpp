#include "engine/repro/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "engine/base/safetensors.h"
#include "tests/temporary_folder.h"

namespace stacklab {
namespace {

MetricTable table() {
  return {{"loss", {{1, 5.0}, {2, 4.0}, {3, std::nan("")}}},
          {"grad_norm", {{1, 1.0}, {2, 0.0}, {3, INFINITY}}},
          {"tokens_per_second", {{1, 100}, {2, 200}, {3, 300}}}};
}

TEST(CompareMetrics, TheSameBitsAreTheSame) {
  MetricTable again = table();
  again["tokens_per_second"][2] = 1;
  again["loss"][3] = -std::nan("");
  const Comparison c = compare_metrics(table(), again, 1, 3);
  EXPECT_EQ(c.compared, 6) << "speed is not compared";
  EXPECT_FALSE(c.first);
}

TEST(CompareMetrics, TheFirstDifferenceIsTheEarliest) {
  MetricTable again = table();
  again["grad_norm"][2] = -0.0;
  again["loss"][1] = std::nextafter(5.0, 6.0);
  again["loss"][2] = 7;
  const auto first = [&](std::int64_t from, std::int64_t to) {
    return compare_metrics(table(), again, from, to).first;
  };
  ASSERT_TRUE(first(1, 3));
  EXPECT_EQ(*first(1, 3), (Difference{1, "loss", "", -1, "5", "5.000000000000001"}));
  EXPECT_EQ(*first(2, 3), (Difference{2, "grad_norm", "", -1, "0", "-0"})) << "a zero's sign is a bit";
  EXPECT_FALSE(first(3, 3));
  EXPECT_EQ(compare_metrics(table(), again, 3, 3).compared, 2);
}

TEST(CompareMetrics, WhatOnlyOneHasIsNotCompared) {
  MetricTable again = {{"loss", {{2, 4.0}}}, {"val_loss", {{2, 1.0}}}};
  EXPECT_EQ(compare_metrics(table(), again, 1, 3).compared, 1);
}

class CompareTensors : public testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, const std::vector<float>& a, std::vector<std::int64_t> shape,
                              bool with_b = true) {
    std::vector<SafetensorsEntry> entries = {
        {"a", SafetensorsType::f32, std::move(shape), std::as_bytes(std::span(a))}};
    const std::vector<std::uint8_t> b = {1, 2, 254};
    if (with_b) entries.push_back({"b", SafetensorsType::u8, {3}, std::as_bytes(std::span(b))});
    EXPECT_TRUE(write_safetensors(folder_ / name, entries));
    return folder_ / name;
  }
  TemporaryFolder folder_;
};

TEST_F(CompareTensors, ElementByElement) {
  const auto one = write("model.safetensors", {1, 2, 3, 4}, {2, 2});
  EXPECT_FALSE(compare_tensors(one, write("same", {1, 2, 3, 4}, {2, 2}), 7)->first);
  EXPECT_EQ(compare_tensors(one, write("same", {1, 2, 3, 4}, {2, 2}), 7)->compared, 2);
  const auto other = write("other", {1, 2, std::nextafter(3.0f, 4.0f), 5}, {2, 2});
  EXPECT_EQ(*compare_tensors(one, other, 7)->first,
            (Difference{7, "a", "model.safetensors", 2, "3", "3.000000238418579"}));
  EXPECT_EQ(*compare_tensors(one, write("flat", {1, 2, 3, 4}, {4}), 7)->first,
            (Difference{7, "a", "model.safetensors", -1, "F32 [2, 2]", "F32 [4]"}));
  EXPECT_EQ(*compare_tensors(one, write("less", {1, 2, 3, 4}, {2, 2}, false), 7)->first,
            (Difference{7, "b", "model.safetensors", -1, "U8 [3]", "missing"}));
  EXPECT_FALSE(compare_tensors(one, folder_ / "nothing", 7));
}

}  // namespace
}  // namespace stacklab
