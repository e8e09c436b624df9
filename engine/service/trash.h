// Runs that were deleted: their folders wait in <workspace>/trash until somebody is sure.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "engine/base/result.h"
#include "engine/store/store.h"

namespace stacklab {

// The edit with what it means for folders: a deleted run's goes to the trash, a restored one's comes back. Returns the
// edit that takes it back.
Result<RunEdit> edit_with_folders(const std::filesystem::path& workspace, Store& store, const RunSummary& run,
                                  const RunEdit& edit);
// For good: rows and folder of a run in the trash.
Status purge_with_folders(const std::filesystem::path& workspace, Store& store, const RunSummary& run);

struct PrunedRun {
  RunId run;
  std::string name;
  std::vector<std::int64_t> steps;  // whose checkpoints go
  std::int64_t bytes = 0;           // that they take; hard links of forks keep theirs
};
// Of runs that are finished: all checkpoints but the newest keep and the config's milestones. With dry_run nothing
// goes. Those of runs that were not named or are not finished stay.
Result<std::vector<PrunedRun>> prune_finished(const std::filesystem::path& workspace,
                                              const std::vector<RunSummary>& runs, std::int64_t keep, bool dry_run);

}  // namespace stacklab
