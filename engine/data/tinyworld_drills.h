// Exercises without entities: copying, counting, sorting, arithmetic with and without steps, comparing, spelling.
#pragma once

#include <cstdint>

#include "engine/data/tinyworld.h"
#include "engine/data/tinyworld_lexicon.h"

namespace stacklab {

// A sheet of a few exercises of one kind (copy, count, sort, sum, steps, compare, spell), with their answers. A pure
// function of these.
WorldDocument tinyworld_drill(const Lexicon& lexicon, std::uint64_t seed, std::uint64_t index);

}  // namespace stacklab
