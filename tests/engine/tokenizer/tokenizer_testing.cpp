#include "tests/engine/tokenizer/tokenizer_testing.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <memory>

#include "engine/base/atomic_file.h"

namespace stacklab {

std::filesystem::path golden_folder() { return std::filesystem::path(STACKLAB_SOURCE_DIR) / "tests/golden"; }

nlohmann::json golden_json(const std::string& name) {
  const Result<std::string> text = read_file(golden_folder() / "tokenizer" / name);
  if (!text) throw std::runtime_error(text.error().message());
  return nlohmann::json::parse(*text);
}

NextDocument documents_of(std::vector<std::string> documents) {
  auto kept = std::make_shared<std::vector<std::string>>(std::move(documents));
  auto next = std::make_shared<std::size_t>(0);
  return [=](std::string_view& document) -> Result<bool> {
    if (*next == kept->size()) return false;
    document = (*kept)[(*next)++];
    return true;
  };
}

std::vector<TokenId> ids_of(const Tokenizer& tokenizer, std::string_view text, Specials specials) {
  std::vector<TokenId> ids;
  const Status encoded = tokenizer.encode(text, specials, ids);
  EXPECT_TRUE(encoded) << (encoded ? "" : encoded.error().message());
  return ids;
}

std::vector<std::string> pieces_of(Split split, std::string_view text) {
  std::vector<std::string> pieces;
  for_each_piece(split, text, [&](const char* piece, std::size_t bytes) { pieces.emplace_back(piece, bytes); });
  return pieces;
}

std::string odd_text(Numbers& numbers, std::size_t characters) {
  static const std::vector<std::string> kinds = {
      "a",          "S",      "t",      "re",     "L",      "D",      "'",      "'",      "\u017F",  " ",
      " ",          " ",      "\n",     "\r",     "\t",     "1",      "7",      "\u00B2", "\u2167",  "!",
      ".",          "_",      "-",      "\u00A0", "\u3000", "\u2028", "\u0085", "\u0301", "e\u0301", "\u4E2D",
      "\U0001F469", "\u200D", "\uFEFF", "\u00E9", "\u0416", "\u05D0", "\u0E01", "\u00AD", "\u212A",  "\U0001D7D8"};
  std::string text;
  while (characters > 0) {
    const std::string& kind = kinds[numbers.below(kinds.size())];
    const std::size_t times = std::min<std::size_t>(characters, numbers.below(4) == 0 ? 1 + numbers.below(5) : 1);
    for (std::size_t i = 0; i < times; ++i) text += kind;
    characters -= times;
  }
  return text;
}

}  // namespace stacklab
