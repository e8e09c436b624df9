#include "ui/plots/decimate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace stacklab::ui {
namespace {

class Decimator {
 public:
  Decimator(std::span<const double> xs, const Column& ys, const Window& window) : xs_(xs), ys_(ys), window_(window) {}

  Decimated run() {
    const auto [begin, end] = index_range(xs_, window_.x0, window_.x1);
    result_.raw = end - begin;
    result_.non_finite = count(ys_.non_finite(), begin, end);
    if (window_.log_y) result_.hidden = count(ys_.non_positive(), begin, end);
    if (begin > 0) column(begin - 1, begin, false);
    std::size_t at = begin;
    for (int c = 0; c < window_.columns && at < end; ++c) {
      const bool last = c + 1 == window_.columns;
      const auto next = last ? end
                             : static_cast<std::size_t>(std::lower_bound(xs_.begin() + static_cast<std::ptrdiff_t>(at),
                                                                         xs_.begin() + static_cast<std::ptrdiff_t>(end),
                                                                         boundary(c + 1)) -
                                                        xs_.begin());
      if (next > at) column(at, next, true);
      at = next;
    }
    if (end < xs_.size() && result_.raw + begin > 0) column(end, end + 1, false);
    return std::move(result_);
  }

 private:
  static std::size_t count(const std::vector<std::uint32_t>& indices, std::size_t begin, std::size_t end) {
    return static_cast<std::size_t>(std::lower_bound(indices.begin(), indices.end(), end) -
                                    std::lower_bound(indices.begin(), indices.end(), begin));
  }

  double boundary(int c) const {
    const double part = static_cast<double>(c) / window_.columns;
    return window_.log_x ? window_.x0 * std::pow(window_.x1 / window_.x0, part)
                         : window_.x0 + (window_.x1 - window_.x0) * part;
  }

  bool drawable(std::size_t i) const { return std::isfinite(ys_[i]) && (!window_.log_y || ys_[i] > 0); }

  void column(std::size_t begin, std::size_t end, bool inside) {
    if (inside) mark_gaps(begin, end);
    if (end - begin <= 4) {
      for (std::size_t i = begin; i < end; ++i)
        if (drawable(i)) put(i);
      return;
    }
    const Extremes extremes = ys_.extremes(begin, end);
    const std::uint32_t low = window_.log_y ? extremes.min_positive : extremes.min;
    if (low == no_index) return;
    std::size_t first = begin, last = end - 1;
    while (!drawable(first)) ++first;
    while (!drawable(last)) --last;
    std::array<std::size_t, 4> chosen = {first, low, extremes.max, last};
    std::sort(chosen.begin(), chosen.end());
    for (std::size_t i = 0; i < chosen.size(); ++i)
      if (i == 0 || chosen[i] != chosen[i - 1]) put(chosen[i]);
  }

  void put(std::size_t i) {
    const auto& bad = ys_.non_finite();
    while (next_bad_ < bad.size() && bad[next_bad_] < i) {
      if (!result_.points.empty() && bad[next_bad_] > previous_) broken_ = true;
      ++next_bad_;
    }
    if (result_.points.empty() || broken_) result_.starts.push_back(static_cast<int>(result_.points.size()));
    broken_ = false;
    previous_ = i;
    result_.points.emplace_back(window_.log_x ? std::log10(xs_[i]) : xs_[i],
                                window_.log_y ? std::log10(ys_[i]) : ys_[i]);
  }

  void mark_gaps(std::size_t begin, std::size_t end) {
    const auto& bad = ys_.non_finite();
    auto it = std::lower_bound(bad.begin(), bad.end(), begin);
    for (; it != bad.end() && *it < end; ++it) {
      if (it != bad.begin() && *(it - 1) + 1 == *it) continue;
      std::size_t before = *it;
      while (before > 0 && before + 64 > *it && !drawable(before - 1)) --before;
      const double y = before > 0 && drawable(before - 1) ? ys_[before - 1] : std::numeric_limits<double>::quiet_NaN();
      result_.gaps.emplace_back(window_.log_x ? std::log10(xs_[*it]) : xs_[*it], window_.log_y ? std::log10(y) : y);
      break;  // one mark for each column of pixels is enough
    }
  }

  std::span<const double> xs_;
  const Column& ys_;
  const Window& window_;
  Decimated result_;
  std::size_t next_bad_ = 0, previous_ = 0;
  bool broken_ = false;
};

}  // namespace

std::pair<std::size_t, std::size_t> index_range(std::span<const double> xs, double x0, double x1) {
  const auto begin = std::lower_bound(xs.begin(), xs.end(), x0);
  const auto end = std::upper_bound(begin, xs.end(), x1);
  return {static_cast<std::size_t>(begin - xs.begin()), static_cast<std::size_t>(end - xs.begin())};
}

Decimated decimate(std::span<const double> xs, const Column& ys, const Window& window) {
  if (xs.empty() || window.columns < 1 || !(window.x1 >= window.x0)) return {};
  return Decimator(xs, ys, window).run();
}

}  // namespace stacklab::ui
