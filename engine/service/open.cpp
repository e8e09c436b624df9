#include "engine/base/environment.h"
#include "engine/bench/gemm_rate.h"
#include "engine/service/job_steps.h"
#include "engine/train/train_step.h"

namespace stacklab {

Result<std::unique_ptr<JobService>> JobService::open(const std::filesystem::path& workspace) {
  // How well a run uses this computer is said against what its matrix products reach.
  const auto train_measured = [workspace](const TrainRequest& request, const Dataset& data, RunSink& sink,
                                          std::stop_token stop) {
    TrainRequest measured = request;
    const std::int64_t threads = request.config.run.threads;
    measured.gemm_rate = gemm_rate(workspace, threads_for(threads), storage_type(request.config)).value_or(0);
    return train(measured, data, sink, std::move(stop));
  };
  return open_job_service(workspace, {ensure_corpus, train_measured});
}

}  // namespace stacklab
