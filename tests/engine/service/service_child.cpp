// Trains the tests' tiny run in a workspace, from where it is, to its end. Usage: service_child WORKSPACE STEPS
#include <cstdio>
#include <cstdlib>

#include "engine/service/job_steps.h"
#include "tests/engine/service/sample.h"

int main(int argc, char** argv) {
  using namespace stacklab;
  if (argc != 3) return 2;
  std::printf("started\n");
  std::fflush(stdout);
  const auto sample = [](std::string_view name, const std::filesystem::path& workspace, const CorpusProgress&,
                         std::stop_token) { return make_sample(name, workspace); };
  auto service = open_job_service(argv[1], {sample, train});
  if (!service) {
    std::printf("%s\n", service.error().message().c_str());
    return 1;
  }
  const auto job = (*service)->submit(tiny_config("tiny", 1, std::atoll(argv[2])),
                                      {.resume = true, .max_steps = 0, .fallback_corpus = {}});
  const auto outcome = (*service)->wait(job, 1e6);
  if (!outcome || outcome->error) {
    std::printf("%s\n", outcome ? outcome->error->message().c_str() : "no outcome");
    return 1;
  }
  return outcome->state == RunState::finished ? 0 : 1;
}
