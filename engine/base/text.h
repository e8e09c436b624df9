// Text for people and files: suggestions, numbers, units. Nothing here depends on the locale.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stacklab {

// Edits (insert, delete, replace, swap of neighbours) that turn a into b; letters' case is ignored.
int edit_distance(std::string_view a, std::string_view b);
// The candidate that was probably meant: a unique completion, or the nearest within a third of its length. Ties: the
// first.
std::optional<std::string> nearest_name(std::string_view name, std::span<const std::string> candidates);
// "did you mean "x"?" or nothing: the remedy of an unknown name.
std::string did_you_mean(std::string_view name, std::span<const std::string> candidates);

// Reads back exactly, as short as possible: "0.1", "1e-05", "10000", "nan", "inf", "-inf".
std::string shortest(double value);
// The whole text as a number, with '.' as the decimal sign; empty when it is not one. nan and inf are accepted by
// parse_double.
std::optional<double> parse_double(std::string_view text);
std::optional<std::int64_t> parse_int(std::string_view text);

// A number of bytes: "1048576", "500MB", "4 GiB", "1.5e9"; empty when it is not one that is at least 0.
std::optional<std::int64_t> parse_bytes(std::string_view text);

// "512 B", "31.5 MB", "24.5 GB" (1 GB = 1e9 bytes).
std::string format_bytes(double bytes);
// "950", "231.5k", "1.64 M", "6.54 B".
std::string format_count(double count);
// At most two units: "0.4 s", "42 s", "4 min 10 s", "13 h 45 min", "2 d 4 h"; "–" when unknown (negative, NaN or
// infinite).
std::string format_duration(double seconds);
// "101,353,728".
std::string format_integer(std::int64_t value);

// Bytes of the well-formed UTF-8 character at the start of text; 0: there is none.
std::size_t utf8_length(std::string_view text);
// Other people's text for a message: control characters and broken UTF-8 become '?', what is longer than limit bytes is
// cut.
std::string printable(std::string_view text, std::size_t limit = 80);

std::string_view trim(std::string_view text);
std::vector<std::string> split(std::string_view text, char separator);

}  // namespace stacklab
