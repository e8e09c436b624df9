// How fast the store takes in what runs report, and gives it back, in a workspace that exists only for this.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/base/result.h"

namespace stacklab {

struct StoreBenchOptions {
  std::int64_t steps = 100000;   // of one run, of eight metrics each
  std::filesystem::path folder;  // where the temporary workspace is made: the disk that is measured
};

struct StoreMeasurement {
  std::string task;        // "report", "commit", "run list", "curve", "end of curve"
  std::int64_t rows = 0;   // values written or read
  double seconds = 0;      // report: until the caller may go on; commit: until all is in the data base
  std::int64_t bytes = 0;  // of the data base afterwards
  std::int64_t peak_bytes = 0;
};

// Errors: the folder cannot be written.
Result<std::vector<StoreMeasurement>> bench_store(const StoreBenchOptions& options);

}  // namespace stacklab
