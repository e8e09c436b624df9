// How an operation touches an operand.
#pragma once

#include <cstdint>

namespace stacklab {

// scratch: written before it is read, and nobody else's.
enum class Access : std::uint8_t { read, write, add, update, scratch };
constexpr bool reads(Access a) { return a == Access::read || a == Access::add || a == Access::update; }
constexpr bool writes(Access a) { return a != Access::read; }

}  // namespace stacklab
