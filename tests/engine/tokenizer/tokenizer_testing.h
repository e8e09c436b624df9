// What the tests of the tokenizer share.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tokenizer/tokenizer.h"
#include "engine/tokenizer/trainer.h"

namespace stacklab {

std::filesystem::path golden_folder();                // tests/golden
nlohmann::json golden_json(const std::string& name);  // of tests/golden/tokenizer

// The documents one after another.
NextDocument documents_of(std::vector<std::string> documents);
std::vector<TokenId> ids_of(const Tokenizer& tokenizer, std::string_view text, Specials specials);
std::vector<std::string> pieces_of(Split split, std::string_view text);

// A small generator whose numbers are the same everywhere.
class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) : state_(seed) {}
  std::uint64_t below(std::uint64_t bound) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return (state_ >> 33) % bound;
  }

 private:
  std::uint64_t state_;
};

// Text of characters that the splits tell apart, in runs.
std::string odd_text(Numbers& numbers, std::size_t characters);

}  // namespace stacklab
