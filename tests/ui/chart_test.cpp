// The chart on a (pictured) screen: what is seen, and what the mouse and keys do.
#include <QContextMenuEvent>
#include <QElapsedTimer>
#include <QFile>
#include <QMenu>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QWheelEvent>
#include <algorithm>
#include <clocale>
#include <cmath>
#include <limits>

#include "tests/ui/ui_test.h"
#include "ui/plots/chart_panel.h"
#include "ui/plots/export.h"
#include "ui/plots/series_table.h"
#include "ui/theme/look.h"
#include "ui/theme/numbers.h"

namespace stacklab::ui {
namespace {

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();

std::shared_ptr<Series> series_of(const std::vector<double>& ys, double first = 1) {
  auto series = std::make_shared<Series>();
  std::vector<double> xs;
  for (std::size_t i = 0; i < ys.size(); ++i) xs.push_back(first + static_cast<double>(i));
  series->append(xs, ys);
  return series;
}

Curve curve_of(std::shared_ptr<const Series> series, int number = 0, const QString& name = QStringLiteral("train")) {
  Curve curve;
  curve.id = QString::number(number) + name;
  curve.group_id = QStringLiteral("run%1").arg(number);
  curve.group = curve.group_id;
  curve.name = name;
  curve.metric = QStringLiteral("loss");
  curve.number = number;
  curve.series = std::move(series);
  return curve;
}

class Chart : public testing::Test {
 protected:
  void SetUp() override {
    look().set_mode(ThemeMode::light);
    shared.set_smoothing(0);
    panel.resize(700, 420);
    panel.show();
    QCoreApplication::processEvents();
  }
  void show_curves(std::vector<Curve> curves) {
    chart()->set_curves(std::move(curves));
    chart()->refresh_now();
    QCoreApplication::processEvents();
  }
  CurveChart* chart() { return panel.chart(); }
  QImage picture() { return chart()->viewport()->grab().toImage(); }
  QPoint at(double x, double y) {
    const QRectF plot = chart()->plot_rect();
    const AxisRange xs = chart()->x_range(), ys = chart()->y_range();
    return {qRound(plot.left() + (x - xs.low) / xs.span() * plot.width()),
            qRound(plot.bottom() - (y - ys.low) / ys.span() * plot.height())};
  }
  QRect around(QPoint p, int half = 2) { return {p - QPoint(half, half), p + QPoint(half, half)}; }
  void move_to(QPoint p) { QTest::mouseMove(chart()->viewport(), p); }
  void wheel(QPoint p, int turns, Qt::KeyboardModifiers keys = Qt::NoModifier) {
    QWheelEvent event(p, chart()->viewport()->mapToGlobal(p), QPoint(), QPoint(0, 120 * turns), Qt::NoButton, keys,
                      Qt::NoScrollPhase, false);
    QCoreApplication::sendEvent(chart()->viewport(), &event);
  }
  void drag(QPoint from, QPoint to) {
    QTest::mousePress(chart()->viewport(), Qt::LeftButton, {}, from);
    QMouseEvent move(QEvent::MouseMove, to, chart()->viewport()->mapToGlobal(to), Qt::NoButton, Qt::LeftButton, {});
    QCoreApplication::sendEvent(chart()->viewport(), &move);
    QTest::mouseRelease(chart()->viewport(), Qt::LeftButton, {}, to);
  }

