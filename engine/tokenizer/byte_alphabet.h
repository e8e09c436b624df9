// Byte-level BPE spells each of the 256 bytes as one printable character: those of Latin-1 that print as themselves,
// the others as U+0100 and up. Base tokens are numbered in the order of these characters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stacklab {

// The number of the byte's character among the 256, by code point: '!' is 0.
int byte_rank(std::uint8_t byte);
std::uint8_t byte_of_rank(int rank);

// The bytes as these characters, in UTF-8, and back; empty when one of the characters stands for no byte.
std::string spell_bytes(std::string_view bytes);
std::optional<std::string> unspell_bytes(std::string_view spelled);

}  // namespace stacklab
