// How documents of TinyWorld speak: mentions and pronouns, sentences that state facts, and the record of what was
// stated.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/data/tinyworld.h"
#include "engine/data/tinyworld_lexicon.h"

namespace stacklab {

class TinyWorldWriter {
 public:
  TinyWorldWriter(const TinyWorld& world, WorldPart part, Dice dice)
      : world_(world), lexicon_(world.lexicon()), part_(part), dice_(std::move(dice)) {}

 protected:
  using Kind = EntityKind;
  using Slots = std::vector<std::pair<std::string_view, std::string>>;

  // --- pieces of text

  std::string& text() { return document_.text; }
  void line(const std::string& words) { text() += words + "\n"; }
  void paragraph();
  std::string framed(std::string_view frame, const Slots& slots = {});
  // As it stands, for what does not begin a sentence.
  std::string plain(std::string_view frame) { return dice_.pick(lexicon_.frame(frame)).expand(dice_); }
  std::string expanded(const Phrase& phrase, const Slots& slots);
  std::string given(std::uint32_t person) const;
  std::string mention_form(EntityId e, bool full);
  std::string pronoun(EntityId e, char grammatical_case) const;
  // A word for e in this case (S, O or P), by what was said before.
  std::string mention(EntityId e, char grammatical_case, bool again);

  // --- statements

  void state(const FactId& fact, std::size_t begin);
  std::string fact_phrase(const FactId& fact, EntityId subject, const std::vector<Phrase>& phrases,
                          bool mentioned = false);
  const AttributePhrases& phrases_of(const FactId& fact) const {
    return lexicon_.phrases[static_cast<std::size_t>(fact.attribute)];
  }
  // A sentence about e, in the third person.
  void sentence(const FactId& fact, EntityId e, const std::string& lead = {});
  // A sentence that e says.
  void own_sentence(const FactId& fact, EntityId e);
  // Up to n facts about e that this document has not stated, in random order; of distances and prices only a few.
  std::vector<FactId> some_facts(EntityId e, std::size_t n, std::size_t distances = 1, std::size_t prices = 1);
  void tell(EntityId e, std::size_t n);
  void table_line(const Phrase& row, const Slots& slots, const FactId& fact);

  // --- who and what

  std::optional<EntityId> any(Kind kind);
  EntityId any_entity();
  std::optional<EntityId> linked(EntityId e, Attribute attribute) const;
  // Entities that a person would write about.
  std::vector<EntityId> around(EntityId person);

  const TinyWorld& world_;
  const Lexicon& lexicon_;
  WorldPart part_;
  Dice dice_;
  std::string register_ = "plain";  // of speech
  WorldDocument document_;
  std::set<FactId> stated_;
  // Who was spoken of last, so that a pronoun is used only where it can mean nobody else, and an entity that the last
  // sentence named as a value.
  std::optional<EntityId> last_, in_between_;
};

}  // namespace stacklab
