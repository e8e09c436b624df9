#include "engine/data/row_schedule.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/base/philox.h"

namespace stacklab {
namespace {

constexpr std::uint32_t phase_stream = 0x6d697874;  // keeps these numbers apart from others with the same seed

}  // namespace

RowSchedule::RowSchedule(std::span<const double> weights, std::uint64_t seed) {
  double rest = std::accumulate(weights.begin(), weights.end(), 0.0);
  const Philox random(seed, phase_stream);
  for (std::size_t i = 0; i + 1 < weights.size(); ++i) {
    const double share = std::clamp(weights[i] / rest, 0.0, 1.0);
    splits_.push_back(
        {static_cast<std::uint64_t>(std::llround(share * 0x1p32)), random.below(i, std::uint64_t{1} << 32)});
    rest -= weights[i];
  }
}

RowSchedule::Place RowSchedule::at(std::int64_t row) const {
  for (std::size_t i = 0; i < splits_.size(); ++i) {
    const std::int64_t before = splits_[i].count(row);
    if (splits_[i].count(row + 1) > before) return {i, before};
    row -= before;
  }
  return {splits_.size(), row};
}

std::int64_t RowSchedule::rows_of(std::size_t source, std::int64_t rows) const {
  for (std::size_t i = 0; i < source; ++i) rows -= splits_[i].count(rows);
  return source < splits_.size() ? splits_[source].count(rows) : rows;
}

}  // namespace stacklab
