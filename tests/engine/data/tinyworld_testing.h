// A world shared by the tests of one program, and what they say of it.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/data/tinyworld_documents.h"
#include "engine/data/tinyworld_lexicon.h"

namespace stacklab {

inline const std::filesystem::path tinyworld_words =
    std::filesystem::path(STACKLAB_SOURCE_DIR) / "resources" / "tinyworld";

inline TinyWorld make_world(std::uint64_t seed, std::int64_t people) {
  Result<TinyWorld> world = TinyWorld::create(seed, people, tinyworld_words);
  EXPECT_TRUE(world) << world.error().message();
  return std::move(world.value());
}
inline const TinyWorld& shared_world() {
  static const TinyWorld shared = make_world(1, 2000);
  return shared;
}
inline WorldDocument document_of(WorldPart part, std::uint64_t index) {
  return tinyworld_document(shared_world(), part, index);
}

inline std::vector<EntityId> all_entities(const TinyWorld& w) {
  std::vector<EntityId> out;
  for (std::size_t k = 0; k < entity_kinds; ++k) {
    for (std::uint32_t i = 0; i < w.count(static_cast<EntityKind>(k)); ++i)
      out.push_back({static_cast<EntityKind>(k), i});
  }
  return out;
}
inline constexpr WorldPart all_parts[] = {WorldPart::train, WorldPart::validation, WorldPart::test, WorldPart::library};

inline std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

}  // namespace stacklab
