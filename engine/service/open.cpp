#include "engine/service/job_steps.h"

namespace stacklab {

Result<std::unique_ptr<JobService>> JobService::open(const std::filesystem::path& workspace) {
  return open_job_service(workspace, {ensure_corpus, train});
}

}  // namespace stacklab