  SharedView shared;
  ChartPanel panel{{QStringLiteral("loss"), QStringLiteral("Loss"), QStringLiteral("nats"), ValueFormat::fixed3, false},
                   &shared};
};

TEST_F(Chart, ManyThatComeToShowAtOnceDoNotHoldUpTheWindow) {
  std::vector<double> ys(400'000);
  for (std::size_t i = 0; i < ys.size(); ++i) ys[i] = 2 + std::sin(static_cast<double>(i) * 0.001);
  const auto series = series_of(ys);
  shared.set_smoothing(0.9);
  QWidget page;
  std::vector<CurveChart*> charts;
  for (int i = 0; i < 12; ++i) {
    charts.push_back(new CurveChart(panel.chart()->setup(), &shared, &page));
    charts.back()->setGeometry(0, 100 * i, 300, 100);
    charts.back()->set_curves({curve_of(series)});
  }
  page.resize(400, 1200);
  page.show();
  const auto waiting = [&] {
    return std::count_if(charts.begin(), charts.end(), [](const CurveChart* c) { return c->refresh_pending(); });
  };
  EXPECT_GT(waiting(), 0) << "the last ones wait until the window has had its turn";
  EXPECT_LT(waiting(), 12) << "the first is there at once";
  ASSERT_TRUE(wait_until([&] { return waiting() == 0; }));
  for (const CurveChart* chart : charts) EXPECT_GT(chart->refreshes(), 0);
  // What is hidden and comes back unchanged is drawn as it was.
  const int before = charts[0]->refreshes();
  page.hide();
  page.show();
  EXPECT_EQ(charts[0]->refreshes(), before);
  charts[0]->set_curves({curve_of(series, 1)});
  ASSERT_TRUE(wait_until([&] { return waiting() == 0; }));
  EXPECT_GT(charts[0]->refreshes(), before);
}

TEST_F(Chart, DrawsInTheRunsColour) {
  std::vector<double> ys;
  for (int i = 0; i < 500; ++i) ys.push_back(2 + std::sin(i * 0.05));
  for (const int number : {0, 1, 6}) {
    show_curves({curve_of(series_of(ys), number)});
    const QImage image = picture();
    EXPECT_GT(count_pixels(image, theme().run_color(number), chart()->plot_rect().toRect()), 300) << number;
    EXPECT_EQ(count_pixels(image, theme().run_color(number == 1 ? 0 : 1), chart()->plot_rect().toRect(), 10), 0);
  }
}

TEST_F(Chart, FollowsTheTheme) {
  show_curves({curve_of(series_of({1, 2, 3, 2, 1}))});
  look().set_mode(ThemeMode::dark);
  chart()->refresh_now();
  QCoreApplication::processEvents();
  EXPECT_GT(count_pixels(picture(), Theme::builtin(true).run_color(0)), 100);
}

TEST_F(Chart, ASpikeOfOneStepAmongAMillionIsSeen) {
  std::vector<double> ys(1'000'000, 2.0);
  ys[637'211] = 9.0;
  show_curves({curve_of(series_of(ys))});
  const QPoint top = at(637'212, 8.7);
  EXPECT_GT(count_pixels(picture(), theme().run_color(0), around(top, 3), 90), 0);
  EXPECT_EQ(chart()->facts().raw, 1'000'000u);
  EXPECT_LE(chart()->facts().drawn, 4u * 700u);
  // And at a closer look.
  shared.push({AxisRange{630'000, 640'000}, {}});
  chart()->refresh_now();
  QCoreApplication::processEvents();
  EXPECT_GT(count_pixels(picture(), theme().run_color(0), around(at(637'212, 8.7), 3), 90), 0);
}

TEST_F(Chart, SmoothedLineHasItsRawFaintBehind) {
  std::vector<double> ys;
  for (int i = 0; i < 400; ++i) ys.push_back(i % 2 ? 1.0 : 3.0);
  shared.set_smoothing(0.9);
  show_curves({curve_of(series_of(ys))});
  const QColor faint = mix(theme().run_color(0), theme()[Token::surface], 0.28);
  EXPECT_GT(count_pixels(picture(), faint, {}, 12), 1000);
  EXPECT_GT(count_pixels(picture(), theme().run_color(0), {}, 40), 200);
  shared.set_raw_shown(false);
  chart()->refresh_now();
  QCoreApplication::processEvents();
  EXPECT_EQ(count_pixels(picture(), faint, chart()->plot_rect().toRect().adjusted(4, 0, 0, -120), 6), 0);
}

TEST_F(Chart, DoesNotBridgeAGap) {
  std::vector<double> ys(300, 2.0);
  for (int i = 100; i < 200; ++i) ys[static_cast<std::size_t>(i)] = nan_value;
  ys[0] = 1;  // some height
  ys[299] = 3;
  show_curves({curve_of(series_of(ys))});
  const QRect gap(at(120, 2.2), at(190, 1.8));
  EXPECT_EQ(count_pixels(picture(), theme().run_color(0), gap, 90), 0);
  EXPECT_GT(count_pixels(picture(), theme().run_color(0), QRect(at(20, 2.2), at(90, 1.8)), 60), 20);
  // A cross marks where the values end, and the badge says so.
  EXPECT_GT(count_pixels(picture(), theme()[Token::bad], around(at(101, 2), 8), 60), 4);
  EXPECT_EQ(chart()->facts().non_finite, 100u);
  ASSERT_TRUE(chart()->facts().first_non_finite);
  EXPECT_EQ(*chart()->facts().first_non_finite, 101);
}

TEST_F(Chart, ATornCurveStaysWholeAndQuick) {
  std::vector<double> ys;
  for (int i = 0; i < 20000; ++i) ys.push_back(i % 3 == 0 ? nan_value : 2 + std::sin(i * 0.001));
  show_curves({curve_of(series_of(ys))});
  EXPECT_GT(count_pixels(picture(), theme().run_color(0), {}, 60), 300);
  EXPECT_LT(chart()->chart()->series().size(), 200);
}

TEST_F(Chart, BadgeGoesToTheFirstNonFinite) {
  std::vector<double> ys(1000, 1.5);
  ys[700] = nan_value;
  show_curves({curve_of(series_of(ys))});
  shared.push({AxisRange{10, 60}, {}});
  chart()->refresh_now();
  QToolButton* badge = nullptr;
  for (QToolButton* button : panel.findChildren<QToolButton*>())
    if (button->property("badge").toString() == QLatin1String("bad") && button->isVisible()) badge = button;
  ASSERT_NE(badge, nullptr);
  EXPECT_TRUE(badge->text().contains(QLatin1String("701"))) << badge->text().toStdString();
  QTest::mouseClick(badge, Qt::LeftButton);
  EXPECT_EQ(shared.crosshair(), 701);
  chart()->refresh_now();
  EXPECT_LE(chart()->data_window().low, 701);
  EXPECT_GE(chart()->data_window().high, 701);
}

TEST_F(Chart, TheLabelOfALineThatEndedInNaNSaysSo) {
  std::vector<double> ys(100, 1.5);
  show_curves({curve_of(series_of(ys))});
  ASSERT_EQ(chart()->end_labels().size(), 1u);
  EXPECT_EQ(chart()->end_labels()[0].text, format_fixed(1.5, 3));
  ys.back() = nan_value;
  show_curves({curve_of(series_of(ys)), curve_of(series_of({nan_value}), 1, QStringLiteral("val"))});
  ASSERT_EQ(chart()->end_labels().size(), 2u);
  for (const auto& label : chart()->end_labels()) {
    EXPECT_TRUE(label.text.contains(QLatin1String("NaN"))) << label.text.toStdString();
    EXPECT_EQ(label.color, theme()[Token::bad]);
  }
  EXPECT_EQ(chart()->end_labels()[0].y, 1.5) << "where its last number was";
}

TEST_F(Chart, LogAxisLeavesNonPositiveValuesOutAndSaysHowMany) {
  std::vector<double> ys;
  for (int i = 0; i < 500; ++i) ys.push_back(std::exp(-i * 0.02));
  ys[100] = 0;
  ys[200] = -3;
  ys[300] = 0;
  show_curves({curve_of(series_of(ys))});
  panel.set_log_y(true);
  chart()->refresh_now();
  QCoreApplication::processEvents();
  EXPECT_EQ(chart()->facts().hidden, 3u);
  EXPECT_GT(count_pixels(picture(), theme().run_color(0), {}, 60), 300) << "one value of 0 must not blank the line";
  QToolButton* badge = nullptr;
  for (QToolButton* button : panel.findChildren<QToolButton*>())
    if (button->property("badge").toString() == QLatin1String("warn") && button->isVisible()) badge = button;
  ASSERT_NE(badge, nullptr);
  EXPECT_TRUE(badge->text().startsWith(QLatin1String("3 "))) << badge->text().toStdString();
  QTest::mouseClick(badge, Qt::LeftButton);
  EXPECT_FALSE(chart()->log_y());
}

TEST_F(Chart, OddSeriesAreNoTrouble) {
  for (const bool log_y : {false, true})
    for (const double beta : {0.0, 0.9})
      for (const std::vector<double>& ys : {std::vector<double>{},
                                            {2.0},
                                            {nan_value},
                                            std::vector<double>(1000, nan_value),
                                            std::vector<double>(1000, 0.0),
                                            {1e308, -1e308, 1e308},
                                            {5, nan_value, 5},
                                            {1e-320, 1e-310}}) {
        panel.set_log_y(log_y);
        shared.set_smoothing(beta);
        show_curves({curve_of(series_of(ys))});
        const AxisRange y = chart()->y_range();
        EXPECT_TRUE(std::isfinite(y.low) && std::isfinite(y.high) && y.span() > 0);
        picture();
      }
  // A single point is a dot.
  panel.set_log_y(false);
  shared.set_smoothing(0);
  show_curves({curve_of(series_of({2.0}, 50))});
  EXPECT_GT(count_pixels(picture(), theme().run_color(0), around(at(50, 2), 3), 60), 3);
}

TEST_F(Chart, EmptyPanelSaysWhy) {
  chart()->set_empty_text(QStringLiteral("The first loss comes soon."));
  show_curves({});
  EXPECT_GT(count_pixels(picture(), theme()[Token::text3], chart()->plot_rect().toRect(), 40), 40);
  EXPECT_EQ(chart()->accessibleDescription(), "The first loss comes soon.");
}

TEST_F(Chart, ValidationIsHollowCircles) {
  Curve val = curve_of(series_of({3, 2.5, 2, 1.8}), 0, QStringLiteral("val"));
  val.points = true;
  show_curves({val});
  const QPoint p = at(2, 2.5);
  EXPECT_GT(count_pixels(picture(), theme().run_color(0), around(p, 4), 90), 4);
  EXPECT_TRUE(close_to(picture().pixelColor(p), theme()[Token::surface], 30));
}

TEST_F(Chart, WheelZoomsAtTheCursorAndBackReturns) {
  std::vector<double> ys(2000, 1.0);
  ys[10] = 2;
  show_curves({curve_of(series_of(ys))});
  const AxisRange before = chart()->data_window();
  const QPoint cursor = at(500, 1.5);
  // Before: the labels of the new axis may be wider, which moves the plot.
  const QRectF plot = chart()->plot_rect();
  wheel(cursor, 3);
  chart()->refresh_now();
  const AxisRange after = chart()->data_window();
  EXPECT_NEAR(after.span(), before.span() * 0.512, before.span() * 0.01);
  EXPECT_NEAR((cursor.x() - plot.left()) / plot.width() * after.span() + after.low, 500, 5);
  shared.back();
  chart()->refresh_now();
  EXPECT_EQ(chart()->data_window(), before);
  shared.forward();
  chart()->refresh_now();
  EXPECT_EQ(chart()->data_window(), after);
  QTest::keyClick(chart(), Qt::Key_Home);
  chart()->refresh_now();
  EXPECT_EQ(chart()->data_window(), before);
}

TEST_F(Chart, ShiftWheelZoomsInY) {
  show_curves({curve_of(series_of({1, 5, 2, 4, 3}))});
  const AxisRange x = chart()->x_range(), y = chart()->y_range();
  wheel(at(3, 3), 2, Qt::ShiftModifier);
  chart()->refresh_now();
  EXPECT_EQ(chart()->x_range(), x);
  EXPECT_NEAR(chart()->y_range().span(), y.span() * 0.64, y.span() * 0.02);
}

TEST_F(Chart, DragZoomsIntoTheRectangleAndDoubleClickShowsAll) {
  std::vector<double> ys;
  for (int i = 0; i < 1000; ++i) ys.push_back(1 + i * 0.001);
  show_curves({curve_of(series_of(ys))});
  const AxisRange before = chart()->data_window();
  drag(at(200, 1.8), at(600, 1.2));
  chart()->refresh_now();
  EXPECT_NEAR(chart()->data_window().low, 200, 4);
  EXPECT_NEAR(chart()->data_window().high, 600, 4);
  EXPECT_NEAR(chart()->y_range().low, 1.2, 0.02);
  EXPECT_NEAR(chart()->y_range().high, 1.8, 0.02);
  QTest::mouseDClick(chart()->viewport(), Qt::LeftButton, {}, chart()->plot_rect().center().toPoint());
  chart()->refresh_now();
  EXPECT_EQ(chart()->data_window(), before);
  // A flat drag leaves y alone.
  drag(at(200, 1.5), at(600, 1.5) + QPoint(0, 3));
  EXPECT_TRUE(shared.view().x);
  EXPECT_TRUE(shared.view().y.isEmpty());
}

TEST_F(Chart, CrosshairReadsTheNearestStep) {
  std::vector<double> ys;
  for (int i = 0; i < 200; ++i) ys.push_back(i * 0.01);
  Curve curve = curve_of(series_of(ys));
  curve.tokens_per_step = 4096;
  shared.set_smoothing(0.5);
  show_curves({curve});
  move_to(at(100, 1.0));
  ASSERT_TRUE(shared.crosshair());
  EXPECT_NEAR(*shared.crosshair(), 100, 1);
  const Readout readout = chart()->readout(100, std::nullopt);
  EXPECT_EQ(readout.title, "step 100");
  EXPECT_EQ(readout.aside, "409,600 tokens");
  ASSERT_EQ(readout.rows.size(), 1u);
  EXPECT_EQ(readout.rows[0].raw, "raw 0.990");
  EXPECT_EQ(readout.rows[0].value, "0.980");
  // The tip stands beside the cursor, not under it.
  const auto* tip = panel.findChild<ReadoutTip*>(QStringLiteral("tip"));
  ASSERT_NE(tip, nullptr);
  EXPECT_TRUE(tip->isVisible());
  EXPECT_FALSE(tip->geometry().contains(chart()->viewport()->mapTo(&panel, at(100, 1.0))));
  EXPECT_GT(count_pixels(picture(), theme()[Token::input],
                         QRect(at(100, 1.9), at(100, 0.2)).normalized().adjusted(-2, 0, 2, 0), 40),
            50);
  QTest::keyClick(chart(), Qt::Key_Right);
  EXPECT_NEAR(*shared.crosshair(), 101, 1);
  QTest::keyClick(chart(), Qt::Key_Escape);
  EXPECT_FALSE(shared.crosshair());
}

TEST_F(Chart, ReadoutIsSortedByDistanceAndCountsShorterRuns) {
  show_curves({curve_of(series_of(std::vector<double>(100, 1.0)), 0),
               curve_of(series_of(std::vector<double>(100, 2.0)), 1),
               curve_of(series_of(std::vector<double>(20, 3.0)), 2)});
  const Readout readout = chart()->readout(60, at(60, 1.9).y());
  ASSERT_EQ(readout.rows.size(), 2u);
  EXPECT_EQ(readout.rows[0].name, "run1");
  EXPECT_EQ(readout.footer, "1 run has no value here");
}

TEST_F(Chart, PanelsShareCrosshairAndRange) {
  ChartPanel other({QStringLiteral("lr"), QStringLiteral("Learning rate"), {}, ValueFormat::scientific, false},
                   &shared);
  other.resize(500, 300);
  other.show();
  show_curves({curve_of(series_of(std::vector<double>(500, 1.0)))});
  other.chart()->set_curves({curve_of(series_of(std::vector<double>(500, 1e-3)))});
  wheel(at(250, 1), 2);
  move_to(at(250, 1));
  other.chart()->refresh_now();
  chart()->refresh_now();
  EXPECT_EQ(other.chart()->data_window(), chart()->data_window());
  QCoreApplication::processEvents();
  EXPECT_GT(count_pixels(other.chart()->viewport()->grab().toImage(), theme()[Token::input],
                         other.chart()->plot_rect().toRect(), 30),
            50);
}

TEST_F(Chart, ManyChangesMakeFewRedraws) {
  auto series = series_of({1, 2, 3});
  show_curves({curve_of(series)});
  const int before = chart()->refreshes();
  QElapsedTimer clock;
  clock.start();
  for (int i = 0; clock.elapsed() < 600; ++i) {
    series->append(std::vector<double>{4.0 + i}, std::vector<double>{1.0});
    chart()->mark_dirty();
    QCoreApplication::processEvents();
  }
  // Ten times a second at most: the bound follows the time that really passed.
  EXPECT_LE(chart()->refreshes() - before, clock.elapsed() / 100 + 1);
  EXPECT_GE(chart()->refreshes() - before, 1);
}

TEST_F(Chart, IsNotDrawnWhileHidden) {
  auto series = series_of({1, 2, 3});
  show_curves({curve_of(series)});
  panel.hide();
  const int before = chart()->refreshes();
  series->append(std::vector<double>{4}, std::vector<double>{10});
  chart()->mark_dirty();
  QTest::qWait(250);
  EXPECT_EQ(chart()->refreshes(), before);
  panel.show();
  QCoreApplication::processEvents();
  EXPECT_GT(chart()->refreshes(), before);
  EXPECT_GE(chart()->y_range().high, 10);
}

TEST_F(Chart, AxisReachesTheExpectedEnd) {
  chart()->set_expected_end(2000);
  show_curves({curve_of(series_of({3, 2, 1}))});
  EXPECT_EQ(chart()->data_window().high, 2000);
}

TEST_F(Chart, RobustRangeCutsOutliersAndSaysSo) {
  std::vector<double> ys(2000, 1.0);
  for (std::size_t i = 0; i < ys.size(); ++i) ys[i] += 0.001 * static_cast<double>(i % 100);
  ys[1000] = 1000;
  show_curves({curve_of(series_of(ys))});
  EXPECT_GE(chart()->y_range().high, 1000);
  shared.set_robust(true);
  chart()->refresh_now();
  EXPECT_LT(chart()->y_range().high, 2);
  EXPECT_TRUE(chart()->facts().robust_cuts);
}

TEST_F(Chart, ReferenceLinesAreDashedWithALabel) {
  chart()->set_reference_lines({{5.545, QStringLiteral("5.55, a blind guess")}});
  show_curves({curve_of(series_of({5, 4, 3, 2}))});
  EXPECT_GE(chart()->y_range().high, 5.545);
  const QRect strip(QPoint(static_cast<int>(chart()->plot_rect().left()) + 4, at(1, 5.545).y() - 1), QSize(200, 3));
  const int inked = count_pixels(picture(), theme()[Token::text3], strip, 90);
  EXPECT_GT(inked, 60);
  EXPECT_LT(inked, 260);
}

TEST_F(Chart, SignsOfEventsAndLabelsOfLinesKeepApart) {
  std::vector<EventMark> events;
  for (int step = 1; step <= 40; ++step)
    events.push_back({static_cast<double>(step), Glyph::diamond, Token::good, QString(), false});
  chart()->set_events(events);
  // The line lies near the top, where the signs are.
  const std::vector<double> ys(40, 5.5);
  int inked[2] = {};
  for (const bool labelled : {false, true}) {
    if (labelled) chart()->set_reference_lines({{5.545, QStringLiteral("5.55, a blind guess among 256 bytes")}});
    show_curves({curve_of(series_of(ys))});
    const QRectF plot = chart()->plot_rect();
    const QRect top(QPoint(static_cast<int>(plot.left()), static_cast<int>(plot.top()) - 2),
                    QSize(static_cast<int>(plot.width()), metrics().scaled(9)));
    EXPECT_GT(count_pixels(picture(), theme()[Token::good], top, 40), 100);
    inked[labelled] = count_pixels(picture(), theme()[Token::text3], top, 40);
    keep_picture(picture(), labelled ? QStringLiteral("signs-and-label") : QStringLiteral("signs"));
  }
  EXPECT_LE(inked[1], inked[0] + 5);
}

TEST_F(Chart, ABaselineIsWhatOthersAreHeldAgainst) {
  Curve base = curve_of(series_of({3, 3, 3, 3}), 0);
  base.baseline = true;
  show_curves({base, curve_of(series_of({4, 3.5, 3.25, 2.5}), 1)});
  chart()->shared()->set_smoothing(0);
  const Readout there = chart()->readout(3, std::nullopt);
  ASSERT_EQ(there.rows.size(), 2u);
  for (const auto& row : there.rows)
    EXPECT_EQ(row.raw.contains(QLatin1String("+0.250 to baseline")), row.number == 1) << row.raw.toStdString();
}

TEST_F(Chart, FilesDoNotDependOnTheLocale) {
  show_curves({curve_of(series_of({0.5, 1.25, nan_value, std::numeric_limits<double>::infinity(), 1e-9}))});
  const QByteArray expected =
      "run,name,metric,step,value\n"
      "run0,run0,loss,1,0.5\nrun0,run0,loss,2,1.25\nrun0,run0,loss,3,nan\nrun0,run0,loss,4,inf\nrun0,run0,loss,5,1e-"
      "09\n";
  EXPECT_EQ(to_csv(extract(*chart())), expected);
  const QLocale before;
  QLocale::setDefault(QLocale(QLocale::German, QLocale::Germany));
  EXPECT_EQ(to_csv(extract(*chart())), expected);
  EXPECT_EQ(format_value(1.25, ValueFormat::fixed3), "1,250");
  EXPECT_EQ(QString::fromLatin1(std::localeconv()->decimal_point), ".");
  QLocale::setDefault(before);
}

TEST_F(Chart, SavesPictureAndVisibleValues) {
  QTemporaryDir folder;
  show_curves({curve_of(series_of({5, 4, 3, 2, 1}))});
  QSignalSpy saved(&panel, &ChartPanel::saved);
  panel.save_values(folder.filePath(QStringLiteral("loss.csv")));
  ASSERT_TRUE(wait_until([&] { return saved.count() == 1; }));
  EXPECT_EQ(saved[0][1].toString(), "");
  QFile csv(folder.filePath(QStringLiteral("loss.csv")));
  ASSERT_TRUE(csv.open(QIODevice::ReadOnly));
  EXPECT_EQ(csv.readAll().count('\n'), 6);
  panel.save_picture(folder.filePath(QStringLiteral("loss.png")));
  ASSERT_TRUE(wait_until([&] { return saved.count() == 2; }));
  EXPECT_GT(count_pixels(QImage(folder.filePath(QStringLiteral("loss.png"))), theme().run_color(0)), 100);
  panel.save_values(folder.filePath(QStringLiteral("no/such/folder.csv")));
  ASSERT_TRUE(wait_until([&] { return saved.count() == 3; }));
  EXPECT_TRUE(saved[2][1].toString().contains(QLatin1String("folder.csv")));
}

TEST_F(Chart, MenuOffersExportTableAndAxes) {
  show_curves({curve_of(series_of({5, 4, 3}))});
  QContextMenuEvent event(QContextMenuEvent::Mouse, QPoint(100, 100), chart()->mapToGlobal(QPoint(100, 100)));
  QCoreApplication::sendEvent(chart()->viewport(), &event);
  const auto* menu = panel.findChild<QMenu*>();
  ASSERT_NE(menu, nullptr);
  QStringList words;
  for (const QAction* action : menu->actions()) words << action->text();
  const QString all = words.join(QLatin1Char('|'));
  for (const char* needed : {"PNG", "CSV", "table", "ogarithmic", "non-finite"})
    EXPECT_TRUE(all.contains(QLatin1String(needed))) << needed;
}

TEST_F(Chart, TableHasTheRawValues) {
  show_curves({curve_of(series_of({5, 4, nan_value}), 0), curve_of(series_of({1.5}, 2), 1)});
  const SeriesTableModel table(*chart(), nullptr);
  ASSERT_EQ(table.rowCount(), 3);
  ASSERT_EQ(table.columnCount(), 3);
  const auto cell = [&](int row, int column) {
    return table.data(table.index(row, column), Qt::DisplayRole).toString();
  };
  EXPECT_EQ(cell(0, 0), "1");
  EXPECT_EQ(cell(0, 1), "5.000");
  EXPECT_EQ(cell(0, 2), missing());
  EXPECT_EQ(cell(1, 2), "1.500");
  EXPECT_EQ(cell(2, 1), "NaN");
}

TEST_F(Chart, LabelsThatFindNoRoomAreCounted) {
  panel.resize(700, 160);
  const auto grey_right_of = [&](int runs) {
    std::vector<Curve> curves;
    for (int i = 0; i < runs; ++i) curves.push_back(curve_of(series_of({3, 2 + i * 0.01}), i));
    show_curves(std::move(curves));
    const QRectF plot = chart()->plot_rect();
    const QRect right(QPoint(static_cast<int>(plot.right()) + 4, static_cast<int>(plot.top())),
                      QPoint(chart()->viewport()->width() - 1, static_cast<int>(plot.bottom()) - 1));
    return count_pixels(picture(), theme()[Token::text3], right, 30);
  };
  EXPECT_EQ(grey_right_of(2), 0);
  EXPECT_GT(grey_right_of(20), 4);
}

TEST_F(Chart, BadgesAreShortenedNeverInTheirMiddle) {
  std::vector<double> ys(1000, 1.5);
  for (std::size_t i = 700; i < 735; ++i) ys[i] = nan_value;
  QWidget page;
  auto* small = new ChartPanel(chart()->setup(), &shared, &page);
  small->resize(700, 300);
  page.show();
  small->chart()->set_curves({curve_of(series_of(ys))});
  small->chart()->refresh_now();
  QToolButton* badge = nullptr;
  for (QToolButton* button : small->findChildren<QToolButton*>())
    if (button->property("badge").toString() == QLatin1String("bad")) badge = button;
  ASSERT_NE(badge, nullptr);
  const QString full = badge->text();
  EXPECT_TRUE(full.contains(QLatin1String("701")));
  EXPECT_LT(small->minimumSizeHint().width(), 200) << "it holds no panel open";
  QStringList seen;
  for (int width = 700; width >= 160; width -= 10) {
    small->resize(width, 300);
    QCoreApplication::processEvents();
    EXPECT_GE(badge->width(), badge->sizeHint().width()) << width << ' ' << badge->text().toStdString();
    if (seen.isEmpty() || seen.last() != badge->text()) seen << badge->text();
    EXPECT_TRUE(badge->text() == full || badge->toolTip().startsWith(full)) << badge->toolTip().toStdString();
  }
  EXPECT_TRUE(seen.contains(QString::fromUtf8("NaN ×35"))) << seen.join(QLatin1Char('|')).toStdString();
}

}  // namespace
}  // namespace stacklab::ui
