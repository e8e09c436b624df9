#include "engine/data/tinyworld_derived.h"

#include <algorithm>
#include <cstdlib>

#include "engine/data/tinyworld_grammar.h"
#include "engine/data/tinyworld_lexicon.h"

namespace stacklab {
namespace {

using Kind = EntityKind;

constexpr std::uint32_t derived_stream = 0x7477'3000;
constexpr std::string_view rule_names[] = {
    "older_than",   "grandparent",    "same_trade",  "nearest_port",    "cost",
    "carried_cost", "travel_minutes", "trade_count", "year_difference", "age_sum"};
static_assert(std::size(rule_names) == rules);
constexpr std::size_t arity[] = {2, 1, 2, 1, 4, 3, 3, 2, 4, 2};
static_assert(std::size(arity) == rules);

constexpr std::array<Attribute, 6> years = {Attribute::person_birth_year, Attribute::town_founded,
                                            Attribute::ship_built,        Attribute::guild_founded,
                                            Attribute::animal_born,       Attribute::goods_first_made};

FactId fact_of(Attribute attribute, std::uint32_t subject) { return {attribute, subject, 0, 0}; }
FactId distance_of(std::uint32_t a, std::uint32_t b) {
  return {Attribute::town_distance, std::min(a, b), std::max(a, b), 0};
}
FactValue number(std::int64_t n) { return {FactValue::Kind::number, n, {}, {}}; }
FactValue word(std::string w) { return {FactValue::Kind::word, 0, {}, std::move(w)}; }
FactValue entity(EntityId e) { return {FactValue::Kind::entity, 0, e, {}}; }

class Deduction {
 public:
  Deduction(const TinyWorld& world, const DerivedId& id) : world_(world), of_(id.of), rule_(id.rule) {}

  std::optional<DerivedFact> run() {
    if (static_cast<std::size_t>(rule_) >= rules) return std::nullopt;
    for (std::size_t i = arity[static_cast<std::size_t>(rule_)]; i < of_.size(); ++i) {
      if (of_[i] != 0) return std::nullopt;
    }
    std::optional<FactValue> value = answer();
    if (!value) return std::nullopt;
    fact_.value = std::move(*value);
    return std::move(fact_);
  }

 private:
  // The value of a fact, which becomes evidence.
  std::optional<FactValue> look_up(const FactId& fact) {
    std::optional<FactValue> value = world_.value(fact);
    if (value) fact_.evidence.push_back(fact);
    return value;
  }
  std::optional<std::int64_t> number_of(const FactId& fact) {
    const auto value = look_up(fact);
    return value ? std::optional(value->number) : std::nullopt;
  }
  // Whether these are there, all different and of one part, which becomes the part of the answer.
  bool together(std::vector<EntityId> entities) {
    for (const EntityId e : entities) {
      if (e.index >= world_.count(e.kind)) return false;
    }
    fact_.part = world_.part(entities[0]);
    std::sort(entities.begin(), entities.end());
    return std::adjacent_find(entities.begin(), entities.end()) == entities.end() &&
           std::all_of(entities.begin(), entities.end(), [&](EntityId e) { return world_.part(e) == fact_.part; });
  }

