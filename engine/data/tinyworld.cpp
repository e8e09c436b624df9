#include "engine/data/tinyworld.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "engine/base/paths.h"
#include "engine/base/text.h"
#include "engine/data/tinyworld_lexicon.h"
#include "engine/data/tinyworld_tables.h"

namespace stacklab {
namespace {

using Kind = EntityKind;

// Streams of numbers; each entity draws from its own place in them.
enum Stream : std::uint32_t {
  part_stream = 0x7477'0000,
  name_stream = 0x7477'0100,
  entity_stream = 0x7477'0200,
  price_stream = 0x7477'0300
};

constexpr std::string_view kind_names[] = {"person", "town", "river", "ship", "guild", "farm", "animal", "goods"};
constexpr std::string_view attribute_names[] = {
    "person.birth_year", "person.home",  "person.trade",    "person.height",  "person.parent",  "person.employer",
    "person.habit",      "town.founded", "town.population", "town.river",     "town.known_for", "town.distance",
    "town.price",        "river.length", "river.colour",    "ship.port",      "ship.captain",   "ship.built",
    "ship.colour",       "ship.masts",   "guild.seat",      "guild.founded",  "guild.trade",    "farm.town",
    "farm.owner",        "farm.crop",    "farm.acres",      "animal.species", "animal.owner",   "animal.colour",
    "animal.born",       "animal.habit", "goods.kind",      "goods.town",     "goods.price",    "goods.carriage",
    "goods.first_made"};
static_assert(std::size(kind_names) == entity_kinds && std::size(attribute_names) == attributes);

std::size_t index_of(Kind kind) { return static_cast<std::size_t>(kind); }

std::uint32_t stream_of(Stream stream, Kind kind) { return stream + static_cast<std::uint32_t>(kind); }

std::string capitalised(std::string name) {
  bool start = true;
  for (char& c : name) {
    if (start && c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    start = c == ' ';
  }
  return name;
}

std::int64_t rounded_root(std::int64_t square) {
  std::int64_t root = 0;
  while ((root + 1) * (root + 1) <= square) ++root;
  return square - root * root > root ? root + 1 : root;
}

FactValue number(std::int64_t n) { return {FactValue::Kind::number, n, {}, {}}; }
FactValue word(std::string w) { return {FactValue::Kind::word, 0, {}, std::move(w)}; }
std::optional<FactValue> link(Kind kind, std::uint32_t index) {
  if (index == no_entity) return std::nullopt;
  return FactValue{FactValue::Kind::entity, 0, {kind, index}, {}};
}

// A name that nothing else has, of words that nothing else uses: neither another entity nor any phrase.
Result<std::string> fresh_name(const Phrase& grammar, Dice& dice, std::set<std::string>& used) {
  for (int attempt = 0; attempt < 2000; ++attempt) {
    const std::string name = grammar.expand(dice, [](std::string_view) { return std::string(); });
    const std::string head = name.substr(0, name.find(' '));
    const auto thrice = [&](std::size_t i) { return head[i] == head[i - 1] && head[i] == head[i - 2]; };
    bool hard_to_read = false;
    for (std::size_t i = 2; i < head.size(); ++i) hard_to_read |= thrice(i);
    if (!hard_to_read && used.insert(head).second) return capitalised(name);
  }
  return failed("TinyWorld: the grammar of names has no more of them", "make a world of fewer people");
}

}  // namespace

std::string_view to_string(EntityKind kind) { return kind_names[static_cast<std::size_t>(kind)]; }
std::string_view to_string(Attribute attribute) { return attribute_names[static_cast<std::size_t>(attribute)]; }

EntityKind subject_kind(Attribute attribute) {
  const std::string_view name = to_string(attribute);
  const std::string_view kind = name.substr(0, name.find('.'));
  return static_cast<Kind>(std::find(std::begin(kind_names), std::end(kind_names), kind) - std::begin(kind_names));
}

TinyWorld::TinyWorld() = default;
TinyWorld::TinyWorld(TinyWorld&&) noexcept = default;
TinyWorld& TinyWorld::operator=(TinyWorld&&) noexcept = default;
TinyWorld::~TinyWorld() = default;

Result<TinyWorld> TinyWorld::create(std::uint64_t seed, std::int64_t people, const std::filesystem::path& folder) {
  constexpr std::int64_t fewest = 200, most = 8000;
  if (people < fewest || people > most) {
    return usage_error("TinyWorld of " + std::to_string(people) + " people",
                       "choose from " + std::to_string(fewest) + " to " + std::to_string(most));
  }
  Result<Lexicon> lexicon = Lexicon::load(folder);
  if (!lexicon) return tl::unexpected(lexicon.error());
  TinyWorld world;
  world.seed_ = seed;
  world.lexicon_ = std::make_unique<Lexicon>(std::move(*lexicon));
  world.tables_ = std::make_unique<Tables>();
  for (std::size_t kind = 0; kind < entity_kinds; ++kind) {
    world.tables_->common[kind].resize(static_cast<std::size_t>(people * world.lexicon_->per_2000_people[kind] / 2000));
  }
  if (Status settled = world.settle(); !settled) return tl::unexpected(settled.error());
  return world;
}

// Parts, names, and what depends on the entity alone; then what entities are to each other.
Status TinyWorld::settle() {
  Tables& t = *tables_;
  const Lexicon& lexicon = *lexicon_;
  const std::int64_t now = lexicon.present_year;
  for (std::size_t k = 0; k < entity_kinds; ++k) {
    const Kind kind = static_cast<Kind>(k);
    for (std::size_t i = 0; i < t.common[k].size(); ++i) {
      Dice dice(seed_, stream_of(part_stream, kind), i);
      std::int64_t ticket = dice.between(0, 99);
      std::size_t part = 0;
      while (ticket >= lexicon.shares[part]) ticket -= lexicon.shares[part++];
      t.common[k][i].part = static_cast<WorldPart>(part);
      t.members[k][part].push_back(static_cast<std::uint32_t>(i));
    }
  }
  for (const auto& people : t.members[index_of(Kind::person)]) {
    if (people.size() < 2)
      return failed("TinyWorld: a part of the world would be empty", "make a world of more people");
  }

  const auto each = [&](Kind kind, auto& rows, auto&& fill) {
    rows.resize(count(kind));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      Dice dice(seed_, stream_of(entity_stream, kind), i);
      fill(rows[i], dice);
    }
  };
  each(Kind::person, t.people, [&](Tables::Person& p, Dice& dice) {
    p.she = dice.percent(50);
    p.birth = now - dice.between(16, 84);
    p.height = (p.she ? 150 : 160) + dice.between(0, 34);
    p.habit = dice.below(lexicon.habits.size());
    p.trade = dice.below(lexicon.trades.size() - 2);
  });
  std::vector<std::pair<std::int64_t, std::int64_t>> taken;
  each(Kind::town, t.towns, [&](Tables::Town& town, Dice& dice) {
    const auto crowded = [&town](const auto& other) {  // one mile is no distance to write about
      const std::int64_t dx = town.x - other.first, dy = town.y - other.second;
      return dx * dx + dy * dy < 4;
    };
    do {
      town.x = dice.between(0, 400);
      town.y = dice.between(0, 400);
    } while (std::any_of(taken.begin(), taken.end(), crowded));
    taken.emplace_back(town.x, town.y);
    town.founded = dice.between(20, now - 90);
    constexpr std::int64_t steps[] = {200, 900, 2500, 7000, 18000, 45000};
    const std::size_t step = dice.below(5);
    town.population = dice.between(steps[step], steps[step + 1] - 1);
    town.known_for = dice.below(lexicon.goods.size());
  });
  each(Kind::river, t.rivers, [&](Tables::River& river, Dice& dice) {
    river.y = dice.between(0, 400);
    river.length = dice.between(20, 400);
    river.colour = dice.below(lexicon.water_colours.size());
  });
  each(Kind::ship, t.ships, [&](Tables::Ship& ship, Dice& dice) {
    ship.built = now - dice.between(1, 60);
    ship.masts = dice.between(2, 5);
    ship.colour = dice.below(lexicon.colours.size());
  });
  each(Kind::guild, t.guilds,
       [&](Tables::Guild& guild, Dice& dice) { guild.trade = dice.below(lexicon.trades.size() - 2); });
  each(Kind::farm, t.farms, [&](Tables::Farm& farm, Dice& dice) {
    farm.acres = dice.between(12, 480);
    farm.crop = dice.below(lexicon.crops.size());
  });
  each(Kind::animal, t.animals, [&](Tables::Animal& animal, Dice& dice) {
    animal.species = dice.below(lexicon.species.size());
    animal.colour = dice.below(lexicon.colours.size());
    animal.habit = dice.below(lexicon.animal_habits.size());
  });
  each(Kind::goods, t.goods, [&](Tables::Goods& goods, Dice& dice) {
    goods.kind = dice.below(lexicon.goods.size());
    goods.price = std::max<std::int64_t>(2, lexicon.goods[goods.kind].price * dice.between(60, 220) / 100);
    goods.carriage = dice.between(2, 9);
  });
  relate();

