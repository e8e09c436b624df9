// What operations cost, for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "engine/base/json_writer.h"
#include "engine/run/run.h"

namespace stacklab::cli {

// seconds: of everything; the last row is what was in no operation.
std::string operations_table(const std::vector<OperationTotal>& operations, double seconds);
// The member "operations".
void write_operations(JsonWriter& w, const std::vector<OperationTotal>& operations, double seconds);

}  // namespace stacklab::cli
