#include "engine/service/watch.h"

#include "tests/engine/service/service_testing.h"

namespace stacklab {
namespace {

struct Heard final : RunSink {
  std::vector<std::string> words;
  void progress(const Progress&) override {}
  void metrics(const MetricEvent&) override {}
  void event(const RunEvent& e) override {
    words.push_back(fmt_text("+", e.kind, e.step) + (e.severity == RunEvent::Severity::critical ? "!" : ""));
  }
  void resolved(RunEvent::Kind kind, std::int64_t step) override { words.push_back(fmt_text("-", kind, step)); }
  void beat(double) override {}
  void resumed_after(std::int64_t) override {}
  void fact(std::string_view, double) override {}
  static std::string fmt_text(const char* sign, RunEvent::Kind kind, std::int64_t step) {
    return sign + std::string(to_string(kind)) + "@" + std::to_string(step);
  }
};

class Watch : public testing::Test {
 protected:
  Watch() : store_(must(Store::open(folder_.path()))) {
    config_ = tiny_config("tiny", 1, 1000);
    options_.config = &config_;
    options_.run = "none";
    options_.workspace = folder_.path();
    options_.store = store_.get();
    options_.checkpoint_bytes = 100;
    options_.stop = [this](const std::string& cause) { stops_.push_back(cause); };
    options_.clock = [this] { return now_; };
    options_.free_bytes = [this] { return free_; };
  }
  WatchingSink& sink() {
    if (!sink_) {
      auto heard = std::make_unique<Heard>();
      heard_ = heard.get();
      sink_.emplace(options_, std::move(heard));
    }
    return *sink_;
  }
  // A step that took so long.
  void step(double seconds) {
    sink();
    now_ += seconds;
    sink_->progress({"training", {}, ++step_, 1000});
  }
  std::vector<std::string> heard() { return std::exchange(heard_->words, {}); }

