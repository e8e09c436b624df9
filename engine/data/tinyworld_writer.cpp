#include "engine/data/tinyworld_writer.h"

#include <algorithm>

namespace stacklab {
namespace {

std::string find(const std::vector<std::pair<std::string_view, std::string>>& slots, std::string_view name) {
  for (const auto& [key, value] : slots) {
    if (key == name) return value;
  }
  return {};
}

}  // namespace

void TinyWorldWriter::paragraph() {
  while (!text().empty() && text().back() == ' ') text().pop_back();
  if (!text().empty() && !text().ends_with("\n\n")) text() += "\n\n";
}

std::string TinyWorldWriter::framed(std::string_view frame, const Slots& slots) {
  return expanded(dice_.pick(lexicon_.frame(frame)), slots);
}

std::string TinyWorldWriter::expanded(const Phrase& phrase, const Slots& slots) {
  return sentence_case(phrase.expand(dice_, [&](std::string_view name) { return find(slots, name); }));
}

std::string TinyWorldWriter::given(std::uint32_t person) const {
  const std::string& name = world_.name({Kind::person, person});
  return name.substr(0, name.find(' '));
}

std::string TinyWorldWriter::mention_form(EntityId e, bool full) {
  const auto& forms = lexicon_.mentions[static_cast<std::size_t>(e.kind)];
  return (full ? forms.full : forms.short_form).expand(dice_, [&](std::string_view slot) {
    return slot == "given" ? given(e.index) : world_.name(e);
  });
}

std::string TinyWorldWriter::pronoun(EntityId e, char grammatical_case) const {
  if (e.kind != Kind::person) return grammatical_case == 'P' ? "its" : "it";
  const bool she = world_.is_she(e);
  if (grammatical_case == 'S') return she ? "she" : "he";
  if (grammatical_case == 'O') return she ? "her" : "him";
  return she ? "her" : "his";
}

std::string TinyWorldWriter::mention(EntityId e, char grammatical_case, bool again) {
  if (again) return pronoun(e, grammatical_case);
  const bool known = last_ == e;
  const bool clear = known && !in_between_;
  const bool short_is_clear = known && (!in_between_ || in_between_->kind != e.kind || e.kind == Kind::person);
  const std::size_t roll = dice_.below(100);
  // "in it" and "of it" read badly: things keep their noun there.
  if (clear && roll < 55)
    return grammatical_case == 'O' && e.kind != Kind::person ? mention_form(e, false) : pronoun(e, grammatical_case);
  const std::string name = mention_form(e, !(short_is_clear && roll < 80));
  return grammatical_case == 'P' ? name + "'s" : name;
}

void TinyWorldWriter::state(const FactId& fact, std::size_t begin) {
  document_.statements.push_back({fact, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(text().size())});
  stated_.insert(fact);
}

std::string TinyWorldWriter::fact_phrase(const FactId& fact, EntityId subject, const std::vector<Phrase>& phrases,
                                         bool mentioned) {
  const FactValue value = *world_.value(fact);
  const std::string words =
      value.kind == FactValue::Kind::entity ? mention_form(value.entity, true) : world_.text(value);
  const EntityId other{Kind::town, subject.index == fact.subject ? fact.other : fact.subject};
  const auto unit = [&]() -> const std::string& {
    if (subject.kind != Kind::goods) return lexicon_.goods[fact.other].unit;
    const std::string kind = world_.value({Attribute::goods_kind, subject.index, 0, 0})->word;
    return std::find_if(lexicon_.goods.begin(), lexicon_.goods.end(), [&](const auto& g) { return g.name == kind; })
        ->unit;
  };
  const std::string result = dice_.pick(phrases).expand(dice_, [&](std::string_view slot) -> std::string {
    if (slot == "V") return words;
    if (slot == "aV") return with_article(words);
    if (slot == "N") return world_.name(subject);
    if (slot == "S" || slot == "O" || slot == "P") return mention(subject, slot[0], std::exchange(mentioned, true));
    if (slot == "him" || slot == "her") return pronoun(subject, slot == "him" ? 'O' : 'P');
    if (slot == "parent") return world_.is_she(value.entity) ? "mother" : "father";
    if (slot == "child") return world_.is_she(subject) ? "daughter" : "son";
    if (slot == "other") return world_.name(other);
    if (slot == "good") return lexicon_.goods[fact.other].name;
    if (slot == "unit") return unit();
    if (slot == "year") return std::to_string(fact.year);
    return {};
  });
  last_ = subject;
  in_between_.reset();
  if (value.kind == FactValue::Kind::entity) in_between_ = value.entity;
  if (fact.attribute == Attribute::town_distance) in_between_ = other;
  return result;
}

void TinyWorldWriter::sentence(const FactId& fact, EntityId e, const std::string& lead) {
  const std::vector<std::string>& leads = lexicon_.leads.find(register_)->second;
  const std::string begins = !lead.empty() ? lead : dice_.percent(12) ? dice_.pick(leads) : std::string();
  const std::size_t begin = text().size();
  text() += sentence_case(begins + fact_phrase(fact, e, phrases_of(fact).third)) + ".";
  state(fact, begin);
  text() += " ";
}

void TinyWorldWriter::own_sentence(const FactId& fact, EntityId e) {
  const std::size_t begin = text().size();
  text() += sentence_case(fact_phrase(fact, e, phrases_of(fact).first)) + ".";
  state(fact, begin);
  text() += " ";
  last_.reset();
  in_between_.reset();
}

std::vector<FactId> TinyWorldWriter::some_facts(EntityId e, std::size_t n, std::size_t distances, std::size_t prices) {
  std::vector<FactId> plain, others, all = world_.facts(e);
  dice_.shuffle(all);
  for (const FactId& fact : all) {
    if (stated_.contains(fact)) continue;
    if (fact.attribute == Attribute::town_distance) {
      if (distances > 0) --distances, others.push_back(fact);
    } else if (fact.attribute == Attribute::town_price) {
      if (prices > 0) --prices, others.push_back(fact);
    } else {
      plain.push_back(fact);
    }
  }
  plain.insert(plain.end(), others.begin(), others.end());
  dice_.shuffle(plain);
  if (plain.size() > n) plain.resize(n);
  return plain;
}

void TinyWorldWriter::tell(EntityId e, std::size_t n) {
  for (const FactId& fact : some_facts(e, n)) sentence(fact, e);
}

std::optional<EntityId> TinyWorldWriter::any(Kind kind) {
  const auto members = world_.members(kind, part_);
  if (members.empty()) return std::nullopt;
  return EntityId{kind, members[dice_.below(members.size())]};
}

EntityId TinyWorldWriter::any_entity() {
  constexpr std::size_t weights[entity_kinds] = {46, 14, 5, 8, 7, 7, 7, 6};
  for (;;) {
    std::size_t ticket = dice_.below(100), kind = 0;
    while (ticket >= weights[kind]) ticket -= weights[kind++];
    if (const auto e = any(static_cast<Kind>(kind))) return *e;
  }
}

std::optional<EntityId> TinyWorldWriter::linked(EntityId e, Attribute attribute) const {
  const auto value = world_.value({attribute, e.index, 0, 0});
  if (!value) return std::nullopt;
  return value->entity;
}

std::vector<EntityId> TinyWorldWriter::around(EntityId person) {
  std::vector<EntityId> out(world_.belongings(person).begin(), world_.belongings(person).end());
  for (const Attribute a : {Attribute::person_home, Attribute::person_parent, Attribute::person_employer}) {
    if (const auto e = linked(person, a)) out.push_back(*e);
  }
  if (const auto home = linked(person, Attribute::person_home)) {
    if (const auto neighbours = world_.residents(*home); !neighbours.empty()) {
      const EntityId neighbour{Kind::person, dice_.pick(neighbours)};
      if (neighbour != person) out.push_back(neighbour);
    }
  }
  dice_.shuffle(out);
  return out;
}

void TinyWorldWriter::table_line(const Phrase& row, const Slots& slots, const FactId& fact) {
  const std::size_t begin = text().size();
  text() += expanded(row, slots);
  state(fact, begin);
  text() += "\n";
}

}  // namespace stacklab
