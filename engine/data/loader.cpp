#include "engine/data/loader.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <mutex>
#include <numeric>
#include <utility>

#include "engine/base/philox.h"

namespace stacklab {
namespace {

constexpr std::uint32_t shuffle_stream =
    0x73687566;  // keeps these numbers apart from those of weights with the same seed

std::int64_t slot_of(std::size_t bytes) { return std::max(static_cast<std::int64_t>(bytes), LoaderShape::min_slot); }

std::string count(std::int64_t n, const char* noun) { return std::to_string(n) + " " + noun + (n == 1 ? "" : "s"); }

}  // namespace

struct BatchLoader::Epoch {
  std::int64_t number = 0;
  std::vector<std::size_t> order;   // indices into the corpus
  std::vector<std::int64_t> start;  // [documents + 1] of each document's slot in the epoch
};

struct BatchLoader::EpochCache {
  std::mutex mutex;
  std::array<std::shared_ptr<const Epoch>, 2>
      recent;  // a step may touch the end of one epoch and the start of the next
};

BatchLoader::BatchLoader() : cache_(std::make_unique<EpochCache>()) {}
BatchLoader::BatchLoader(BatchLoader&&) noexcept = default;
BatchLoader& BatchLoader::operator=(BatchLoader&&) noexcept = default;
BatchLoader::~BatchLoader() = default;

Result<BatchLoader> BatchLoader::create(const Corpus& corpus, std::vector<std::size_t> documents, LoaderShape shape,
                                        std::uint64_t seed, bool shuffled) {
  const std::string of = " of corpus \"" + corpus.info().name + "\"";
  if (shape.seq_len < 1 || shape.micro_batch < 1 || shape.accumulation < 1) {
    return usage_error("batch shape: sequence length " + std::to_string(shape.seq_len) + ", micro-batch " +
                           std::to_string(shape.micro_batch) + ", accumulation " + std::to_string(shape.accumulation),
                       "each must be at least 1");
  }
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (shape.seq_len > most / shape.micro_batch || shape.accumulation > most) {
    return usage_error("batch shape: more than " + std::to_string(most) + " tokens in a micro-batch",
                       "lower run.micro_batch or train.seq_len");
  }

  BatchLoader loader;
  PackingReport& report = loader.report_;
  for (const std::size_t d : documents) {
    if (d >= corpus.size()) {
      return usage_error("document " + std::to_string(d) + of + " does not exist",
                         "it has " + count(static_cast<std::int64_t>(corpus.size()), "document"));
    }
    const std::size_t bytes = corpus.document(d).size();
    if (bytes == 0) {
      ++report.empty_documents;
      continue;
    }
    ++report.documents;
    report.tokens_in += static_cast<std::int64_t>(bytes);
    report.targets += static_cast<std::int64_t>(bytes) - 1;
    report.padding += slot_of(bytes) - static_cast<std::int64_t>(bytes);
  }
  report.tokens_packed = report.tokens_in;
  std::erase_if(documents, [&](std::size_t d) { return corpus.document(d).empty(); });

  const std::string held = "the " + std::string(shuffled ? "training" : "validation") + " documents" + of + " hold " +
                           count(report.tokens_in, "token") + " in " + count(report.documents, "document");
  if (shuffled && report.tokens_in < shape.seq_len + 1) {
    return failed(held + "; needed: " + std::to_string(shape.seq_len + 1) + " (sequence length " +
                      std::to_string(shape.seq_len) + " and one more)",
                  "use more text, lower train.seq_len, or lower data.validation_fraction");
  }
  if (report.targets == 0) {
    return failed(held + "; needed: a document of at least 2, so that there is something to predict",
                  shuffled ? "use more text" : "use more text or raise data.validation_fraction");
  }

  loader.corpus_ = &corpus;
  loader.documents_ = std::move(documents);
  loader.shape_ = shape;
  loader.seed_ = seed;
  loader.shuffled_ = shuffled;
  return loader;
}

std::int64_t BatchLoader::steps_per_epoch_rounded_up() const {
  return (tokens_per_epoch() + shape_.step_tokens() - 1) / shape_.step_tokens();
}

std::shared_ptr<const BatchLoader::Epoch> BatchLoader::epoch(std::int64_t e) const {
  const std::size_t place = static_cast<std::size_t>(e % 2);
  {
    const std::lock_guard lock(cache_->mutex);
    const auto& known = cache_->recent[place];
    if (known && known->number == e) return known;
  }
  auto made = std::make_shared<Epoch>();
  made->number = e;
  made->order = documents_;
  if (shuffled_) {
    // Fisher-Yates; each draw is a function of (seed, epoch, place), so any epoch can be had without those before it.
    const Philox random(seed_, shuffle_stream, static_cast<std::uint32_t>(e));
    for (std::size_t i = made->order.size() - 1; i > 0; --i)
      std::swap(made->order[i], made->order[random.below(i, i + 1)]);
  }
  made->start.reserve(made->order.size() + 1);
  made->start.push_back(0);
  for (const std::size_t d : made->order)
    made->start.push_back(made->start.back() + slot_of(corpus_->document(d).size()));
  const std::lock_guard lock(cache_->mutex);
  cache_->recent[place] = made;
  return made;
}

// Row `row` of the batch: the tokens of the stream from `begin` on.
void BatchLoader::fill_row(std::int64_t begin, std::int64_t row, MicroBatch& batch, std::size_t& entries) const {
  const std::int64_t per_epoch = tokens_per_epoch();
  std::int64_t t = row * shape_.seq_len;
  const std::int64_t row_end = t + shape_.seq_len;
  std::int64_t fragment = t;
  while (t < row_end) {
    const std::int64_t at = begin + (t - row * shape_.seq_len);
    if (!shuffled_ && at >= per_epoch) break;
    const std::int64_t in_epoch = at % per_epoch;
    const std::shared_ptr<const Epoch> now = epoch(at / per_epoch);
    std::size_t k = static_cast<std::size_t>(std::upper_bound(now->start.begin(), now->start.end(), in_epoch) -
                                             now->start.begin() - 1);
    std::int64_t p = in_epoch - now->start[k];
    for (; k < now->order.size() && t < row_end; ++k, p = 0) {
      const auto document = corpus_->document(now->order[k]);
      const std::int64_t length = static_cast<std::int64_t>(document.size());
      const std::int64_t end = std::min(row_end, t + (now->start[k + 1] - now->start[k] - p));
      fragment = t;
      batch.cu_seqlens[entries++] = static_cast<std::int32_t>(t);
      for (; t < end; ++t, ++p) {
        const std::size_t i = static_cast<std::size_t>(t), b = static_cast<std::size_t>(p);
        batch.ids[i] = p < length ? document[b] : 0;
        batch.targets[i] = p + 1 < length ? document[b + 1] : ignored_target;
        batch.positions[i] = static_cast<std::int32_t>(t - fragment);
      }
    }
  }
  // Past the end of the only pass: padding, as part of the last fragment if the row has one.
  if (t == row * shape_.seq_len) batch.cu_seqlens[entries++] = static_cast<std::int32_t>(t);
  for (; t < row_end; ++t) batch.positions[static_cast<std::size_t>(t)] = static_cast<std::int32_t>(t - fragment);
}

StepBatch BatchLoader::step(std::int64_t s) const {
  StepBatch step;
  fill(s, step);
  return step;
}

void BatchLoader::fill(std::int64_t s, StepBatch& step) const {
  const std::size_t tokens = static_cast<std::size_t>(shape_.tokens());
  step.targets = 0;
  step.micro.resize(static_cast<std::size_t>(shape_.accumulation));
  std::int64_t begin = s * shape_.step_tokens();
  for (MicroBatch& batch : step.micro) {
    batch.ids.assign(tokens, 0);
    batch.targets.assign(tokens, ignored_target);
    batch.positions.assign(tokens, 0);
    batch.cu_seqlens.assign(static_cast<std::size_t>(shape_.max_documents() + 1), static_cast<std::int32_t>(tokens));
    std::size_t entries = 0;
    for (std::int64_t row = 0; row < shape_.micro_batch; ++row, begin += shape_.seq_len)
      fill_row(begin, row, batch, entries);
    step.targets +=
        std::count_if(batch.targets.begin(), batch.targets.end(), [](std::int32_t t) { return t != ignored_target; });
  }
}

Status check_micro_batch(const MicroBatch& batch, const LoaderShape& shape) {
  const auto bad = [](const char* field, std::size_t i, const std::string& what) {
    return failed("micro-batch: " + std::string(field) + "[" + std::to_string(i) + "] " + what);
  };
  const std::size_t tokens = static_cast<std::size_t>(shape.tokens());
  if (batch.ids.size() != tokens || batch.targets.size() != tokens || batch.positions.size() != tokens) {
    return failed("micro-batch: ids, targets and positions have " + std::to_string(batch.ids.size()) + ", " +
                  std::to_string(batch.targets.size()) + " and " + std::to_string(batch.positions.size()) +
                  " entries, not " + std::to_string(tokens));
  }
  const auto& cu = batch.cu_seqlens;
  if (cu.size() != static_cast<std::size_t>(shape.max_documents() + 1)) {
    return failed("micro-batch: cu_seqlens has " + std::to_string(cu.size()) + " entries, not " +
                  std::to_string(shape.max_documents() + 1));
  }
  if (cu.front() != 0) return bad("cu_seqlens", 0, "is " + std::to_string(cu.front()) + ", not 0");
  if (cu.back() != shape.tokens()) {
    return bad("cu_seqlens", cu.size() - 1, "is " + std::to_string(cu.back()) + ", not " + std::to_string(tokens));
  }
  for (std::size_t d = 0; d + 1 < cu.size(); ++d) {
    const std::int64_t begin = cu[d], end = cu[d + 1];
    if (end < begin || end > shape.tokens() || (end == begin && begin != shape.tokens())) {
      return bad("cu_seqlens", d + 1, "is " + std::to_string(end) + " after " + std::to_string(begin));
    }
    if (begin == end) continue;
    if (begin / shape.seq_len != (end - 1) / shape.seq_len)
      return bad("cu_seqlens", d + 1, "lets a document cross a row's end");
    for (std::int64_t t = begin; t < end; ++t) {
      const std::size_t i = static_cast<std::size_t>(t);
      if (batch.positions[i] != t - begin) {
        return bad("positions", i, "is " + std::to_string(batch.positions[i]) + ", not " + std::to_string(t - begin));
      }
      if (batch.ids[i] < 0) return bad("ids", i, "is negative");
      if (batch.targets[i] < 0 && batch.targets[i] != ignored_target) return bad("targets", i, "is negative");
      if (batch.targets[i] != ignored_target && t + 1 < end && batch.targets[i] != batch.ids[i + 1]) {
        return bad("targets", i, "is not the next token of its document");
      }
    }
  }
  return {};
}

double unigram_entropy(const Corpus& corpus, const std::vector<std::size_t>& documents) {
  std::array<std::int64_t, 256> counts{};
  for (const std::size_t d : documents) {
    for (const std::uint8_t byte : corpus.document(d)) ++counts[byte];
  }
  const double total = static_cast<double>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
  if (total == 0) return std::numeric_limits<double>::quiet_NaN();
  double entropy = 0;
  for (const std::int64_t n : counts) {
    if (n > 0) entropy -= static_cast<double>(n) / total * std::log(static_cast<double>(n) / total);
  }
  return entropy;
}

}  // namespace stacklab
