#include "engine/service/launch_facts.h"

#include <algorithm>
#include <cmath>

#include "engine/base/environment.h"
#include "engine/bench/gemm_rate.h"
#include "engine/config/config_io.h"
#include "engine/model/counts.h"
#include "engine/planner/levers.h"
#include "engine/planner/memory.h"
#include "engine/train/checkpoint.h"
#include "engine/train/milestones.h"
#include "engine/train/train_step.h"

namespace stacklab {
namespace {

constexpr std::size_t most_earlier = 12;
// What of the rate of matrix products training has reached, from small models to large ones.
constexpr double least_share = 0.25, usual_share = 0.5, most_share = 0.85;

double run_flops(const RunConfig& config) {
  return static_cast<double>(flops_per_token(config.model, config.train.seq_len).total());
}

// FLOPs per second that earlier runs of the same device, precision and threads have reached, ascending; those of models
// of nearly the same size if there are any.
std::vector<double> earlier_rates(const RunConfig& config, StoreReader& reader) {
  RunQuery query;
  query.order = "number";
  query.descending = true;
  query.limit = 200;
  query.archived = true;
  query.filter = RunFilter::compare("tokens_per_second", RunFilter::Op::greater, 0);
  const auto runs = reader.runs(query);
  if (!runs) return {};
  const double own = run_flops(config);
  std::vector<double> all, near;
  for (const RunSummary& run : *runs) {
    const auto other = parse_config(run.config_json, run.name);
    if (!other || !check_model(*other) || other->run.device != config.run.device ||
        other->train.precision != config.train.precision || other->run.threads != config.run.threads)
      continue;
    const double flops = run_flops(*other);
    if (all.size() < most_earlier) all.push_back(run.tokens_per_second * flops);
    if (near.size() < most_earlier && flops < 2 * own && own < 2 * flops) near.push_back(all.back());
  }
  std::vector<double>& rates = near.empty() ? all : near;
  std::sort(rates.begin(), rates.end());
  return rates;
}

}  // namespace

Result<LaunchFacts> launch_facts(const RunConfig& config, const std::filesystem::path& workspace, StoreReader* reader,
                                 const std::function<bool()>& given_up) {
  const auto gone = [&] { return given_up && given_up(); };
  if (Status ok = check_step(config); !ok) return tl::unexpected(ok.error());
  if (Status ok = check_layers(config.model); !ok) return tl::unexpected(ok.error());
  LaunchFacts facts;
  facts.hash = config_hash(config);
  if (reader != nullptr)
    if (const auto known = reader->run(facts.hash); known && known->id == facts.hash) {
      facts.known_as = known->name;
      facts.known_state = known->state;
    }
  const ModelCounts counts = count_parameters(config.model);
  facts.parameters = counts.total;
  facts.body = counts.body;
  facts.kv_bytes_per_token = kv_bytes_per_token(config.model);
  facts.steps = config.steps();
  facts.flops = run_flops(config) * static_cast<double>(config.train.tokens);
  if (gone()) return stopped("not wanted any more");

  facts.memory_free = system_memory().available;
  if (const auto plan = plan_training_memory(config)) {
    facts.memory_peak = plan->peak_bytes();
    facts.memory_free = plan->available_bytes;
    facts.memory_fits = plan->fits;
    facts.largest_micro_batch = plan->largest_micro_batch;
    facts.micro_batch = plan->shape.micro_batch;
    const PlannedProgram& largest = plan->programs[plan->largest_program];
    std::int64_t named = 0;
    for (int c = 0; c < buffer_class_count; ++c) {
      const auto i = static_cast<std::size_t>(c);
      const std::int64_t bytes = plan->persistent_by_class[i] + largest.live_by_class[i];
      if (bytes > 0) facts.memory_parts.emplace_back(to_string(static_cast<BufferClass>(c)), bytes);
      named += bytes;
    }
    if (!plan->fits)
      if (const auto levers = memory_levers(config, plan->available_bytes)) {
        facts.memory_remedy = to_text(*levers);
        facts.memory_settings = levers->enough();
      }
    // What lies between buffers whose lives do not meet.
    if (facts.memory_peak > named) facts.memory_parts.emplace_back("gaps", facts.memory_peak - named);
  } else {
    facts.memory_error = plan.error();
  }
  if (gone()) return stopped("not wanted any more");

  std::vector<double> rates = reader != nullptr ? earlier_rates(config, *reader) : std::vector<double>();
  facts.earlier_runs = static_cast<int>(rates.size());
  if (rates.empty()) {
    const int threads = threads_for(config.run.threads);
    if (const auto rate = gemm_rate(workspace, threads, storage_type(config)))
      rates = {*rate * least_share, *rate * usual_share, *rate * most_share};
  } else {
    // Other programs were at work, or are now.
    const double least = rates.front() * 0.9, most = rates.back() * 1.05;
    rates.insert(rates.begin(), least);
    rates.push_back(most);
  }
  if (!rates.empty()) {
    facts.seconds_most = facts.flops / rates.front();
    facts.seconds = facts.flops / rates[rates.size() / 2];
    facts.seconds_least = facts.flops / rates.back();
  }
  if (gone()) return stopped("not wanted any more");
  facts.checkpoint_bytes = checkpoint_size(config).total();
  facts.checkpoints = checkpoints_at_once(config);
  facts.disk_free = disk_free(workspace);
  return facts;
}

std::vector<std::int64_t> checkpoint_steps(const std::filesystem::path& workspace, const std::string& folder) {
  std::vector<std::int64_t> steps;
  // The store may come from somebody else: a run never leaves its workspace.
  if (folder.empty() || folder != std::filesystem::path(folder).filename()) return steps;
  for (const CheckpointFolder& checkpoint : list_checkpoints(workspace / "runs" / folder))
    steps.push_back(checkpoint.step);
  return steps;
}

}  // namespace stacklab