  std::set<std::string> used = lexicon.words;
  for (std::size_t k = 0; k < entity_kinds; ++k) {
    const Kind kind = static_cast<Kind>(k);
    for (std::size_t i = 0; i < t.common[k].size(); ++i) {
      Dice dice(seed_, stream_of(name_stream, kind), i);
      const std::string_view grammar = kind != Kind::person ? to_string(kind)
                                       : t.people[i].she    ? "person.she"
                                                            : "person.he";
      Result<std::string> made = fresh_name(lexicon.names.find(grammar)->second, dice, used);
      if (!made) return tl::unexpected(made.error());
      t.common[k][i].name = std::move(*made);
    }
  }
  // Families: a child has its parent's name, so the old come first.
  std::vector<std::size_t> by_age(t.people.size());
  std::iota(by_age.begin(), by_age.end(), std::size_t{0});
  std::stable_sort(by_age.begin(), by_age.end(),
                   [&](std::size_t a, std::size_t b) { return t.people[a].birth < t.people[b].birth; });
  std::vector<std::string> family(t.people.size());
  for (const std::size_t i : by_age) {
    const std::uint32_t parent = t.people[i].parent;
    if (parent != no_entity) {
      family[i] = family[parent];
    } else {
      Dice dice(seed_, stream_of(name_stream, Kind::person), i | std::uint64_t{1} << 32);
      Result<std::string> made = fresh_name(lexicon.names.find("person.family")->second, dice, used);
      if (!made) return tl::unexpected(made.error());
      family[i] = std::move(*made);
    }
    Tables::Common& person = t.common[0][i];
    t.people[i].given = person.name;
    person.name += " " + family[i];
  }
  return {};
}

// Everything that names another entity stays within the part.
void TinyWorld::relate() {
  Tables& t = *tables_;
  const Lexicon& lexicon = *lexicon_;
  const std::int64_t now = lexicon.present_year;
  const std::size_t captain_trade = lexicon.trades.size() - 2, owner_trade = lexicon.trades.size() - 1;
  t.belongings.resize(t.people.size());
  t.residents.resize(t.towns.size());
  t.products.resize(t.towns.size());
  // A second place for each entity's draws, so that these do not depend on how many the first took.
  const auto dice_of = [&](Kind kind, std::size_t i) {
    return Dice(seed_, stream_of(entity_stream, kind), i | std::uint64_t{1} << 32);
  };
  const auto any = [](Dice& dice, const std::vector<std::uint32_t>& candidates) {
    return candidates.empty() ? no_entity : dice.pick(candidates);
  };

  for (std::size_t part = 0; part < world_parts; ++part) {
    const auto of = [&](Kind kind) -> const std::vector<std::uint32_t>& { return t.members[index_of(kind)][part]; };
    for (const std::uint32_t i : of(Kind::town)) {
      Tables::Town& town = t.towns[i];
      const auto away = [&](std::uint32_t r) { return std::abs(t.rivers[r].y - town.y); };
      for (const std::uint32_t r : of(Kind::river)) {
        if (town.river == no_entity || away(r) < away(town.river)) town.river = r;
      }
    }
    for (const std::uint32_t i : of(Kind::guild)) {
      Dice dice = dice_of(Kind::guild, i);
      Tables::Guild& guild = t.guilds[i];
      guild.seat = any(dice, of(Kind::town));
      guild.founded = dice.between(guild.seat == no_entity ? 110 : t.towns[guild.seat].founded + 1, now - 5);
    }
    for (const std::uint32_t i : of(Kind::person)) {
      Dice dice = dice_of(Kind::person, i);
      Tables::Person& person = t.people[i];
      std::vector<std::uint32_t> elders, guilds;
      for (const std::uint32_t p : of(Kind::person)) {
        const std::int64_t older = person.birth - t.people[p].birth;
        if (older >= 18 && older <= 44) elders.push_back(p);
      }
      if (dice.percent(80)) person.parent = any(dice, elders);
      person.home = any(dice, of(Kind::town));
      if (person.home != no_entity) t.residents[person.home].push_back(i);
      for (const std::uint32_t g : of(Kind::guild)) {
        if (t.guilds[g].seat == person.home && person.home != no_entity) guilds.push_back(g);
      }
      if (dice.percent(70)) person.employer = any(dice, guilds);
      if (person.employer != no_entity) {
        person.trade = t.guilds[person.employer].trade;
        person.bound = true;
      }
    }
    // Somebody of the town who is free takes the ship or the farm, and its trade.
    const auto appoint = [&](Dice& dice, std::uint32_t town, std::size_t trade, EntityId what) {
      std::vector<std::uint32_t> free;
      if (town != no_entity) {
        for (const std::uint32_t p : t.residents[town]) {
          if (!t.people[p].bound && now - t.people[p].birth >= 25) free.push_back(p);
        }
      }
      const std::uint32_t chosen = any(dice, free);
      if (chosen != no_entity) {
        t.people[chosen].trade = trade;
        t.people[chosen].bound = true;
        t.belongings[chosen].push_back(what);
      }
      return chosen;
    };
    std::vector<std::uint32_t> ports = of(Kind::town);
    std::stable_sort(ports.begin(), ports.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return t.towns[a].x < t.towns[b].x; });
    ports.resize((ports.size() + 2) / 3);
    for (const std::uint32_t i : of(Kind::ship)) {
      Dice dice = dice_of(Kind::ship, i);
      t.ships[i].port = any(dice, ports);
      t.ships[i].captain = appoint(dice, t.ships[i].port, captain_trade, {Kind::ship, i});
    }
    for (const std::uint32_t i : of(Kind::farm)) {
      Dice dice = dice_of(Kind::farm, i);
      t.farms[i].town = any(dice, of(Kind::town));
      t.farms[i].owner = appoint(dice, t.farms[i].town, owner_trade, {Kind::farm, i});
    }
    for (const std::uint32_t i : of(Kind::goods)) {
      Dice dice = dice_of(Kind::goods, i);
      Tables::Goods& goods = t.goods[i];
      goods.town = any(dice, of(Kind::town));
      goods.first_made = dice.between(goods.town == no_entity ? 110 : t.towns[goods.town].founded + 1, now - 2);
      if (goods.town != no_entity) t.products[goods.town].push_back(i);
    }
    for (const std::uint32_t i : of(Kind::animal)) {
      Dice dice = dice_of(Kind::animal, i);
      Tables::Animal& animal = t.animals[i];
      animal.owner = any(dice, of(Kind::person));
      std::int64_t oldest = lexicon.species[animal.species].years;
      if (animal.owner != no_entity) {
        oldest = std::min(oldest, now - t.people[animal.owner].birth - 6);
        t.belongings[animal.owner].push_back({Kind::animal, i});
      }
      animal.born = now - dice.between(1, oldest);
    }
  }
}

