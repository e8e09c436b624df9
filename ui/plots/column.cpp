#include "ui/plots/column.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace stacklab::ui {

void Column::take(Extremes& into, std::uint32_t index) const {
  if (index == no_index) return;
  const double value = values_[index];
  if (!std::isfinite(value)) return;
  if (into.min == no_index || value < values_[into.min]) into.min = index;
  if (into.max == no_index || value > values_[into.max]) into.max = index;
  if (value > 0 && (into.min_positive == no_index || value < values_[into.min_positive])) into.min_positive = index;
}

void Column::take(Extremes& into, const Extremes& other) const {
  take(into, other.min);
  take(into, other.max);
  take(into, other.min_positive);
}

void Column::append(std::span<const double> values) {
  const std::size_t first = values_.size();
  values_.insert(values_.end(), values.begin(), values.end());
  for (std::size_t i = first; i < values_.size(); ++i) {
    const auto index = static_cast<std::uint32_t>(i);
    if (!std::isfinite(values_[i]))
      non_finite_.push_back(index);
    else if (values_[i] <= 0)
      non_positive_.push_back(index);
  }
  for (std::size_t block = fan, level = 0; block <= values_.size(); block *= fan, ++level) {
    if (level == levels_.size()) levels_.emplace_back();
    std::vector<Extremes>& entries = levels_[level];
    while ((entries.size() + 1) * block <= values_.size()) {
      Extremes entry;
      const std::size_t start = entries.size() * fan;
      for (std::size_t i = start; i < start + fan; ++i) {
        if (level == 0)
          take(entry, static_cast<std::uint32_t>(i));
        else
          take(entry, levels_[level - 1][i]);
      }
      entries.push_back(entry);
    }
  }
}

void Column::clear() {
  values_.clear();
  non_finite_.clear();
  non_positive_.clear();
  levels_.clear();
}

Extremes Column::extremes(std::size_t begin, std::size_t end) const {
  Extremes result;
  end = std::min(end, values_.size());
  std::size_t lo = begin, hi = end;
  while (lo < hi && lo % fan != 0) take(result, static_cast<std::uint32_t>(lo++));
  while (lo < hi && hi % fan != 0) take(result, static_cast<std::uint32_t>(--hi));
  // Only blocks that lie wholly within the range are asked, and those are complete.
  for (std::size_t level = 0; lo < hi; ++level) {
    lo /= fan;
    hi /= fan;
    const bool top = level + 1 >= levels_.size();
    while (lo < hi && (top || lo % fan != 0)) take(result, levels_[level][lo++]);
    while (lo < hi && hi % fan != 0) take(result, levels_[level][--hi]);
  }
  return result;
}

void Series::append(std::span<const double> xs, std::span<const double> ys) {
  xs_.insert(xs_.end(), xs.begin(), xs.end());
  ys_.append(ys);
  ++version_;
}

void Series::append(std::span<const double> xs, std::span<const double> ys, std::span<const std::uint32_t> spans,
                    std::span<const double> typical) {
  if (!spans.empty()) {
    spans_.resize(xs_.size(), 1);
    for (std::size_t i = typical_.size(); i < xs_.size(); ++i) typical_.push_back(ys_[i]);
    spans_.insert(spans_.end(), spans.begin(), spans.end());
    typical_.insert(typical_.end(), typical.begin(), typical.end());
  }
  append(xs, ys);
}

std::size_t Series::raw(std::size_t begin, std::size_t end) const {
  std::size_t sum = 0;
  for (std::size_t i = begin; i < end && i < spans_.size(); ++i) sum += spans_[i];
  return sum + end - std::min(end, std::max(begin, spans_.size()));
}

std::size_t Series::non_finite(std::size_t begin, std::size_t end) const {
  const auto& bad = ys_.non_finite();
  std::size_t sum = 0;
  for (auto it = std::lower_bound(bad.begin(), bad.end(), begin); it != bad.end() && *it < end; ++it) sum += span(*it);
  return sum;
}

void Series::clear() {
  xs_.clear();
  ys_.clear();
  spans_.clear();
  typical_.clear();
  ++version_;
  ++epoch_;
}

std::size_t nearest_index(std::span<const double> xs, double x) {
  if (xs.empty()) return 0;
  const auto at = std::lower_bound(xs.begin(), xs.end(), x);
  if (at == xs.end()) return xs.size() - 1;
  const auto i = static_cast<std::size_t>(at - xs.begin());
  return i > 0 && x - xs[i - 1] <= xs[i] - x ? i - 1 : i;
}

std::size_t Series::nearest(double x) const { return nearest_index(xs_, x); }

void Smoother::update(const Series& series, double beta) {
  if (beta != beta_ || series.epoch() != epoch_ || series.size() < ys_.size()) {
    ys_.clear();
    beta_ = beta;
    average_ = weight_ = 0;
    epoch_ = series.epoch();
  }
  const std::span<const double> raw = series.ys().values();
  std::vector<double> fresh;
  fresh.reserve(raw.size() - ys_.size());
  for (std::size_t i = ys_.size(); i < raw.size(); ++i) {
    if (!std::isfinite(raw[i])) {
      fresh.push_back(std::numeric_limits<double>::quiet_NaN());
      continue;
    }
    if (const std::uint32_t span = series.span(i); span > 0) {
      const double kept = span == 1 ? beta_ : std::pow(beta_, span);
      weight_ = kept * weight_ + (1 - kept);
      average_ += (series.typical(i) - average_) * ((1 - kept) / weight_);
    }
    fresh.push_back(average_);
  }
  ys_.append(fresh);
}

}  // namespace stacklab::ui
