// Which source each row of a mixture comes from: a pure function of (seed, row), found in a moment for any row.
//
// Of the first n rows every source has its share of n, to within the number of sources: batches do not scatter about
// the mixture.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stacklab {

class RowSchedule {
 public:
  RowSchedule() = default;
  // Weights above 0, at least one of them.
  RowSchedule(std::span<const double> weights, std::uint64_t seed);

  struct Place {
    std::size_t source = 0;
    std::int64_t row = 0;  // how many rows of this source came before
  };
  Place at(std::int64_t row) const;
  // How many of the first `rows` rows come from this source.
  std::int64_t rows_of(std::size_t source, std::int64_t rows) const;

 private:
  // One source against those behind it. Of the first n of their rows it has floor(n * share + phase), in units of
  // 2^-32.
  struct Split {
    std::uint64_t share = 0, phase = 0;
    std::int64_t count(std::int64_t n) const {
      return static_cast<std::int64_t>((static_cast<unsigned __int128>(n) * share + phase) >> 32);
    }
  };
  std::vector<Split> splits_;  // [sources - 1]
};

}  // namespace stacklab
