#include "engine/data/tinyworld_derived.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "tests/engine/data/tinyworld_testing.h"

namespace stacklab {
namespace {

using Kind = EntityKind;

// Answers from a table of all facts of a part, as texts: knows nothing of how the world is stored.
class Solver {
 public:
  explicit Solver(WorldPart part) {
    for (const EntityId e : all_entities(world_)) {
      if (world_.part(e) != part) continue;
      for (const FactId& fact : world_.facts(e)) table_[fact] = world_.text(*world_.value(fact));
      names_[e] = world_.name(e);
    }
  }

  std::string solve(const DerivedId& id) const {
    const auto& of = id.of;
    switch (id.rule) {
      case Rule::older_than:
        return number({Attribute::person_birth_year, of[0], 0, 0}) < number({Attribute::person_birth_year, of[1], 0, 0})
                   ? names_.at({Kind::person, of[0]})
                   : names_.at({Kind::person, of[1]});
      case Rule::grandparent: {
        const std::string parent = table_.at({Attribute::person_parent, of[0], 0, 0});
        return table_.at({Attribute::person_parent, named(Kind::person, parent), 0, 0});
      }
      case Rule::same_trade:
        return table_.at({Attribute::person_trade, of[0], 0, 0}) == table_.at({Attribute::person_trade, of[1], 0, 0})
                   ? "yes"
                   : "no";
      case Rule::nearest_port: {
        std::map<std::int64_t, std::set<std::string>> by_distance;
        for (const auto& [fact, port] : table_) {
          if (fact.attribute != Attribute::ship_port || port == names_.at({Kind::town, of[0]})) continue;
          by_distance[miles(of[0], named(Kind::town, port))].insert(port);
        }
        EXPECT_EQ(by_distance.begin()->second.size(), 1u);
        return *by_distance.begin()->second.begin();
      }
      case Rule::cost:
        return std::to_string(number({Attribute::town_price, of[0], of[1], of[2]}) * of[3]);
      case Rule::carried_cost: {
        const std::uint32_t home = named(Kind::town, table_.at({Attribute::goods_town, of[0], 0, 0}));
        const double tens = std::ceil(static_cast<double>(miles(home, of[1])) / 10);
        const std::int64_t each = number({Attribute::goods_price, of[0], 0, 0}) +
                                  number({Attribute::goods_carriage, of[0], 0, 0}) * static_cast<std::int64_t>(tens);
        return std::to_string(each * of[2]);
      }
      case Rule::travel_minutes:
        return std::to_string((miles(of[0], of[1]) + miles(of[1], of[2])) * 15);
      case Rule::trade_count: {
        std::int64_t n = 0;
        for (const auto& [fact, home] : table_) {
          n += fact.attribute == Attribute::person_home && home == names_.at({Kind::town, of[0]}) &&
               table_.at({Attribute::person_trade, fact.subject, 0, 0}) ==
                   table_.at({Attribute::person_trade, of[1], 0, 0});
        }
        return std::to_string(n);
      }
      case Rule::year_difference:
        return std::to_string(std::abs(number({static_cast<Attribute>(of[0]), of[1], 0, 0}) -
                                       number({static_cast<Attribute>(of[2]), of[3], 0, 0})));
      case Rule::age_sum:
        return std::to_string(640 - number({Attribute::person_birth_year, of[0], 0, 0}) + 640 -
                              number({Attribute::person_birth_year, of[1], 0, 0}));
    }
    return {};
  }

 private:
  std::int64_t number(const FactId& fact) const { return std::stoll(table_.at(fact)); }
  std::int64_t miles(std::uint32_t a, std::uint32_t b) const {
    return number({Attribute::town_distance, std::min(a, b), std::max(a, b), 0});
  }
  std::uint32_t named(Kind kind, const std::string& name) const {
    for (const auto& [e, its_name] : names_) {
      if (e.kind == kind && its_name == name) return e.index;
    }
    ADD_FAILURE() << name;
    return 0;
  }

