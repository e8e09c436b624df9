// A stored run made again, in part, beside itself: the numbers that it recorded and the tensors that it saved must come
// out the same, bit by bit.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/config/run_config.h"
#include "engine/repro/compare.h"
#include "engine/run/provenance.h"
#include "engine/run/run.h"

namespace stacklab {

struct ReplayRequest {
  RunConfig config;        // as stored; operational keys may differ
  std::int64_t from = -1;  // begin after this step: 0, or one with a checkpoint; -1: chosen
  std::int64_t steps = 0;  // so many; 0: up to the newest checkpoint, from the one before it
};

struct ReplayResult {
  RunId run;
  std::int64_t from = 0, steps = 0;      // steps from + 1 .. from + steps were made again
  std::vector<FieldChange> environment;  // what differs between then and now
  std::int64_t values = 0, tensors = 0;  // compared
  std::optional<Difference> first_difference;
  bool identical() const { return !first_difference; }
};

// Runs on the calling thread and writes nothing that lasts: neither the run nor the store is touched. Errors: no such
// run, steps that were not recorded, a checkpoint that cannot be read, nothing to compare; stopped.
Result<ReplayResult> replay(const std::filesystem::path& workspace, const ReplayRequest& request,
                            const std::function<void(const Progress&)>& progress, std::stop_token stop);

}  // namespace stacklab
