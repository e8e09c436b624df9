#include "engine/store/pyramid.h"

#include <SQLiteCpp/Statement.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "engine/store/database.h"
#include "engine/store/records.h"
#include "tests/engine/store/store_testing.h"

namespace stacklab {
namespace {

constexpr std::int64_t all = std::numeric_limits<std::int64_t>::max();

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }
bool same(const SeriesPoint& a, const SeriesPoint& b) { return a.step == b.step && same(a.value, b.value); }
bool same(const SeriesBucket& a, const SeriesBucket& b) {
  return a.count == b.count && a.non_finite == b.non_finite && a.gap_step == b.gap_step && same(a.first, b.first) &&
         same(a.last, b.last) && same(a.min.value, b.min.value) && same(a.max.value, b.max.value) &&
         (std::isnan(a.min.value) || (a.min.step == b.min.step && a.max.step == b.max.step));
}

SeriesBucket sum_of(const std::vector<SeriesPoint>& points) {
  SeriesBucket sum;
  for (const SeriesPoint& p : points) store::append(sum, store::bucket_of(p.step, p.value));
  return sum;
}

class Pyramids : public testing::Test {
 protected:
  Pyramids() : store_(must(Store::open(folder_.path()))), reader_(must(open_store_reader(folder_.path()))) {}

  static MetricEvent event(std::int64_t step, double loss) {
    MetricEvent e{step, step, 0, 0, {}};
    e.values = {{metric::loss, loss}};
    if (step % 7 == 0) e.values.push_back({metric::val_loss, loss + 1});
    return e;
  }

  // Each bucket says exactly what its stretch of rows says, and none is missed.
  void check(std::int64_t from, std::int64_t to, std::int64_t max_points) {
    for (const char* name : {"loss", "val_loss"}) {
      SCOPED_TRACE(testing::Message() << name << " " << from << ".." << to << " in " << max_points);
      std::vector<SeriesPoint> points;
      for (const SeriesPoint& p : must(reader_->series(test_id(1), name, from - 1, all)))
        if (p.step <= to) points.push_back(p);
      const auto buckets = must(reader_->decimated(test_id(1), name, from, to, max_points));
      ASSERT_LE(static_cast<std::int64_t>(buckets.size()), max_points);
      std::size_t at = 0;
      for (const SeriesBucket& b : buckets) {
        ASSERT_LE(at + static_cast<std::size_t>(b.count), points.size());
        const auto begin = points.begin() + static_cast<std::ptrdiff_t>(at);
        ASSERT_TRUE(same(b, sum_of({begin, begin + b.count}))) << "from step " << begin->step;
        if (b.count > b.non_finite) {
          // Each finite value moves the mean by a few roundings of its size.
          const double size = std::max(std::abs(b.min.value), std::abs(b.max.value));
          const double slack = static_cast<double>(b.count) * 4 * size * std::numeric_limits<double>::epsilon();
          ASSERT_GE(b.mean, b.min.value - slack);
          ASSERT_LE(b.mean, b.max.value + slack);
        }
        at += static_cast<std::size_t>(b.count);
      }
      ASSERT_EQ(at, points.size());
    }
  }

  // What is kept is what building anew from the rows gives.
  void check_kept() {
    auto db = must(store::open_for_writing(folder_.path(), {}));
    const auto dump = [&] {
      std::vector<std::string> rows;
      SQLite::Statement query(*db, "SELECT * FROM pyramids ORDER BY run, metric, level, bucket");
      while (query.executeStep()) {
        std::string row;
        for (int c = 0; c < query.getColumnCount(); ++c) row += query.getColumn(c).getString() + "|";
        rows.push_back(row);
      }
      return rows;
    };
    const auto kept = dump();
    store::build_pyramids(*db);
    EXPECT_EQ(kept, dump());
    EXPECT_FALSE(kept.empty());
  }

