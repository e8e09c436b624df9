#include "engine/service/trash.h"

#include <fmt/format.h>

#include <cerrno>

#include "engine/base/atomic_file.h"
#include "engine/config/config_io.h"
#include "engine/train/checkpoint.h"
#include "engine/train/milestones.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;

// The store may come from somebody else: its folders never lead out of the workspace.
Status check_folder(const std::string& folder) {
  if (!folder.empty() && folder == fs::path(folder).filename() && !folder.starts_with('.')) return {};
  return failed(fmt::format("the store names \"{}\" as the run's folder, which is not one of this workspace", folder));
}

Status move_folder(const fs::path& from, const fs::path& to) {
  std::error_code ec;
  if (!fs::exists(from, ec)) return {};  // somebody moved it before: nothing is left to do
  if (fs::exists(to, ec))
    return failed(fmt::format("{} is in the way of {}", to.string(), from.string()), "move one of them away");
  fs::create_directories(to.parent_path(), ec);
  if (!ec) fs::rename(from, to, ec);
  if (ec) return tl::unexpected<Error>(file_error("cannot move", from, ec.value()));
  return {};
}

std::int64_t bytes_below(const fs::path& folder) {
  std::int64_t bytes = 0;
  std::error_code ec, ignored;
  for (fs::recursive_directory_iterator i(folder, ec), end; !ec && i != end; i.increment(ec))
    if (i->is_regular_file(ignored)) bytes += static_cast<std::int64_t>(i->file_size(ignored));
  return bytes;
}

}  // namespace

Result<RunEdit> edit_with_folders(const fs::path& workspace, Store& store, const RunSummary& run, const RunEdit& edit) {
  auto back = store.edit(run.id, edit);
  if (!back || !back->deleted) return back;
  if (Status ok = check_folder(run.folder); !ok) return tl::unexpected(ok.error());
  const fs::path place = workspace / "runs" / run.folder, trash = workspace / "trash" / run.folder;
  // The row first: nobody begins to train a run whose folder is about to go.
  const Status moved = *edit.deleted ? move_folder(place, trash) : move_folder(trash, place);
  if (!moved) {
    static_cast<void>(store.edit(run.id, *back));
    return tl::unexpected(moved.error());
  }
  return back;
}

Status purge_with_folders(const fs::path& workspace, Store& store, const RunSummary& run) {
  if (Status ok = check_folder(run.folder); !ok) return ok;
  if (Status ok = store.purge(run.id); !ok) return ok;
  std::error_code ec;
  fs::remove_all(workspace / "trash" / run.folder, ec);
  if (ec) return tl::unexpected<Error>(file_error("cannot remove", workspace / "trash" / run.folder, ec.value()));
  return {};
}

Result<std::vector<PrunedRun>> prune_finished(const fs::path& workspace, const std::vector<RunSummary>& runs,
                                              std::int64_t keep, bool dry_run) {
  std::vector<PrunedRun> pruned;
  for (const RunSummary& run : runs) {
    if (run.state != RunState::finished || run.deleted > 0) continue;
    if (Status ok = check_folder(run.folder); !ok) return tl::unexpected(ok.error());
    const auto config = parse_config(run.config_json, fmt::format("the stored config of run {}", run.id));
    if (!config) return tl::unexpected(config.error());
    const fs::path folder = workspace / "runs" / run.folder;
    const std::vector<std::int64_t> milestones = milestone_steps(*config);
    PrunedRun p{run.id, run.name, {}, 0};
    for (const CheckpointFolder& checkpoint : checkpoints_to_prune(folder, keep, milestones)) {
      p.steps.push_back(checkpoint.step);
      p.bytes += bytes_below(checkpoint.path);
    }
    if (p.steps.empty()) continue;
    if (!dry_run) p.steps = prune_checkpoints(folder, keep, milestones);
    pruned.push_back(std::move(p));
  }
  return pruned;
}

}  // namespace stacklab
