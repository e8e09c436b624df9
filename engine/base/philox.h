// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC11): random numbers as a
// pure function of where they are used, so that they depend neither on order nor on threads, and nothing has to be
// saved for a resume.
#pragma once

#include <array>
#include <cstdint>

namespace stacklab {

using PhiloxBlock = std::array<std::uint32_t, 4>;

PhiloxBlock philox4x32_10(PhiloxBlock counter, std::array<std::uint32_t, 2> key);

// The numbers of one tensor at one step: key = seed, counter = (element, tensor, step).
class Philox {
 public:
  Philox(std::uint64_t seed, std::uint32_t tensor, std::uint32_t step = 0)
      : seed_(seed), tensor_(tensor), step_(step) {}

  PhiloxBlock block(std::uint64_t element) const {
    return philox4x32_10(
        {static_cast<std::uint32_t>(element), static_cast<std::uint32_t>(element >> 32), tensor_, step_},
        {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)});
  }
  std::uint64_t bits(std::uint64_t element) const;
  double uniform(std::uint64_t element) const;  // strictly between 0 and 1: odd multiples of 2^-53
  double normal(std::uint64_t element) const;   // mean 0, variance 1 (Box-Muller in double)
  std::uint64_t below(std::uint64_t element, std::uint64_t n) const;  // 0 .. n-1, n > 0; bias below n / 2^64

 private:
  std::uint64_t seed_;
  std::uint32_t tensor_;
  std::uint32_t step_;
};

}  // namespace stacklab
