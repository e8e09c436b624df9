// Trains a run in this process and shows it, for train and resume.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/cli/verb.h"
#include "engine/config/run_config.h"
#include "engine/service/job_service.h"

namespace stacklab::cli {

struct JobOptions {
  std::optional<std::int64_t> max_steps;
  std::string trace;
  std::optional<std::int64_t> trace_steps;
  std::string fallback_corpus;
  bool detach = false;
};

// All but the fallback.
std::vector<Argument> job_arguments(JobOptions& options);

// Follows a job to its end, with a bar on a terminal. Ctrl-C asks it to stop, once.
JobOutcome follow(JobService& service, std::int64_t job, const std::string& name, std::int64_t max_steps,
                  Console& console);

// Until the run ends, is stopped or fails; prints what came of it.
Status run_job(Context& context, const RunConfig& config, bool resume, const JobOptions& options);

}  // namespace stacklab::cli