  std::optional<FactValue> answer() {
    switch (rule_) {
      case Rule::older_than: {
        if (!together({{Kind::person, of_[0]}, {Kind::person, of_[1]}})) return std::nullopt;
        const auto a = number_of(fact_of(Attribute::person_birth_year, of_[0]));
        const auto b = number_of(fact_of(Attribute::person_birth_year, of_[1]));
        if (*a == *b) return std::nullopt;
        return entity({Kind::person, *a < *b ? of_[0] : of_[1]});
      }
      case Rule::grandparent: {
        if (!together({{Kind::person, of_[0]}})) return std::nullopt;
        const auto parent = look_up(fact_of(Attribute::person_parent, of_[0]));
        if (!parent) return std::nullopt;
        return look_up(fact_of(Attribute::person_parent, parent->entity.index));
      }
      case Rule::same_trade: {
        if (!together({{Kind::person, of_[0]}, {Kind::person, of_[1]}})) return std::nullopt;
        const auto a = look_up(fact_of(Attribute::person_trade, of_[0]));
        const auto b = look_up(fact_of(Attribute::person_trade, of_[1]));
        return word(*a == *b ? "yes" : "no");
      }
      case Rule::nearest_port:
        return nearest_port();
      case Rule::cost: {
        if (!together({{Kind::town, of_[0]}}) || of_[3] == 0) return std::nullopt;
        const auto price = number_of({Attribute::town_price, of_[0], of_[1], of_[2]});
        if (!price) return std::nullopt;
        return number(*price * of_[3]);
      }
      case Rule::carried_cost: {
        if (!together({{Kind::goods, of_[0]}, {Kind::town, of_[1]}}) || of_[2] == 0) return std::nullopt;
        const auto home = look_up(fact_of(Attribute::goods_town, of_[0]));
        if (!home || home->entity.index == of_[1]) return std::nullopt;
        const auto price = number_of(fact_of(Attribute::goods_price, of_[0]));
        const auto carriage = number_of(fact_of(Attribute::goods_carriage, of_[0]));
        const auto miles = number_of(distance_of(home->entity.index, of_[1]));
        if (!miles) return std::nullopt;
        const std::int64_t begun = (*miles + carriage_miles - 1) / carriage_miles;
        return number((*price + *carriage * begun) * of_[2]);
      }
      case Rule::travel_minutes: {
        if (!together({{Kind::town, of_[0]}, {Kind::town, of_[1]}, {Kind::town, of_[2]}})) return std::nullopt;
        const auto first = number_of(distance_of(of_[0], of_[1])), second = number_of(distance_of(of_[1], of_[2]));
        return number((*first + *second) * 60 / cart_miles_per_hour);
      }
      case Rule::trade_count:
        return trade_count();
      case Rule::year_difference: {
        for (const std::size_t i : {0u, 2u}) {
          if (std::find(years.begin(), years.end(), static_cast<Attribute>(of_[i])) == years.end()) return std::nullopt;
        }
        const Attribute one = static_cast<Attribute>(of_[0]), other = static_cast<Attribute>(of_[2]);
        if (!together({{subject_kind(one), of_[1]}, {subject_kind(other), of_[3]}})) return std::nullopt;
        return number(std::abs(*number_of(fact_of(one, of_[1])) - *number_of(fact_of(other, of_[3]))));
      }
      case Rule::age_sum: {
        if (!together({{Kind::person, of_[0]}, {Kind::person, of_[1]}})) return std::nullopt;
        const auto a = number_of(fact_of(Attribute::person_birth_year, of_[0]));
        const auto b = number_of(fact_of(Attribute::person_birth_year, of_[1]));
        return number(2 * world_.present_year() - *a - *b);
      }
    }
    return std::nullopt;
  }

  std::optional<FactValue> nearest_port() {
    if (!together({{Kind::town, of_[0]}})) return std::nullopt;
    std::vector<std::uint32_t> ports;
    for (const std::uint32_t ship : world_.members(Kind::ship, fact_.part)) {
      const auto port = look_up(fact_of(Attribute::ship_port, ship));
      if (port && port->entity.index != of_[0]) ports.push_back(port->entity.index);
    }
    std::sort(ports.begin(), ports.end());
    ports.erase(std::unique(ports.begin(), ports.end()), ports.end());
    std::optional<std::uint32_t> nearest;
    std::int64_t least = 0;
    bool tie = false;
    for (const std::uint32_t port : ports) {
      const std::int64_t miles = *number_of(distance_of(of_[0], port));
      if (nearest && miles > least) continue;
      tie = nearest && miles == least;
      nearest = port, least = miles;
    }
    if (!nearest || tie) return std::nullopt;
    return entity({Kind::town, *nearest});
  }

