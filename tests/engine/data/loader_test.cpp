#include "engine/data/loader.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <thread>

#include "tests/engine/data/data_testing.h"

namespace stacklab {
namespace {

Result<BatchLoader> try_loader(const Dataset& data, LoaderShape shape, std::uint64_t seed = 1, bool shuffled = true,
                               Packing packing = Packing::fragment) {
  const DataSource& source = data.sources()[0];
  return BatchLoader::create({{source.name, 1, &source.train}}, shape, {seed, shuffled, packing});
}

BatchLoader loader_of(const Dataset& data, LoaderShape shape, std::uint64_t seed = 1, bool shuffled = true,
                      Packing packing = Packing::fragment) {
  Result<BatchLoader> loader = try_loader(data, shape, seed, shuffled, packing);
  EXPECT_TRUE(loader) << loader.error().message();
  return std::move(loader.value());
}

bool same(const StepBatch& a, const StepBatch& b) {
  return a.targets == b.targets && std::equal(a.micro.begin(), a.micro.end(), b.micro.begin(), b.micro.end(),
                                              [](const MicroBatch& x, const MicroBatch& y) {
                                                return x.ids == y.ids && x.targets == y.targets &&
                                                       x.positions == y.positions && x.cu_seqlens == y.cu_seqlens;
                                              });
}

// Documents of these lengths whose bytes are noise.
std::vector<std::string> noise(const std::vector<int>& lengths) {
  std::mt19937 random(99);
  std::vector<std::string> documents;
  for (const int length : lengths) {
    documents.emplace_back();
    for (int i = 0; i < length; ++i) documents.back().push_back(static_cast<char>(random()));
  }
  return documents;
}

// The stream of a shuffled loader put together again from inputs and targets alone.
struct Replay {
  std::vector<std::string> documents;  // whole ones, in the order in which they came
  std::string open;                    // of the document that has not ended
  std::int32_t next = ignored_target;  // what its last target promised
  std::int64_t owed = 0;               // padding still to come after a short document
  std::int64_t inputs = 0, targets = 0;
};

void replay(const BatchLoader& loader, std::int64_t first, std::int64_t last, Replay& seen) {
  for (std::int64_t s = first; s < last; ++s) {
    const StepBatch step = loader.step(s);
    const std::int64_t before = seen.targets;
    for (const MicroBatch& batch : step.micro) {
      const Status status = check_micro_batch(batch, loader.shape());
      ASSERT_TRUE(status) << "step " << s << ": " << status.error().message();
      std::size_t fragment = 0;
      for (std::size_t t = 0; t < batch.ids.size(); ++t) {
        const bool starts = t == static_cast<std::size_t>(batch.cu_seqlens[fragment]);
        fragment += starts;
        if (seen.owed > 0) {
          --seen.owed;
          ASSERT_EQ(batch.ids[t], 0) << "step " << s << ", token " << t;
          ASSERT_EQ(batch.targets[t], ignored_target) << "step " << s << ", token " << t;
          continue;
        }
        if (seen.open.empty()) {
          ASSERT_TRUE(starts) << "a document begins inside another's, step " << s << ", token " << t;
        } else {
          ASSERT_EQ(batch.ids[t], seen.next) << "step " << s << ", token " << t;
        }
        seen.open.push_back(static_cast<char>(batch.ids[t]));
        seen.next = batch.targets[t];
        ++seen.inputs;
        if (seen.next == ignored_target) {
          seen.owed = LoaderShape::min_slot - static_cast<std::int64_t>(seen.open.size());
          seen.documents.push_back(std::exchange(seen.open, {}));
        } else {
          ++seen.targets;
        }
      }
    }
    ASSERT_EQ(step.targets, seen.targets - before) << "step " << s;
  }
}

TEST(StepBatch, SquaredLengthsOfItsDocuments) {
  StepBatch batch;
  batch.micro.resize(2);
  batch.micro[0].cu_seqlens = {0, 4, 4, 11, 12, 12}, batch.micro[1].cu_seqlens = {0, 12, 12};
  EXPECT_EQ(squared_document_lengths(batch), 16 + 49 + 1 + 144);
}

TEST(BatchLoader, PacksBackToBackAndCutsLongDocuments) {
  const Dataset corpus = dataset_of({"abcdefghij", "KLMNO", "pqrstu"});
  const BatchLoader loader = loader_of(corpus, {.seq_len = 8, .micro_batch = 2, .accumulation = 1}, 0, false);
  const StepBatch step = loader.step(0);
  ASSERT_EQ(step.micro.size(), 1u);
  const MicroBatch& batch = step.micro[0];
  EXPECT_EQ(std::string(batch.ids.begin(), batch.ids.end()), "abcdefghijKLMNOp");
  const std::int32_t none = ignored_target;
  EXPECT_EQ(batch.targets, (std::vector<std::int32_t>{'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', none, 'L', 'M', 'N',
                                                      'O', none, 'q'}));
  EXPECT_EQ(batch.positions, (std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 0, 1, 2, 3, 4, 0}));
  EXPECT_EQ(batch.cu_seqlens, (std::vector<std::int32_t>{0, 8, 10, 15, 16, 16, 16}));
  EXPECT_EQ(step.targets, 14);
  // The only pass ends in padding.
  const MicroBatch rest = loader.step(1).micro[0];
  EXPECT_EQ(std::string(rest.ids.begin(), rest.ids.begin() + 5), "qrstu");
  EXPECT_EQ(rest.cu_seqlens, (std::vector<std::int32_t>{0, 8, 16, 16, 16, 16, 16}));
  EXPECT_EQ(loader.step(1).targets, 4);
  EXPECT_EQ(loader.steps_per_epoch_rounded_up(), 2);
  EXPECT_EQ(loader.step(2).targets, 0);
  EXPECT_TRUE(check_micro_batch(loader.step(2).micro[0], loader.shape()));
}

// Long documents are cut, not dropped: the documents of 5, 2, 3 and 1 tokens that best-fit packing in windows of 4
// loses one of.
TEST(BatchLoader, LosesNoTokens) {
  const Dataset corpus = dataset_of({"\1\2\3\4\5", "\6\7", "\x08\x09\x0a", "\x0b"});
  for (const std::int64_t seq_len : {4, 1, 2, 3, 10}) {
    const BatchLoader loader = loader_of(corpus, {.seq_len = seq_len, .micro_batch = 1, .accumulation = 1});
    EXPECT_EQ(loader.report().tokens_in, 11);
    EXPECT_EQ(loader.report().tokens_packed, 11);
    EXPECT_EQ(loader.report().tokens_lost, 0);
    EXPECT_EQ(loader.report().targets, 7);
    EXPECT_EQ(loader.report().padding, 2 + 1 + 3);
    EXPECT_EQ(loader.tokens_per_epoch(), 17);
    // 17 steps hold seq_len whole epochs.
    Replay seen;
    replay(loader, 0, 17, seen);
    ASSERT_FALSE(HasFatalFailure());
    EXPECT_EQ(seen.inputs, 11 * seq_len);
    EXPECT_EQ(seen.targets, 7 * seq_len);
    std::map<std::string, std::int64_t> times;
    for (const std::string& document : seen.documents) ++times[document];
    EXPECT_EQ(times.size(), 4u);
    for (const auto& [document, n] : times) EXPECT_EQ(n, seq_len);
  }
}

TEST(BatchLoader, EveryEpochHoldsEveryByteOnce) {
  std::mt19937 random(5);
  for (int round = 0; round < 60; ++round) {
    std::vector<int> lengths(1 + random() % 40);
    const int longest = round % 3 == 0 ? 5 : round % 3 == 1 ? 40 : 400;
    for (int& length : lengths) length = static_cast<int>(random() % static_cast<unsigned>(longest + 1));
    lengths.push_back(longest + 70);
    const std::vector<std::string> documents = noise(lengths);
    const Dataset corpus = dataset_of(documents);
    const LoaderShape shape{.seq_len = 1 + static_cast<std::int64_t>(random() % 64),
                            .micro_batch = 1 + static_cast<std::int64_t>(random() % 4),
                            .accumulation = 1 + static_cast<std::int64_t>(random() % 3)};
    const BatchLoader loader = loader_of(corpus, shape, random());
    // Whole epochs: step_tokens() epochs are tokens_per_epoch() steps; a divisor is enough.
    const std::int64_t steps = std::lcm(loader.tokens_per_epoch(), shape.step_tokens()) / shape.step_tokens();
    if (steps > 3000) continue;
    const std::int64_t epochs = steps * shape.step_tokens() / loader.tokens_per_epoch();
    Replay seen;
    replay(loader, 0, steps, seen);
    ASSERT_FALSE(HasFatalFailure()) << "round " << round;
    EXPECT_TRUE(seen.open.empty());
    EXPECT_EQ(seen.inputs, epochs * loader.report().tokens_in);
    EXPECT_EQ(seen.targets, epochs * loader.report().targets);

    std::vector<std::string> expected;
    for (const std::string& document : documents) {
      if (!document.empty()) expected.push_back(document);
    }
    std::sort(expected.begin(), expected.end());
    ASSERT_EQ(seen.documents.size(), static_cast<std::size_t>(epochs) * expected.size());
    for (std::int64_t e = 0; e < epochs; ++e) {
      const auto begin = seen.documents.begin() + e * static_cast<std::int64_t>(expected.size());
      std::vector<std::string> once(begin, begin + static_cast<std::int64_t>(expected.size()));
      std::sort(once.begin(), once.end());
      EXPECT_EQ(once, expected) << "epoch " << e;
    }
  }
}

TEST(BatchLoader, OnePassScoresEveryTargetOnce) {
  std::mt19937 random(6);
  for (int round = 0; round < 40; ++round) {
    std::vector<int> lengths(1 + random() % 20);
    for (int& length : lengths) length = static_cast<int>(random() % 50);
    lengths.push_back(2);
    const std::vector<std::string> documents = noise(lengths);
    const Dataset corpus = dataset_of(documents);
    const LoaderShape shape{.seq_len = 1 + static_cast<std::int64_t>(random() % 64),
                            .micro_batch = 1 + static_cast<std::int64_t>(random() % 4)};
    const BatchLoader loader = loader_of(corpus, shape, 0, false);
    std::int64_t targets = 0;
    for (std::int64_t s = 0; s < loader.steps_per_epoch_rounded_up(); ++s) {
      for (const MicroBatch& batch : loader.step(s).micro) ASSERT_TRUE(check_micro_batch(batch, shape));
      targets += loader.step(s).targets;
    }
    EXPECT_EQ(targets, loader.report().targets);
    EXPECT_EQ(loader.step(loader.steps_per_epoch_rounded_up()).targets, 0);
    EXPECT_EQ(loader.step(loader.steps_per_epoch_rounded_up() + 1000).targets, 0);
  }
}

// Ten documents, three epochs, two documents a step: the list of inputs from step 0 on is the same whether read at
// once, from any step on, backwards, or by a second loader, and no epoch repeats or skips a document.
TEST(BatchLoader, StepsCanBeReadFromAnywhere) {
  std::vector<std::string> documents;
  for (char c = 'a'; c <= 'j'; ++c) documents.push_back(std::string(8, c));
  const Dataset corpus = dataset_of(documents);
  const LoaderShape shape{.seq_len = 8, .micro_batch = 1, .accumulation = 2};
  const BatchLoader straight = loader_of(corpus, shape, 42);
  std::vector<StepBatch> steps;
  std::vector<std::string> orders(3);
  for (std::int64_t s = 0; s < 15; ++s) {
    steps.push_back(straight.step(s));
    for (const MicroBatch& batch : steps.back().micro)
      orders[static_cast<std::size_t>(s / 5)].push_back(static_cast<char>(batch.ids[0]));
  }
  for (std::string order : orders) {
    std::sort(order.begin(), order.end());
    EXPECT_EQ(order, "abcdefghij");
  }
  EXPECT_NE(orders[0], orders[1]);
  EXPECT_NE(orders[1], orders[2]);
  EXPECT_NE(orders[0], "abcdefghij");
  for (const std::int64_t k : {1, 4, 5, 7, 14}) {
    const BatchLoader resumed = loader_of(corpus, shape, 42);
    for (std::int64_t s = k; s < 15; ++s)
      EXPECT_TRUE(same(resumed.step(s), steps[static_cast<std::size_t>(s)])) << k << ", " << s;
  }
  for (std::int64_t s = 14; s >= 0; --s) EXPECT_TRUE(same(straight.step(s), steps[static_cast<std::size_t>(s)])) << s;
  EXPECT_FALSE(same(loader_of(corpus, shape, 43).step(0), steps[0]));
}

TEST(BatchLoader, ResumeReadsOnWithUnevenDocuments) {
  const Dataset corpus = dataset_of(noise({3, 17, 250, 1, 0, 64, 65, 2, 31}));
  const LoaderShape shape{.seq_len = 32, .micro_batch = 3, .accumulation = 2};
  const BatchLoader straight = loader_of(corpus, shape, 7);
  std::vector<StepBatch> steps;
  for (std::int64_t s = 0; s < 40; ++s) steps.push_back(straight.step(s));
  for (std::int64_t k = 0; k < 40; ++k)
    EXPECT_TRUE(same(loader_of(corpus, shape, 7).step(k), steps[static_cast<std::size_t>(k)])) << k;
}

// How a step is cut into micro-batches changes neither its tokens nor its targets.
TEST(BatchLoader, AccumulationKeepsTheStep) {
  const Dataset corpus = dataset_of(noise({3, 17, 250, 1, 64, 65, 2, 31}));
  for (std::int64_t s : {0, 1, 9}) {
    std::vector<std::vector<std::int32_t>> ids, targets;
    std::vector<std::int64_t> counts;
    for (const auto& [rows, accumulation] : {std::pair(4, 1), std::pair(2, 2), std::pair(1, 4)}) {
      const BatchLoader loader =
          loader_of(corpus, {.seq_len = 16, .micro_batch = rows, .accumulation = accumulation}, 3);
      const StepBatch step = loader.step(s);
      ASSERT_EQ(step.micro.size(), static_cast<std::size_t>(accumulation));
      ids.emplace_back();
      targets.emplace_back();
      for (const MicroBatch& batch : step.micro) {
        ids.back().insert(ids.back().end(), batch.ids.begin(), batch.ids.end());
        targets.back().insert(targets.back().end(), batch.targets.begin(), batch.targets.end());
      }
      counts.push_back(step.targets);
    }
    EXPECT_EQ(ids[0], ids[1]);
    EXPECT_EQ(ids[0], ids[2]);
    EXPECT_EQ(targets[0], targets[2]);
    EXPECT_EQ(counts, std::vector<std::int64_t>(3, counts[0]));
  }
}

// Documents of one byte have nothing to predict. With one other they can fill whole micro-batches without a target: the
// count says so.
TEST(BatchLoader, AMicroBatchMayHaveNoTarget) {
  std::vector<std::string> documents(200, "x");
  documents.push_back("ab");
  const Dataset corpus = dataset_of(documents);
  const BatchLoader loader = loader_of(corpus, {.seq_len = 8, .micro_batch = 1, .accumulation = 2});
  std::int64_t none = 0, targets = 0;
  for (std::int64_t s = 0; s < loader.steps_per_epoch_rounded_up(); ++s) {
    const StepBatch step = loader.step(s);
    for (const MicroBatch& batch : step.micro) ASSERT_TRUE(check_micro_batch(batch, loader.shape()));
    none += step.targets == 0;
    targets += step.targets;
  }
  EXPECT_GE(none, loader.steps_per_epoch_rounded_up() - 2);
  EXPECT_GE(targets, 1);
}

TEST(BatchLoader, CapacityHoldsForTheWorstOrder) {
  std::mt19937 random(8);
  for (std::int64_t seq_len = 1; seq_len <= 21; ++seq_len) {
    const LoaderShape shape{.seq_len = seq_len, .micro_batch = 3};
    for (int round = 0; round < 8; ++round) {
      std::vector<int> lengths(50);
      for (int& length : lengths) length = 1 + static_cast<int>(random() % (round < 4 ? 4 : 9));
      lengths.push_back(40);
      const Dataset corpus = dataset_of(noise(lengths));
      const BatchLoader loader = loader_of(corpus, shape, random());
      for (std::int64_t s = 0; s < 200; ++s) {
        const Status status = check_micro_batch(loader.step(s).micro[0], shape);
        ASSERT_TRUE(status) << status.error().message();
      }
    }
  }
}

TEST(BatchLoader, NeedsOneTokenMoreThanAWindow) {
  const LoaderShape shape{.seq_len = 8, .micro_batch = 1};
  const auto create = [&](const Dataset& corpus, bool shuffled) { return try_loader(corpus, shape, 0, shuffled); };
  for (const std::size_t bytes : {0, 1, 8}) {
    const Dataset corpus = dataset_of({std::string(bytes, 'x')});
    const Result<BatchLoader> loader = create(corpus, true);
    ASSERT_FALSE(loader) << bytes;
    EXPECT_NE(loader.error().what.find("hold " + std::to_string(bytes) + " token"), std::string::npos)
        << loader.error().what;
    EXPECT_NE(loader.error().what.find("needed: 9"), std::string::npos) << loader.error().what;
    EXPECT_NE(loader.error().what.find("\"sample\""), std::string::npos);
  }
  const Dataset enough = dataset_of({std::string(9, 'x')});
  EXPECT_EQ(create(enough, true)->step(0).targets, 8);
  // Validation may be smaller than a window, but not without anything to predict.
  const Dataset three = dataset_of({"abc"});
  EXPECT_EQ(create(three, false)->step(0).targets, 2);
  for (const std::vector<std::string>& documents : {std::vector<std::string>{}, {""}, {"a", "b"}}) {
    const Dataset corpus = dataset_of(documents);
    const Result<BatchLoader> loader = create(corpus, false);
    ASSERT_FALSE(loader);
    EXPECT_NE(loader.error().what.find("validation"), std::string::npos) << loader.error().what;
    EXPECT_FALSE(loader.error().remedy.empty());
  }
  const Dataset singles = dataset_of(std::vector<std::string>(20, "a"));
  EXPECT_FALSE(create(singles, true));
}

TEST(BatchLoader, RefusesNonsense) {
  const Dataset corpus = dataset_of({"some text"});
  for (const LoaderShape shape :
       {LoaderShape{.seq_len = 0, .micro_batch = 1}, LoaderShape{.seq_len = 4, .micro_batch = 0},
        LoaderShape{.seq_len = 4, .micro_batch = 1, .accumulation = 0}, LoaderShape{.seq_len = -4, .micro_batch = -1},
        LoaderShape{.seq_len = std::int64_t{1} << 40, .micro_batch = std::int64_t{1} << 40}}) {
    EXPECT_FALSE(try_loader(corpus, shape, 0));
  }
}

TEST(BatchLoader, EveryByteValueComesThrough) {
  std::string every;
  for (int b = 0; b < 256; ++b) every.push_back(static_cast<char>(b));
  const Dataset corpus = dataset_of({every});
  const MicroBatch batch = loader_of(corpus, {.seq_len = 255, .micro_batch = 1}).step(0).micro[0];
  for (int b = 0; b < 255; ++b) {
    EXPECT_EQ(batch.ids[static_cast<std::size_t>(b)], b);
    EXPECT_EQ(batch.targets[static_cast<std::size_t>(b)], b + 1);
  }
}

TEST(BatchLoader, OrdersAreUniform) {
  std::vector<std::string> documents;
  for (char c = 'a'; c < 'f'; ++c) documents.push_back(std::string(8, c));
  const Dataset corpus = dataset_of(documents);
  const BatchLoader loader = loader_of(corpus, {.seq_len = 8, .micro_batch = 5});
  // Each of the 120 orders comes 4000 / 120 = 33.3 times; chi-square with 119 degrees of freedom exceeds 197 with
  // probability 1e-5.
  std::map<std::string, int> orders;
  for (std::int64_t s = 0; s < 4000; ++s) {
    const MicroBatch batch = loader.step(s).micro[0];
    std::string order;
    for (std::size_t row = 0; row < 5; ++row) order.push_back(static_cast<char>(batch.ids[row * 8]));
    ++orders[order];
  }
  double chi_square = 0;
  for (const auto& [order, n] : orders) chi_square += (n - 4000 / 120.) * (n - 4000 / 120.) / (4000 / 120.);
  EXPECT_EQ(orders.size(), 120u);
  EXPECT_LT(chi_square, 197);
}

TEST(BatchLoader, ThreadsSeeTheSameSteps) {
  const Dataset corpus = dataset_of(noise(std::vector<int>(50, 37)));
  const BatchLoader loader = loader_of(corpus, {.seq_len = 64, .micro_batch = 2, .accumulation = 2});
  std::vector<StepBatch> expected;
  for (std::int64_t s = 0; s < 64; ++s) expected.push_back(loader.step(s));
  std::vector<int> wrong(3);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < wrong.size(); ++i) {
      threads.emplace_back([&, i] {
        for (std::size_t s = 0; s < 64; ++s)
          wrong[i] +=
              !same(loader.step(static_cast<std::int64_t>((s * 13 + i * 7) % 64)), expected[(s * 13 + i * 7) % 64]);
      });
    }
  }
  EXPECT_EQ(wrong, std::vector<int>(3));
}

