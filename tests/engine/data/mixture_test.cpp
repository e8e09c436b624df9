#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "engine/base/philox.h"
#include "engine/data/loader.h"
#include "tests/engine/data/data_testing.h"

namespace stacklab {
namespace {

TEST(RowSchedule, SharesAreKeptWithinARowPerSource) {
  const std::vector<double> weights = {70, 15, 10, 5};
  for (const std::uint64_t seed : {0, 1, 2, 99}) {
    const RowSchedule schedule(weights, seed);
    std::vector<std::int64_t> rows(weights.size());
    for (std::int64_t r = 0; r < 5000; ++r) {
      const RowSchedule::Place place = schedule.at(r);
      ASSERT_EQ(place.row, rows[place.source]) << "each source's rows come in order, none twice";
      ++rows[place.source];
      for (std::size_t i = 0; i < weights.size(); ++i) {
        EXPECT_EQ(schedule.rows_of(i, r + 1), rows[i]);
        ASSERT_LT(std::abs(static_cast<double>(rows[i]) - static_cast<double>(r + 1) * weights[i] / 100),
                  static_cast<double>(weights.size()))
            << "source " << i << ", row " << r;
      }
    }
  }
  EXPECT_EQ(RowSchedule(std::vector<double>{3}, 1).at(77).row, 77);
}

// Far out it is found at once, and still exact.
TEST(RowSchedule, AnyRowCanBeAsked) {
  const RowSchedule schedule(std::vector<double>{1, 1e-6, 5}, 3);
  const std::int64_t far = std::int64_t{1} << 50;
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < 3; ++i) sum += schedule.rows_of(i, far);
  EXPECT_EQ(sum, far);
  const RowSchedule::Place place = schedule.at(far);
  EXPECT_EQ(place.row, schedule.rows_of(place.source, far));
  EXPECT_NEAR(static_cast<double>(schedule.rows_of(2, far)) / static_cast<double>(far), 5 / 6.000001, 1e-9);
}

class Mixture : public testing::Test {
 protected:
  Mixture() {
    for (int i = 0; i < 12; ++i) {
      letters_.push_back(std::string(40, static_cast<char>('a' + i)));
      digits_.push_back(std::string(8, static_cast<char>('0' + i % 10)));
    }
  }
  Result<BatchLoader> load(LoaderShape shape, std::uint64_t seed = 1) const {
    return BatchLoader::create({{"letters", 3, &first_.sources()[0].train}, {"digits", 1, &second_.sources()[0].train}},
                               shape, {seed, true, Packing::fragment});
  }