  TemporaryFolder folder_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<StoreReader> reader_;
};

TEST_F(Pyramids, OfRandomCurvesWithGapsAndResumesSayWhatTheRowsSay) {
  std::mt19937 random(5);
  const auto any = [&](std::int64_t from, std::int64_t to) {
    return std::uniform_int_distribution<std::int64_t>(from, to)(random);
  };
  std::int64_t step = 0;
  for (int process = 0; process < 6; ++process) {
    const auto claim = must(store_->claim(test_request(1, process > 0), {}));
    const auto sink = store_->sink(claim);
    if (process > 0) {
      step = process == 3 ? 0 : any(step / 2, step);
      sink->resumed_after(step);
    }
    const std::int64_t end = step + any(100, 3000);
    while (step < end) {
      step += any(0, 9) == 0 ? any(1, 40) : 1;  // not every step is recorded
      double loss = std::normal_distribution<double>(3, 1)(random);
      if (any(0, 99) == 0) loss = std::nan("");
      if (any(0, 99) == 0) loss = -std::numeric_limits<double>::infinity();
      sink->metrics(event(step, loss));
      if (any(0, 50) == 0) must(store_->flush());
    }
    must(store_->end(claim, {.state = RunState::paused, .cause = "stopped"}));
    for (const std::int64_t max_points : {1, 2, 7, 50, 1000, 100000}) {
      check(0, all, max_points);
      const std::int64_t from = any(0, step);
      check(from, any(from, step), max_points);
    }
    check_kept();
  }
}

TEST_F(Pyramids, StepsAreSampledEvenlyWithTheirEnds) {
  const auto claim = must(store_->claim(test_request(1), {}));
  const auto sink = store_->sink(claim);
  for (std::int64_t step = 3; step <= 5000; ++step)
    if (step % 100 < 50 || step == 77) sink->metrics(event(step, 1));  // with holes
  must(store_->flush());
  const auto whole = must(reader_->steps(test_id(1), 0, all));
  for (const std::int64_t most : {1, 2, 7, 100, 1000, 10000}) {
    for (const auto& [from, to] :
         {std::pair<std::int64_t, std::int64_t>{0, all}, {777, 3333}, {60, 70}, {4000, 4000}}) {
      const auto rows = must(reader_->sampled_steps(test_id(1), from, to, most));
      std::vector<std::int64_t> steps, known;
      for (const StepRow& row : rows) steps.push_back(row.step);
      for (const StepRow& row : whole)
        if (row.step >= from && row.step <= to) known.push_back(row.step);
      SCOPED_TRACE(testing::Message() << from << ".." << to << " in " << most);
      ASSERT_EQ(steps.empty(), known.empty());
      if (known.empty()) continue;
      EXPECT_LE(static_cast<std::int64_t>(steps.size()), most + 1);
      EXPECT_EQ(steps.front(), known.front());
      EXPECT_EQ(steps.back(), known.back());
      EXPECT_EQ(std::adjacent_find(steps.begin(), steps.end(), std::greater_equal<>()), steps.end());
      EXPECT_TRUE(std::includes(known.begin(), known.end(), steps.begin(), steps.end()));
      if (most >= known.back() - known.front()) {
        EXPECT_EQ(steps, known);
      }
    }
  }
  EXPECT_FALSE(reader_->sampled_steps("nothing", 0, all, 10));
}

TEST_F(Pyramids, ASpikeOfOneStepAndAGapAreSeenFromAfar) {
  constexpr std::int64_t steps = 20000, spike = 12345, gap = 777;
  const auto claim = must(store_->claim(test_request(1), {}));
  const auto sink = store_->sink(claim);
  for (std::int64_t step = 1; step <= steps; ++step)
    sink->metrics(event(step, step == spike ? 99.0 : step == gap ? std::nan("") : 1.0 / static_cast<double>(step)));
  must(store_->flush());
  const auto buckets = must(reader_->decimated(test_id(1), "loss", 0, all, 10));
  ASSERT_LE(buckets.size(), 10u);
  SeriesBucket sum;
  for (const SeriesBucket& b : buckets) store::append(sum, b);
  EXPECT_TRUE(same(sum.max, {spike, 99.0}));
  EXPECT_TRUE(same(sum.min, {steps, 1.0 / steps}));
  EXPECT_TRUE(same(sum.first, {1, 1.0}));
  EXPECT_TRUE(same(sum.last, {steps, 1.0 / steps}));
  EXPECT_EQ(sum.count, steps);
  EXPECT_EQ(sum.non_finite, 1);
  EXPECT_EQ(sum.gap_step, gap);
  // Few enough to be summed up from the rows: the mean is exact, each value adding a few roundings.
  const auto near = must(reader_->decimated(test_id(1), "loss", spike + 1, spike + 100, 10));
  for (const SeriesBucket& b : near) {
    double total = 0;
    for (std::int64_t step = b.first.step; step <= b.last.step; ++step) total += 1.0 / static_cast<double>(step);
    EXPECT_NEAR(b.mean, total / static_cast<double>(b.count),
                200 * b.max.value * std::numeric_limits<double>::epsilon());
  }
  EXPECT_TRUE(must(reader_->decimated(test_id(1), "nothing", 0, all, 10)).empty());
  EXPECT_TRUE(must(reader_->decimated(test_id(1), "loss", steps + 1, all, 10)).empty());
  EXPECT_FALSE(reader_->decimated("nothing", "loss", 0, all, 10));
  // Few values come as they are.
  const auto few = must(reader_->decimated(test_id(1), "loss", spike - 2, spike + 2, 10));
  ASSERT_EQ(few.size(), 5u);
  EXPECT_TRUE(same(few[2], store::bucket_of(spike, 99.0)));
}

TEST_F(Pyramids, RowsThatComeLateAreTakenIn) {
  {
    const auto claim = must(store_->claim(test_request(1), {}));
    store_->sink(claim)->metrics(event(1, 1));
    must(store_->end(claim, {.state = RunState::paused, .cause = "stopped"}));
  }
  std::string text;
  for (std::int64_t step = 2; step <= 40; ++step)
    text += store::to_json_line(
                {{test_id(1), 1}, store::StepRecord{step, step, 1, 1, {{"loss", 50.0 - static_cast<double>(step)}}}}) +
            "\n";
  store_.reset();
  put_file(folder_ / "runs" / "spill-1-a.jsonl", text);
  store_ = must(Store::open(folder_.path()));
  check(0, all, 3);
  check_kept();
  const RunSummary run = must(reader_->run(test_id(1)));
  EXPECT_EQ(run.step, 40);
  EXPECT_EQ(run.last_loss, 10.0);
}

}  // namespace
}  // namespace stacklab
