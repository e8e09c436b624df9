// The service with the real trainer, on a tiny model.
#include "tests/engine/service/service_testing.h"

namespace stacklab {
namespace {

class Training : public testing::Test {
 protected:
  std::unique_ptr<JobService> open(const std::filesystem::path& workspace) {
    return must(
        open_job_service(workspace, {[](std::string_view name, const std::filesystem::path& where,
                                        const CorpusProgress&, std::stop_token) { return make_sample(name, where); },
                                     train}));
  }
  JobOutcome wait(JobService& service, std::int64_t job) { return service.wait(job, 250).value(); }
  std::vector<SeriesPoint> series(JobService& service, const RunId& run, const char* metric) {
    return must(must(service.reader())->series(run, metric, 0, 1000));
  }

  TemporaryFolder folder_;
};

TEST_F(Training, InterruptedOrNotTheCurveIsTheSameToTheBit) {
  const RunConfig config = tiny_config();
  auto straight = open(folder_ / "straight");
  const auto whole = wait(*straight, straight->submit(config, {}));
  ASSERT_FALSE(whole.error) << whole.error->message();
  ASSERT_EQ(whole.state, RunState::finished);
  const auto expected = series(*straight, whole.run, "loss");
  ASSERT_EQ(expected.size(), static_cast<std::size_t>(tiny_steps));
  EXPECT_LT(whole.loss, whole.first_loss);

  // Between checkpoints, on one, before the last step, and once more to find it finished.
  auto parts = open(folder_ / "parts");
  JobOutcome part;
  for (const std::int64_t until :
       {std::int64_t{1}, std::int64_t{7}, std::int64_t{10}, std::int64_t{19}, std::int64_t{0}}) {
    part = wait(*parts, parts->submit(config, {.resume = true, .max_steps = until, .fallback_corpus = {}}));
    ASSERT_FALSE(part.error) << part.error->message();
    EXPECT_EQ(part.steps, until == 0 ? tiny_steps : until);
    EXPECT_EQ(part.state, until == 0 ? RunState::finished : RunState::paused);
    // A new service each time, as a new process would.
    parts.reset();
    parts = open(folder_ / "parts");
  }
  EXPECT_EQ(part.run, whole.run);
  EXPECT_EQ(part.loss, whole.loss);
  EXPECT_EQ(part.val_loss, whole.val_loss);
  for (const char* metric : {"loss", "grad_norm", "adam_lr"}) {
    const auto a = series(*straight, whole.run, metric), b = series(*parts, part.run, metric);
    ASSERT_EQ(a.size(), b.size()) << metric;
    for (std::size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(a[i].step, b[i].step) << metric;
      EXPECT_EQ(a[i].value, b[i].value) << metric << " at step " << a[i].step;
    }
  }
  EXPECT_TRUE(
      wait(*parts, parts->submit(config, {.resume = true, .max_steps = 0, .fallback_corpus = {}})).already_finished);
}

TEST_F(Training, AStopLeavesACheckpointToGoOnFrom) {
  auto service = open(folder_.path());
  RunConfig config = tiny_config();
  config.train.tokens = 64 * 100000;  // far longer than the test waits
  config.run.eval_every = 0;
  config.run.checkpoint_every = 0;
  const auto job = service->submit(config, {});
  auto reader = must(service->reader());
  const RunId id = config_hash(config);
  for (;;) {
    if (service->outcome(job)) break;
    if (const auto run = reader->run(id); run && run->step >= 3) break;
    std::this_thread::yield();
  }
  service->stop(id);
  const auto stopped = wait(*service, job);
  ASSERT_TRUE(stopped.error);
  ASSERT_EQ(stopped.error->kind, Error::Kind::stopped) << stopped.error->message();
  EXPECT_GE(stopped.steps, 3);
  const auto run = must(reader->run(id));
  EXPECT_EQ(run.state, RunState::paused);
  EXPECT_EQ(run.step, stopped.steps);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "runs" / run.folder / ("ckpt_step" + std::to_string(stopped.steps))));
  const auto more =
      wait(*service, service->submit(config, {.resume = true, .max_steps = stopped.steps + 2, .fallback_corpus = {}}));
  EXPECT_EQ(more.steps, stopped.steps + 2);
  EXPECT_EQ(series(*service, id, "loss").size(), static_cast<std::size_t>(more.steps));
}

}  // namespace
}  // namespace stacklab