  using Words = std::vector<std::string>;
  TemporaryFolder folder_;
  std::unique_ptr<Store> store_;
  RunConfig config_;
  WatchOptions options_;
  std::optional<WatchingSink> sink_;
  Heard* heard_ = nullptr;
  double now_ = 1000;
  std::int64_t free_ = 1 << 20, step_ = 0;
  Words stops_;
};

TEST_F(Watch, HoursAreCountedOverAllProcessesAndEndBeforeTheStepThatWouldPassThem) {
  config_.run.budget.hours = 1;
  options_.seconds_before = 3000;
  step(200);  // 3200
  EXPECT_EQ(heard(), Words());
  step(100);  // 3300: past nine tenths
  EXPECT_EQ(heard(), Words{"+budget@2"});
  step(100);
  step(100);  // 3500: the next would end at 3600, which is all there is
  EXPECT_EQ(stops_, Words());
  step(60);  // 3560
  EXPECT_EQ(heard(), Words{"+budget@5!"});
  ASSERT_EQ(stops_.size(), 1u);
  EXPECT_NE(stops_[0].find("run.budget.hours=1"), std::string::npos) << stops_[0];
  step(60);
  EXPECT_EQ(stops_.size(), 1u) << "asked once";
}

TEST_F(Watch, MoneyIsHoursAtAPrice) {
  config_.run.budget.usd = 2;
  config_.run.budget.usd_per_hour = 4;
  config_.run.budget.hours = 5;  // ends later
  step(800);
  EXPECT_EQ(stops_, Words());
  step(800);  // the next would end at 2400 of 1800 seconds
  ASSERT_EQ(stops_.size(), 1u);
  EXPECT_NE(stops_[0].find("1.78 of run.budget.usd=2"), std::string::npos) << stops_[0];
}

TEST_F(Watch, TokensAreWholeSteps) {
  const BudgetWatch watch({.tokens = 1000, .hours = 0, .usd = 0, .usd_per_hour = 0}, 0);
  EXPECT_FALSE(watch.spent(64 * 14, 64, 1e9, 1e9));
  EXPECT_TRUE(watch.spent(64 * 15, 64, 0, 0)) << "the sixteenth step would need 1024";
  EXPECT_FALSE(watch.spent(900, 100, 0, 0));
  EXPECT_FALSE(BudgetWatch({}, 1e9).spent(1 << 30, 64, 1e9, 1e9)) << "no budget, no limit";
}

TEST_F(Watch, TheLastStepOfARunNeedsNoStop) {
  config_.run.budget.hours = 1;
  step_ = 999;
  step(4000);
  EXPECT_EQ(stops_, Words());
}

TEST_F(Watch, ADiskThatFillsUpIsSaidOnceAndTakenBackWithRoom) {
  step(10);
  EXPECT_EQ(heard(), Words());
  free_ = 150;
  step(10);
  EXPECT_EQ(heard(), Words{"+disk@2"});
  step(10);
  free_ = 250;  // not yet enough
  step(10);
  EXPECT_EQ(heard(), Words());
  free_ = 300;
  step(10);
  EXPECT_EQ(heard(), Words{"-disk@5"});
}

TEST_F(Watch, AWorkspaceThatIsMovedAwayIsSaid) {
  step(10);
  const std::string elsewhere = folder_.path().string() + "-moved";
  std::filesystem::rename(folder_.path(), elsewhere);
  step(10);
  step(10);
  std::filesystem::rename(elsewhere, folder_.path());
  EXPECT_EQ(heard(), Words{"+store@2!"});
  step(10);
  EXPECT_EQ(heard(), Words{"-store@4"});
}

// What is said after a resume is what would have been said without it: the store has what the first process saw.
TEST_F(Watch, AlertsGoOnOverAResume) {
  const auto loss_at = [](std::int64_t s) {
    return s == 90 || s == 110 ? 50.0 : 3.0 + 0.01 * static_cast<double>(s % 3);
  };
  ClaimRequest request = test_request(1);
  options_.run = request.id;
  {
    const auto claim = must(store_->claim(request, {}));
    const auto rows = store_->sink(claim);
    for (std::int64_t s = 1; s <= 100; ++s) rows->metrics(test_metrics(s, loss_at(s)));
    must(store_->end(claim, {.state = RunState::paused, .cause = {}}));
  }
  sink().resumed_after(100);
  for (std::int64_t s = 101; s <= 200; ++s) {
    MetricEvent event = test_metrics(s, loss_at(s));
    sink_->metrics(event);
  }
  EXPECT_EQ(heard(), Words{"-spike@142"}) << "the second belongs to the first";
}

// The parent was at step 150 when its fork began at 60; the fork went on to 80, and a fork of it begins there.
TEST_F(Watch, AForkBeginsFromWhatItsParentsSaw) {
  const auto calm = [](std::int64_t s) { return 3.0 + 0.01 * static_cast<double>(s % 3); };
  const auto record = [&](const ClaimRequest& request, std::int64_t from, std::int64_t to, double extra) {
    const auto claim = must(store_->claim(request, {}));
    const auto rows = store_->sink(claim);
    if (request.resume) rows->resumed_after(from - 1);
    for (std::int64_t s = from; s <= to; ++s) rows->metrics(test_metrics(s, calm(s) + extra));
    must(store_->end(claim, {.state = RunState::paused, .cause = {}}));
  };
  const auto fork = [&](int n, int parent, std::int64_t step) {
    ForkedRun run;
    run.id = test_id(n);
    run.parent = test_id(parent);
    run.name = "fork";
    run.folder = "fork-" + run.id;
    run.config_json = "{}";
    run.step = step;
    must(store_->add_fork(run));
  };
  record(test_request(1), 1, 60, 0);
  record(test_request(1, true), 61, 150, 50);
  fork(2, 1, 60);
  record(test_request(2, true), 61, 80, 0);
  fork(3, 2, 80);
  options_.run = test_id(3);
  sink().resumed_after(80);
  sink_->metrics(test_metrics(81, 20));  // seen alone it would be the first point
  EXPECT_EQ(heard(), Words{"+spike@81"});
}

}  // namespace
}  // namespace stacklab
