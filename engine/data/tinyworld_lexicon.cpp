#include "engine/data/tinyworld_lexicon.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "engine/base/atomic_file.h"
#include "engine/base/sha256.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// Every frame that documents use, so that a missing one is noticed at once.
constexpr std::string_view required_frames[] = {
    "entry.title",      "entry.related",     "letter.place",      "letter.greeting", "letter.opening",
    "letter.turn",      "letter.closing",    "letter.signature",  "diary.title",     "diary.day",
    "diary.opening",    "diary.thought",     "news.headline",     "news.opening",    "news.item",
    "news.closing",     "dialogue.setting",  "dialogue.opening",  "dialogue.reply",  "dialogue.bridge",
    "dialogue.after",   "dialogue.farewell", "ledger.title",      "ledger.line",     "ledger.closing",
    "timetable.title",  "timetable.line",    "timetable.closing", "register.title",  "register.heading",
    "register.closing", "recipe.title",      "recipe.heading",    "recipe.main",     "recipe.ingredient",
    "recipe.first",     "recipe.step",       "recipe.closing",    "recipe.note",     "game.names",
    "game.title",       "game.players",      "game.need",         "game.rule",       "game.end",
    "game.note"};
constexpr std::string_view required_drills[] = {"copy.line",    "count.words",    "count.times",     "count.letters",
                                                "sort.up",      "sort.down",      "sort.alphabet",   "sum.line",
                                                "steps.line",   "steps.write",    "steps.carry",     "steps.borrow",
                                                "steps.answer", "compare.larger", "compare.smaller", "compare.yes",
                                                "compare.sign", "spell.line",     "spell.backwards", "spell.length"};
constexpr std::string_view registers[] = {"plain", "formal", "chatty"};
constexpr std::string_view document_kinds[] = {"entry",  "letter",    "diary",    "news",   "dialogue",
                                               "ledger", "timetable", "register", "recipe", "game"};
constexpr std::string_view drill_kinds[] = {"copy", "count", "sort", "sum", "steps", "compare", "spell"};
constexpr std::string_view required_names[] = {"person.she", "person.he", "person.family", "town",   "river",
                                               "ship",       "guild",     "farm",          "animal", "goods"};

// Reads keys of one file; keeps the first error.
class File {
 public:
  File(const fs::path& file, Lexicon& lexicon, Sha256& hash, Status& status)
      : file_(file), lexicon_(lexicon), status_(status) {
    if (!status_) return;
    Result<std::string> text = read_file(file, 4 << 20);
    if (!text) {
      status_ = tl::unexpected(text.error());
      return;
    }
    hash.update(*text);
    lexicon.bytes += static_cast<std::int64_t>(text->size());
    root_ = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
    if (!root_.is_object()) complain("is not JSON, or not whole");
  }

  const Json& root() const { return root_; }

  const Json& at(const Json& object, std::string_view key) {
    static const Json nothing;
    if (!status_) return nothing;
    if (!object.is_object() || !object.contains(key))
      return complain("\"" + std::string(key) + "\" is missing"), nothing;
    return object.find(key).value();
  }
  std::int64_t number(const Json& object, std::string_view key, std::int64_t least, std::int64_t most) {
    const Json& field = at(object, key);
    if (!status_) return 0;
    if (!field.is_number_integer() || field < least || field > most) {
      return complain("\"" + std::string(key) + "\" is not a whole number from " + std::to_string(least) + " to " +
                      std::to_string(most)),
             0;
    }
    return field.get<std::int64_t>();
  }
  std::string text(const Json& object, std::string_view key) {
    const Json& field = at(object, key);
    if (!status_) return {};
    if (!field.is_string()) return complain("\"" + std::string(key) + "\" is not a text"), std::string();
    collect_words(field.get_ref<const std::string&>(), lexicon_.words);
    return field.get<std::string>();
  }
  // A text or a list of them.
  std::vector<std::string> texts(const Json& object, std::string_view key) {
    const Json& field = at(object, key);
    std::vector<std::string> out;
    if (!status_) return out;
    if (field.is_string()) out = {field.get<std::string>()};
    if (field.is_array() && std::all_of(field.begin(), field.end(), [](const Json& e) { return e.is_string(); })) {
      out = field.get<std::vector<std::string>>();
    }
    if (out.empty()) complain("\"" + std::string(key) + "\" is not a list of texts");
    for (const std::string& entry : out) collect_words(entry, lexicon_.words);
    return out;
  }
  // names: a grammar of names, whose pieces are no words.
  std::vector<Phrase> phrases(const Json& object, std::string_view key, bool of_names = false) {
    std::vector<Phrase> out;
    const std::set<std::string> words = lexicon_.words;
    for (const std::string& entry : texts(object, key)) {
      Result<Phrase> phrase = Phrase::parse(entry);
      if (!phrase) return complain("\"" + std::string(key) + "\": " + phrase.error().what), std::vector<Phrase>();
      out.push_back(std::move(*phrase));
    }
    lexicon_.words = words;
    if (!of_names) {
      for (const Phrase& phrase : out) phrase.collect_words(lexicon_.words);
    }
    return out;
  }
  void complain(const std::string& why) {
    if (status_) status_ = failed(file_.string() + ": " + why, "it came with the program: install it again");
  }