Status TinyWorld::weigh_documents(const std::vector<std::pair<std::string, std::size_t>>& weights) {
  auto& all = lexicon_->document_weights;
  for (auto& [kind, weight] : all) weight = 0;
  for (const auto& [kind, weight] : weights) {
    const auto at =
        std::find_if(all.begin(), all.end(), [&wanted = kind](const auto& one) { return one.first == wanted; });
    if (at == all.end()) {
      std::vector<std::string> known;
      for (const auto& one : all) known.push_back(one.first);
      return usage_error("TinyWorld has no documents of the kind \"" + kind + "\"", did_you_mean(kind, known));
    }
    at->second = weight;
  }
  return {};
}

std::size_t TinyWorld::count(EntityKind kind) const { return tables_->common[index_of(kind)].size(); }
const std::string& TinyWorld::name(EntityId entity) const {
  return tables_->common[index_of(entity.kind)][entity.index].name;
}
WorldPart TinyWorld::part(EntityId entity) const { return tables_->common[index_of(entity.kind)][entity.index].part; }
std::span<const std::uint32_t> TinyWorld::members(EntityKind kind, WorldPart part) const {
  return tables_->members[index_of(kind)][static_cast<std::size_t>(part)];
}
std::int64_t TinyWorld::present_year() const { return lexicon_->present_year; }
std::span<const EntityId> TinyWorld::belongings(EntityId person) const { return tables_->belongings[person.index]; }

