// Raw points of curves, kept whole; and a pyramid over them that answers "where is the smallest and largest value of
// this range" in a few dozen comparisons, so that a million points can be drawn ten times a second.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace stacklab::ui {

inline constexpr std::uint32_t no_index = 0xffffffff;

// Indices of extreme values in a range; no_index where there is none. Non-finite values never count.
struct Extremes {
  std::uint32_t min = no_index;
  std::uint32_t max = no_index;
  std::uint32_t min_positive = no_index;
};

class Column {
 public:
  void append(std::span<const double> values);
  void clear();

  std::size_t size() const { return values_.size(); }
  bool empty() const { return values_.empty(); }
  double operator[](std::size_t i) const { return values_[i]; }
  std::span<const double> values() const { return values_; }
  const std::vector<std::uint32_t>& non_finite() const {
    return non_finite_;
  }  // ascending indices of NaN and infinities
  const std::vector<std::uint32_t>& non_positive() const {
    return non_positive_;
  }  // ascending indices of finite values <= 0

  Extremes extremes(std::size_t begin, std::size_t end) const;

 private:
  static constexpr std::size_t fan = 16;
  void take(Extremes& into, std::uint32_t index) const;
  void take(Extremes& into, const Extremes& other) const;

  std::vector<double> values_;
  std::vector<std::uint32_t> non_finite_, non_positive_;
  // levels_[k] holds one entry per complete block of fan^(k+1) values.
  std::vector<std::vector<Extremes>> levels_;
};

// Index of what is nearest to x in xs, which ascend; 0 when there is nothing.
std::size_t nearest_index(std::span<const double> xs, double x);

// A metric of a run: x ascending (steps). Of a long run it holds what the store has summed up: points that stand for
// others, the smallest and largest of each stretch among them.
class Series {
 public:
  void append(std::span<const double> xs, std::span<const double> ys);
  // spans: how many values each point stands for, itself included; 0: another of its stretch does. typical: their mean,
  // where a point stands for several.
  void append(std::span<const double> xs, std::span<const double> ys, std::span<const std::uint32_t> spans,
              std::span<const double> typical);
  void clear();

  std::size_t size() const { return xs_.size(); }
  bool empty() const { return xs_.empty(); }
  std::span<const double> xs() const { return xs_; }
  const Column& ys() const { return ys_; }
  std::uint64_t version() const { return version_; }  // changes with every append and clear
  std::uint64_t epoch() const { return epoch_; }      // changes with every clear
  std::size_t nearest(double x) const;                // as nearest_index

  bool summed() const { return !spans_.empty(); }  // some points stand for others
  std::uint32_t span(std::size_t i) const { return i < spans_.size() ? spans_[i] : 1; }
  double typical(std::size_t i) const { return i < typical_.size() ? typical_[i] : ys_[i]; }
  // How many values the points [begin, end) stand for, and how many of these are not finite.
  std::size_t raw(std::size_t begin, std::size_t end) const;
  std::size_t non_finite(std::size_t begin, std::size_t end) const;

 private:
  std::vector<double> xs_;
  Column ys_;
  std::vector<std::uint32_t> spans_;  // of the first points; the others stand for themselves
  std::vector<double> typical_;       // as spans_
  std::uint64_t version_ = 1;
  std::uint64_t epoch_ = 1;
};

// Debiased exponential average over the finite values: a constant stays exactly constant, the first value is itself,
// and a non-finite value leaves a gap without spoiling what follows. Keeps up with a growing series at the cost of what
// is new. What is summed up counts with its mean, as often as it has values.
class Smoother {
 public:
  void update(const Series& series, double beta);
  const Column& ys() const { return ys_; }

 private:
  Column ys_;
  double beta_ = -1, average_ = 0, weight_ = 0;
  std::uint64_t epoch_ = 0;
};

}  // namespace stacklab::ui