 private:
  const fs::path& file_;
  Lexicon& lexicon_;
  Status& status_;
  Json root_;
};

void read_world(File& file, Lexicon& lexicon) {
  const Json& root = file.root();
  lexicon.present_year = file.number(root, "present_year", 200, 9999);
  lexicon.price_years = file.number(root, "price_years", 1, 100);
  const Json& sizes = file.at(root, "per_2000_people");
  lexicon.per_2000_people[0] = 2000;
  for (std::size_t kind = 1; kind < entity_kinds; ++kind) {
    lexicon.per_2000_people[kind] = file.number(sizes, to_string(static_cast<EntityKind>(kind)), 1, 2000);
  }
  const Json& shares = file.at(root, "shares");
  constexpr std::string_view parts[] = {"train", "validation", "test", "library"};
  for (std::size_t part = 0; part < world_parts; ++part) lexicon.shares[part] = file.number(shares, parts[part], 1, 97);
  if (std::accumulate(lexicon.shares.begin(), lexicon.shares.end(), std::int64_t{0}) != 100) {
    file.complain("\"shares\" do not add up to 100");
  }
  lexicon.trades = file.texts(root, "trades");
  lexicon.trades.push_back(file.text(root, "captain_trade"));
  lexicon.trades.push_back(file.text(root, "owner_trade"));
  lexicon.colours = file.texts(root, "colours");
  lexicon.water_colours = file.texts(root, "water_colours");
  lexicon.habits = file.texts(root, "habits");
  lexicon.animal_habits = file.texts(root, "animal_habits");
  lexicon.crops = file.texts(root, "crops");
  for (const Json& entry : file.at(root, "species")) {
    lexicon.species.push_back({file.text(entry, "name"), file.number(entry, "years", 2, 100)});
  }
  for (const Json& entry : file.at(root, "goods")) {
    lexicon.goods.push_back(
        {file.text(entry, "name"), file.text(entry, "unit"), file.number(entry, "price", 2, 100000)});
  }
  if (lexicon.species.empty() || lexicon.goods.empty()) file.complain("\"species\" and \"goods\" must name some");
}

void read_phrases(File& file, Lexicon& lexicon) {
  const Json& mentions = file.at(file.root(), "mentions");
  for (std::size_t kind = 0; kind < entity_kinds; ++kind) {
    const Json& forms = file.at(mentions, to_string(static_cast<EntityKind>(kind)));
    for (auto [key, phrase] :
         {std::pair("full", &lexicon.mentions[kind].full), std::pair("short", &lexicon.mentions[kind].short_form)}) {
      const std::vector<Phrase> read = file.phrases(forms, key);
      if (!read.empty()) *phrase = read.front();
    }
  }
  const Json& leads = file.at(file.root(), "leads");
  for (const std::string_view name : registers) lexicon.leads[std::string(name)] = file.texts(leads, name);
  const Json& all = file.at(file.root(), "attributes");
  for (std::size_t a = 0; a < attributes; ++a) {
    const Attribute attribute = static_cast<Attribute>(a);
    const Json& styles = file.at(all, to_string(attribute));
    AttributePhrases& phrases = lexicon.phrases[a];
    phrases.third = file.phrases(styles, "third");
    phrases.question = file.phrases(styles, "question");
    phrases.answer = file.phrases(styles, "answer");
    if (subject_kind(attribute) == EntityKind::person) phrases.first = file.phrases(styles, "first");
    for (const auto* list : {&phrases.third, &phrases.first, &phrases.answer}) {
      for (const Phrase& phrase : *list) {
        std::set<std::string> slots;
        phrase.collect_slots(slots);
        if (!slots.contains("V") && !slots.contains("aV")) {
          file.complain("a phrase of \"" + std::string(to_string(attribute)) + "\" does not state the value");
        }
      }
    }
  }
}

