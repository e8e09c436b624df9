// How the reading thread gets points: one by one, or summed up where a run is long.
#include <algorithm>
#include <cmath>

#include "ui/models/workspace_reader.h"

namespace stacklab::ui {
namespace {

constexpr std::int64_t parts_of_whole = 2048;
constexpr std::int64_t first_step = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t last_step = std::numeric_limits<std::int64_t>::max();

bool of_rows(const std::string& metric) { return metric.starts_with('@'); }

void add_row(const std::string& metric, const StepRow& row, double clock_start, SeriesChunk& to) {
  to.steps.push_back(static_cast<double>(row.step));
  to.values.push_back(metric == seconds_series  ? row.process_seconds
                      : metric == tokens_series ? static_cast<double>(row.tokens)
                                                : row.unix_time - clock_start);
}

// First, smallest, largest and last of a bucket, and where it is torn. The first finite one stands for all finite ones.
void add_bucket(const SeriesBucket& bucket, SeriesChunk& to) {
  std::vector<SeriesPoint> points{bucket.first, bucket.last};
  if (!std::isnan(bucket.min.value)) points.insert(points.end(), {bucket.min, bucket.max});
  if (bucket.non_finite > 0) points.push_back({bucket.gap_step, std::numeric_limits<double>::quiet_NaN()});
  // Of one step there is one value, and what the store says of it goes before the gap's stand-in.
  std::stable_sort(points.begin(), points.end(), [](const auto& a, const auto& b) { return a.step < b.step; });
  points.erase(std::unique(points.begin(), points.end(), [](const auto& a, const auto& b) { return a.step == b.step; }),
               points.end());
  bool finite_seen = false, other_seen = false;
  for (const SeriesPoint& point : points) {
    const bool finite = std::isfinite(point.value);
    bool& seen = finite ? finite_seen : other_seen;
    to.steps.push_back(static_cast<double>(point.step));
    to.values.push_back(point.value);
    to.spans.push_back(
        seen ? 0 : static_cast<std::uint32_t>(finite ? bucket.count - bucket.non_finite : bucket.non_finite));
    to.typical.push_back(finite ? bucket.mean : point.value);
    seen = true;
  }
}

}  // namespace

Status WorkspaceReader::read_chunk(const SeriesKey& key, Followed& followed, SeriesChunk& chunk) {
  const std::int64_t after = followed.last_step;
  if (of_rows(key.metric)) {
    auto rows = reader_->steps(key.run, after, options_.chunk_points);
    if (!rows) return tl::unexpected(rows.error());
    if (followed.restart && !rows->empty()) followed.clock_start = rows->front().unix_time;
    for (const StepRow& row : *rows) add_row(key.metric, row, followed.clock_start, chunk);
  } else {
    auto points = reader_->series(key.run, key.metric, after, options_.chunk_points);
    if (!points) return tl::unexpected(points.error());
    chunk.steps.reserve(points->size());
    chunk.values.reserve(points->size());
    for (const SeriesPoint& point : *points) {
      chunk.steps.push_back(static_cast<double>(point.step));
      chunk.values.push_back(point.value);
    }
  }
  chunk.complete = static_cast<std::int64_t>(chunk.steps.size()) < options_.chunk_points;
  return {};
}

Status WorkspaceReader::read_summed(const SeriesKey& key, Followed& followed, SeriesChunk& chunk) {
  const auto wanted = sections_.find(key.run);
  const std::vector<SeriesSection> whole{{first_step, last_step, parts_of_whole}};
  for (const SeriesSection& section : wanted == sections_.end() ? whole : wanted->second) {
    if (of_rows(key.metric)) {
      auto rows = reader_->sampled_steps(key.run, section.first, section.last, section.parts);
      if (!rows) return tl::unexpected(rows.error());
      if (chunk.steps.empty() && !rows->empty()) followed.clock_start = rows->front().unix_time;
      for (const StepRow& row : *rows) add_row(key.metric, row, followed.clock_start, chunk);
      continue;
    }
    auto buckets = reader_->decimated(key.run, key.metric, section.first, section.last, section.parts);
    if (!buckets) return tl::unexpected(buckets.error());
    for (const SeriesBucket& bucket : *buckets) add_bucket(bucket, chunk);
  }
  // What has come since follows one by one.
  chunk.complete = false;
  return {};
}

}  // namespace stacklab::ui
