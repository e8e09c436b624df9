// TinyWorld: an invented world of people, towns, rivers, ships, guilds, farms, animals and goods, whose facts are known
// and fit together, and documents about it. Everything is a pure function of (seed, size, what resources/tinyworld/
// says): any document can be made again, in any order, on any thread, without those before it.
//
// Every entity belongs to one part by a hash of its own: train, validation, test or library. The facts of an entity
// name only entities of its own part, and so do the documents of a part: what is held out occurs nowhere in the
// training documents, not even in passing.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/result.h"

namespace stacklab {

enum class EntityKind : std::uint8_t { person, town, river, ship, guild, farm, animal, goods };
inline constexpr std::size_t entity_kinds = 8;
std::string_view to_string(EntityKind kind);

enum class WorldPart : std::uint8_t { train, validation, test, library };
inline constexpr std::size_t world_parts = 4;

struct EntityId {
  EntityKind kind = EntityKind::person;
  std::uint32_t index = 0;
  auto operator<=>(const EntityId&) const = default;
};

// What can be said of an entity. town_distance takes another town; town_price an ordinary kind of goods (an index into
// the lexicon's: salt, wool, ...) and a year. goods are makes of such a kind, with a name, a home and a price there.
enum class Attribute : std::uint8_t {
  person_birth_year,
  person_home,
  person_trade,
  person_height,
  person_parent,
  person_employer,
  person_habit,
  town_founded,
  town_population,
  town_river,
  town_known_for,
  town_distance,
  town_price,
  river_length,
  river_colour,
  ship_port,
  ship_captain,
  ship_built,
  ship_colour,
  ship_masts,
  guild_seat,
  guild_founded,
  guild_trade,
  farm_town,
  farm_owner,
  farm_crop,
  farm_acres,
  animal_species,
  animal_owner,
  animal_colour,
  animal_born,
  animal_habit,
  goods_kind,
  goods_town,
  goods_price,
  goods_carriage,  // pence for a unit and every ten miles begun
  goods_first_made,
};
inline constexpr std::size_t attributes = 37;
std::string_view to_string(Attribute attribute);  // "person.birth_year", as in resources/tinyworld/phrases.json
EntityKind subject_kind(Attribute attribute);

// Names one fact of a world: (attribute, entity) and for some attributes more. Distances are stored under the town of
// lower index.
struct FactId {
  Attribute attribute = Attribute::person_birth_year;
  std::uint32_t subject = 0;
  std::uint32_t other = 0;  // the second town, or the goods
  std::uint32_t year = 0;
  auto operator<=>(const FactId&) const = default;

  EntityId entity() const { return {subject_kind(attribute), subject}; }
};

struct FactValue {
  enum class Kind { number, entity, word };
  Kind kind = Kind::number;
  std::int64_t number = 0;
  EntityId entity;
  std::string word;
  bool operator==(const FactValue&) const = default;
};

// A fact and where in the text it is stated.
struct Statement {
  FactId fact;
  std::uint32_t begin = 0, end = 0;
  bool operator==(const Statement&) const = default;
};

struct WorldDocument {
  std::string
      kind;  // entry, letter, diary, news, dialogue, ledger, timetable, register, recipe, game; of drills theirs
  std::string text;
  std::vector<Statement> statements;  // in order of their places
  bool operator==(const WorldDocument&) const = default;
};

struct Lexicon;  // what resources/tinyworld/ says

class TinyWorld {
 public:
  // folder: resources/tinyworld. Errors: a file that is missing or broken, too few people for four parts, too many for
  // the names.
  static Result<TinyWorld> create(std::uint64_t seed, std::int64_t people, const std::filesystem::path& folder);
  TinyWorld(TinyWorld&&) noexcept;
  TinyWorld& operator=(TinyWorld&&) noexcept;
  ~TinyWorld();

  std::size_t count(EntityKind kind) const;
  const std::string& name(EntityId entity) const;
  WorldPart part(EntityId entity) const;
  std::span<const std::uint32_t> members(EntityKind kind, WorldPart part) const;
  std::int64_t present_year() const;

  // Empty when the world has no such fact (not everybody has an employer).
  std::optional<FactValue> value(const FactId& fact) const;
  std::string text(const FactValue& value) const;  // as documents write it
  // All facts about an entity, distances (within its part) and prices included.
  std::vector<FactId> facts(EntityId entity) const;
  // Animals owned, ships commanded, farms owned: the entities whose facts name this person.
  std::span<const EntityId> belongings(EntityId person) const;
  std::span<const std::uint32_t> residents(EntityId town) const;
  std::span<const std::uint32_t> products(EntityId town) const;  // goods made there
  bool is_she(EntityId person) const;

  // Other weights of the kinds of documents than the usual; a kind that is not named does not come. An unknown kind
  // suggests the nearest.
  Status weigh_documents(const std::vector<std::pair<std::string, std::size_t>>& weights);

  std::uint64_t seed() const { return seed_; }
  const Lexicon& lexicon() const { return *lexicon_; }

 private:
  struct Tables;
  TinyWorld();
  Status settle();
  void relate();

  std::uint64_t seed_ = 0;
  std::unique_ptr<Lexicon> lexicon_;
  std::unique_ptr<Tables> tables_;
};

std::filesystem::path tinyworld_folder();  // resources/tinyworld of this program

}  // namespace stacklab
