// The service with the real trainer, on a tiny model.
#include <map>
#include <random>

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

TEST_F(Training, KilledAtAnyInstantItGoesOnAsIfNothingHadBeen) {
  const RunConfig config = tiny_config("tiny", 1, 200);
  auto straight = open(folder_ / "straight");
  const auto whole = wait(*straight, straight->submit(config, {}));
  ASSERT_FALSE(whole.error) << whole.error->message();

  const auto workspace = folder_ / "killed";
  std::mt19937 random(7);
  // In parts of an undisturbed training's time: the first four together are too short for all of it, however fast the
  // computer.
  const double seconds = whole.seconds;
  int kills = 0, finished = 0;
  std::int64_t furthest = 0;
  while (finished == 0) {
    ChildProcess child({workspace.string(), "200"}, "service_child");
    ASSERT_EQ(child.line(), "started");
    if (kills < 12) {
      const double most = kills < 4 ? seconds / 6 : seconds / 2;
      std::this_thread::sleep_for(
          std::chrono::duration<double>(std::uniform_real_distribution<double>(0, most)(random)));
      child.send(SIGKILL);
    }
    if (child.wait() == 0) {
      ++finished;
      break;
    }
    ++kills;
    auto reader = open_store_reader(workspace);
    if (!reader) continue;  // killed before there was a store
    for (const auto& run : must((*reader)->runs())) {
      ASSERT_TRUE(run.state == RunState::lost || run.state == RunState::finished) << to_string(run.state);
      furthest = std::max(furthest, run.step);
    }
  }
  EXPECT_GT(furthest, 0);
  EXPECT_GT(kills, 3);
  auto service = open(workspace);
  EXPECT_EQ(must(must(service->reader())->run(whole.run)).state, RunState::finished);
  for (const char* metric : {"loss", "val_loss"}) {
    const auto a = series(*straight, whole.run, metric), b = series(*service, whole.run, metric);
    EXPECT_EQ(a.size(), b.size()) << metric;
    std::map<std::int64_t, double> values;
    for (const auto& point : b) values[point.step] = point.value;
    for (const auto& point : a) {
      ASSERT_TRUE(values.contains(point.step)) << metric << " of step " << point.step << " is missing";
      EXPECT_EQ(values[point.step], point.value) << metric << " of step " << point.step;
    }
  }
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
