#include "engine/run/alerts.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace stacklab {
namespace {

using Kind = RunEvent::Kind;
constexpr double threshold = 100;

MetricEvent point(std::int64_t step, double loss, double norm = 1, double logit = 10) {
  return {step, 0, 0, 0, {{metric::loss, loss}, {metric::grad_norm, norm}, {metric::max_logit, logit}}};
}

// "+spike@7" and "-spike@40", in order.
std::vector<std::string> say(AlertWatch& watch, const MetricEvent& event) {
  std::vector<std::string> said;
  const auto verdict = watch.observe(event);
  const auto note = [&](const char* sign, Kind kind) {
    said.push_back(sign + std::string(to_string(kind)) + "@" + std::to_string(event.step));
  };
  for (const RunEvent& e : verdict.raised) {
    EXPECT_TRUE(e.is_alert());
    EXPECT_EQ(e.step, event.step);
    note("+", e.kind);
  }
  for (const Kind kind : verdict.resolved) note("-", kind);
  return said;
}

using Words = std::vector<std::string>;

Words judge(AlertWatch& watch, const std::vector<MetricEvent>& events) {
  Words words;
  for (const MetricEvent& event : events)
    for (std::string& word : say(watch, event)) words.push_back(std::move(word));
  return words;
}

// A loss that falls as one does, with noise.
std::vector<MetricEvent> curve(std::int64_t steps, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> noise(0, 0.05);
  std::vector<MetricEvent> events;
  for (std::int64_t step = 1; step <= steps; ++step)
    events.push_back(point(step, 2.5 + 3 * std::exp(-static_cast<double>(step) / 80) + noise(random)));
  return events;
}

TEST(Alerts, AnOrdinaryCurveRaisesNone) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    AlertWatch watch(threshold);
    EXPECT_EQ(judge(watch, curve(2000, seed)), Words()) << seed;
  }
}

TEST(Alerts, ASpikeIsSaidOnceAndIsOverWhenItIsCalm) {
  auto events = curve(400, 1);
  // Ten bad steps, with good ones between them: one trouble.
  for (int i = 0; i < 10; ++i) events[static_cast<std::size_t>(199 + 3 * i)].values[0].value = 6;
  AlertWatch watch(threshold);
  EXPECT_EQ(judge(watch, events), (Words{"+spike@200", "-spike@259"}));
  // After a calm stretch it is said anew.
  events = curve(400, 1);
  for (const std::size_t at : {199u, 231u, 264u}) events[at].values[0].value = 6;
  AlertWatch again(threshold);
  EXPECT_EQ(judge(again, events), (Words{"+spike@200", "-spike@264", "+spike@265", "-spike@297"}))
      << "32 points apart is one trouble, 33 are two";
}

TEST(Alerts, AConstantCurveDoesNotAlarmAtAWrinkle) {
  std::vector<MetricEvent> events;
  for (std::int64_t step = 1; step <= 100; ++step) events.push_back(point(step, step == 60 ? 2.05 : 2.0));
  AlertWatch watch(threshold);
  EXPECT_EQ(judge(watch, events), Words());
  AlertWatch other(threshold);
  events[59].values[0].value = 2.11;
  EXPECT_EQ(judge(other, events), (Words{"+spike@60", "-spike@92"}));
}

TEST(Alerts, TheFirstPointsAreNoSpikes) {
  AlertWatch watch(threshold);
  EXPECT_EQ(judge(watch, {point(1, 2), point(2, 50), point(3, 2)}), Words());
}

TEST(Alerts, WhatIsNotFiniteIsCritical) {
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  auto events = curve(200, 3);
  events[100].values[0].value = nan;
  events[101].values[0].value = inf;
  events[102].values[1].value = nan;
  AlertWatch watch(threshold);
  EXPECT_EQ(judge(watch, events), (Words{"+non_finite@101", "-non_finite@135"}));
  AlertWatch other(threshold);
  const auto verdict = other.observe(point(1, nan));
  ASSERT_EQ(verdict.raised.size(), 1u);
  EXPECT_EQ(verdict.raised[0].severity, RunEvent::Severity::critical);
}

TEST(Alerts, ALogitOverTheThreshold) {
  auto events = curve(200, 3);
  events[100].values[2].value = threshold;
  events[110].values[2].value = std::nextafter(threshold, 200);
  events[120].values[2].value = 500;
  AlertWatch watch(threshold);
  EXPECT_EQ(judge(watch, events), (Words{"+logit@111", "-logit@153"}));
}

TEST(Alerts, EventsWithoutALossAreNoPoints) {
  AlertWatch watch(threshold);
  const auto verdict = watch.observe({5, 0, 0, 0, {{metric::val_loss, std::nan("")}, {metric::max_logit, 1e9}}});
  EXPECT_TRUE(verdict.raised.empty());
}

// A process that takes the run over after any step says from there on what the first would have said.
TEST(Alerts, TheyDoNotDependOnInterruptions) {
  std::mt19937 random(9);
  for (unsigned seed = 0; seed < 5; ++seed) {
    auto events = curve(500, seed);
    for (int i = 0; i < 25; ++i) {
      auto& event = events[std::uniform_int_distribution<std::size_t>(0, events.size() - 1)(random)];
      event.values[std::uniform_int_distribution<std::size_t>(0, 2)(random)].value =
          i % 3 == 0 ? std::nan("") : std::uniform_real_distribution<double>(3, 300)(random);
    }
    AlertWatch whole(threshold);
    std::vector<Words> said;
    for (const MetricEvent& event : events) said.push_back(say(whole, event));
    for (std::size_t cut = 1; cut < events.size(); cut += 13) {
      AlertWatch second(threshold);
      const std::size_t memory = static_cast<std::size_t>(AlertWatch::memory);
      for (std::size_t i = cut > memory ? cut - memory : 0; i < cut; ++i) second.observe(events[i]);
      for (std::size_t i = cut; i < events.size(); ++i)
        ASSERT_EQ(say(second, events[i]), said[i]) << "seed " << seed << ", cut after step " << cut;
    }
  }
}

}  // namespace
}  // namespace stacklab
