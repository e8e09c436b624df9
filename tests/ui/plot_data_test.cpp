// From raw points to what is drawn: nothing that matters gets lost on the way.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "tests/ui/ui_test.h"
#include "ui/plots/chart_paint.h"
#include "ui/plots/decimate.h"
#include "ui/plots/shared_view.h"
#include "ui/plots/ticks.h"

namespace stacklab::ui {
namespace {

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

struct Data {
  std::vector<double> xs, ys;
  Column column;
  explicit Data(std::vector<double> values) : ys(std::move(values)) {
    for (std::size_t i = 0; i < ys.size(); ++i) xs.push_back(static_cast<double>(i + 1));
    column.append(ys);
  }
  Decimated at(Window window) const { return decimate(xs, column, window); }
};

std::vector<double> wave(std::size_t n) {
  std::vector<double> ys(n);
  for (std::size_t i = 0; i < n; ++i)
    ys[i] = 2 + std::sin(static_cast<double>(i) * 0.001) + 0.01 * static_cast<double>(i * 2654435761u % 100);
  return ys;
}

bool shows(const Decimated& d, double x, double y) {
  return std::any_of(d.points.begin(), d.points.end(), [&](const QPointF& p) { return p.x() == x && p.y() == y; });
}

// What decimate promises, checked point by point.
void expect_promises(const Data& data, const Window& window, const Decimated& d) {
  std::vector<int> per_column(static_cast<std::size_t>(window.columns), 0);
  double last_x = -infinity;
  for (const QPointF& p : d.points) {
    EXPECT_GT(p.x(), last_x);
    last_x = p.x();
    const double x = window.log_x ? std::pow(10, p.x()) : p.x();
    const double part = window.log_x ? std::log(x / window.x0) / std::log(window.x1 / window.x0)
                                     : (x - window.x0) / (window.x1 - window.x0);
    if (x < window.x0 - 1e-9 || x > window.x1 * (1 + 1e-12)) continue;  // the neighbours outside
    const double column = std::clamp(part * window.columns, 0.0, window.columns - 1e-9);
    // On a boundary rounding decides which column it is in.
    if (std::abs(column - std::round(column)) < 1e-6) continue;
    ++per_column[static_cast<std::size_t>(column)];
  }
  for (const int n : per_column) EXPECT_LE(n, 4);
  EXPECT_TRUE(std::is_sorted(d.starts.begin(), d.starts.end()));
  EXPECT_EQ(d.starts.empty(), d.points.empty());
  // Between two points of a piece there is nothing that is not finite; between two pieces there is.
  for (std::size_t i = 1; i < d.points.size(); ++i) {
    const auto index = [&](const QPointF& p) {
      return static_cast<std::size_t>(std::llround(window.log_x ? std::pow(10, p.x()) : p.x()) - 1);
    };
    const bool torn = std::any_of(data.ys.begin() + static_cast<std::ptrdiff_t>(index(d.points[i - 1])),
                                  data.ys.begin() + static_cast<std::ptrdiff_t>(index(d.points[i])),
                                  [](double y) { return !std::isfinite(y); });
    const bool starts = std::binary_search(d.starts.begin(), d.starts.end(), static_cast<int>(i));
    EXPECT_EQ(torn, starts) << "at point " << i;
  }
}

TEST(Column, ExtremesAgreeWithLookingAtEveryValue) {
  std::mt19937 random(7);
  std::vector<double> ys;
  Column column;
  for (int round = 0; round < 60; ++round) {
    std::vector<double> more;
    const auto count = random() % 200;
    for (unsigned i = 0; i < count; ++i) {
      const auto dice = random() % 20;
      more.push_back(dice == 0   ? nan_value
                     : dice == 1 ? infinity
                     : dice == 2 ? 0.0
                                 : std::normal_distribution<>(0.2, 1)(random));
    }
    ys.insert(ys.end(), more.begin(), more.end());
    column.append(more);
    for (int probe = 0; probe < 40; ++probe) {
      const std::size_t a = ys.empty() ? 0 : random() % ys.size(),
                        b = a + (ys.empty() ? 0 : random() % (ys.size() - a + 1));
      double low = infinity, high = -infinity, positive = infinity;
      for (std::size_t i = a; i < b; ++i) {
        if (!std::isfinite(ys[i])) continue;
        low = std::min(low, ys[i]);
        high = std::max(high, ys[i]);
        if (ys[i] > 0) positive = std::min(positive, ys[i]);
      }
      const Extremes e = column.extremes(a, b);
      ASSERT_EQ(e.min == no_index, low == infinity);
      if (e.min != no_index) {
        ASSERT_EQ(ys[e.min], low);
        ASSERT_EQ(ys[e.max], high);
        ASSERT_TRUE(e.min >= a && e.min < b && e.max >= a && e.max < b);
      }
      ASSERT_EQ(e.min_positive == no_index, positive == infinity);
      if (e.min_positive != no_index) {
        ASSERT_EQ(ys[e.min_positive], positive);
      }
    }
  }
}

TEST(Series, CountsWhatItsPointsStandFor) {
  Series series;
  series.append(std::vector<double>{1, 2}, std::vector<double>{5, 4});
  EXPECT_FALSE(series.summed());
  // 100 values, 10 of them NaN; then single ones again.
  series.append(std::vector<double>{3, 40, 50, 102}, std::vector<double>{3, nan_value, 9, 2},
                std::vector<std::uint32_t>{90, 10, 0, 0}, std::vector<double>{2.5, nan_value, 2.5, 2.5});
  series.append(std::vector<double>{103}, std::vector<double>{1});
  EXPECT_TRUE(series.summed());
  EXPECT_EQ(series.raw(0, 7), 103u);
  EXPECT_EQ(series.raw(1, 2), 1u);
  EXPECT_EQ(series.raw(5, 7), 1u);
  EXPECT_EQ(series.raw(6, 7), 1u);
  EXPECT_EQ(series.non_finite(0, 7), 10u);
  EXPECT_EQ(series.typical(2), 2.5);
  EXPECT_EQ(series.typical(6), 1);
  series.clear();
  EXPECT_FALSE(series.summed());
}

// Summed up, values weigh as much as they did one by one: what an average of them all would be.
TEST(Smoother, OfWhatIsSummedUpGoesOnAsOfAllValues) {
  constexpr double beta = 0.97;
  Series one, summed, constant;
  std::vector<double> xs, ys;
  for (int i = 0; i < 40; ++i) {
    xs.push_back(i);
    ys.push_back(i < 30 ? 7.0 : 1.0 + i % 3);
  }
  one.append(xs, ys);
  summed.append(std::vector<double>{0}, std::vector<double>{7}, std::vector<std::uint32_t>{30}, std::vector<double>{7});
  summed.append(std::span(xs).subspan(30), std::span(ys).subspan(30));
  Smoother a, b, c;
  a.update(one, beta);
  b.update(summed, beta);
  for (std::size_t i = 0; i < 10; ++i) {
    // Each of 40 steps rounds a few times, values are at most 7.
    EXPECT_NEAR(a.ys()[30 + i], b.ys()[1 + i], 40 * 4 * 7 * std::numeric_limits<double>::epsilon());
  }
  constant.append(std::vector<double>{0, 1, 2}, std::vector<double>{0.1, 0.1, 0.1},
                  std::vector<std::uint32_t>{7, 0, 90}, std::vector<double>{0.1, 0.1, 0.1});
  c.update(constant, beta);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(c.ys()[i], 0.1);
}

TEST(Decimate, KeepsASpikeOfOneStepAtEveryZoom) {
  constexpr std::size_t n = 1'000'000;
  std::vector<double> ys = wave(n);
  const std::size_t up = 617'283, down = 250'001;
  ys[up] = 50;
  ys[down] = -50;
  const Data data(ys);
  for (const int columns : {1, 3, 200, 1337, 3000}) {
    for (double span = static_cast<double>(n); span > 20; span /= 3.7) {
      for (const std::size_t spike : {up, down}) {
        const double x = static_cast<double>(spike + 1);
        for (const double place : {0.01, 0.5, 0.99}) {
          const Window window{x - span * place, x + span * (1 - place), columns};
          const Decimated d = data.at(window);
          EXPECT_TRUE(shows(d, x, ys[spike])) << columns << " columns, span " << span;
          EXPECT_LE(d.points.size(), 4u * static_cast<std::size_t>(columns) + 2);
        }
      }
    }
  }
  const Window all{1, static_cast<double>(n), 800};
  const Decimated d = data.at(all);
  EXPECT_EQ(d.raw, n);
  expect_promises(data, all, d);
}

TEST(Decimate, KeepsASpikeOnALogAxisToo) {
  std::vector<double> ys = wave(300'000);
  ys[123'456] = 1e6;
  ys[200'000] = 1e-7;
  ys[200'001] = 0;
  const Data data(ys);
  for (const bool log_x : {false, true}) {
    const Decimated d = data.at({1, 300'000, 640, log_x, true});
    const auto has = [&](double y) {
      return std::any_of(d.points.begin(), d.points.end(),
                         [&](const QPointF& p) { return std::abs(p.y() - y) < 1e-12; });
    };
    EXPECT_TRUE(has(6));
    EXPECT_TRUE(has(std::log10(1e-7)));
    EXPECT_EQ(d.hidden, 1u);
    expect_promises(data, {1, 300'000, 640, log_x, true}, d);
    for (const QPointF& p : d.points) ASSERT_TRUE(std::isfinite(p.x()) && std::isfinite(p.y()));
  }
}

TEST(Decimate, TearsTheLineWhereValuesAreNotFinite) {
  const Data data({1, 2, nan_value, 4, 5, infinity, -infinity, 8, nan_value});
  const Decimated d = data.at({1, 9, 100});
  EXPECT_EQ(d.points.size(), 5u);
  EXPECT_EQ(d.starts, (std::vector<int>{0, 2, 4}));
  EXPECT_EQ(d.non_finite, 4u);
  ASSERT_EQ(d.gaps.size(), 3u);
  EXPECT_EQ(d.gaps[0], QPointF(3, 2));
  EXPECT_EQ(d.gaps[1], QPointF(6, 5));
  EXPECT_EQ(d.gaps[2], QPointF(9, 8));
  expect_promises(data, {1, 9, 100}, d);
}

TEST(Decimate, TearsAlsoWithinOneColumnOfPixels) {
  std::vector<double> ys = wave(5000);
  ys[2500] = nan_value;
  const Data data(ys);
  for (const int columns : {1, 2, 7, 100}) {
    const Decimated d = data.at({1, 5000, columns});
    EXPECT_EQ(d.starts.size(), 2u) << columns;
    EXPECT_EQ(d.gaps.size(), 1u);
    expect_promises(data, {1, 5000, columns}, d);
  }
}

TEST(Decimate, RandomDataKeepsItsPromises) {
  std::mt19937 random(11);
  for (int round = 0; round < 30; ++round) {
    std::vector<double> ys;
    const auto n = 1 + random() % 3000;
    const unsigned rarity = 2 + random() % 300;
    for (unsigned i = 0; i < n; ++i)
      ys.push_back(random() % rarity == 0 ? nan_value
                   : random() % 50 == 0   ? 0
                                          : std::normal_distribution<>(1, 1)(random));
    const Data data(ys);
    const double x0 = 1 + static_cast<double>(random() % n), x1 = x0 + 1 + static_cast<double>(random() % n);
    for (const bool log_x : {false, true})
      for (const bool log_y : {false, true}) {
        const Window window{x0, x1, static_cast<int>(1 + random() % 400), log_x, log_y};
        const Decimated d = data.at(window);
        EXPECT_EQ(d.raw, static_cast<std::size_t>(std::min<double>(x1, static_cast<double>(n)) - x0 + 1));
        expect_promises(data, window, d);
      }
  }
}

TEST(Decimate, SurvivesWhatIsNotACurve) {
  EXPECT_TRUE(Data({}).at({0, 1, 100}).points.empty());
  const Decimated one = Data({3}).at({0, 10, 100});
  EXPECT_EQ(one.points.size(), 1u);
  EXPECT_EQ(one.starts.size(), 1u);
  const Decimated none = Data(std::vector<double>(100'000, nan_value)).at({1, 100'000, 500});
  EXPECT_TRUE(none.points.empty());
  EXPECT_EQ(none.non_finite, 100'000u);
  EXPECT_EQ(none.gaps.size(), 1u);
  const Decimated zeros = Data(std::vector<double>(1000, 0.0)).at({1, 1000, 50, false, true});
  EXPECT_TRUE(zeros.points.empty());
  EXPECT_EQ(zeros.hidden, 1000u);
  EXPECT_TRUE(Data({1, 2, 3}).at({5, 4, 10}).points.empty());
  EXPECT_TRUE(Data({1, 2, 3}).at({0, 1, 0}).points.empty());
}

TEST(Decimate, ReachesTheEdgesOfTheWindow) {
  const Data data(wave(100));
  const Decimated d = data.at({10.5, 20.5, 100});
  EXPECT_EQ(d.raw, 10u);
  EXPECT_EQ(d.points.front().x(), 10);
  EXPECT_EQ(d.points.back().x(), 21);
  // A window between two points still shows the line that crosses it.
  const Decimated between = data.at({10.2, 10.8, 100});
  EXPECT_EQ(between.raw, 0u);
  ASSERT_EQ(between.points.size(), 2u);
  EXPECT_EQ(between.starts.size(), 1u);
}

TEST(Smoother, LeavesAConstantAsItIs) {
  Series series;
  const double value = 2.718281828;
  series.append(std::vector<double>{1, 2, 3, 4, 5, 6},
                std::vector<double>{value, value, nan_value, value, infinity, value});
  for (const double beta : {0.1, 0.86, 0.99}) {
    Smoother smoother;
    smoother.update(series, beta);
    for (std::size_t i = 0; i < series.size(); ++i) {
      if (std::isfinite(series.ys()[i]))
        EXPECT_EQ(smoother.ys()[i], value);
      else
        EXPECT_TRUE(std::isnan(smoother.ys()[i]));
    }
  }
}

TEST(Smoother, IsTheAverageWithoutItsBias) {
  Series series;
  std::vector<double> xs, ys;
  for (int i = 1; i <= 50; ++i) {
    xs.push_back(i);
    ys.push_back(std::cos(i));
  }
  series.append(xs, ys);
  const double beta = 0.9;
  Smoother smoother;
  smoother.update(series, beta);
  double average = 0;
  for (std::size_t i = 0; i < ys.size(); ++i) {
    average = beta * average + (1 - beta) * ys[i];
    const double corrected = average / (1 - std::pow(beta, static_cast<double>(i + 1)));
    EXPECT_NEAR(smoother.ys()[i], corrected, 1e-12);
  }
}

TEST(Smoother, GrowsWithTheSeriesAndStartsAnewWithIt) {
  Series whole, grown;
  std::vector<double> xs, ys;
  for (int i = 1; i <= 1000; ++i) {
    xs.push_back(i);
    ys.push_back(i % 7 == 0 ? nan_value : std::sin(i));
  }
  whole.append(xs, ys);
  Smoother at_once, bit_by_bit;
  at_once.update(whole, 0.8);
  for (std::size_t i = 0; i < xs.size(); i += 37) {
    const std::size_t n = std::min<std::size_t>(37, xs.size() - i);
    grown.append(std::span(xs).subspan(i, n), std::span(ys).subspan(i, n));
    bit_by_bit.update(grown, 0.8);
  }
  for (std::size_t i = 0; i < xs.size(); ++i)
    if (std::isfinite(ys[i])) {
      EXPECT_EQ(at_once.ys()[i], bit_by_bit.ys()[i]);
    }
  grown.clear();
  grown.append(std::vector<double>{1}, std::vector<double>{5});
  bit_by_bit.update(grown, 0.8);
  ASSERT_EQ(bit_by_bit.ys().size(), 1u);
  EXPECT_EQ(bit_by_bit.ys()[0], 5);
}

TEST(Ticks, AreRoundAndWithinTheRange) {
  for (const auto& [low, high] :
       {std::pair{0.0, 400.0}, {1.5, 5.6}, {0.0, 3.2e-3}, {-4.0, 7.0}, {8000.0, 16000.0}, {0.0, 1e9}}) {
    const auto ticks = linear_ticks({low, high}, 6, ValueFormat::fixed3);
    EXPECT_GE(ticks.size(), 2u);
    EXPECT_LE(ticks.size(), 7u);
    for (const Tick& tick : ticks) {
      EXPECT_GE(tick.position, low - 1e-9 * std::abs(high));
      EXPECT_LE(tick.position, high * (1 + 1e-9));
    }
  }
  const auto labels = [](const std::vector<Tick>& ticks) {
    QStringList words;
    for (const Tick& tick : ticks) words << tick.label;
    return words.join(QLatin1Char(' '));
  };
  EXPECT_EQ(labels(count_ticks({0, 2000}, 5, false)), "0 500 1,000 1,500 2,000");
  EXPECT_EQ(labels(count_ticks({0, 16000}, 4, false)), "0 5k 10k 15k");
  EXPECT_EQ(labels(linear_ticks({1, 6}, 6, ValueFormat::fixed3)), "1 2 3 4 5 6");
  EXPECT_EQ(labels(linear_ticks({3, 4.5}, 4, ValueFormat::fixed3)), "3.0 3.5 4.0 4.5");
  EXPECT_EQ(labels(linear_ticks({0, 3e-3}, 4, ValueFormat::scientific)), "0 1e-3 2e-3 3e-3");
  EXPECT_EQ(labels(log_ticks({-4, -1}, 6, ValueFormat::scientific)), "1e-4 1e-3 1e-2 1e-1");
  EXPECT_EQ(labels(log_ticks({std::log10(0.3), 1}, 4, ValueFormat::fixed2)), "0.3 1 3 10");
  EXPECT_EQ(labels(linear_ticks({0, 2e19}, 2, ValueFormat::fixed3)), "0 1e19 2e19");
  EXPECT_EQ(labels(linear_ticks({0, 4e-5}, 2, ValueFormat::fixed3)), "0 2e-5 4e-5");
  EXPECT_EQ(labels(linear_ticks({1e7, 1.0002e7}, 2, ValueFormat::fixed2)), "1e7 1.0001e7 1.0002e7");
  EXPECT_EQ(labels(log_ticks({std::log10(1.1), std::log10(5.9)}, 2, ValueFormat::fixed2)), "2 5");
  for (double low = -5; low < 9; low += 0.37)
    for (double span = 0.2; span < 6; span += 0.23)
      EXPECT_GE(log_ticks({low, low + span}, 2, ValueFormat::fixed3).size(), 2u) << low << ' ' << span;
}

TEST(Ticks, NoValueIsWrittenAsNothingOrWithAllItsZeros) {
  EXPECT_EQ(format_value(1e19, ValueFormat::fixed3), "1.0e19");
  EXPECT_EQ(format_value(-2e8, ValueFormat::fixed2), "-2.0e8");
  EXPECT_EQ(format_value(4e-5, ValueFormat::fixed3), "4.0e-5");
  EXPECT_EQ(format_value(0, ValueFormat::fixed3), "0.000");
  EXPECT_EQ(format_value(3.1494, ValueFormat::fixed3), "3.149");
  EXPECT_EQ(format_value(0.0005, ValueFormat::fixed3), QLocale().toString(0.0005, 'f', 3));
}

TEST(Ticks, NiceRangeHoldsWhatItIsGiven) {
  for (const auto& [low, high] :
       {std::pair{1.55, 5.54}, {0.0, 0.0}, {3.0, 3.0}, {-2.0, -2.0}, {1e-9, 2e-9}, {-1e12, 1e12}}) {
    const AxisRange range = nice_range(low, high, 5);
    EXPECT_LE(range.low, low);
    EXPECT_GE(range.high, high);
    EXPECT_GT(range.span(), 0);
  }
}

TEST(Labels, KeepTheirDistanceAndTheFocusedOne) {
  const auto spread =
      spread_labels({100, 101, 102, 300}, {false, false, true, false}, {"a", "b", "c", "d"}, 13, 0, 400);
  for (std::size_t i = 1; i < 3; ++i) EXPECT_GE(spread[i] - spread[i - 1], 13);
  EXPECT_EQ(spread[3], 300);
  const auto crowded = spread_labels({10, 11, 12, 13}, {false, false, false, true}, {"a", "b", "c", "d"}, 13, 0, 20);
  EXPECT_FALSE(std::isnan(crowded[3]));
  EXPECT_EQ(std::count_if(crowded.begin(), crowded.end(), [](double y) { return !std::isnan(y); }), 2);
  for (const double y : crowded)
    if (!std::isnan(y)) {
      EXPECT_TRUE(y >= 0 && y <= 20);
    }
  const auto equal = spread_labels({10, 11, 12}, {false, false, false}, {"2.0", "2.0", "3.0"}, 13, 0, 20);
  EXPECT_TRUE(std::isnan(equal[1]) && !std::isnan(equal[2])) << "what says the same goes first";
}

TEST(SharedView, GoesBackAndForward) {
  SharedView shared;
  EXPECT_FALSE(shared.can_go_back());
  shared.push({AxisRange{10, 20}, {}});
  shared.push({AxisRange{12, 15}, {}});
  shared.back();
  EXPECT_EQ(shared.view().x, (AxisRange{10, 20}));
  EXPECT_TRUE(shared.can_go_forward());
  shared.forward();
  EXPECT_EQ(shared.view().x, (AxisRange{12, 15}));
  shared.back();
  shared.push({AxisRange{1, 2}, {}});
  EXPECT_FALSE(shared.can_go_forward());
  shared.reset();
  EXPECT_FALSE(shared.view().x);
  for (int i = 0; i < 4; ++i) shared.back();
  EXPECT_FALSE(shared.view().x);
  EXPECT_FALSE(shared.can_go_back());
}

TEST(SharedView, ARowOfWheelTurnsIsOneView) {
  SharedView shared;
  for (int i = 0; i < 10; ++i) shared.push({AxisRange{0, 100.0 - i}, {}}, true);
  shared.back();
  EXPECT_FALSE(shared.view().x);
}

}  // namespace
}  // namespace stacklab::ui