  std::optional<FactValue> trade_count() {
    if (!together({{Kind::town, of_[0]}, {Kind::person, of_[1]}})) return std::nullopt;
    const auto home = look_up(fact_of(Attribute::person_home, of_[1]));
    if (!home || home->entity.index != of_[0]) return std::nullopt;
    const auto trade = look_up(fact_of(Attribute::person_trade, of_[1]));
    std::int64_t n = 0;
    for (const std::uint32_t person : world_.residents({Kind::town, of_[0]})) {
      if (person != of_[1]) fact_.evidence.push_back(fact_of(Attribute::person_home, person));
      const FactId theirs = fact_of(Attribute::person_trade, person);
      if (person != of_[1]) fact_.evidence.push_back(theirs);
      n += *world_.value(theirs) == *trade;
    }
    return number(n);
  }

  const TinyWorld& world_;
  std::array<std::uint32_t, 4> of_;
  Rule rule_;
  DerivedFact fact_;
};

}  // namespace

std::string_view to_string(Rule rule) { return rule_names[static_cast<std::size_t>(rule)]; }

std::string to_string(const DerivedId& id) {
  std::string text(to_string(id.rule));
  for (std::size_t i = 0; i < arity[static_cast<std::size_t>(id.rule)]; ++i)
    text += (i == 0 ? "(" : ", ") + std::to_string(id.of[i]);
  return text + ")";
}

std::optional<DerivedFact> derive(const TinyWorld& world, const DerivedId& id) { return Deduction(world, id).run(); }

std::optional<DerivedId> draw_derived(const TinyWorld& world, WorldPart part, Rule rule, std::uint64_t index) {
  Dice dice(world.seed(), derived_stream + (static_cast<std::uint32_t>(rule) << 4) + static_cast<std::uint32_t>(part),
            index);
  const auto any = [&](Kind kind) -> std::uint32_t {
    const auto members = world.members(kind, part);
    return members.empty() ? 0 : members[dice.below(members.size())];
  };
  const bool alike = dice.percent(50);  // of two people few have the same trade by chance
  for (int attempt = 0; attempt < 2000; ++attempt) {
    DerivedId id{rule, {}};
    switch (rule) {
      case Rule::older_than:
      case Rule::same_trade:
      case Rule::age_sum:
        id.of = {any(Kind::person), any(Kind::person), 0, 0};
        break;
      case Rule::grandparent:
        id.of = {any(Kind::person), 0, 0, 0};
        break;
      case Rule::nearest_port:
        id.of = {any(Kind::town), 0, 0, 0};
        break;
      case Rule::cost:
        id.of = {any(Kind::town), static_cast<std::uint32_t>(dice.below(world.lexicon().goods.size())),
                 static_cast<std::uint32_t>(world.present_year() - dice.between(1, world.lexicon().price_years)),
                 static_cast<std::uint32_t>(dice.between(2, 12))};
        break;
      case Rule::carried_cost:
        id.of = {any(Kind::goods), any(Kind::town), static_cast<std::uint32_t>(dice.between(2, 12)), 0};
        break;
      case Rule::travel_minutes:
        id.of = {any(Kind::town), any(Kind::town), any(Kind::town), 0};
        break;
      case Rule::trade_count: {
        const std::uint32_t person = any(Kind::person);
        const auto home = world.value(fact_of(Attribute::person_home, person));
        id.of = {home ? home->entity.index : 0, person, 0, 0};
        break;
      }
      case Rule::year_difference: {
        const Attribute one = dice.pick(years), other = dice.pick(years);
        id.of = {static_cast<std::uint32_t>(one), any(subject_kind(one)), static_cast<std::uint32_t>(other),
                 any(subject_kind(other))};
        break;
      }
    }
    const auto fact = derive(world, id);
    if (!fact || fact->part != part) continue;
    if (rule == Rule::same_trade && (fact->value.word == "yes") != alike) continue;
    return id;
  }
  return std::nullopt;
}

}  // namespace stacklab
