#include <algorithm>
#include <set>

#include "engine/data/tinyworld.h"
#include "engine/data/tinyworld_lexicon.h"
#include "engine/data/tinyworld_tables.h"

namespace stacklab {
namespace {

using Kind = EntityKind;

constexpr std::uint32_t document_stream = 0x7477'1000;

// Who was spoken of last, so that a pronoun is used only where it can mean nobody else.
struct Discourse {
  std::optional<EntityId> last;
  std::optional<EntityId> in_between;  // an entity that the last sentence named as a value
};

class Writer {
 public:
  Writer(const TinyWorld& world, WorldPart part, std::uint64_t index, std::uint64_t seed)
      : world_(world),
        lexicon_(world.lexicon()),
        part_(part),
        dice_(seed, document_stream + static_cast<std::uint32_t>(part), index) {}

  WorldDocument write() {
    std::size_t total = 0;
    for (const auto& [kind, weight] : lexicon_.document_weights) total += weight;
    std::size_t ticket = dice_.below(std::max<std::size_t>(total, 1));
    document_.kind = "entry";
    for (const auto& [kind, weight] : lexicon_.document_weights) {
      if (ticket < weight) {
        document_.kind = kind;
        break;
      }
      ticket -= weight;
    }
    bool written = false;
    if (document_.kind == "letter") written = letter();
    if (document_.kind == "diary") written = diary();
    if (document_.kind == "news") written = news();
    if (document_.kind == "dialogue") written = dialogue();
    if (document_.kind == "ledger") written = ledger();
    if (document_.kind == "timetable") written = timetable();
    if (document_.kind == "register") written = residents();
    if (!written) {
      document_ = {"entry", {}, {}};
      entry();
    }
    while (!document_.text.empty() && (document_.text.back() == '\n' || document_.text.back() == ' '))
      document_.text.pop_back();
    document_.text.push_back('\n');
    return std::move(document_);
  }

 private:
  using Slots = std::vector<std::pair<std::string_view, std::string>>;

  // --- pieces of text

  std::string& text() { return document_.text; }
  void line(const std::string& words) { text() += words + "\n"; }

  static std::string find(const Slots& slots, std::string_view name) {
    for (const auto& [key, value] : slots) {
      if (key == name) return value;
    }
    return {};
  }
  std::string framed(std::string_view frame, const Slots& slots = {}) {
    return sentence_case(
        dice_.pick(lexicon_.frame(frame)).expand(dice_, [&](std::string_view name) { return find(slots, name); }));
  }

  std::string given(std::uint32_t person) {
    const std::string& name = world_.name({Kind::person, person});
    return name.substr(0, name.find(' '));
  }
  bool she(EntityId person) const { return world_.is_she(person); }

  std::string mention_form(EntityId e, bool full) {
    const auto& forms = lexicon_.mentions[static_cast<std::size_t>(e.kind)];
    return (full ? forms.full : forms.short_form).expand(dice_, [&](std::string_view slot) {
      return slot == "given" ? given(e.index) : world_.name(e);
    });
  }
  std::string pronoun(EntityId e, char grammatical_case) const {
    if (e.kind != Kind::person) return grammatical_case == 'P' ? "its" : "it";
    if (grammatical_case == 'S') return she(e) ? "she" : "he";
    if (grammatical_case == 'O') return she(e) ? "her" : "him";
    return she(e) ? "her" : "his";
  }

  // A word for e in this case (S, O or P), by what was said before.
  std::string mention(EntityId e, char grammatical_case, bool again) {
    if (again) return pronoun(e, grammatical_case);
    const bool known = discourse_.last == e;
    const bool clear = known && !discourse_.in_between;
    const bool short_is_clear =
        known && (!discourse_.in_between || discourse_.in_between->kind != e.kind || e.kind == Kind::person);
    const std::size_t roll = dice_.below(100);
    // "in it" and "of it" read badly: things keep their noun there.
    if (clear && roll < 55)
      return grammatical_case == 'O' && e.kind != Kind::person ? mention_form(e, false) : pronoun(e, grammatical_case);
    const std::string name = mention_form(e, !(short_is_clear && roll < 80));
    return grammatical_case == 'P' ? name + "'s" : name;
  }

  // --- statements

  void state(const FactId& fact, std::size_t begin) {
    document_.statements.push_back(
        {fact, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(text().size())});
    stated_.insert(fact);
  }

