// What a job is made of. The service runs these in order on its job thread; a test may bring its own.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <stop_token>
#include <string_view>

#include "engine/base/result.h"
#include "engine/data/corpus.h"
#include "engine/data/dataset.h"
#include "engine/service/job_service.h"
#include "engine/store/store.h"
#include "engine/train/trainer.h"

namespace stacklab {

struct JobSteps {
  std::function<Result<Corpus>(std::string_view name, const std::filesystem::path& workspace,
                               const CorpusProgress& progress, std::stop_token stop)>
      ensure_corpus;
  std::function<Result<TrainResult>(const TrainRequest& request, const Dataset& data, RunSink& sink,
                                    std::stop_token stop)>
      train;
};

// JobService::open with other steps.
Result<std::unique_ptr<JobService>> open_job_service(const std::filesystem::path& workspace, JobSteps steps,
                                                     const StoreOptions& options = {});

}  // namespace stacklab
