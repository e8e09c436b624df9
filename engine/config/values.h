// Putting values into fields, with messages for what does not fit. Used by the readers of JSON and of --set, and by
// validation.
#pragma once

#include <span>
#include <string_view>

#include "engine/base/result.h"
#include "engine/config/fields.h"

namespace stacklab {

Field* find_field(std::span<Field> fields, std::string_view key);
// The error for a key that no field has, with the nearest one's name.
Error unknown_key(std::string_view key, std::span<const Field> fields);

// Each refuses what does not fit the field's type and rules and then leaves the value alone. Messages begin with the
// key.
Status assign(const Field& field, bool value);
Status assign(const Field& field, std::int64_t value);
Status assign(const Field& field, double value);
Status assign(const Field& field, const std::string& value);
// From the command line: the text is read as the field's type demands.
Status assign_text(const Field& field, std::string_view text);

// Whether the value that the field has keeps its rules.
Status check_value(const Field& field);

}  // namespace stacklab
