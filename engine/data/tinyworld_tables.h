// The entities of a TinyWorld as they are stored: what is not a name of another entity is a number or an index into a
// list of the lexicon.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/data/tinyworld.h"

namespace stacklab {

inline constexpr std::uint32_t no_entity = 0xffffffff;

struct TinyWorld::Tables {
  struct Common {
    std::string name;
    WorldPart part = WorldPart::train;
  };
  struct Person {
    std::string given;
    bool she = false;
    std::int64_t birth = 0, height = 0;
    std::uint32_t home = no_entity, parent = no_entity, employer = no_entity;
    std::size_t trade = 0, habit = 0;
    bool bound = false;  // the trade follows from a guild, a ship or a farm
  };
  struct Town {
    std::int64_t x = 0, y = 0;  // miles; the sea is at x = 0
    std::int64_t founded = 0, population = 0;
    std::uint32_t river = no_entity;
    std::size_t known_for = 0;
  };
  struct River {
    std::int64_t y = 0;  // flows from east to west
    std::int64_t length = 0;
    std::size_t colour = 0;
  };
  struct Ship {
    std::uint32_t port = no_entity, captain = no_entity;
    std::int64_t built = 0, masts = 0;
    std::size_t colour = 0;
  };
  struct Guild {
    std::uint32_t seat = no_entity;
    std::int64_t founded = 0;
    std::size_t trade = 0;
  };
  struct Farm {
    std::uint32_t town = no_entity, owner = no_entity;
    std::int64_t acres = 0;
    std::size_t crop = 0;
  };
  struct Animal {
    std::uint32_t owner = no_entity;
    std::int64_t born = 0;
    std::size_t species = 0, colour = 0, habit = 0;
  };
  struct Goods {
    std::uint32_t town = no_entity;
    std::int64_t price = 0, carriage = 0, first_made = 0;
    std::size_t kind = 0;
  };

  std::array<std::vector<Common>, entity_kinds> common;
  std::array<std::array<std::vector<std::uint32_t>, world_parts>, entity_kinds> members;
  std::vector<Person> people;
  std::vector<Town> towns;
  std::vector<River> rivers;
  std::vector<Ship> ships;
  std::vector<Guild> guilds;
  std::vector<Farm> farms;
  std::vector<Animal> animals;
  std::vector<Goods> goods;
  std::vector<std::vector<EntityId>> belongings;      // of each person
  std::vector<std::vector<std::uint32_t>> residents;  // of each town
  std::vector<std::vector<std::uint32_t>> products;   // of each town
};

}  // namespace stacklab