void read_documents(File& file, Lexicon& lexicon) {
  const Json& weights = file.at(file.root(), "weights");
  const Json& chosen = file.at(file.root(), "registers");
  for (const std::string_view kind : document_kinds) {
    lexicon.document_weights.emplace_back(kind, static_cast<std::size_t>(file.number(weights, kind, 0, 1000)));
    for (const std::string& name : lexicon.registers[std::string(kind)] = file.texts(chosen, kind)) {
      if (!lexicon.leads.contains(name)) file.complain("\"registers\": no register \"" + name + "\"");
    }
  }
  for (const std::string_view name : required_frames) {
    const std::size_t dot = name.find('.');
    lexicon.frames[std::string(name)] = file.phrases(file.at(file.root(), name.substr(0, dot)), name.substr(dot + 1));
  }
  for (const Json& dish : file.at(file.at(file.root(), "recipe"), "dishes")) {
    if (!dish.is_array() || dish.size() != 2 || !dish[0].is_string() || !dish[1].is_string())
      return file.complain("\"dishes\" are not pairs of texts");
    lexicon.dishes.push_back({dish[0].get<std::string>(), dish[1].get<std::string>()});
    collect_words(lexicon.dishes.back().name, lexicon.words);
    if (std::find(lexicon.crops.begin(), lexicon.crops.end(), lexicon.dishes.back().main) == lexicon.crops.end())
      file.complain("\"dishes\": no crop \"" + lexicon.dishes.back().main + "\"");
  }
  if (lexicon.dishes.empty()) file.complain("\"dishes\" are none");
}

void read_drills(File& file, Lexicon& lexicon) {
  const Json& weights = file.at(file.root(), "weights");
  for (const std::string_view kind : drill_kinds)
    lexicon.drill_weights.emplace_back(kind, static_cast<std::size_t>(file.number(weights, kind, 0, 1000)));
  lexicon.drill_words = file.texts(file.root(), "words");
  if (lexicon.drill_words.size() < 50) file.complain("\"words\" must be 50 at least");
  lexicon.frames["drills.titles"] = file.phrases(file.root(), "titles");
  for (const std::string_view name : required_drills) {
    const std::size_t dot = name.find('.');
    lexicon.frames["drills." + std::string(name)] =
        file.phrases(file.at(file.root(), name.substr(0, dot)), name.substr(dot + 1));
  }
}

}  // namespace

Result<Lexicon> Lexicon::load(const fs::path& folder) {
  Lexicon lexicon;
  Sha256 hash;
  Status status;
  {
    const fs::path path = folder / "names.json";
    File file(path, lexicon, hash, status);
    for (const std::string_view name : required_names) {
      const std::vector<Phrase> read = file.phrases(file.root(), name, /*of_names=*/true);
      if (!read.empty()) lexicon.names[std::string(name)] = read.front();
    }
  }
  {
    const fs::path path = folder / "world.json";
    File file(path, lexicon, hash, status);
    if (status) read_world(file, lexicon);
  }
  {
    const fs::path path = folder / "phrases.json";
    File file(path, lexicon, hash, status);
    if (status) read_phrases(file, lexicon);
  }
  {
    const fs::path path = folder / "documents.json";
    File file(path, lexicon, hash, status);
    if (status) read_documents(file, lexicon);
  }
  {
    const fs::path path = folder / "drills.json";
    File file(path, lexicon, hash, status);
    if (status) read_drills(file, lexicon);
  }
  if (!status) return tl::unexpected(status.error());
  lexicon.sha256 = hash.hex();
  return lexicon;
}

}  // namespace stacklab
