// What follows from the facts of a TinyWorld by rules: answers to questions that no document states.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/tinyworld.h"

namespace stacklab {

inline constexpr std::int64_t cart_miles_per_hour = 4;  // as timetables say
inline constexpr std::int64_t carriage_miles = 10;      // carriage is paid for every ten begun, as ledgers say

// What a rule takes, in order; entities by their index, all of one part.
enum class Rule : std::uint8_t {
  older_than,       // person, person -> who is older; nothing when born in the same year
  grandparent,      // person -> person
  same_trade,       // person, person -> "yes" or "no"
  nearest_port,     // town -> another town where a ship is at home; nothing when two are equally near
  cost,             // town, ordinary goods, year, units -> pence
  carried_cost,     // goods, town, units -> pence at their home and for the carriage to the town
  travel_minutes,   // town, town, town -> minutes of a cart from the first by the second to the third
  trade_count,      // town, person -> how many of the town have the trade of that person of the town
  year_difference,  // attribute, entity, attribute, entity -> the years between two events
  age_sum,          // person, person -> their ages in the present year, together
};
inline constexpr std::size_t rules = 10;
std::string_view to_string(Rule rule);

struct DerivedId {
  Rule rule = Rule::older_than;
  std::array<std::uint32_t, 4> of{};  // unused ones are 0
  auto operator<=>(const DerivedId&) const = default;
};
std::string to_string(const DerivedId& id);  // "carried_cost(3, 17, 40)"

struct DerivedFact {
  FactValue value;
  std::vector<FactId> evidence;  // the facts that it follows from
  WorldPart part = WorldPart::train;
};

// Nothing where the rule has no answer, or what it takes is of two parts or not there.
std::optional<DerivedFact> derive(const TinyWorld& world, const DerivedId& id);

// One question after another that has an answer, drawn from a part: a pure function of these.
std::optional<DerivedId> draw_derived(const TinyWorld& world, WorldPart part, Rule rule, std::uint64_t index);

}  // namespace stacklab
