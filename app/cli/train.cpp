#include <filesystem>
#include <memory>

#include "app/cli/common.h"
#include "app/cli/run_job.h"
#include "engine/service/detach.h"

namespace stacklab::cli {
namespace {

struct Options {
  std::string config;
  bool resume = false;
  JobOptions job;
};

Status train(Context& context, const Options& options) {
  const Result<RunConfig> config = config_of(options.config, context.common);
  if (!config) return tl::unexpected(config.error());
  // A window that started this process may be gone by now: nobody else removes what it wrote for it.
  const std::filesystem::path file = options.config;
  std::error_code ec;
  if (is_detached_process() && file.parent_path() == workspace_of(context.common) / "runs" &&
      file.filename().string().starts_with("detached-"))
    std::filesystem::remove(file, ec);
  return run_job(context, *config, options.resume, options.job);
}

}  // namespace

Verb train_verb() {
  const auto options = std::make_shared<Options>();
  std::vector<Argument> arguments = {
      {"CONFIG", "", "A config file, for example experiments/first-run.json", &options->config, true},
      {"--resume", "", "Continue the run from its last checkpoint, or start it when there is nothing to continue",
       &options->resume},
      {"--fallback-corpus", "NAME", "Train on this corpus when the config's cannot be had",
       &options->job.fallback_corpus}};
  for (Argument& argument : job_arguments(options->job)) arguments.push_back(std::move(argument));
  return {"train",
          "Train the run that a config names",
          "stacklab train experiments/first-run.json --set optim.adam_lr=2e-3 --seed 7",
          std::move(arguments),
          {},
          [options](Context& context) { return train(context, *options); },
          "The first Ctrl-C, or SIGTERM, finishes the step and writes a checkpoint (exit code 130). Another, a second "
          "later\n"
          "or more, ends at once (exit code 1): the steps since the last checkpoint are lost."};
}

}  // namespace stacklab::cli
