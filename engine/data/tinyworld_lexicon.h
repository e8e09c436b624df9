// The words of TinyWorld: resources/tinyworld/{names,world,phrases,documents,drills}.json.
#pragma once

#include <array>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/tinyworld.h"
#include "engine/data/tinyworld_grammar.h"

namespace stacklab {

struct AttributePhrases {
  std::vector<Phrase> third, first, question, answer;
};

struct Lexicon {
  struct Species {
    std::string name;
    std::int64_t years = 0;  // that one lives at most
  };
  struct Goods {
    std::string name, unit;
    std::int64_t price = 0;
  };
  struct Dish {
    std::string name, main;  // main: a crop
  };
  struct Mentions {
    Phrase full, short_form;
  };

  // Errors name the file and the key.
  static Result<Lexicon> load(const std::filesystem::path& folder);

  const std::vector<Phrase>& frame(std::string_view name) const { return frames.find(name)->second; }

  std::map<std::string, Phrase, std::less<>> names;
  std::int64_t present_year = 0, price_years = 0;
  std::array<std::int64_t, entity_kinds> per_2000_people{};
  std::array<std::int64_t, world_parts> shares{};  // in percent
  std::vector<std::string> trades;                 // the last two are those of captains and of farm owners
  std::vector<std::string> colours, water_colours, habits, animal_habits, crops;
  std::vector<Species> species;
  std::vector<Goods> goods;
  std::array<Mentions, entity_kinds> mentions;
  // How a sentence may begin, by register (plain, formal, chatty), and the registers of each kind of documents.
  std::map<std::string, std::vector<std::string>, std::less<>> leads, registers;
  std::array<AttributePhrases, attributes> phrases;
  std::vector<std::pair<std::string, std::size_t>> document_weights;
  std::map<std::string, std::vector<Phrase>, std::less<>> frames;  // "letter.opening", "drills.sort.up"
  std::vector<Dish> dishes;
  std::vector<std::pair<std::string, std::size_t>> drill_weights;
  std::vector<std::string> drill_words;
  std::set<std::string> words;  // every word that is no name, in lower case
  std::string sha256;           // of the five files, one after another
  std::int64_t bytes = 0;
};

}  // namespace stacklab
