// The one list of every config key. JSON, checking, --set, the hash and the window's form all follow from it.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/config/run_config.h"

namespace stacklab {

using FieldValue = std::variant<std::int64_t, double, bool, std::string>;
using FieldPointer = std::variant<std::int64_t*, double*, bool*, std::string*>;

// What a value may be. Bounds count for numbers, choices for strings (none: any string).
struct FieldRules {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool above_min = false;  // the smallest value itself is excluded
  std::vector<std::string> choices;
};

struct Field {
  std::string key;        // with its sections: "optim.schedule.kind"
  FieldPointer value;     // into the config
  std::string_view unit;  // "tokens", "steps", "nats", ...; may be empty
  std::string_view help;  // one line
  FieldRules rules;
  std::string_view zero_word;  // what 0 means, and may be written instead of it: "auto", "off"; may be empty
  bool identity = true;        // part of what makes a run this run; else operational
  bool added_later = false;    // left out of the canonical form while it has its default
};

// Every field of a config, in the order in which files show them.
std::vector<Field> fields_of(RunConfig& config);

FieldValue value_of(const Field& field);

// The same without a config: for forms and help.
struct FieldInfo {
  std::string key;
  std::string_view type;  // "integer", "number", "boolean", "text"
  std::string_view unit;
  std::string_view help;
  FieldRules rules;
  std::string_view zero_word;
  bool identity = true;
  FieldValue default_value;
};
std::vector<FieldInfo> field_infos();

}  // namespace stacklab