  std::vector<std::string> letters_, digits_;
  Dataset first_ = dataset_of({std::string(300, 'a'), std::string(77, 'b')});
  Dataset second_ = dataset_of({std::string(50, '1'), std::string(9, '2'), "3"});
};

TEST_F(Mixture, GivesEachSourceItsShareOfTheTokensAndSaysTheEpochs) {
  const LoaderShape shape{.seq_len = 16, .micro_batch = 4, .accumulation = 2};
  const auto loader = load(shape);
  ASSERT_TRUE(loader) << loader.error().message();
  constexpr std::int64_t steps = 50;
  std::int64_t digits = 0;
  for (std::int64_t s = 0; s < steps; ++s)
    for (const MicroBatch& batch : loader->step(s).micro) {
      ASSERT_TRUE(check_micro_batch(batch, shape)) << s;
      for (std::int64_t row = 0; row < 4; ++row) digits += batch.ids[static_cast<std::size_t>(row * 16)] < 'a';
    }
  EXPECT_NEAR(static_cast<double>(digits), steps * 8 / 4., 1.0);
  const auto reports = loader->source_reports(steps);
  EXPECT_EQ(reports[1].tokens, digits * 16);
  EXPECT_EQ(reports[0].tokens + reports[1].tokens, steps * shape.step_tokens());
  EXPECT_EQ(reports[1].packing.tokens_in, 60);
  EXPECT_DOUBLE_EQ(reports[1].epochs, static_cast<double>(digits * 16) / (60 + 3)) << "3 of padding";
  EXPECT_GT(reports[1].epochs, 20) << "what ends begins again";
}

TEST_F(Mixture, AnyStepIsReadWithoutThoseBeforeIt) {
  const LoaderShape shape{.seq_len = 16, .micro_batch = 2, .accumulation = 2};
  const auto straight = load(shape), other = load(shape, 2);
  ASSERT_TRUE(straight && other);
  bool differs = false;
  for (std::int64_t s = 0; s < 60; ++s) {
    const StepBatch a = straight->step(s), b = load(shape)->step(s);
    for (std::size_t m = 0; m < a.micro.size(); ++m) {
      EXPECT_EQ(a.micro[m].ids, b.micro[m].ids) << s;
      EXPECT_EQ(a.micro[m].targets, b.micro[m].targets) << s;
      differs |= a.micro[m].ids != other->step(s).micro[m].ids;
    }
  }
  EXPECT_TRUE(differs) << "another seed is another order";
  const StepBatch far = straight->step(std::int64_t{1} << 40);
  EXPECT_TRUE(check_micro_batch(far.micro[0], shape));
}

TEST_F(Mixture, ASourceThatIsTooSmallIsNamed) {
  const auto loader = load({.seq_len = 60, .micro_batch = 1});
  ASSERT_FALSE(loader);
  EXPECT_NE(loader.error().what.find("corpus \"digits\" hold 60 tokens in 3 documents; needed: 61"), std::string::npos)
      << loader.error().what;
}

// One pass in the mixture's proportions, as far as the first source reaches; nothing twice.
TEST_F(Mixture, ValidationKeepsTheWeightsAndEndsWithTheFirstSource) {
  const LoaderShape shape{.seq_len = 16, .micro_batch = 2};
  const auto loader = BatchLoader::create({{"a", 1, &first_.sources()[0].train}, {"b", 1, &second_.sources()[0].train}},
                                          shape, {0, false, Packing::fragment});
  ASSERT_TRUE(loader);
  // b has 63 tokens with padding: 4 rows of its own, as many of a, and perhaps one more of a.
  std::map<bool, std::int64_t> rows;
  std::int64_t ends = 0;
  for (std::int64_t s = 0; s < loader->steps_per_epoch_rounded_up() + 3; ++s) {
    const StepBatch step = loader->step(s);
    ASSERT_TRUE(check_micro_batch(step.micro[0], shape));
    for (std::size_t row = 0; row < 2; ++row)
      if (step.micro[0].ids[row * 16] != 0) ++rows[step.micro[0].ids[row * 16] >= 'a'], ends = s;
  }
  EXPECT_EQ(rows[false], 4);
  EXPECT_GE(rows[true], 4);
  EXPECT_LE(rows[true], 5);
  EXPECT_LT(ends, loader->steps_per_epoch_rounded_up());
}

// What a run over one corpus of bytes reads, written down once more: the orders of its epochs one after another, in
// rows. A change here changes every run that was ever started.
TEST(BatchLoader, OneSourceOfBytesReadsWhatItAlwaysRead) {
  std::vector<std::string> documents;
  for (int i = 0; i < 23; ++i)
    documents.push_back(std::string(static_cast<std::size_t>(5 + i * 37 % 91), static_cast<char>('a' + i)));
  const Dataset data = dataset_of(documents);
  constexpr std::uint64_t seed = 1337;
  std::string stream;
  for (std::uint32_t epoch = 0; epoch < 4; ++epoch) {
    std::vector<std::size_t> order(documents.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    const Philox random(seed, 0x73687566, epoch);
    for (std::size_t i = order.size() - 1; i > 0; --i) std::swap(order[i], order[random.below(i, i + 1)]);
    for (const std::size_t d : order) stream += documents[d];
  }
  const LoaderShape shape{.seq_len = 32, .micro_batch = 2, .accumulation = 2};
  const auto loader = BatchLoader::training(data, shape, seed, Packing::fragment);
  ASSERT_TRUE(loader);
  std::string read;
  for (std::int64_t s = 0; read.size() + 128 <= stream.size(); ++s)
    for (const MicroBatch& batch : loader->step(s).micro) read.append(batch.ids.begin(), batch.ids.end());
  EXPECT_GT(read.size(), 3000u);
  EXPECT_EQ(read, stream.substr(0, read.size()));
}

// Documents of 5, 2, 3 and 1 tokens in rows of 4.
TEST(PackingPolicies, KeepTheirPromises) {
  const Dataset data = dataset_of({"\1\2\3\4\5", "\6\7", "\x08\x09\x0a", "\x0b"});
  const auto pack = [&](Packing packing, std::int64_t seq_len = 4) {
    auto loader = BatchLoader::create({{"b1", 1, &data.sources()[0].train}}, {.seq_len = seq_len, .micro_batch = 1},
                                      {1, true, packing});
    EXPECT_TRUE(loader) << loader.error().message();
    return std::move(loader.value());
  };
  EXPECT_EQ(pack(Packing::fragment).report().tokens_lost, 0);
  const BatchLoader truncated = pack(Packing::truncate), dropped = pack(Packing::drop);
  EXPECT_EQ(truncated.report().tokens_in, 11);
  EXPECT_EQ(truncated.report().tokens_packed, 10);
  EXPECT_EQ(truncated.report().tokens_lost, 1);
  EXPECT_EQ(dropped.report().tokens_packed, 6);
  EXPECT_EQ(dropped.report().tokens_lost, 5);
  EXPECT_EQ(dropped.report().documents, 3);
  for (const BatchLoader* loader : {&truncated, &dropped}) {
    const std::int64_t rows = loader->tokens_per_epoch() / 4;
    for (std::int64_t epoch = 0; epoch < 5; ++epoch) {
      std::multiset<std::int32_t> seen;
      for (std::int64_t r = 0; r < rows; ++r) {
        const MicroBatch batch = loader->step(epoch * rows + r).micro[0];
        ASSERT_TRUE(check_micro_batch(batch, loader->shape()));
        for (const std::int32_t id : batch.ids)
          if (id != 0) seen.insert(id);
        EXPECT_NE(batch.ids[0], 2) << "no document begins in its middle";
      }
      EXPECT_EQ(static_cast<std::int64_t>(seen.size()), loader->report().tokens_packed);
      EXPECT_EQ(seen.count(5), 0u);
      EXPECT_EQ(seen.count(4), loader == &truncated ? 1u : 0u);
    }
  }
  const auto nothing = BatchLoader::create({{"b1", 1, &data.sources()[0].train}}, {.seq_len = 1, .micro_batch = 1},
                                           {1, true, Packing::truncate});
  ASSERT_FALSE(nothing);
  EXPECT_NE(nothing.error().remedy.find("data.packing"), std::string::npos) << nothing.error().message();
}

// Rows are filled well, whatever the lengths; each document comes once in every epoch.
TEST(PackingPolicies, BestFitWastesLittle) {
  std::vector<std::string> documents;
  for (int i = 0; i < 3000; ++i) documents.push_back(std::string(static_cast<std::size_t>(1 + i * 7919 % 100), 'x'));
  const Dataset data = dataset_of(documents);
  const LoaderShape shape{.seq_len = 128, .micro_batch = 3};
  const auto loader = BatchLoader::create({{"many", 1, &data.sources()[0].train}}, shape, {1, true, Packing::truncate});
  ASSERT_TRUE(loader);
  EXPECT_EQ(loader->report().tokens_lost, 0);
  EXPECT_LT(static_cast<double>(loader->report().padding), 0.05 * static_cast<double>(loader->report().tokens_packed));
  std::int64_t starts = 0, rows = loader->tokens_per_epoch() / 128;
  for (std::int64_t s = 0; s < rows; ++s) {
    const MicroBatch batch = loader->step(s).micro[0];
    ASSERT_TRUE(check_micro_batch(batch, shape));
    for (std::size_t d = 0; d + 1 < batch.cu_seqlens.size(); ++d)
      starts += batch.cu_seqlens[d] < batch.cu_seqlens[d + 1];
  }
  EXPECT_EQ(starts, 3 * 3000) << "three epochs";
}

}  // namespace
}  // namespace stacklab
