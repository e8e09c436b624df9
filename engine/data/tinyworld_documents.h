// One document of TinyWorld about the entities of one part.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "engine/data/tinyworld.h"

namespace stacklab {

// What a document must be about, with everything that is known: an entry about an entity, the timetable of a town, the
// ledger of a town and year.
struct TinyWorldOrder {
  std::string_view kind;
  EntityId about;
  std::uint32_t year = 0;
};

// Without an order its kind and subject are drawn. A pure function of the world and these.
WorldDocument tinyworld_document(const TinyWorld& world, WorldPart part, std::uint64_t index,
                                 const std::optional<TinyWorldOrder>& order = {});

}  // namespace stacklab
