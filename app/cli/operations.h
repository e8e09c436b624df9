// What operations cost, for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "engine/base/json_writer.h"
#include "engine/run/run.h"

namespace stacklab::cli {

// What a computer was measured to reach; 0: unknown.
struct Limits {
  double flops_per_second = 0, bytes_per_second = 0;
  // The part of the limit that the operation reached, be it that of products or that of memory: the larger.
  double reached(const OperationTotal& operation) const;
};

// seconds: of everything; the last row is what was in no operation.
std::string operations_table(const std::vector<OperationTotal>& operations, double seconds, const Limits& limits = {});
// The member "operations".
void write_operations(JsonWriter& w, const std::vector<OperationTotal>& operations, double seconds,
                      const Limits& limits = {});

}  // namespace stacklab::cli
