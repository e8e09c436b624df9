#include "engine/service/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "engine/base/atomic_file.h"
#include "engine/base/environment.h"
#include "engine/base/text.h"
#include "engine/config/config_io.h"
#include "engine/data/corpus.h"
#include "engine/service/run_data.h"
#include "engine/store/store_reader.h"
#include "engine/train/checkpoint.h"
#include "engine/train/trainer.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;

// Steps that are made again where the run has no checkpoint to hold them against.
constexpr std::int64_t steps_without_checkpoint = 20;

// Keeps what is reported, as the store would.
class ReplayedMetrics final : public RunSink {
 public:
  explicit ReplayedMetrics(const std::function<void(const Progress&)>& progress) : progress_(progress) {}

  MetricTable table;

  void progress(const Progress& p) override {
    if (progress_) progress_(p);
  }
  void metrics(const MetricEvent& e) override {
    for (const MetricValue& v : e.values) table[std::string(v.name)][e.step] = v.value;
  }
  void event(const RunEvent&) override {}
  void beat(double) override {}
  void resumed_after(std::int64_t) override {}
  void fact(std::string_view, double) override {}

 private:
  const std::function<void(const Progress&)>& progress_;
};

// Where the replay begins, how far it goes, and the checkpoint that it meets first.
struct Stretch {
  std::int64_t steps = 0;
  std::optional<CheckpointFolder> begin;  // none: the start of the run
  std::optional<CheckpointFolder> meets;

  std::int64_t from() const { return begin ? begin->step : 0; }
  std::int64_t last() const { return from() + steps; }
};

Result<Stretch> choose(const ReplayRequest& request, const RunSummary& run,
                       const std::vector<CheckpointFolder>& checkpoints) {
  Stretch s;
  const auto begin_at = [&](std::int64_t latest) {
    for (const CheckpointFolder& c : checkpoints)
      if (c.step <= latest) s.begin = c;
  };
  if (request.from > 0) {
    begin_at(request.from);
    if (!s.begin || s.begin->step != request.from) {
      std::vector<std::int64_t> steps;
      for (const CheckpointFolder& c : checkpoints) steps.push_back(c.step);
      return usage_error(fmt::format("--from: {} has no checkpoint of step {}", run.name, request.from),
                         fmt::format("name one of: 0{}{}", steps.empty() ? "" : ", ", fmt::join(steps, ", ")));
    }
  } else if (request.from < 0) {
    if (request.steps > 0)
      begin_at(run.step - request.steps);
    else if (!checkpoints.empty())
      begin_at(checkpoints.back().step - 1);
  }
  const auto next = std::find_if(checkpoints.begin(), checkpoints.end(),
                                 [&](const CheckpointFolder& c) { return c.step > s.from(); });
  const std::int64_t recorded = run.step - s.from();
  s.steps = request.steps > 0           ? request.steps
            : next != checkpoints.end() ? next->step - s.from()
                                        : std::min(recorded, steps_without_checkpoint);
  if (s.steps > recorded || s.steps < 1)
    return usage_error(fmt::format("{} has {} recorded steps after step {}", run.name, recorded, s.from()),
                       "ask for fewer with --steps, or begin earlier with --from");
  if (next != checkpoints.end() && next->step <= s.last()) s.meets = *next;
  return s;
}

Result<MetricTable> recorded_metrics(StoreReader& reader, const RunId& run, const Stretch& stretch) {
  MetricTable table;
  const auto names = reader.metrics(run);
  if (!names) return tl::unexpected(names.error());
  for (const std::string& name : *names) {
    if (!is_repeatable(name)) continue;
    const auto points = reader.series(run, name, stretch.from(), stretch.steps);
    if (!points) return tl::unexpected(points.error());
    for (const SeriesPoint& p : *points) table[name][p.step] = p.value;
  }
  return table;
}

// What is known of how the run was made: from the checkpoint, else from any other, else what the store has.
Provenance recorded_provenance(const Stretch& stretch, const std::vector<CheckpointFolder>& checkpoints,
                               const RunSummary& run, const Provenance& now) {
  std::vector<CheckpointFolder> order = checkpoints;
  if (stretch.begin) order.insert(order.begin(), *stretch.begin);
  for (const CheckpointFolder& c : order)
    if (auto known = checkpoint_provenance(c)) return *known;
  Provenance p = now;
  std::tie(p.commit, p.dirty) = split_commit(run.commit);
  p.corpus_sha256 = run.corpus_sha256;
  return p;
}

