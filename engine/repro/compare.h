// Whether a run that was made again is the same, bit by bit: its recorded numbers and its tensors.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/result.h"

namespace stacklab {

// Metric to its values by step.
using MetricTable = std::map<std::string, std::map<std::int64_t, double>>;

struct Difference {
  std::int64_t step = 0;
  std::string name;           // of the metric or the tensor
  std::string file;           // of the tensor; empty: a metric
  std::int64_t element = -1;  // of the tensor, in its order in memory; -1: it is missing, or of another type or shape
  std::string recorded, replayed;

  bool operator==(const Difference&) const = default;
};

struct Comparison {
  std::int64_t compared = 0;        // values or tensors
  std::optional<Difference> first;  // by step, then by name; none: all are the same
};

// What measures time is another one each time, and not compared.
bool is_repeatable(std::string_view metric);

// Values of steps first_step .. last_step that both tables have. Equal means the same bits; NaN is NaN.
Comparison compare_metrics(const MetricTable& recorded, const MetricTable& replayed, std::int64_t first_step,
                           std::int64_t last_step);

// The tensors of two safetensors files. Errors: one of them cannot be read.
Result<Comparison> compare_tensors(const std::filesystem::path& recorded, const std::filesystem::path& replayed,
                                   std::int64_t step);

}  // namespace stacklab