  std::string fact_phrase(const FactId& fact, EntityId subject, const std::vector<Phrase>& phrases,
                          bool mentioned = false) {
    const FactValue value = *world_.value(fact);
    std::string words = value.kind == FactValue::Kind::entity ? mention_form(value.entity, true) : world_.text(value);
    const EntityId other{Kind::town, subject.index == fact.subject ? fact.other : fact.subject};
    const std::string result = dice_.pick(phrases).expand(dice_, [&](std::string_view slot) -> std::string {
      if (slot == "V") return words;
      if (slot == "aV") return with_article(words);
      if (slot == "N") return world_.name(subject);
      if (slot == "S" || slot == "O" || slot == "P") return mention(subject, slot[0], std::exchange(mentioned, true));
      if (slot == "him" || slot == "her") return pronoun(subject, slot == "him" ? 'O' : 'P');
      if (slot == "parent") return she(value.entity) ? "mother" : "father";
      if (slot == "child") return she(subject) ? "daughter" : "son";
      if (slot == "other") return world_.name(other);
      if (slot == "good") return lexicon_.goods[fact.other].name;
      if (slot == "unit") return lexicon_.goods[fact.other].unit;
      if (slot == "year") return std::to_string(fact.year);
      return {};
    });
    discourse_.last = subject;
    discourse_.in_between.reset();
    if (value.kind == FactValue::Kind::entity) discourse_.in_between = value.entity;
    if (fact.attribute == Attribute::town_distance) discourse_.in_between = other;
    return result;
  }

  const AttributePhrases& phrases_of(const FactId& fact) const {
    return lexicon_.phrases[static_cast<std::size_t>(fact.attribute)];
  }

  // A sentence about e, in the third person.
  void sentence(const FactId& fact, EntityId e, const std::string& lead = {}) {
    const std::string begins = !lead.empty() ? lead : dice_.percent(12) ? dice_.pick(lexicon_.leads) : std::string();
    const std::size_t begin = text().size();
    text() += sentence_case(begins + fact_phrase(fact, e, phrases_of(fact).third)) + ".";
    state(fact, begin);
    text() += " ";
  }
  // A sentence that e says.
  void own_sentence(const FactId& fact, EntityId e) {
    const std::size_t begin = text().size();
    text() += sentence_case(fact_phrase(fact, e, phrases_of(fact).first)) + ".";
    state(fact, begin);
    text() += " ";
    discourse_ = {};
  }