  const TinyWorld& world_ = shared_world();
  std::map<FactId, std::string> table_;
  std::map<EntityId, std::string> names_;
};

TEST(TinyWorldDerived, FollowsFromTheFacts) {
  for (const WorldPart part : {WorldPart::train, WorldPart::library}) {
    const Solver solver(part);
    for (std::size_t r = 0; r < rules; ++r) {
      const Rule rule = static_cast<Rule>(r);
      std::set<DerivedId> distinct;
      std::set<std::string> answers;
      for (std::uint64_t i = 0; i < 60; ++i) {
        const auto id = draw_derived(shared_world(), part, rule, i);
        ASSERT_TRUE(id) << to_string(rule);
        EXPECT_EQ(id->rule, rule);
        EXPECT_EQ(id, draw_derived(shared_world(), part, rule, i));
        const auto fact = derive(shared_world(), *id);
        ASSERT_TRUE(fact) << to_string(*id);
        EXPECT_EQ(shared_world().text(fact->value), solver.solve(*id)) << to_string(*id);
        EXPECT_EQ(fact->part, part);
        ASSERT_FALSE(fact->evidence.empty());
        std::set<FactId> evidence;
        for (const FactId& one : fact->evidence) {
          EXPECT_TRUE(evidence.insert(one).second) << to_string(*id) << " has evidence twice";
          EXPECT_TRUE(shared_world().value(one));
          EXPECT_EQ(shared_world().part(one.entity()), part) << to_string(*id);
        }
        distinct.insert(*id);
        answers.insert(shared_world().text(fact->value));
      }
      EXPECT_GE(distinct.size(), part == WorldPart::train ? 30u : 5u) << to_string(rule);
      EXPECT_GE(answers.size(), 2u) << to_string(rule);
    }
  }
}

TEST(TinyWorldDerived, WhatCannotBeAnsweredHasNoAnswer) {
  const TinyWorld& w = shared_world();
  const std::uint32_t here = w.members(Kind::person, WorldPart::train)[0],
                      there = w.members(Kind::person, WorldPart::test)[0];
  const std::uint32_t town = w.members(Kind::town, WorldPart::train)[0],
                      other = w.members(Kind::town, WorldPart::train)[1];
  const auto none = [&](Rule rule, std::array<std::uint32_t, 4> of) {
    EXPECT_FALSE(derive(w, {rule, of})) << to_string(DerivedId{rule, of});
  };
  none(Rule::older_than, {here, there, 0, 0});  // two parts
  none(Rule::older_than, {here, here, 0, 0});
  none(Rule::older_than, {here, 4'000'000, 0, 0});
  none(Rule::same_trade, {here, there, 0, 0});
  none(Rule::age_sum, {here, there, 0, 0});
  none(Rule::nearest_port, {999'999, 0, 0, 0});
  none(Rule::nearest_port, {town, 1, 0, 0});  // takes one
  none(Rule::cost, {town, 0, 640, 3});        // no such year yet
  none(Rule::cost, {town, 0, 639, 0});
  none(Rule::cost, {town, 9999, 639, 2});
  none(Rule::travel_minutes, {town, town, other, 0});
  none(Rule::travel_minutes, {town, other, town, 0});
  none(Rule::trade_count, {town, there, 0, 0});
  none(Rule::year_difference, {static_cast<std::uint32_t>(Attribute::person_height), here, 0, here});
  none(static_cast<Rule>(200), {});
  // A tie is no answer.
  std::optional<std::pair<std::uint32_t, std::uint32_t>> twins;
  const auto people = w.members(Kind::person, WorldPart::train);
  for (const std::uint32_t a : people) {
    for (const std::uint32_t b : people) {
      if (a != b &&
          w.value({Attribute::person_birth_year, a, 0, 0}) == w.value({Attribute::person_birth_year, b, 0, 0}))
        twins = {a, b};
    }
  }
  ASSERT_TRUE(twins);
  none(Rule::older_than, {twins->first, twins->second, 0, 0});
  EXPECT_EQ(to_string(DerivedId{Rule::cost, {1, 2, 639, 4}}), "cost(1, 2, 639, 4)");
}

}  // namespace
}  // namespace stacklab
