#include "engine/data/loader.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace stacklab {
namespace {

std::string count(std::int64_t n, const char* noun) { return std::to_string(n) + " " + noun + (n == 1 ? "" : "s"); }

Status check_shape(const LoaderShape& shape) {
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
  return {};
}

Status check_source(const std::string& name, const PackingReport& report, const LoaderShape& shape,
                    const LoaderOrder& order) {
  const std::string held = "the " + std::string(order.shuffled ? "training" : "validation") +
                           " documents of corpus \"" + name + "\" hold " + count(report.tokens_in, "token") + " in " +
                           count(report.documents, "document");
  if (order.shuffled && report.tokens_in < shape.seq_len + 1) {
    return failed(held + "; needed: " + std::to_string(shape.seq_len + 1) + " (sequence length " +
                      std::to_string(shape.seq_len) + " and one more)",
                  "use more text, lower train.seq_len, or lower data.validation_fraction");
  }
  if (report.targets > 0) return {};
  if (report.tokens_lost > 0)
    return failed(
        held + ", and none of " + std::to_string(shape.seq_len) + " tokens at most, with something to predict",
        "set data.packing to fragment, or raise train.seq_len");
  return failed(held + "; needed: a document of at least 2, so that there is something to predict",
                order.shuffled ? "use more text" : "use more text or raise data.validation_fraction");
}

}  // namespace

Result<BatchLoader> BatchLoader::create(const std::vector<LoaderSource>& sources, LoaderShape shape,
                                        LoaderOrder order) {
  if (Status fine = check_shape(shape); !fine) return tl::unexpected(fine.error());
  if (sources.empty()) return failed("there is nothing to read: no source is named");
  BatchLoader loader;
  std::vector<double> weights;
  for (const LoaderSource& source : sources) {
    const auto number = static_cast<std::uint32_t>(loader.streams_.size());
    loader.streams_.emplace_back(*source.documents, shape.seq_len, order.packing, order.seed, number, order.shuffled);
    loader.names_.push_back(source.name);
    weights.push_back(source.weight);
    const PackingReport& report = loader.streams_.back().report();
    if (Status fine = check_source(source.name, report, shape, order); !fine) return tl::unexpected(fine.error());
    loader.report_ += report;
  }
  loader.schedule_ = RowSchedule(weights, order.seed);
  loader.shape_ = shape;
  loader.repeats_ = order.shuffled;
  // A pass ends with the last row before one that a source does not have.
  std::int64_t beyond = 1;
  const auto fits = [&](std::int64_t rows) {
    for (std::size_t i = 0; i < loader.streams_.size(); ++i)
      if (loader.schedule_.rows_of(i, rows) > loader.streams_[i].rows_per_epoch_rounded_up()) return false;
    return true;
  };
  while (fits(beyond)) beyond *= 2;
  for (std::int64_t step = beyond; step > 0; step /= 2)
    if (fits(loader.rows_ + step)) loader.rows_ += step;
  return loader;
}

Result<BatchLoader> BatchLoader::training(const Dataset& data, LoaderShape shape, std::uint64_t seed, Packing packing) {
  std::vector<LoaderSource> sources;
  for (const DataSource& source : data.sources())
    if (source.weight > 0) sources.push_back({source.name, source.weight, &source.train});
  return create(sources, shape, {seed, true, packing});
}

Result<BatchLoader> BatchLoader::validation(const Dataset& data, LoaderShape shape) {
  std::vector<LoaderSource> sources;
  // Where some sources are held out as a whole, there are no weights for them: all is read.
  const bool weighted = std::ranges::all_of(data.sources(), [](const DataSource& s) { return s.weight > 0; });
  for (const DataSource& source : data.sources()) {
    const auto tokens = static_cast<double>(source.held_out.tokens());
    if (tokens > 0 || data.sources().size() == 1)
      sources.push_back({source.name, weighted ? source.weight : tokens, &source.held_out});
  }
  if (sources.empty()) return failed("no documents are held out for validation", "raise data.validation_fraction");
  return create(sources, shape, {0, false, Packing::fragment});
}

std::vector<BatchLoader::SourceReport> BatchLoader::source_reports(std::int64_t steps) const {
  std::vector<SourceReport> reports;
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    const std::int64_t tokens = schedule_.rows_of(i, steps * shape_.step_rows()) * shape_.seq_len;
    reports.push_back({names_[i], streams_[i].report(), tokens,
                       static_cast<double>(tokens) / static_cast<double>(streams_[i].tokens_per_epoch())});
  }
  return reports;
}

void BatchLoader::fill_row(std::int64_t row, std::int64_t t, MicroBatch& batch, std::size_t& entries) const {
  if (repeats_ || row < rows_) {
    const RowSchedule::Place place = schedule_.at(row);
    return streams_[place.source].fill(place.row, repeats_, t, batch, entries);
  }
  batch.cu_seqlens[entries++] = static_cast<std::int32_t>(t);
  for (std::int64_t i = 0; i < shape_.seq_len; ++i)
    batch.positions[static_cast<std::size_t>(t + i)] = static_cast<std::int32_t>(i);
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
  std::int64_t row = s * shape_.step_rows();
  for (MicroBatch& batch : step.micro) {
    batch.ids.assign(tokens, 0);
    batch.targets.assign(tokens, ignored_target);
    batch.positions.assign(tokens, 0);
    batch.cu_seqlens.assign(static_cast<std::size_t>(shape_.max_documents() + 1), static_cast<std::int32_t>(tokens));
    std::size_t entries = 0;
    for (std::int64_t r = 0; r < shape_.micro_batch; ++r) fill_row(row++, r * shape_.seq_len, batch, entries);
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

}  // namespace stacklab