std::span<const std::uint32_t> TinyWorld::residents(EntityId town) const { return tables_->residents[town.index]; }
std::span<const std::uint32_t> TinyWorld::products(EntityId town) const { return tables_->products[town.index]; }
bool TinyWorld::is_she(EntityId person) const { return tables_->people[person.index].she; }

std::optional<FactValue> TinyWorld::value(const FactId& fact) const {
  const Tables& t = *tables_;
  const Lexicon& lexicon = *lexicon_;
  const std::uint32_t i = fact.subject;
  if (i >= count(subject_kind(fact.attribute))) return std::nullopt;
  switch (fact.attribute) {
    case Attribute::person_birth_year:
      return number(t.people[i].birth);
    case Attribute::person_home:
      return link(Kind::town, t.people[i].home);
    case Attribute::person_trade:
      return word(lexicon.trades[t.people[i].trade]);
    case Attribute::person_height:
      return number(t.people[i].height);
    case Attribute::person_parent:
      return link(Kind::person, t.people[i].parent);
    case Attribute::person_employer:
      return link(Kind::guild, t.people[i].employer);
    case Attribute::person_habit:
      return word(lexicon.habits[t.people[i].habit]);
    case Attribute::town_founded:
      return number(t.towns[i].founded);
    case Attribute::town_population:
      return number(t.towns[i].population);
    case Attribute::town_river:
      return link(Kind::river, t.towns[i].river);
    case Attribute::town_known_for:
      return word(lexicon.goods[t.towns[i].known_for].name);
    case Attribute::town_distance: {
      if (fact.other >= t.towns.size() || fact.other <= i || part({Kind::town, i}) != part({Kind::town, fact.other}))
        return std::nullopt;
      const std::int64_t dx = t.towns[i].x - t.towns[fact.other].x, dy = t.towns[i].y - t.towns[fact.other].y;
      return number(rounded_root(dx * dx + dy * dy));
    }
    case Attribute::town_price: {
      if (fact.other >= lexicon.goods.size() || fact.year >= lexicon.present_year ||
          fact.year < lexicon.present_year - lexicon.price_years) {
        return std::nullopt;
      }
      // The town's own level, times the year's luck.
      Dice level(seed_, price_stream, std::uint64_t{i} << 16 | fact.other);
      Dice luck(seed_, price_stream + 1,
                (std::uint64_t{i} << 16 | fact.other) * 128 + (lexicon.present_year - fact.year));
      const std::int64_t percent = level.between(75, 130) * luck.between(90, 112);
      return number(std::max<std::int64_t>(2, lexicon.goods[fact.other].price * percent / 10000));
    }
    case Attribute::river_length:
      return number(t.rivers[i].length);
    case Attribute::river_colour:
      return word(lexicon.water_colours[t.rivers[i].colour]);
    case Attribute::ship_port:
      return link(Kind::town, t.ships[i].port);
    case Attribute::ship_captain:
      return link(Kind::person, t.ships[i].captain);
    case Attribute::ship_built:
      return number(t.ships[i].built);
    case Attribute::ship_colour:
      return word(lexicon.colours[t.ships[i].colour]);
    case Attribute::ship_masts:
      return number(t.ships[i].masts);
    case Attribute::guild_seat:
      return link(Kind::town, t.guilds[i].seat);
    case Attribute::guild_founded:
      return number(t.guilds[i].founded);
    case Attribute::guild_trade:
      return word(lexicon.trades[t.guilds[i].trade]);
    case Attribute::farm_town:
      return link(Kind::town, t.farms[i].town);
    case Attribute::farm_owner:
      return link(Kind::person, t.farms[i].owner);
    case Attribute::farm_crop:
      return word(lexicon.crops[t.farms[i].crop]);
    case Attribute::farm_acres:
      return number(t.farms[i].acres);
    case Attribute::animal_species:
      return word(lexicon.species[t.animals[i].species].name);
    case Attribute::animal_owner:
      return link(Kind::person, t.animals[i].owner);
    case Attribute::animal_colour:
      return word(lexicon.colours[t.animals[i].colour]);
    case Attribute::animal_born:
      return number(t.animals[i].born);
    case Attribute::animal_habit:
      return word(lexicon.animal_habits[t.animals[i].habit]);
    case Attribute::goods_kind:
      return word(lexicon.goods[t.goods[i].kind].name);
    case Attribute::goods_town:
      return link(Kind::town, t.goods[i].town);
    case Attribute::goods_price:
      return number(t.goods[i].price);
    case Attribute::goods_carriage:
      return number(t.goods[i].carriage);
    case Attribute::goods_first_made:
      return number(t.goods[i].first_made);
  }
  return std::nullopt;
}

