// What makes a run need less memory, as `plan memory` and a refused `train` show it.
#pragma once

#include <string>

#include "app/cli/common.h"
#include "engine/service/planning.h"

namespace stacklab::cli {

std::string lever_table(const Levers& levers);
// The value of "levers".
void write_levers(JsonWriter& w, const Levers& levers);

}  // namespace stacklab::cli
