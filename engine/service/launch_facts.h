// What a run will be and need, before it is started: sizes, memory, time, disk, each beside what there is now.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/result.h"
#include "engine/config/run_config.h"
#include "engine/store/store_reader.h"

namespace stacklab {

struct LaunchFacts {
  std::string hash;      // of the config
  std::string known_as;  // name of the run that has this config; empty: none has
  RunState known_state = RunState::queued;

  std::int64_t parameters = 0, body = 0, kv_bytes_per_token = 0;
  double flops = 0;  // of the whole run, model FLOPs

  std::optional<Error> memory_error;                               // why there is no plan
  std::vector<std::pair<std::string, std::int64_t>> memory_parts;  // "parameters", bytes at the peak
  std::int64_t memory_peak = 0, memory_free = 0, largest_micro_batch = 0, micro_batch = 0;
  bool memory_fits = false;
  // When it does not fit: what a refused run is told, and the settings (as --set takes them) with which it fits, if
  // any.
  std::string memory_remedy;
  std::vector<std::string> memory_settings;

  std::int64_t steps = 0;
  double seconds_least = 0, seconds = 0, seconds_most = 0;  // 0: not known
  int earlier_runs = 0;                                     // that this comes from; 0: from the rate of matrix products

  std::int64_t checkpoint_bytes = 0, checkpoints = 0, disk_free = 0;  // of one; how many at once
  bool disk_fits() const { return disk_free < 0 || checkpoint_bytes * checkpoints <= disk_free; }
};

// config: as check_step allows it. reader may be null. Takes up to a second; `given_up` is asked between its parts, and
// then an error of kind stopped comes back.
Result<LaunchFacts> launch_facts(const RunConfig& config, const std::filesystem::path& workspace, StoreReader* reader,
                                 const std::function<bool()>& given_up = {});

// Steps of the checkpoints that a run has, ascending. folder: RunSummary's.
std::vector<std::int64_t> checkpoint_steps(const std::filesystem::path& workspace, const std::string& folder);

}  // namespace stacklab