TEST(CheckMicroBatch, NamesWhatIsWrong) {
  const LoaderShape shape{.seq_len = 4, .micro_batch = 2};
  const Dataset corpus = dataset_of({"abcd", "efgh"});
  const MicroBatch good = loader_of(corpus, shape, 0, false).step(0).micro[0];
  ASSERT_EQ(good.cu_seqlens, (std::vector<std::int32_t>{0, 4, 8, 8, 8}));
  ASSERT_TRUE(check_micro_batch(good, shape));
  const auto expect_refused = [&](const char* named, auto&& change) {
    MicroBatch batch = good;
    change(batch);
    const Status status = check_micro_batch(batch, shape);
    ASSERT_FALSE(status) << named;
    EXPECT_NE(status.error().what.find(named), std::string::npos) << status.error().what;
  };
  expect_refused("cu_seqlens[0]", [](MicroBatch& b) { b.cu_seqlens = {1, 4, 8, 8, 8}; });
  expect_refused("cu_seqlens[1]", [](MicroBatch& b) { b.cu_seqlens = {0, 8, 8, 8, 8}; });  // collapsed to one document
  expect_refused("cu_seqlens[1]", [](MicroBatch& b) { b.cu_seqlens = {0, 0, 4, 8, 8}; });  // an empty document
  expect_refused("cu_seqlens[2]", [](MicroBatch& b) { b.cu_seqlens = {0, 4, 3, 8, 8}; });
  expect_refused("cu_seqlens[4]", [](MicroBatch& b) {
    b.cu_seqlens = {0, 4, 7, 7, 7};
  });  // the last token belongs to nobody
  expect_refused("cu_seqlens[2]", [](MicroBatch& b) { b.cu_seqlens = {0, 4, 12, 8, 8}; });
  expect_refused("cu_seqlens has", [](MicroBatch& b) { b.cu_seqlens = {0, 4, 8}; });
  expect_refused("positions[0]", [](MicroBatch& b) { b.positions[0] = 7; });
  expect_refused("positions[5]", [](MicroBatch& b) { b.positions[5] = 5; });
  expect_refused("targets[1]", [](MicroBatch& b) { b.targets[1] = 'z'; });
  expect_refused("ids[4]", [](MicroBatch& b) { b.ids[4] = -1; });
  expect_refused("ids, targets and positions", [](MicroBatch& b) { b.ids.pop_back(); });
}

TEST(UnigramEntropy, OfKnownCounts) {
  const auto entropy = [](const std::vector<std::string>& held_out) {
    return unigram_entropy(dataset_of(held_out, true));
  };
  EXPECT_DOUBLE_EQ(entropy({"aabb"}), std::log(2.0));
  EXPECT_EQ(entropy({"cccc"}), 0.0);
  EXPECT_NEAR(entropy({"aabb", "cccc", "", "aaaa"}),
              -(0.5 * std::log(0.5) + 2 / 12. * std::log(2 / 12.) + 4 / 12. * std::log(4 / 12.)), 1e-15);
  EXPECT_TRUE(std::isnan(entropy({})));
  EXPECT_TRUE(std::isnan(entropy({""})));
  EXPECT_TRUE(std::isnan(unigram_entropy(dataset_of({"none of it is held out"}))));
}

}  // namespace
}  // namespace stacklab
