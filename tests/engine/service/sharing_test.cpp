// Several services and processes on one workspace.
#include "tests/engine/service/service_testing.h"

namespace stacklab {
namespace {

class Sharing : public ServiceTest {
 protected:
  PretendTrainer other_trainer_;

  std::unique_ptr<JobService> open_other() {
    JobSteps other = steps();
    other.train = [this](const TrainRequest& request, const Dataset& data, RunSink& sink, std::stop_token stop) {
      return other_trainer_.train(request, data, sink, stop);
    };
    return open(std::move(other));
  }
};

TEST_F(Sharing, OneTrainsARunTheOtherIsRefused) {
  auto one = open();
  auto other = open_other();
  trainer_.pause_at = 3;
  const auto job = one->submit(tiny_config(), {});
  trainer_.wait_until_paused();
  for (const bool resume : {false, true}) {
    const auto refused = run(*other, tiny_config(), {.resume = resume, .max_steps = 0, .fallback_corpus = {}});
    ASSERT_TRUE(refused.error);
    EXPECT_EQ(refused.error->kind, Error::Kind::refused);
    EXPECT_NE(refused.error->what.find("already running in process " + std::to_string(getpid())), std::string::npos)
        << refused.error->message();
  }
  EXPECT_EQ(other_trainer_.calls, 0);
  trainer_.go_on();
  EXPECT_EQ(outcome_of(*one, job).state, RunState::finished);
  EXPECT_TRUE(run(*other, tiny_config()).already_finished);
}

TEST_F(Sharing, DifferentRunsGoSideBySide) {
  auto one = open();
  auto other = open_other();
  trainer_.pause_at = other_trainer_.pause_at = 3;
  const auto job = one->submit(tiny_config("one", 1), {});
  const auto other_job = other->submit(tiny_config("other", 2), {});
  trainer_.wait_until_paused();
  other_trainer_.wait_until_paused();
  for (const auto& run : must(must(one->reader())->runs())) EXPECT_EQ(run.state, RunState::running);
  trainer_.go_on();
  other_trainer_.go_on();
  EXPECT_EQ(outcome_of(*one, job).state, RunState::finished);
  EXPECT_EQ(outcome_of(*other, other_job).state, RunState::finished);
}

TEST_F(Sharing, OneStopsTheRunOfTheOther) {
  auto one = open();
  auto other = open_other();
  trainer_.pause_at = 3;
  const RunConfig config = tiny_config();
  const auto job = one->submit(config, {});
  trainer_.wait_until_paused();
  other->stop(config_hash(config));
  const auto outcome = outcome_of(*one, job);
  EXPECT_EQ(outcome.state, RunState::paused);
  EXPECT_EQ(outcome.error->kind, Error::Kind::stopped);
  EXPECT_EQ(stored(config).cause, "stopped at step 3 by the user");
}

TEST_F(Sharing, ARunOfAnotherProcessIsRefusedStoppedAndTakenOverWhenItDies) {
  const RunConfig config = tiny_config();
  ChildProcess child({"hold", workspace().string(), config_hash(config)});
  ASSERT_EQ(child.line(), "holding");
  auto service = open();
  const auto refused = run(*service, config, {.resume = true, .max_steps = 0, .fallback_corpus = {}});
  ASSERT_TRUE(refused.error);
  EXPECT_NE(refused.error->what.find("already running in process " + std::to_string(child.pid())), std::string::npos)
      << refused.error->message();
  EXPECT_EQ(corpora_, 0);
  service->stop(config_hash(config));
  EXPECT_EQ(child.line(), "stop");
  child.send(SIGKILL);
  child.wait();
  EXPECT_EQ(stored(config).state, RunState::lost);
  EXPECT_NE(run(*service, config).error->what.find("lost"), std::string::npos);
  const auto outcome = run(*service, config, {.resume = true, .max_steps = 0, .fallback_corpus = {}});
  EXPECT_FALSE(outcome.error) << outcome.error->message();
  EXPECT_EQ(outcome.state, RunState::finished);
}

TEST_F(Sharing, OpeningWritesDownWhatWasLost) {
  const RunConfig config = tiny_config();
  {
    ChildProcess child({"hold", workspace().string(), config_hash(config)});
    ASSERT_EQ(child.line(), "holding");
  }  // killed
  auto service = open();
  const auto events = must(must(service->reader())->events(config_hash(config), 0, 10));
  ASSERT_EQ(events.size(), 1u);
  EXPECT_NE(events[0].event.text.find("ended without a completion record"), std::string::npos);
}

}  // namespace
}  // namespace stacklab
