// How the window looks, and that everybody can use it: scenes, names, shortcuts, text zoom, narrow screens, a million
// points.
#include <QAccessible>
#include <QAction>
#include <QDockWidget>
#include <QElapsedTimer>
#include <QScrollArea>
#include <QStackedWidget>
#include <cmath>
#include <set>

#include "tests/ui/watchdog.h"
#include "tests/ui/window_testing.h"

namespace stacklab::ui {
namespace {

struct Scene {
  const char* name;
  std::function<void(FakeWorkspace&, WindowOptions&)> fill;
};

const std::vector<Scene>& scenes() {
  static const std::vector<Scene> all = {
      {"empty",
       [](FakeWorkspace&, WindowOptions& o) {
         o.first_run = sample_config();
         o.start_first_run = false;
       }},
      {"preparing",
       [](FakeWorkspace& w, WindowOptions&) {
         JobSnapshot job;
         job.job = 1;
         job.name = "first-run";
         job.progress = {"text", "King James Bible, from the distribution's packages: unpacking the text", 2'100'000,
                         4'400'000};
         w.set_jobs({job});
       }},
      {"running", [](FakeWorkspace& w, WindowOptions&) { put_running_job(w, 0); }},
      {"finished",
       [](FakeWorkspace& w, WindowOptions&) {
         RunSummary run = sample_run(0, RunState::finished, 400);
         w.put_run(run);
         add_sample_curves(w, run);
       }},
      {"many",
       [](FakeWorkspace& w, WindowOptions&) {
         for (int n = 0; n < 7; ++n) {
           RunSummary run = sample_run(n,
                                       n == 3   ? RunState::failed
                                       : n == 4 ? RunState::paused
                                       : n == 5 ? RunState::lost
                                                : RunState::finished,
                                       n == 3   ? 170
                                       : n == 4 ? 260
                                                : 400);
           if (n == 3)
             run.cause =
                 "the gradient was not finite in 5 steps in a row, the last of them step 170 (resume from an earlier "
                 "checkpoint with a smaller optim.adam_lr)";
           if (n == 4) run.cause = "stopped at step 260 by the user";
           w.put_run(run);
           add_sample_curves(w, run);
           if (n == 3) {
             std::vector<SeriesPoint> bad;
             for (int s = 171; s < 176; ++s) bad.push_back({s, std::nan("")});
             w.add_points(run.id, "loss", bad);
             w.add_event(run.id, {RunEvent::Kind::spike, 120, "Loss spike to 3.94"});
             w.add_event(run.id,
                         {RunEvent::Kind::non_finite, 171, "Step skipped: the gradient norm is nan, the loss nan"});
           }
         }
         put_running_job(w, 7);
       }},
      {"failed",
       [](FakeWorkspace& w, WindowOptions&) {
         RunSummary run = sample_run(0, RunState::failed, 170);
         run.cause =
             "the gradient was not finite in 5 steps in a row, the last of them step 170 (resume from an earlier "
             "checkpoint with a smaller optim.adam_lr)";
         w.put_run(run);
         add_sample_curves(w, run);
         std::vector<SeriesPoint> bad;
         for (int s = 171; s < 176; ++s) bad.push_back({s, std::nan("")});
         w.add_points(run.id, "loss", bad);
         w.add_points(run.id, "grad_norm", bad);
         w.add_event(run.id, {RunEvent::Kind::non_finite, 171, "Step skipped: the gradient norm is nan, the loss nan"});
       }},
  };
  return all;
}

TEST(Window, DrawsEveryScene) {
  for (const bool dark : {false, true}) {
    look().set_mode(dark ? ThemeMode::dark : ThemeMode::light);
    for (const Scene& scene : scenes()) {
      const std::string name = scene.name;
      auto workspace = std::make_shared<FakeWorkspace>();
      WindowOptions options = options_for(workspace);
      options.for_pictures = true;
      scene.fill(*workspace, options);
      auto window = shown(options);
      window->monitor()->set_introduction(name == "running" || name == "preparing", "kjv");
      ASSERT_TRUE(wait_until([&] { return window->settled(); })) << name;
      QTest::qWait(150);  // layouts come to rest
      const QImage image = window->grab().toImage();
      keep_picture(image, QString::fromLatin1(scene.name) + (dark ? "-dark" : "-light"));
      EXPECT_GT(count_pixels(image, theme()[Token::window], {}, 2), 100'000) << name;
      MonitorPage* page = window->monitor();
      EXPECT_EQ(page->notice()->isVisible(), name == "empty");
      EXPECT_EQ(page->journey_strip()->isVisible(), name == "preparing" || name == "running");
      EXPECT_EQ(page->failure_strip()->isVisible(), name == "failed");
      const bool has_curves = name != "empty" && name != "preparing";
      EXPECT_EQ(page->charts()->raw_points() > 0, has_curves);
      if (has_curves) {
        CurveChart* chart = page->charts()->panel(QStringLiteral("loss"))->chart();
        const int number = name == "many" ? 7 : 0;
        EXPECT_GT(count_pixels(chart->viewport()->grab().toImage(), theme().run_color(number), {}, 50), 200) << name;
      }
    }
  }
  look().set_mode(ThemeMode::light);
}

TEST_F(WindowTest, EveryControlHasAName) {
  put_running();
  open();
  ASSERT_TRUE(wait_until([&] { return window->settled(); }));
  for (const QString& page : window->page_names()) {
    window->show_page(page);
    QCoreApplication::processEvents();
    for (const QWidget* widget : window->findChildren<QWidget*>()) {
      if (!widget->isVisible() || widget->focusPolicy() == Qt::NoFocus) continue;
      if (qobject_cast<const QStackedWidget*>(widget) || qobject_cast<const QScrollArea*>(widget)) continue;
      const QAccessibleInterface* face = QAccessible::queryAccessibleInterface(const_cast<QWidget*>(widget));
      ASSERT_NE(face, nullptr);
      EXPECT_FALSE(face->text(QAccessible::Name).isEmpty())
          << page.toStdString() << ": " << widget->metaObject()->className() << " "
          << widget->objectName().toStdString();
    }
  }
  // What Tab reaches in turn has names, and comes back to where it began.
  window->show_page(QStringLiteral("monitor"));
  std::set<QWidget*> seen;
  QWidget* at = window->monitor();
  for (int i = 0; i < 500 && seen.insert(at).second; ++i) at = at->nextInFocusChain();
  EXPECT_GT(seen.size(), 20u);
}

TEST_F(WindowTest, ActionsHaveShortcutsThatDoNotClash) {
  open();
  std::map<QString, QString> taken;
  int with_shortcut = 0;
  for (const QAction* action : window->findChildren<QAction*>())
    for (const QKeySequence& keys : action->shortcuts()) {
      if (keys.isEmpty()) continue;
      ++with_shortcut;
      const auto [at, fresh] = taken.emplace(keys.toString(), action->text());
      EXPECT_TRUE(fresh) << keys.toString().toStdString() << ": " << at->second.toStdString() << " and "
                         << action->text().toStdString();
    }
  EXPECT_GT(with_shortcut, 15);
}

TEST_F(WindowTest, TextZoomKeepsEverythingReadable) {
  put_running();
  open();
  ASSERT_TRUE(wait_until([&] { return window->settled(); }));
  const int before = window->monitor()->run_list()->sizeHintForRow(0);
  for (int i = 0; i < 5; ++i) QTest::keyClick(window.get(), Qt::Key_Plus, Qt::ControlModifier);
  EXPECT_EQ(look().zoom(), 150);
  QTest::qWait(200);
  EXPECT_GT(window->monitor()->run_list()->sizeHintForRow(0), before);
  keep_picture(window->grab().toImage(), QStringLiteral("zoom-150"));
  // Buttons are at least as wide and high as what they say.
  for (const QPushButton* button : window->findChildren<QPushButton*>()) {
    if (!button->isVisible()) continue;
    EXPECT_GE(button->height(), button->fontMetrics().height()) << button->text().toStdString();
    EXPECT_GE(button->width(), button->fontMetrics().horizontalAdvance(button->text())) << button->text().toStdString();
  }
  QTest::keyClick(window.get(), Qt::Key_0, Qt::ControlModifier);
  EXPECT_EQ(look().zoom(), 100);
}

TEST_F(WindowTest, NarrowWindowsGiveUpTheDockThenTheList) {
  put_running();
  open();
  ASSERT_TRUE(wait_until([&] { return window->settled(); }));
  auto* dock = window->findChild<QDockWidget*>();
  EXPECT_TRUE(dock->isVisible());
  window->resize(1200, 800);
  QCoreApplication::processEvents();
  EXPECT_FALSE(dock->isVisible());
  EXPECT_TRUE(window->monitor()->run_list()->isVisible());
  keep_picture(window->grab().toImage(), QStringLiteral("narrow-1200"));
  window->resize(900, 700);
  QCoreApplication::processEvents();
  EXPECT_FALSE(window->monitor()->run_list()->isVisible());
  window->resize(1600, 1000);
  QCoreApplication::processEvents();
  EXPECT_TRUE(dock->isVisible());
  EXPECT_TRUE(window->monitor()->run_list()->isVisible());
}

TEST_F(WindowTest, AMillionPointsNeverBlockTheWindow) {
  constexpr std::int64_t n = 1'000'000;
  RunSummary run = sample_run(0, RunState::finished, n, n);
  workspace->put_run(run);
  for (const char* name : {"loss", "adam_lr", "grad_norm", "tokens_per_second"}) {
    std::vector<SeriesPoint> points;
    points.reserve(n);
    for (std::int64_t s = 1; s <= n; ++s)
      points.push_back({s, 1 + 1.0 / static_cast<double>(s) + 0.1 * static_cast<double>(s * 2654435761 % 1000) / 1000});
    workspace->add_points(run.id, name, points);
  }
  open();
  ASSERT_TRUE(wait_until([&] { return window->isVisible() && window->link()->can_steer(); }));
  Watchdog dog;
  QElapsedTimer clock;
  clock.start();
  ASSERT_TRUE(
      wait_until([&] { return window->settled() && window->monitor()->charts()->raw_points() == 4 * n; }, 120000));
  const qint64 loading = clock.elapsed();
  // Looking around in it must be as light.
  CurveChart* chart = window->monitor()->charts()->panel(QStringLiteral("loss"))->chart();
  for (int i = 0; i < 10; ++i) {
    window->monitor()->charts()->view()->push({AxisRange{1000.0 * i, 900'000.0 - 5000 * i}, {}});
    ASSERT_TRUE(wait_until([&] { return window->settled(); }));
  }
  window->monitor()->charts()->view()->set_smoothing(0.97);
  ASSERT_TRUE(wait_until([&] { return window->settled(); }));
  RecordProperty("worst_cpu_ms", std::to_string(dog.worst_cpu));
  RecordProperty("worst_wall_ms", std::to_string(dog.worst_wall));
  std::printf(
      "4 x %lld points: loaded in %lld ms; longest turn of the window %.1f ms of its own time, %.1f ms by the clock\n",
      static_cast<long long>(n), static_cast<long long>(loading), dog.worst_cpu, dog.worst_wall);
  EXPECT_LE(chart->facts().drawn, 4u * 2000u);
  EXPECT_LT(dog.worst_cpu, longest_block_ms);
}

}  // namespace
}  // namespace stacklab::ui
