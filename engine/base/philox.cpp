#include "engine/base/philox.h"

#include <cmath>
#include <numbers>

namespace stacklab {
namespace {

std::uint64_t join(std::uint32_t low, std::uint32_t high) { return low | static_cast<std::uint64_t>(high) << 32; }

// The top 52 bits, moved half a step from 0: never 0, never 1, and exact in double.
double open_unit(std::uint64_t bits) { return (static_cast<double>(bits >> 12) + 0.5) * 0x1p-52; }

}  // namespace

PhiloxBlock philox4x32_10(PhiloxBlock counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * counter[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<std::uint32_t>(p1 >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(p1),
               static_cast<std::uint32_t>(p0 >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(p0)};
    key = {key[0] + 0x9E3779B9u, key[1] + 0xBB67AE85u};
  }
  return counter;
}

std::uint64_t Philox::bits(std::uint64_t element) const {
  const PhiloxBlock b = block(element);
  return join(b[0], b[1]);
}

double Philox::uniform(std::uint64_t element) const { return open_unit(bits(element)); }

double Philox::normal(std::uint64_t element) const {
  const PhiloxBlock b = block(element);
  const double radius = std::sqrt(-2.0 * std::log(open_unit(join(b[0], b[1]))));
  return radius * std::cos(2.0 * std::numbers::pi * open_unit(join(b[2], b[3])));
}

std::uint64_t Philox::below(std::uint64_t element, std::uint64_t n) const {
  return static_cast<std::uint64_t>(static_cast<unsigned __int128>(bits(element)) * n >> 64);
}

}  // namespace stacklab