std::string TinyWorld::text(const FactValue& value) const {
  switch (value.kind) {
    case FactValue::Kind::number:
      return std::to_string(value.number);
    case FactValue::Kind::entity:
      return name(value.entity);
    case FactValue::Kind::word:
      return value.word;
  }
  return {};
}

std::vector<FactId> TinyWorld::facts(EntityId entity) const {
  std::vector<FactId> facts;
  for (std::size_t a = 0; a < attributes; ++a) {
    const Attribute attribute = static_cast<Attribute>(a);
    if (subject_kind(attribute) != entity.kind) continue;
    if (attribute == Attribute::town_distance) {
      for (const std::uint32_t other : members(Kind::town, part(entity))) {
        if (other != entity.index)
          facts.push_back({attribute, std::min(entity.index, other), std::max(entity.index, other), 0});
      }
    } else if (attribute == Attribute::town_price) {
      for (std::uint32_t goods = 0; goods < lexicon_->goods.size(); ++goods) {
        for (std::int64_t year = present_year() - lexicon_->price_years; year < present_year(); ++year) {
          facts.push_back({attribute, entity.index, goods, static_cast<std::uint32_t>(year)});
        }
      }
    } else if (const FactId fact{attribute, entity.index, 0, 0}; value(fact)) {
      facts.push_back(fact);
    }
  }
  return facts;
}

std::filesystem::path tinyworld_folder() { return share_folder() / "resources" / "tinyworld"; }

}  // namespace stacklab