  // Up to n facts about e that this document has not stated, in random order; of distances and prices only a few.
  std::vector<FactId> some_facts(EntityId e, std::size_t n, std::size_t distances = 1, std::size_t prices = 1) {
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

  void tell(EntityId e, std::size_t n) {
    for (const FactId& fact : some_facts(e, n)) sentence(fact, e);
  }

  // --- who and what

  std::optional<EntityId> any(Kind kind) {
    const auto members = world_.members(kind, part_);
    if (members.empty()) return std::nullopt;
    return EntityId{kind, members[dice_.below(members.size())]};
  }
  EntityId any_entity() {
    constexpr std::size_t weights[entity_kinds] = {50, 14, 5, 8, 7, 8, 8};
    for (;;) {
      std::size_t ticket = dice_.below(100), kind = 0;
      while (ticket >= weights[kind]) ticket -= weights[kind++];
      if (const auto e = any(static_cast<Kind>(kind))) return *e;
    }
  }
  std::optional<EntityId> linked(EntityId e, Attribute attribute) const {
    const auto value = world_.value({attribute, e.index, 0, 0});
    if (!value) return std::nullopt;
    return value->entity;
  }
  // Entities that a person would write about.
  std::vector<EntityId> around(EntityId person) {
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

  // --- kinds of documents

  void entry() {
    const EntityId e = any_entity();
    const std::string name = world_.name(e);
    const std::string title = framed("entry.title", {{"N", name}, {"underline", std::string(name.size(), '=')}});
    if (dice_.percent(70)) line(title + "\n");
    const std::size_t n = 3 + dice_.below(5);
    for (const FactId& fact : some_facts(e, n, 2, 2)) {
      sentence(fact, e);
      if (dice_.percent(15)) paragraph();
    }
    std::vector<EntityId> related;
    for (const Statement& s : document_.statements) {
      const FactValue value = *world_.value(s.fact);
      if (value.kind == FactValue::Kind::entity) related.push_back(value.entity);
    }
    if (!related.empty() && dice_.percent(50)) {
      paragraph();
      const EntityId other = dice_.pick(related);
      const std::vector<FactId> facts = some_facts(other, 1 + dice_.below(2));
      for (std::size_t i = 0; i < facts.size(); ++i)
        sentence(facts[i], other, i == 0 ? dice_.pick(lexicon_.frame("entry.related")).expand(dice_) : "");
    }
  }

  bool letter() {
    const auto writer = any(Kind::person), reader = any(Kind::person);
    if (!writer || !reader || *writer == *reader) return false;
    const auto home = linked(*writer, Attribute::person_home);
    if (!home) return false;
    const Slots slots = {{"home", world_.name(*home)},
                         {"now", std::to_string(world_.present_year())},
                         {"given", given(reader->index)},
                         {"reader", world_.name(*reader)},
                         {"N", world_.name(*writer)}};
    line(framed("letter.place", slots) + "\n");
    line(framed("letter.greeting", slots) + "\n");
    text() += framed("letter.opening", slots) + " ";
    for (const FactId& fact : some_facts(*writer, 2 + dice_.below(2))) own_sentence(fact, *writer);
    std::vector<EntityId> others = around(*writer);
    std::erase(others, *reader);
    if (others.size() > 2) others.resize(2);
    for (const EntityId e : others) {
      paragraph();
      if (dice_.percent(60)) text() += framed("letter.turn", slots) + " ";
      tell(e, 1 + dice_.below(3));
    }
    paragraph();
    line(framed("letter.closing", slots) + "\n");
    line(framed("letter.signature", slots));
    return true;
  }

  bool diary() {
    const auto writer = any(Kind::person);
    if (!writer) return false;
    line(framed("diary.title", {{"N", world_.name(*writer)}}) + "\n");
    std::vector<EntityId> others = around(*writer);
    const std::size_t days = 2 + dice_.below(2);
    for (std::size_t day = 0; day < days; ++day) {
      text() += framed("diary.day") + ". " + framed("diary.opening") + " ";
      for (const FactId& fact : some_facts(*writer, 1)) own_sentence(fact, *writer);
      if (day < others.size()) tell(others[day], 1 + dice_.below(2));
      if (dice_.percent(60)) text() += framed("diary.thought") + " ";
      if (const auto town = any(Kind::town); town && text().ends_with(": ")) tell(*town, 1);
      paragraph();
      discourse_ = {};
    }
    return true;
  }

  bool news() {
    const auto place = any(Kind::town);
    if (!place) return false;
    const Slots slots = {{"place", world_.name(*place)}};
    line(framed("news.headline", slots) + "\n");
    text() += framed("news.opening", slots) + " ";
    std::vector<EntityId> topics = {*place};
    for (const std::uint32_t p : world_.residents(*place)) {
      topics.push_back({Kind::person, p});
      for (const EntityId e : world_.belongings({Kind::person, p})) topics.push_back(e);
    }
    dice_.shuffle(topics);
    if (topics.size() > 3) topics.resize(3);
    for (const EntityId e : topics) {
      const std::vector<FactId> facts = some_facts(e, 1 + dice_.below(3));
      for (std::size_t i = 0; i < facts.size(); ++i) {
        sentence(facts[i], e, i == 0 ? dice_.pick(lexicon_.frame("news.item")).expand(dice_) : "");
      }
      if (dice_.percent(40)) paragraph();
    }
    text() += framed("news.closing", slots);
    return true;
  }

  bool dialogue() {
    const auto a = any(Kind::person), b = any(Kind::person);
    const EntityId topic = any_entity();
    if (!a || !b || *a == *b || topic == *a || topic == *b) return false;
    const Slots slots = {{"given", given(a->index)}, {"other_given", given(b->index)}};
    const std::string asks = given(a->index) + ": ", answers = given(b->index) + ": ";
    if (dice_.percent(50)) line(framed("dialogue.setting", slots) + ".\n");
    line(asks + framed("dialogue.opening", slots));
    line(answers + framed("dialogue.reply", slots));
    std::string thanks;
    for (const FactId& fact : some_facts(topic, 2 + dice_.below(3))) {
      text() += asks;
      if (!thanks.empty()) text() += thanks + " ";
      const std::size_t begin = text().size();
      const std::string question = fact_phrase(fact, topic, phrases_of(fact).question);
      line(sentence_case(
          dice_.pick(lexicon_.frame("dialogue.bridge")).expand(dice_, [&](std::string_view) { return question; })));
      text() += answers + sentence_case(fact_phrase(fact, topic, phrases_of(fact).answer, /*mentioned=*/true)) + ".";
      state(fact, begin);
      text() += "\n";
      thanks = dice_.percent(40) ? framed("dialogue.after", slots) : "";
    }
    if (dice_.percent(60)) {
      line(asks + framed("dialogue.after", slots));
      line(answers + framed("dialogue.farewell", slots));
    }
    return true;
  }

  bool ledger() {
    const auto town = any(Kind::town);
    if (!town) return false;
    const std::uint32_t year =
        static_cast<std::uint32_t>(world_.present_year() - dice_.between(1, lexicon_.price_years));
    line(framed("ledger.title", {{"N", world_.name(*town)}, {"year", std::to_string(year)}}) + "\n");
    std::vector<std::uint32_t> goods(lexicon_.goods.size());
    for (std::uint32_t i = 0; i < goods.size(); ++i) goods[i] = i;
    dice_.shuffle(goods);
    goods.resize(std::min<std::size_t>(goods.size(), 5 + dice_.below(6)));
    const Phrase& row = dice_.pick(lexicon_.frame("ledger.line"));
    for (const std::uint32_t g : goods) {
      const FactId fact{Attribute::town_price, town->index, g, year};
      const Slots slots = {
          {"good", lexicon_.goods[g].name}, {"unit", lexicon_.goods[g].unit}, {"V", world_.text(*world_.value(fact))}};
      table_line(row, slots, {fact});
    }
    text() += "\n" + framed("ledger.closing");
    return true;
  }

  bool timetable() {
    const auto town = any(Kind::town);
    if (!town) return false;
    const auto members = world_.members(Kind::town, part_);
    std::vector<std::uint32_t> others(members.begin(), members.end());
    std::erase(others, town->index);
    if (others.size() < 2) return false;
    dice_.shuffle(others);
    others.resize(std::min<std::size_t>(others.size(), 4 + dice_.below(5)));
    line(framed("timetable.title", {{"N", world_.name(*town)}}) + "\n");
    const Phrase& row = dice_.pick(lexicon_.frame("timetable.line"));
    for (const std::uint32_t other : others) {
      const FactId fact{Attribute::town_distance, std::min(town->index, other), std::max(town->index, other), 0};
      const Slots slots = {{"N", world_.name(*town)},
                           {"other", world_.name({Kind::town, other})},
                           {"V", world_.text(*world_.value(fact))}};
      table_line(row, slots, {fact});
    }
    text() += "\n" + framed("timetable.closing");
    return true;
  }

  bool residents() {
    const auto town = any(Kind::town);
    if (!town) return false;
    const auto all = world_.residents(*town);
    std::vector<std::uint32_t> people(all.begin(), all.end());
    if (people.size() < 3) return false;
    dice_.shuffle(people);
    people.resize(std::min<std::size_t>(people.size(), 4 + dice_.below(6)));
    line(framed("register.title", {{"N", world_.name(*town)}}) + "\n");
    line(framed("register.heading"));
    for (const std::uint32_t p : people) {
      const std::size_t begin = text().size();
      text() += world_.name({Kind::person, p});
      for (const Attribute a : {Attribute::person_trade, Attribute::person_birth_year, Attribute::person_height}) {
        text() += "; " + world_.text(*world_.value({a, p, 0, 0}));
      }
      for (const Attribute a : {Attribute::person_trade, Attribute::person_birth_year, Attribute::person_height})
        state({a, p, 0, 0}, begin);
      text() += "\n";
    }
    text() += "\n" + framed("register.closing");
    return true;
  }

  void table_line(const Phrase& row, const Slots& slots, const FactId& fact) {
    const std::size_t begin = text().size();
    text() += sentence_case(row.expand(dice_, [&](std::string_view name) { return find(slots, name); }));
    state(fact, begin);
    text() += "\n";
  }

  void paragraph() {
    while (!text().empty() && text().back() == ' ') text().pop_back();
    if (!text().empty() && !text().ends_with("\n\n")) text() += "\n\n";
  }

  const TinyWorld& world_;
  const Lexicon& lexicon_;
  WorldPart part_;
  Dice dice_;
  Discourse discourse_;
  WorldDocument document_;
  std::set<FactId> stated_;
};

}  // namespace

WorldDocument TinyWorld::document(WorldPart part, std::uint64_t index) const {
  return Writer(*this, part, index, seed_).write();
}

}  // namespace stacklab