// A folder for the checkpoints of the replay that vanishes with it: in the workspace, or where that is read-only, among
// the system's temporary files.
Result<AtomicDirectory> scratch_folder(const fs::path& workspace) {
  remove_stale_temporaries(workspace);
  auto scratch = AtomicDirectory::create(workspace / "replay");
  std::error_code ec;
  return scratch ? std::move(scratch) : AtomicDirectory::create(fs::temp_directory_path(ec) / "stacklab-replay");
}

// As a job gets it.
Result<Dataset> data_of(const RunConfig& config, const fs::path& workspace,
                        const std::function<void(const Progress&)>& progress, std::stop_token stop) {
  const CorpusProgress report = [&progress](std::string_view detail, std::int64_t done, std::int64_t total) {
    if (progress) progress({"text", std::string(detail), done, total});
  };
  if (names_shards(config.data, workspace)) return open_named_shards(config, workspace, report, stop);
  const auto mixture = mixture_of(config.data);
  if (!mixture) return tl::unexpected(mixture.error());
  const auto coding = coding_named(config.data.tokenizer, workspace);
  if (!coding) return tl::unexpected(coding.error());
  for (const MixturePart& part : *mixture) {
    if (has_shards(part.name, *coding, config.data, workspace)) continue;
    if (const auto corpus = ensure_corpus(part.name, workspace, report, stop); !corpus)
      return tl::unexpected(corpus.error());
  }
  return open_run_data(config, *mixture, *coding, workspace, report, stop);
}

Status check_room(const RunConfig& config, const fs::path& folder) {
  const std::int64_t needed = 2 * checkpoint_size(config).total(), free = disk_free(folder);
  if (free < 0 || needed <= free || !config.run.disk_guard) return {};
  return refused(fmt::format("a replay keeps two checkpoints for a while, {}; {} are free in {}",
                             format_bytes(static_cast<double>(needed)), format_bytes(static_cast<double>(free)),
                             folder.parent_path().string()),
                 "free some space");
}

}  // namespace

Result<ReplayResult> replay(const fs::path& workspace, const ReplayRequest& request,
                            const std::function<void(const Progress&)>& progress, std::stop_token stop) {
  auto reader = open_store_reader(workspace);
  if (!reader) return tl::unexpected(reader.error());
  const RunId id = config_hash(request.config);
  const auto run = (*reader)->run(id);
  if (!run) return tl::unexpected(run.error());
  const fs::path folder = workspace / "runs" / run->folder;
  const std::vector<CheckpointFolder> checkpoints = list_checkpoints(folder);
  const auto stretch = choose(request, *run, checkpoints);
  if (!stretch) return tl::unexpected(stretch.error());
  const auto recorded = recorded_metrics(**reader, id, *stretch);
  if (!recorded) return tl::unexpected(recorded.error());

  const auto data = data_of(request.config, workspace, progress, stop);
  if (!data) return tl::unexpected(data.error());
  auto scratch = scratch_folder(workspace);
  if (!scratch) return tl::unexpected(scratch.error());
  if (Status room = check_room(request.config, scratch->path()); !room) return tl::unexpected(room.error());

  TrainRequest again;
  again.config = request.config;
  again.config.run.checkpoint_every = 0;
  again.config.run.keep_last = 2;
  again.config.run.keep_milestones = stretch->meets ? std::to_string(stretch->meets->step) : "";
  again.run_dir = scratch->path();
  again.max_steps = stretch->last();
  again.from = stretch->begin;
  const auto now = provenance_of(again, *data);
  if (!now) return tl::unexpected(now.error());

  ReplayResult result;
  result.run = id;
  result.from = stretch->from();
  result.steps = stretch->steps;
  result.environment = differences(recorded_provenance(*stretch, checkpoints, *run, *now), *now);
  ReplayedMetrics measured(progress);
  const auto trained = train(again, *data, measured, stop);
  if (!trained) return tl::unexpected(trained.error());
  if (trained->steps < stretch->last()) return stopped("the replay was stopped before its end");

  const Comparison metrics = compare_metrics(*recorded, measured.table, stretch->from() + 1, stretch->last());
  result.values = metrics.compared;
  result.first_difference = metrics.first;
  if (stretch->meets) {
    const std::int64_t step = stretch->meets->step;
    for (const char* file : {"model.safetensors", "optimiser.safetensors"}) {
      const auto tensors =
          compare_tensors(stretch->meets->path / file, scratch->path() / stretch->meets->path.filename() / file, step);
      if (!tensors) return tl::unexpected(tensors.error());
      result.tensors += tensors->compared;
      if (tensors->first && (!result.first_difference || step < result.first_difference->step))
        result.first_difference = tensors->first;
    }
  }
  if (result.values + result.tensors == 0)
    return failed(fmt::format("{}: nothing of steps {} to {} is stored that could be compared", run->name,
                              stretch->from() + 1, stretch->last()));
  return result;
}

}  // namespace stacklab
