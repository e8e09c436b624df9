#include "engine/data/tinyworld_documents.h"

#include <algorithm>

#include "engine/data/tinyworld_writer.h"

namespace stacklab {
namespace {

constexpr std::uint32_t document_stream = 0x7477'1000;

class DocumentWriter : public TinyWorldWriter {
 public:
  DocumentWriter(const TinyWorld& world, WorldPart part, std::uint64_t index)
      : TinyWorldWriter(world, part, {world.seed(), document_stream + static_cast<std::uint32_t>(part), index}) {}

  WorldDocument write(const std::optional<TinyWorldOrder>& order) {
    if (!write_as(order ? std::string(order->kind) : drawn_kind(), order)) {
      document_ = {};
      stated_.clear();
      write_as("entry", {});
    }
    while (!text().empty() && (text().back() == '\n' || text().back() == ' ')) text().pop_back();
    text().push_back('\n');
    return std::move(document_);
  }

 private:
  std::string drawn_kind() {
    std::size_t total = 0;
    for (const auto& [kind, weight] : lexicon_.document_weights) total += weight;
    std::size_t ticket = dice_.below(std::max<std::size_t>(total, 1));
    for (const auto& [kind, weight] : lexicon_.document_weights) {
      if (ticket < weight) return kind;
      ticket -= weight;
    }
    return "entry";
  }

  // False where the part has not got what it takes.
  bool write_as(const std::string& kind, const std::optional<TinyWorldOrder>& order) {
    document_.kind = kind;
    register_ = dice_.pick(lexicon_.registers.find(kind)->second);
    const std::optional<EntityId> about = order ? std::optional(order->about) : std::nullopt;
    if (kind == "letter") return letter();
    if (kind == "diary") return diary();
    if (kind == "news") return news();
    if (kind == "dialogue") return dialogue();
    if (kind == "ledger") return ledger(about, order ? order->year : 0);
    if (kind == "timetable") return timetable(about);
    if (kind == "register") return residents();
    if (kind == "recipe") return recipe();
    if (kind == "game") return game();
    entry(about);
    return true;
  }

  void entry(std::optional<EntityId> about) {
    const EntityId e = about ? *about : any_entity();
    const std::string name = world_.name(e);
    const std::string title = framed("entry.title", {{"N", name}, {"underline", std::string(name.size(), '=')}});
    if (dice_.percent(70)) line(title + "\n");
    const std::size_t n = 3 + dice_.below(5);
    for (const FactId& fact : about ? some_facts(e, attributes, 0, 0) : some_facts(e, n, 2, 2)) {
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
      for (std::size_t i = 0; i < facts.size(); ++i) sentence(facts[i], other, i == 0 ? plain("entry.related") : "");
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
      last_.reset();
      in_between_.reset();
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
    for (const std::uint32_t g : world_.products(*place)) topics.push_back({Kind::goods, g});
    dice_.shuffle(topics);
    if (topics.size() > 3) topics.resize(3);
    for (const EntityId e : topics) {
      const std::vector<FactId> facts = some_facts(e, 1 + dice_.below(3));
      for (std::size_t i = 0; i < facts.size(); ++i) {
        sentence(facts[i], e, i == 0 ? plain("news.item") : "");
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

  bool ledger(std::optional<EntityId> town, std::uint32_t ordered_year) {
    const bool complete = town.has_value();
    if (!town) town = any(Kind::town);
    if (!town) return false;
    const std::uint32_t year =
        complete ? ordered_year
                 : static_cast<std::uint32_t>(world_.present_year() - dice_.between(1, lexicon_.price_years));
    line(framed("ledger.title", {{"N", world_.name(*town)}, {"year", std::to_string(year)}}) + "\n");
    std::vector<std::uint32_t> goods(lexicon_.goods.size());
    for (std::uint32_t i = 0; i < goods.size(); ++i) goods[i] = i;
    dice_.shuffle(goods);
    if (!complete) goods.resize(std::min<std::size_t>(goods.size(), 5 + dice_.below(6)));
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

  bool timetable(std::optional<EntityId> town) {
    const bool complete = town.has_value();
    if (!town) town = any(Kind::town);
    if (!town) return false;
    const auto members = world_.members(Kind::town, part_);
    std::vector<std::uint32_t> others(members.begin(), members.end());
    std::erase(others, town->index);
    if (others.size() < (complete ? 1 : 2)) return false;
    dice_.shuffle(others);
    if (!complete) others.resize(std::min<std::size_t>(others.size(), 4 + dice_.below(5)));
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

  bool recipe() {
    const auto cook = any(Kind::person);
    if (!cook) return false;
    const auto& dish = dice_.pick(lexicon_.dishes);
    const Slots slots = {{"dish", dish.name}, {"main", dish.main}, {"N", world_.name(*cook)}};
    line(framed("recipe.title", slots) + "\n");
    line(framed("recipe.heading", slots));
    line("- " + framed("recipe.main", slots));
    for (const Phrase& ingredient : some_of("recipe.ingredient", 2 + dice_.below(3)))
      line("- " + expanded(ingredient, slots));
    text() += "\n" + framed("recipe.first", slots) + " ";
    for (const Phrase& step : some_of("recipe.step", 2 + dice_.below(4))) text() += expanded(step, slots) + " ";
    if (const std::string words = framed("recipe.closing", slots); !words.empty()) text() += words + " ";
    paragraph();
    // The cook, a farm that grows what is needed, and what something of it costs somewhere.
    const std::vector<FactId> own = some_facts(*cook, 1 + dice_.below(3));
    for (std::size_t i = 0; i < own.size(); ++i) sentence(own[i], *cook, i == 0 ? plain("recipe.note") : "");
    std::vector<std::uint32_t> farms;
    for (const std::uint32_t f : world_.members(Kind::farm, part_)) {
      if (world_.value({Attribute::farm_crop, f, 0, 0})->word == dish.main) farms.push_back(f);
    }
    if (!farms.empty() && dice_.percent(70)) {
      const EntityId farm{Kind::farm, dice_.pick(farms)};
      sentence({Attribute::farm_crop, farm.index, 0, 0}, farm);
      tell(farm, 1 + dice_.below(2));
    }
    return true;
  }

  bool game() {
    const auto place = any(Kind::town), player = any(Kind::person);
    if (!place || !player) return false;
    const std::string name = plain("game.names");
    const Slots slots = {{"game", name}, {"place", world_.name(*place)}, {"N", world_.name(*player)}};
    line(framed("game.title", slots) + "\n");
    text() += framed("game.players", slots) + " " + framed("game.need", slots) + "\n\n";
    for (const Phrase& rule : some_of("game.rule", 3 + dice_.below(3))) line("- " + expanded(rule, slots));
    text() += "\n" + framed("game.end", slots) + " ";
    const Phrase& note = dice_.pick(lexicon_.frame("game.note"));
    std::set<std::string> named;
    note.collect_slots(named);
    text() += expanded(note, slots);
    paragraph();
    tell(named.contains("place") ? *place : *player, 1 + dice_.below(3));
    return true;
  }

  // Different phrases of a frame, in random order.
  std::vector<Phrase> some_of(std::string_view frame, std::size_t n) {
    std::vector<Phrase> phrases = lexicon_.frame(frame);
    dice_.shuffle(phrases);
    if (phrases.size() > n) phrases.resize(n);
    return phrases;
  }
};

}  // namespace

WorldDocument tinyworld_document(const TinyWorld& world, WorldPart part, std::uint64_t index,
                                 const std::optional<TinyWorldOrder>& order) {
  return DocumentWriter(world, part, index).write(order);
}

}  // namespace stacklab
