#include "engine/base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

namespace stacklab {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool starts_with_ignoring_case(std::string_view text, std::string_view start) {
  return text.size() >= start.size() &&
         std::equal(start.begin(), start.end(), text.begin(), [](char a, char b) { return lower(a) == lower(b); });
}

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
  // Optimal string alignment, three rows.
  std::vector<int> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const int same = lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + same});
      if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]))
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

std::optional<std::string> nearest_name(std::string_view name, std::span<const std::string> candidates) {
  if (name.empty() || name.size() > 200) return std::nullopt;
  const std::string* best = nullptr;
  int best_distance = std::numeric_limits<int>::max();
  const std::string* completion = nullptr;
  int completions = 0;
  for (const std::string& candidate : candidates) {
    if (name.size() >= 3 && starts_with_ignoring_case(candidate, name)) {
      completion = &candidate;
      ++completions;
    }
    const int distance = edit_distance(name, candidate);
    const int allowed = std::max<int>(1, static_cast<int>(std::max(name.size(), candidate.size())) / 3);
    if (distance <= allowed && distance < best_distance) {
      best = &candidate;
      best_distance = distance;
    }
  }
  if (completions == 1 && best_distance > 1) return *completion;
  if (best != nullptr) return *best;
  return std::nullopt;
}

std::string did_you_mean(std::string_view name, std::span<const std::string> candidates) {
  const std::optional<std::string> nearest = nearest_name(name, candidates);
  return nearest ? fmt::format("did you mean \"{}\"?", *nearest) : std::string();
}

std::string shortest(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::array<char, 32> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  return {buffer.data(), end};
}

std::optional<double> parse_double(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::int64_t> parse_int(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::int64_t> parse_bytes(std::string_view text) {
  struct Unit {
    std::string_view name;
    double bytes;
  };
  static constexpr std::array units = {Unit{"B", 1},           Unit{"kB", 1e3},           Unit{"MB", 1e6},
                                       Unit{"GB", 1e9},        Unit{"TB", 1e12},          Unit{"KiB", 1024.0},
                                       Unit{"MiB", 1048576.0}, Unit{"GiB", 1073741824.0}, Unit{"TiB", 1099511627776.0}};
  double factor = 1;
  std::string_view digits = trim(text);
  // The longest unit: "MB" ends with "B" too.
  std::size_t length = 0;
  for (const Unit& unit : units)
    if (digits.ends_with(unit.name) && unit.name.size() > length) factor = unit.bytes, length = unit.name.size();
  digits = trim(digits.substr(0, digits.size() - length));
  const std::optional<double> number = parse_double(digits);
  constexpr double most = 9e18;
  if (!number || !(*number >= 0) || *number * factor > most) return std::nullopt;
  return static_cast<std::int64_t>(*number * factor);
}

std::string format_bytes(double bytes) {
  static constexpr std::array units = {"B", "kB", "MB", "GB", "TB", "PB"};
  if (!std::isfinite(bytes)) return "–";
  std::size_t unit = 0;
  // 999.95 would print as 1000.0.
  while (unit + 1 < units.size() && std::abs(bytes) >= (unit == 0 ? 1000.0 : 999.95)) {
    bytes /= 1000.0;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.1f} {}", bytes, units[unit]);
}

std::string format_count(double count) {
  if (!std::isfinite(count)) return "–";
  const double size = std::abs(count);
  if (size < 999.5) return fmt::format("{:.0f}", count);
  if (size < 999.95e3) return fmt::format("{:.1f}k", count / 1e3);
  const bool billions = size >= 999.95e6;
  const double value = count / (billions ? 1e9 : 1e6);
  return fmt::format("{:.{}f} {}", value, std::abs(value) < 9.995 ? 2 : 1, billions ? "B" : "M");
}

std::string format_duration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "–";
  if (seconds < 0.95) return fmt::format("{:.1f} s", seconds);
  constexpr double longest = 1e9 * 86400.0;
  const auto whole = static_cast<std::int64_t>(std::llround(std::min(seconds, longest)));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  if (whole < 86400) return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
  return fmt::format("{} d {} h", whole / 86400, whole % 86400 / 3600);
}

std::string format_integer(std::int64_t value) {
  std::string digits = fmt::format("{}", value);
  const std::size_t first = value < 0 ? 1 : 0;
  for (std::size_t i = digits.size(); i > first + 3;) {
    i -= 3;
    digits.insert(i, 1, ',');
  }
  return digits;
}

std::size_t utf8_length(std::string_view text) {
  if (text.empty()) return 0;
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return 1;
  const std::size_t length = byte(0) >= 0xF0 ? 4 : byte(0) >= 0xE0 ? 3 : 2;
  if (byte(0) < 0xC2 || byte(0) > 0xF4 || text.size() < length) return 0;
  // Overlong forms, surrogates and what lies above U+10FFFF show in the second byte.
  const unsigned char least = byte(0) == 0xE0 ? 0xA0 : byte(0) == 0xF0 ? 0x90 : 0x80;
  const unsigned char most = byte(0) == 0xED ? 0x9F : byte(0) == 0xF4 ? 0x8F : 0xBF;
  if (byte(1) < least || byte(1) > most) return 0;
  for (std::size_t i = 2; i < length; ++i)
    if (byte(i) < 0x80 || byte(i) > 0xBF) return 0;
  return length;
}

std::string printable(std::string_view text, std::size_t limit) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text.substr(i));
    if (i + std::max<std::size_t>(length, 1) > limit) return out + "...";
    const auto c = static_cast<unsigned char>(text[i]);
    if (length == 0 || c < 0x20 || c == 0x7f)
      out += '?';
    else
      out += text.substr(i, length);
    i += std::max<std::size_t>(length, 1);
  }
  return out;
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view blank = " \t\r\n\v\f";
  const std::size_t begin = text.find_first_not_of(blank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blank) - begin + 1);
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0;;) {
    const std::size_t end = text.find(separator, begin);
    parts.emplace_back(text.substr(begin, end == std::string_view::npos ? end : end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

}  // namespace stacklab
