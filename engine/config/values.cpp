#include "engine/config/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/base/text.h"

namespace stacklab {
namespace {

constexpr std::size_t longest_text = 200;

std::string range_text(const FieldRules& rules) {
  const bool bounded_below = std::isfinite(rules.min), bounded_above = std::isfinite(rules.max);
  const std::string least = fmt::format("{} {}", rules.above_min ? "above" : "at least", shortest(rules.min));
  const std::string most = fmt::format("at most {}", shortest(rules.max));
  if (bounded_below && bounded_above) return fmt::format("{} and {}", least, most);
  return bounded_below ? least : bounded_above ? most : "finite";
}

template <class T>
Status check_number(const Field& field, T value) {
  const double v = static_cast<double>(value);
  const FieldRules& r = field.rules;
  if (std::isfinite(v) && (r.above_min ? v > r.min : v >= r.min) && v <= r.max) return {};
  return usage_error(fmt::format("{}: {} is out of range", field.key, shortest(v)),
                     fmt::format("it must be {}", range_text(r)));
}

Status check_text(const Field& field, const std::string& value) {
  const std::vector<std::string>& choices = field.rules.choices;
  if (!choices.empty() && std::find(choices.begin(), choices.end(), value) == choices.end()) {
    const std::string meant = did_you_mean(value, choices);
    return usage_error(fmt::format("{}: \"{}\" is none of {}", field.key, printable(value), fmt::join(choices, ", ")),
                       meant);
  }
  if (value.size() > longest_text)
    return usage_error(fmt::format("{}: {} bytes are too long", field.key, value.size()),
                       fmt::format("at most {}", longest_text));
  if (printable(value, longest_text) != value)
    return usage_error(fmt::format("{}: \"{}\" has control characters or is not UTF-8", field.key, printable(value)));
  return {};
}

Status wrong_type(const Field& field, std::string_view found) {
  static constexpr std::string_view wanted[] = {"a whole number", "a number", "true or false", "text in quotes"};
  return usage_error(fmt::format("{}: {} instead of {}", field.key, found, wanted[field.value.index()]));
}

}  // namespace

Field* find_field(std::span<Field> fields, std::string_view key) {
  const auto at = std::find_if(fields.begin(), fields.end(), [key](const Field& f) { return f.key == key; });
  return at == fields.end() ? nullptr : &*at;
}

Error unknown_key(std::string_view key, std::span<const Field> fields) {
  // A section itself.
  std::string inside;
  for (const Field& f : fields)
    if (f.key.starts_with(fmt::format("{}.", key)) && inside.size() < 60)
      inside += fmt::format("{}{}", inside.empty() ? "" : ", ", f.key);
  if (!key.empty() && !inside.empty())
    return {Error::Kind::usage, fmt::format("\"{}\" is a section, not a key", printable(key)),
            fmt::format("name one of its keys: {}, ...", inside)};
  // A misspelt key of the right section, a key of the wrong section, then anything near.
  const std::size_t dot = key.rfind('.');
  const std::string_view section = key.substr(0, dot == std::string_view::npos ? 0 : dot + 1);
  const std::string_view last = key.substr(section.size());
  std::vector<std::string> siblings, namesakes, all;
  for (const Field& f : fields) {
    const std::size_t field_dot = f.key.rfind('.');
    const std::string_view field_last =
        std::string_view(f.key).substr(field_dot == std::string::npos ? 0 : field_dot + 1);
    if (!section.empty() && f.key.starts_with(section)) siblings.push_back(f.key);
    if (edit_distance(last.substr(0, longest_text), field_last) <= 1) namesakes.push_back(f.key);
    all.push_back(f.key);
    for (std::size_t d = f.key.find('.'); d != std::string::npos; d = f.key.find('.', d + 1))
      all.push_back(f.key.substr(0, d));
  }
  std::string remedy;
  for (const std::vector<std::string>* candidates : {&siblings, &namesakes, &all}) {
    if (!remedy.empty()) break;
    if (candidates == &namesakes && !namesakes.empty() && !nearest_name(key, namesakes))
      remedy = fmt::format("did you mean \"{}\"?", namesakes[0]);
    else
      remedy = did_you_mean(key, *candidates);
  }
  return {Error::Kind::usage, fmt::format("unknown key \"{}\"", printable(key)), remedy};
}

Status assign(const Field& field, bool value) {
  if (!std::holds_alternative<bool*>(field.value)) return wrong_type(field, value ? "true" : "false");
  *std::get<bool*>(field.value) = value;
  return {};
}

Status assign(const Field& field, std::int64_t value) {
  if (auto* const* number = std::get_if<double*>(&field.value)) {
    if (Status ok = check_number(field, value); !ok) return ok;
    **number = static_cast<double>(value);
    return {};
  }
  if (!std::holds_alternative<std::int64_t*>(field.value)) return wrong_type(field, fmt::format("{}", value));
  if (Status ok = check_number(field, value); !ok) return ok;
  *std::get<std::int64_t*>(field.value) = value;
  return {};
}

Status assign(const Field& field, double value) {
  if (auto* const* whole = std::get_if<std::int64_t*>(&field.value)) {
    // 18e9 is a fine way to write a whole number; beyond 2^53 it would be a guess.
    if (!std::isfinite(value) || value != std::floor(value)) return wrong_type(field, shortest(value));
    if (Status ok = check_number(field, value); !ok) return ok;
    if (std::abs(value) > 0x1p53) return usage_error(fmt::format("{}: {} is out of range", field.key, shortest(value)));
    **whole = static_cast<std::int64_t>(value);
    return {};
  }
  if (!std::holds_alternative<double*>(field.value)) return wrong_type(field, shortest(value));
  if (Status ok = check_number(field, value); !ok) return ok;
  *std::get<double*>(field.value) = value;
  return {};
}

Status assign(const Field& field, const std::string& value) {
  if (auto* const* whole = std::get_if<std::int64_t*>(&field.value);
      whole != nullptr && !field.zero_word.empty() && value == field.zero_word) {
    **whole = 0;
    return {};
  }
  if (auto* const* number = std::get_if<double*>(&field.value);
      number != nullptr && !field.zero_word.empty() && value == field.zero_word) {
    **number = 0;
    return {};
  }
  if (!std::holds_alternative<std::string*>(field.value))
    return wrong_type(field, fmt::format("\"{}\"", printable(value)));
  if (Status ok = check_text(field, value); !ok) return ok;
  *std::get<std::string*>(field.value) = value;
  return {};
}

Status assign_text(const Field& field, std::string_view text) {
  if (std::holds_alternative<std::string*>(field.value)) return assign(field, std::string(text));
  if (text == "true" || text == "false") return assign(field, text == "true");
  if (const std::optional<std::int64_t> whole = parse_int(text)) return assign(field, *whole);
  if (const std::optional<double> number = parse_double(text)) return assign(field, *number);
  return assign(field, std::string(text));
}

Status check_value(const Field& field) {
  return std::visit(
      [&field](const auto* value) -> Status {
        using T = std::decay_t<decltype(*value)>;
        if constexpr (std::is_same_v<T, bool>)
          return {};
        else if constexpr (std::is_same_v<T, std::string>)
          return check_text(field, *value);
        else
          return check_number(field, *value);
      },
      field.value);
}

}  // namespace stacklab
